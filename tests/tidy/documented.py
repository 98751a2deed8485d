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
    before = plain.split("=")[0] if "operator" not in plain else plain
    function = re.search(r"(operator\s*(?:\(\)|[^\s\w(]+|[\w:<> ,*&]+)|[\w:~]+)\s*\(", before)
    if function:
        name = function.group(1)
        if "::" in name and not name.startswith("operator"):
            return None  # the definition of a member, documented where it is declared
        return "function", name
    names = re.findall(r"(\w+)\s*(?:\{\}|\[\w*\])?$", before.strip().rstrip(","))
    return ("field" if scope.kind == "class" else "constant"), names[0] if names else plain


def undocumented(text):
    """(line, kind, name) of every public declaration that no doc comment explains."""
    clean = without_comments(text)
    raw = text.splitlines()
    starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line_of(position):
        return bisect.bisect_right(starts, position)

    def is_doc(line):
        stripped = raw[line - 1].strip() if 0 < line <= len(raw) else ""
        return stripped.startswith("///") and not stripped.startswith("///<")

    result, known = [], set()
    scopes = [Scope("namespace", True)]

    def declare(first, last, kind, name, head):
        """Enters a declaration from position `first` to `last` into the innermost scope."""
        scope = scopes[-1]
        begin, end = line_of(first), line_of(last)
        adjacent = begin == scope.end_line + 1
        plain = kind in ("field", "enumerator")
        trailing = any("///<" in raw[line - 1] for line in range(begin, end + 1))
        run = is_doc(begin - 1) or (adjacent and scope.run_documented) or (
            adjacent and plain and scope.at_head and scope.documented)
        scope.run_documented = run
        scope.at_head = scope.at_head and plain and adjacent
        scope.end_line = end
        text_of = " ".join(head.replace("friend ", "").split())
        if kind and scope.public:
            if not (run or trailing) and text_of not in known:
                result.append((begin, kind, name))
            known.add(text_of)
        return run or trailing

    first, at, depth = None, 0, 0
    while at < len(clean):
        character = clean[at]
        head = clean[first:at] if first is not None else ""
        if first is None and not character.isspace() and character not in "};,":
            first = at
            continue
        scope = scopes[-1]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth > 0:
            pass
        elif scope.kind == "enum" and character in ",}":
            if first is not None:
                name = re.match(r"\w+", head).group(0)
                comma = character == ","
                declare(first, at if comma else at - len(head) + len(head.rstrip()), "enumerator",
                        name, f"{scope.name}::{name}")
                first = None
            if character == "}":
                scopes.pop()
        elif character == "}":
            scopes.pop()
            if scopes and scopes[-1].kind != "namespace":
                scopes[-1].end_line = line_of(at)
            elif scopes:
                scopes[-1].end_line = line_of(at)
        elif character == ":" and head.strip() in ("public", "protected", "private"):
            scope.public = scopes[-2].public and head.strip() == "public"
            scope.at_head = False
            first = None
        elif character == ";" and first is not None:
            found = kind_of(head, scope)
            declare(first, at, *(found or (None, "")), head)
            first = None
        elif character == "{":
            plain = " ".join(without_template_head(head).split())
            if re.match(r"(inline )?namespace\b", plain):
                hidden = re.search(r"\bdetail\b|namespace$", plain)
                scopes.append(Scope("namespace", scope.public and not hidden))
                first = None
            elif found := re.match(r"(class|struct|union|enum)\b(?: class\b)? ?(\w*)[^(=]*$", plain):
                what, name = found.group(1), found.group(2)
                kind = {"struct": "class"}.get(what, what) if name else None
                ok = declare(first, at, kind, name, f"{what} {name}")
                scopes.append(Scope("enum" if what == "enum" else "class",
                                    scope.public and what != "class", name, ok, line_of(at),
                                    at_head=True))
                scope.run_documented = False
                first = None
            elif head.rstrip().endswith(("=", "requires")) or re.search(r"[\w>]$", head):
                at = matching(clean, at)  # an initializer
                continue
            else:  # the body of a function
                body_end = matching(clean, at) - 1
                found = kind_of(head, scope)
                declare(first, body_end, *(found or (None, "")), head)
                first = None
                at = body_end
        at += 1
    return result


def check_documented(house):
    """Every class, function, enumerator, alias and constant of the public headers is explained."""
    for name in house.under("include", suffixes=(".hpp",)):
        for line, kind, symbol in undocumented(house.text(name)):
            house.add(f"{name}:{line}", f"{kind} {symbol} has no doc comment (///)")
