"""Where a source defines a function, found by its brackets: quick, and without a compiler."""

import re

# What is not code: comments, strings, characters. A digit separator, as in 1'000, starts no character.
QUIET = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
                   re.S)
OPENING = {"(": ")", "{": "}", "[": "]"}


def code_only(text):
    """The text, of the same length, with blanks in place of comments, strings and characters."""
    return QUIET.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def end_of_brackets(code, first):
    """Just behind the bracket that closes the one at `first`."""
    closing = OPENING[code[first]]
    depth = 0
    for at in range(first, len(code)):
        depth += (code[at] == code[first]) - (code[at] == closing)
        if depth == 0:
            return at + 1
    raise ValueError(f"the bracket at {first} is not closed")


def start_of_body(code, at):
    """The "{" of the body that belongs to the parameters that end at `at`; None without one."""
    is_constructor = False
    while at < len(code):
        rest = code[at:]
        if rest[0] == "{":
            # Behind ":", braces are a member's initialiser if a name stands before them.
            if is_constructor and re.search(r"\w\s*$", code[:at]):
                at = end_of_brackets(code, at)
                continue
            return at
        if rest[0] in "([":
            at = end_of_brackets(code, at)
        elif is_constructor:
            if rest[0] in ";)}":
                return None
            at += 1
        elif rest[0] == ":" and not rest.startswith("::"):
            is_constructor = True
            at += 1
        elif words := re.match(r"\s+|const\b|noexcept\b|override\b|final\b|mutable\b|->[\s\w:<>,&*]+", rest):
            at += words.end()
        else:
            return None
    return None


def definitions_of(text, name):
    """The spans of what defines `name` in a source, from the name on: a function's overloads, a
    constructor, a destructor ("~name"), or a variable that holds a lambda."""
    code = code_only(text)
    spans = []
    for match in re.finditer(rf"(?<![\w~]){re.escape(name)}\s*(?:=\s*\[[^\]]*\]\s*)?\(", code):
        body = start_of_body(code, end_of_brackets(code, match.end() - 1))
        if body is not None:
            spans.append((match.start(), end_of_brackets(code, body)))
    return spans
