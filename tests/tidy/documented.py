"""Which names of the public headers a doc comment (`///`) explains.

A small scanner instead of a compiler: the headers are clang-format's, which keeps declarations one
below the other. One comment right above a run of declarations, no blank line between them,
documents the run; `///<` at the end of a line, that line's. Fields and enumerators that follow the
opening line of a documented type are documented with it."""

import bisect
import dataclasses
import re


@dataclasses.dataclass
class Scope:
    kind: str                    # namespace, class, enum
    public: bool                 # what is declared here can be named by users
    name: str = ""
    documented: bool = True      # the head of a type
    end_line: int = 0            # of the declaration above, or of the scope's opening brace
    run_documented: bool = False
    at_head: bool = False        # nothing but fields since the opening line


def without_comments(text):
    """The text with comments, literals and preprocessor lines blanked, line by line as before."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group(0))
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])\''
    text = re.sub(pattern, blank, text, flags=re.S)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def matching(text, at, opening="{", closing="}"):
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        if text[i] == opening:
            depth += 1
        elif text[i] == closing:
            depth -= 1
            if depth == 0:
                return i + 1
    raise ValueError("unbalanced brackets")


def without_template_head(head):
    """`template <…> requires(…) T f(…)` without what comes before T."""
    head = re.sub(r"\[\[.*?\]\]", " ", head).strip()
    while found := re.match(r"template\s*(?=<)", head):
        head = head[matching(head, found.end(), "<", ">"):].strip()
    if found := re.match(r"requires\s*(?=\()", head):
        head = head[matching(head, found.end(), "(", ")"):].strip()
    else:
        head = re.sub(r"^requires\s+[\w:]+<[^<>]*>\s*", "", head)
    return head


def kind_of(head, scope):
    """What a declaration declares, and its name; None for what needs no comment."""
    plain = " ".join(without_template_head(head).split())
    if not plain or re.match(r"(static_assert|friend (class|struct)|using namespace|namespace)\b",
                             plain):
        return None
    if found := re.match(r"using (\w+) =", plain):
        return "type alias", found.group(1)
    if plain.startswith("using "):
        return None
    if re.match(r"(class|struct|union|enum)\b[^(=]*$", plain):
        return None  # a forward declaration: definitions are scopes
    if re.search(r"= (default|delete)$|\)[^()]*\boverride\b|~\w+\(", plain):
        return None
    own = scope.name
    if own and re.match(rf"(constexpr |explicit )*{own}\((const {own}&|{own}&&)\s*\w*\)", plain):
        return None  # copies and moves
    if own and re.match(rf"(constexpr )?{own}& operator=\((const {own}&|{own}&&)", plain):
        return None
    plain = plain.replace("decltype(auto)", "auto")
    before = plain.split("=")[0] if "operator" not in plain else plain
    function = re.search(r"(operator\s*(?:\(\)|[^\s\w(]+|[\w:<> ,*&]+)|[\w:~]+)\s*\(", before)
    if function:
        name = function.group(1)
        if "::" in name and not name.startswith("operator"):
            return None  # the definition of a member, documented where it is declared
        return "function", name
    names = re.findall(r"(\w+)\s*(?:\{[^}]*\}|\[\w*\])?$", before.strip().rstrip(","))
    return ("field" if scope.kind == "class" else "constant"), names[0] if names else plain


class Scanner:
    """Walks one header; `undocumented` collects (line, kind, name)."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.text = without_comments(text)
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.scopes = [Scope("namespace", True)]
        self.known = set()
        self.undocumented = []

    def line_of(self, position):
        return bisect.bisect_right(self.starts, position)

    def is_comment(self, line):
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return text.startswith("///") and not text.startswith("///<")

    def declare(self, first, last, head, kind=None, name=""):
        """Enters what stands from position `first` to `last` into the innermost scope. Returns
        whether it is documented."""
        scope = self.scopes[-1]
        begin, end = self.line_of(first), self.line_of(last)
        adjacent = begin == scope.end_line + 1
        plain = kind in ("field", "enumerator")
        trailing = any("///<" in self.lines[line - 1] for line in range(begin, end + 1))
        scope.run_documented = self.is_comment(begin - 1) or (adjacent and scope.run_documented)
        documented = trailing or scope.run_documented or (
            adjacent and plain and scope.at_head and scope.documented)
        scope.at_head = scope.at_head and plain and adjacent
        scope.end_line = end
        if kind is not None and scope.public:
            # A friend is a function of the namespace, and may be declared there once more.
            friend = head.startswith("friend ")
            inside = [s.name for s in self.scopes if s.kind == "namespace" or not friend]
            declared = (*inside, " ".join(head.removeprefix("friend ").split()))
            if not documented and declared not in self.known:
                self.undocumented.append((begin, kind, name))
            self.known.add(declared)
        return documented

    def open_brace(self, first, at):
        """A `{` outside parentheses. Returns where to go on, and where the declaration that goes
        on there began (None if another one begins)."""
        head = self.text[first:at]
        scope = self.scopes[-1]
        plain = " ".join(without_template_head(head).split())
        if re.match(r"(inline )?namespace\b", plain):
            hidden = re.search(r"\bdetail\b|namespace$", plain)
            self.scopes.append(Scope("namespace", scope.public and not hidden))
            return at + 1, None
        found = re.match(r"(class|struct|union|enum)\b(?: class\b)? ?(\w*)[^(=]*$", plain)
        if found:
            what, name = found.groups()
            kind = None if not name else "class" if what == "struct" else what
            documented = self.declare(first, at, f"{what} {name}", kind, name)
            scope.run_documented = False
            self.scopes.append(Scope("enum" if what == "enum" else "class",
                                     scope.public and what != "class", name, documented,
                                     self.line_of(at), at_head=True))
            return at + 1, None
        end = matching(self.text, at)
        # `= {…}`, `name{…}`, `requires {…}`: there is more of the declaration behind it.
        if head.rstrip().endswith(("=", "requires")) or re.search(r"[\w>]$", head):
            return end, first
        self.declare(first, end - 1, head, *(kind_of(head, scope) or ()))
        return end, None

    def close_brace(self, at):
        self.scopes.pop()
        self.scopes[-1].end_line = self.line_of(at)

    def enumerator(self, first, at):
        head = self.text[first:at].rstrip()
        name = re.match(r"\w+", head).group(0)
        self.declare(first, at if self.text[at] == "," else first + len(head), head, "enumerator",
                     name)

    def scan(self):
        first, at, depth = None, 0, 0
        while at < len(self.text):
            character = self.text[at]
            scope = self.scopes[-1]
            if first is None and not character.isspace() and character not in "};,":
                first = at
            if character in "([":
                depth += 1
            elif character in ")]":
                depth -= 1
            elif depth > 0:
                pass
            elif character == "{":
                at, first = self.open_brace(first, at)
                continue
            elif character in "},;":
                if first is not None and scope.kind == "enum":
                    self.enumerator(first, at)
                elif first is not None and character == ";":
                    head = self.text[first:at]
                    self.declare(first, at, head, *(kind_of(head, scope) or ()))
                if character == "}":
                    self.close_brace(at)
                if character != "," or scope.kind == "enum":
                    first = None
            elif character == ":" and first is not None:
                label = self.text[first:at].strip()
                if label in ("public", "protected", "private"):
                    scope.public = self.scopes[-2].public and label == "public"
                    scope.at_head = False
                    first = None
            at += 1
        return self.undocumented


def check_documented(house):
    """Every class, function, enumerator, alias and constant of the public headers is explained."""
    for name in house.under("include", suffixes=(".hpp",)):
        for line, kind, symbol in Scanner(house.text(name)).scan():
            house.add(f"{name}:{line}", f"{kind} {symbol} has no doc comment (///)")
