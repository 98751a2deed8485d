"""The public headers as the compiler reads them: one translation unit of all, parsed by libclang.

A declaration's comment is the `///` right above it or `///<` behind it. One comment right above a run
of declarations, no empty line between them, is the comment of the run. Fields and enumerators that
follow the opening line of a type, no empty line between them, belong to the type's comment."""

import dataclasses
import re
import sys

try:
    from clang import cindex
except ImportError:
    sys.exit("tidy: the Python module clang is missing; script/setup installs python3-clang-14")

Kind = cindex.CursorKind

TYPES = (Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.UNION_DECL, Kind.ENUM_DECL, Kind.CLASS_TEMPLATE)
FUNCTIONS = (Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR,
             Kind.DESTRUCTOR, Kind.CONVERSION_FUNCTION)
PLAIN = {Kind.FIELD_DECL: "field", Kind.ENUM_CONSTANT_DECL: "enumerator"}
ALIASES = (Kind.TYPE_ALIAS_DECL, Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL)
BASIC_NOEXCEPT = cindex.ExceptionSpecificationKind.BASIC_NOEXCEPT


@dataclasses.dataclass
class Declaration:
    cursor: cindex.Cursor
    kind: str     # class, enum, function, field, enumerator, type alias, constant
    file: str     # in the tree
    line: int     # its first
    text: str     # as it is written, spaces and line ends as one space each
    comment: str  # its own or that of its run; empty if there is none
    around: list  # comments of the header, and of the types that it is a member of

    @property
    def name(self):
        return self.cursor.spelling


class _Reader:
    def __init__(self, house, unit):
        self.house = house
        self.root = f"{house.root}/"
        self.declarations = []
        for cursor in unit.cursor.get_children():
            if cursor.kind == Kind.NAMESPACE and self.file(cursor):
                self.scope(cursor, [self.opening(self.file(cursor))])

    def file(self, cursor):
        """Its name in the tree; None for those of the system."""
        name = str(cursor.location.file)
        return name.removeprefix(self.root) if name.startswith(self.root) else None

    def opening(self, name):
        """The comment that a header begins with."""
        return re.match(r"(?:[ \t]*//[^\n]*\n)*", self.house.text(name)).group(0)

    def lines(self, name):
        return self.house.text(name).splitlines()

    def trailing(self, cursor):
        """The comment behind a function; the compiler looks for those of variables only."""
        return "".join(re.findall(r"///<.*", self.lines(self.file(cursor))[cursor.extent.end.line - 1]))

    def written(self, cursor):
        data = self.house.text(self.file(cursor)).encode()
        text = data[cursor.extent.start.offset:cursor.extent.end.offset].decode()
        return " ".join(text.split())

    def scope(self, cursor, around, comment=""):
        """Reads what stands in a namespace or a type; `comment` is the type's."""
        is_type = cursor.kind in TYPES
        last = 0  # line of the declaration before, or of the opening brace
        if is_type:
            last = cursor.extent.start.line
            head = self.lines(self.file(cursor))[last - 1:]
            last += next(number for number, line in enumerate(head) if "{" in line)
        run, at_head = "", is_type
        for member in cursor.get_children():
            if member.kind == Kind.FRIEND_DECL:
                member = next((c for c in member.get_children() if c.kind in FUNCTIONS), member)
            public = member.access_specifier not in (cindex.AccessSpecifier.PRIVATE,
                                                     cindex.AccessSpecifier.PROTECTED)
            kind = self.kind(member)
            if kind is None or self.file(member) is None:
                continue
            line = member.extent.start.line
            adjacent = line <= last + 1
            own = member.raw_comment or self.trailing(member)
            run = own if own and not own.startswith("///<") else run if adjacent else ""
            at_head = at_head and adjacent and member.kind in PLAIN
            shown = own or run or (comment if at_head else "")
            last = member.extent.end.line
            if public and kind:
                self.declarations.append(Declaration(
                    member, kind, self.file(member), line, self.written(member), shown, around))
            if member.kind == Kind.NAMESPACE or (member.kind in TYPES and member.is_definition()):
                run = ""
                if public:
                    self.scope(member, [*around, shown], shown)

    def kind(self, cursor):
        """What it declares; empty for what needs no comment and may stand in a run, None for what
        is nothing to users."""
        if cursor.kind == Kind.NAMESPACE:
            return None if cursor.spelling in ("detail", "") else ""
        if cursor.kind in TYPES:
            if not cursor.is_definition():
                return ""
            return "enum" if cursor.kind == Kind.ENUM_DECL else "class"
        if cursor.kind in FUNCTIONS:
            # A member that is defined outside its class is documented where it is declared.
            outside = cursor.semantic_parent != cursor.lexical_parent and \
                cursor.semantic_parent.kind in TYPES
            return None if outside else "function"
        if cursor.kind in PLAIN:
            return PLAIN[cursor.kind]
        if cursor.kind in ALIASES:
            return "type alias"
        if cursor.kind == Kind.UNEXPOSED_DECL and cursor.spelling:
            # Concepts and templates of constants, which libclang has no kinds for.
            return "" if self.written(cursor).startswith("template <>") else "constant"
        return "constant" if cursor.kind == Kind.VAR_DECL else None


def read(house):
    """(declarations that users can name, what the compiler says against the headers)"""
    headers = house.under("include", suffixes=(".hpp",))
    text = "".join(f'#include "{house.root / name}"\n' for name in headers)
    unit = cindex.Index.create().parse(
        "headers.cpp", unsaved_files=[("headers.cpp", text)],
        args=["-std=c++20", "-xc++", f"-I{house.root / 'include'}"])
    errors = [(f"{str(d.location.file).removeprefix(f'{house.root}/')}:{d.location.line}", d.spelling)
              for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    return _Reader(house, unit).declarations, errors
