#!/usr/bin/python3
"""Checks that the code of documents and header comments compiles against the public headers: all of it in
one translation unit, of which the compiler makes no program.

Code is
  a block of a document that begins with ```cpp
  a paragraph of a public header's comment in which every line is indented by three spaces or more
    (`//   code`), unless a line begins with `|` or `$`, as in tables and shell commands
  text between backticks that ends in a semicolon
Each is the body of a function of its own; with an #include in it, it is a file of its own. `…` stands for
what is left out. snippets.inc declares the names that all of them may use. A document declares those that
it alone needs in a comment, which its readers do not see:

    <!-- cpp
    extern tensor velocity;
    -->

If the first line is `<!-- cpp calls`, every call between backticks in that document is compiled too, except
in the first column of its tables, which is about others' functions, and with `…` inside.

Prints what the compiler says, by file and line; exits 1 if it refuses anything."""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

# Checking the tree leaves nothing in it.
sys.dont_write_bytecode = True

from house import House

NAMES = pathlib.Path(__file__).with_name("snippets.inc")


@dataclasses.dataclass
class Snippet:
    file: str
    line: int
    text: str
    declares: bool = False  # for the later ones of its file


def statements(file, line, text):
    """What stands between backticks and ends in a semicolon; `line` is that of the text's start."""
    for span in re.finditer(r"(?<!`)`([^`]+;)`(?!`)", text):
        yield Snippet(file, line + text.count("\n", 0, span.start()), " ".join(span.group(1).split()))


def calls(file, text):
    """The calls between backticks, but of a table's first column."""
    for line, row in enumerate(text.splitlines(), 1):
        cells = re.match(r"\|(?:`[^`]*`|[^|`])*\|", row)
        for span in re.findall(r"`([^`]*\w[>}]?\([^`]*\)[^`;]*)`", row[cells.end():] if cells else row):
            if "…" not in span:
                yield Snippet(file, line, f"static_cast<void>(({span}));")


def of_document(house, name):
    """The blocks and statements of a document, and what it declares for them."""
    found, prose, block, language = [], [], [], None
    for number, line in house.lines(name):
        prose.append("")
        if fence := re.match(r"\s*```(.*)", line):
            if language is None:
                block, language = [], fence.group(1).strip()
            else:
                if language == "cpp":
                    found.append(Snippet(name, number - len(block), "\n".join(block)))
                language = None
        elif language is not None:
            block.append(line)
        else:
            prose[-1] = line
    text = "\n".join(prose)
    for comment in re.finditer(r"^<!-- cpp( calls)?\n(.*?)^-->$", text, re.M | re.S):
        found.append(Snippet(name, text.count("\n", 0, comment.start()) + 2, comment.group(2), True))
        if comment.group(1):
            found += calls(name, text)
    found += statements(name, 1, text)
    return sorted(found, key=lambda snippet: snippet.line)


def comments(house, name):
    """(number of the first line, lines without the slashes) of every comment of a header."""
    lines, first = [], 0
    for number, line in (*house.lines(name), (0, "")):
        comment = re.match(r"\s*///?(?!<)(.*)", line)
        if comment:
            first = first if lines else number
            lines.append(comment.group(1))
        elif lines:
            yield first, lines
            lines = []


def of_header(house, name):
    """The paragraphs of code and the statements in a header's comments."""
    for first, lines in comments(house, name):
        paragraph = []
        for number, line in enumerate([*lines, ""], first):
            if line.strip():
                paragraph.append(line)
                continue
            if paragraph and all(re.match(r"   +[^\s|$]", line) for line in paragraph):
                yield Snippet(name, number - len(paragraph), "\n".join(paragraph))
            else:
                yield from statements(name, number - len(paragraph), "\n".join(paragraph))
            paragraph = []


def unit(snippets):
    """The text of the unit that is compiled."""
    includes, body, declared = [], [], {}
    for number, snippet in enumerate(snippets):
        text = snippet.text.replace("…", "")
        is_file = False
        for include in re.findall(r"^\s*(#\s*include .*)$", text, re.M):
            includes.append(include)
            is_file = True
        text = re.sub(r"^\s*#\s*include .*$", "", text, flags=re.M)
        text = f'#line {snippet.line} "{snippet.file}"\n{text}\n'
        if snippet.declares:
            declared[snippet.file] = declared.get(snippet.file, "") + text
        elif is_file:
            body.append(f"namespace snippet_{number} {{\n{text}}}\n")
        else:
            body.append(f"namespace snippet_{number} {{\n{declared.get(snippet.file, '')}"
                        f"int snippet([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {{\n"
                        f"{text}}}\n}}\n")
    return "\n".join(["#include <shale/shale.hpp>", "#include <string>", *includes,
                      "namespace snippets {\nusing namespace shale;",
                      f'#line 1 "{NAMES.name}"', NAMES.read_text(), *body, "}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    house = House(arguments.root, arguments.compiler)
    snippets = []
    for name in house.files:
        if name.endswith(".md"):
            snippets += of_document(house, name)
        elif name.startswith("include/") and name.endswith(".hpp"):
            snippets += of_header(house, name)
    count = sum(not snippet.declares for snippet in snippets)
    print(f"{count} snippets in {len({snippet.file for snippet in snippets})} files", flush=True)
    result = subprocess.run([house.compiler, "-std=c++20", "-fsyntax-only", "-w", "-x", "c++",
                             f"-I{house.root / 'include'}", "-"],
                            input=unit(snippets), capture_output=True, text=True)
    print(result.stderr, end="")
    sys.exit(1 if result.returncode != 0 or count == 0 else 0)


if __name__ == "__main__":
    main()
