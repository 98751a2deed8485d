"""Which names of the public headers need a contract: a doc comment (`///`) that says what the
signature does not.

Everything that users can name needs one, but for what is obvious:
  special    a member that is defaulted or deleted; a destructor; a copy or a move that is noexcept;
             the one constructor of a class besides these, noexcept: the class says what it does
  override   a function that a base class declares: its contract stands there
  accessor   a constant function without parameters, noexcept, that returns the member of its name
             (`rank` returns rank_, or shape_.rank()) and does nothing else
  standard   begin, end, data, size and empty without parameters, noexcept, whose body is one return
             statement; the types that algorithms look for (value_type, iterator, …)
  typed      a field whose type is a class or an enum of these headers: that one has a contract
A run of declarations shares one comment, and so do fields and enumerators right below the head of
their type (public_headers.py).

A function that is not obvious and may throw says what it throws: its comment has a form of the word
`throw`, or the comment of its class or of the header has a line `Throws   …` for all.

Parameters are called what they are, not by a word of VAGUE."""

import re

import public_headers
from public_headers import BASIC_NOEXCEPT, Kind

STANDARD = "begin end data size empty".split()
STANDARD_TYPES = "value_type element_type iterator const_iterator reference pointer".split()
VAGUE = "each how what where which whose".split()


def is_noexcept(function):
    """Without a condition."""
    return function.cursor.exception_specification_kind == BASIC_NOEXCEPT


def takes_its_own_class(cursor):
    """As copies and moves do."""
    own = cursor.semantic_parent.type.get_canonical().spelling
    return any(own == parameter.type.get_pointee().get_canonical().spelling.removeprefix("const ")
               for parameter in cursor.get_arguments())


def is_special(function):
    cursor = function.cursor
    if cursor.kind == Kind.DESTRUCTOR or re.search(r"= ?(default|delete)$", function.text):
        return True
    if not is_noexcept(function):
        return False
    if cursor.spelling == "operator=" or cursor.kind != Kind.CONSTRUCTOR:
        return cursor.spelling == "operator=" and takes_its_own_class(cursor)
    name = cursor.semantic_parent.spelling
    constructors = [c for c in cursor.semantic_parent.get_children()
                    if c.kind == Kind.CONSTRUCTOR or (c.kind == Kind.FUNCTION_TEMPLATE and
                                                      c.spelling == name)]
    return takes_its_own_class(cursor) or sum(not takes_its_own_class(c) for c in constructors) == 1


def is_override(function):
    return any(child.kind == Kind.CXX_OVERRIDE_ATTR for child in function.cursor.get_children())


def is_accessor(function):
    """Also the standard's begin, end, data, size and empty."""
    body = re.search(r"\(\)[^()]*\{ return ([^;]+); \}$", function.text)
    if body is None or not is_noexcept(function):
        return False
    name = re.escape(function.name)
    returns_own = re.fullmatch(rf"{name}_|\w+_\.{name}\(\)", body.group(1)) is not None
    return function.name in STANDARD or (function.cursor.is_const_method() and returns_own)


def is_obvious(declaration, documented):
    """`documented`: the classes and enums that have a contract."""
    if declaration.kind == "function":
        return is_special(declaration) or is_override(declaration) or is_accessor(declaration)
    if declaration.kind == "type alias":
        return declaration.name in STANDARD_TYPES
    if declaration.kind == "field":
        field_type = declaration.cursor.type.get_canonical().get_declaration()
        return field_type.get_usr() in documented
    return False


def says_what_it_throws(function):
    return re.search(r"\bthrow", function.comment, re.I) or any(
        re.search(r"^\s*///? Throws\b", comment, re.M) for comment in function.around)


def check_contracts(house):
    """What is not obvious in the public headers has a contract, and what may throw says so in it."""
    declarations, errors = public_headers.read(house)
    for where, what in errors:
        house.add(where, what)
    documented = {d.cursor.get_usr() for d in declarations if d.kind in ("class", "enum") and d.comment}
    for declaration in declarations:
        for parameter in declaration.cursor.get_children():
            if parameter.kind == Kind.PARM_DECL and parameter.spelling in VAGUE:
                house.add(f"{declaration.file}:{parameter.location.line}",
                          f"parameter {parameter.spelling} of {declaration.name} says nothing")
        if is_obvious(declaration, documented):
            continue
        what = f"{declaration.kind} {declaration.name}"
        where = f"{declaration.file}:{declaration.line}"
        if not declaration.comment:
            house.add(where, f"{what} is not obvious and has no contract (///)")
        elif declaration.kind == "function" and not (is_noexcept(declaration) or
                                                     says_what_it_throws(declaration)):
            house.add(where, f"{what} may throw, and its contract does not say what")

    for name in house.under("include", suffixes=(".hpp",)):
        lines = house.text(name).splitlines()
        for number, (line, following) in enumerate(zip(lines, lines[1:]), 1):
            if re.match(r"\s*///(?!<)", line) and not following.strip():
                house.add(f"{name}:{number}", "the comment (///) belongs to nothing: an empty line follows")
