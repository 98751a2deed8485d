#!/usr/bin/python3
"""Taste that a machine can check: which floor includes which, what public headers drag in, what is
tested, linked and named. Prints one line a finding; exits 1 if there is any."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

FLOORS = {
    "core": [],
    "storage": ["core"],
    "tensor": ["storage", "core"],
    "parallel": ["tensor", "storage", "core"],
    "ops": ["parallel", "tensor", "storage", "core"],
    "format": ["storage", "core"],
    "array": ["format", "ops", "parallel", "tensor", "storage", "core"],
    "interop": ["array", "format", "ops", "parallel", "tensor", "storage", "core"],
}

# The floor of each public header: the floor whose source implements it.
HEADERS = {
    "core": "convert dims dtype error index layout region scalar slice small_floats version",
    "storage": "mapped_file memory_pool shared_memory storage",
    "tensor": "tensor view",
    "parallel": "apply executor tile_source",
    "ops": "expr linalg ops",
    "array": "array container version",
    "interop": "foreign_file npy npz raw",
}

# Only in sources and private headers.
FORBIDDEN_IN_PUBLIC = re.compile(
    r'#\s*include\s*<(tbb/|oneapi/|zstd|boost/|hdf5|fmt/|xxhash|flatbuffers/|png|zlib|cblas|sleef|'
    r'filesystem>|functional>|iostream>)')

# Preprocessed lines (g++ -std=c++20 -E) that a header may cost whoever includes it.
LINES_MAX = 75_000
LINES_MAX_UMBRELLA = 95_000


class Findings:
    def __init__(self):
        self.lines = []

    def add(self, where, what):
        self.lines.append(f"{where}: {what}")


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if found:
            yield number, found.group(1)


def check_floors(root, found):
    """Nobody includes from a floor above their own (architecture.floors)."""
    floor_of_header = {name: floor for floor, names in HEADERS.items() for name in names.split()}
    present = {p.stem for p in (root / "include/shale").glob("*.hpp")} - {"shale"}
    for name in sorted(present - floor_of_header.keys()):
        found.add(f"include/shale/{name}.hpp", "belongs to no floor: name it in tests/tidy/tidy.py")
    for name in sorted(floor_of_header.keys() - present):
        found.add("tests/tidy/tidy.py", f"names a header that does not exist: {name}.hpp")

    def check(path, floor, allowed):
        for number, target in includes(path):
            part = pathlib.PurePosixPath(target)
            if part.parts[0] == "shale" and len(part.parts) == 2:
                other = floor_of_header.get(part.stem)
            elif len(part.parts) > 1 and part.parts[0] in FLOORS:
                other = part.parts[0]
            else:
                continue
            if other is not None and other not in allowed:
                found.add(f"{path.relative_to(root)}:{number}",
                          f"{floor} may not include {target} of {other}")

    for floor, below in FLOORS.items():
        for path in sorted((root / "src" / floor).rglob("*.[ch]pp")):
            check(path, floor, {floor, *below})
    for name, floor in floor_of_header.items():
        path = root / f"include/shale/{name}.hpp"
        if path.exists():
            check(path, floor, {floor, *FLOORS[floor]})
    for folder in ("tools", "examples", "bench"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            for number, target in includes(path):
                part = pathlib.PurePosixPath(target)
                if len(part.parts) > 1 and part.parts[0] in FLOORS:
                    found.add(f"{path.relative_to(root)}:{number}",
                              f"{folder} may include public headers only, not {target}")


def check_headers(root, compiler, found):
    """Every public header compiles alone, stays in its budget, and drags in no dependency."""
    for path in sorted((root / "include/shale").glob("*.hpp")):
        where = path.relative_to(root)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if FORBIDDEN_IN_PUBLIC.match(line):
                found.add(f"{where}:{number}", f"not in a public header: {line.strip()}")
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as unit:
            unit.write(f'#include "shale/{path.name}"\n')
            unit.flush()
            flags = ["-std=c++20", f"-I{root / 'include'}"]
            alone = subprocess.run([compiler, *flags, "-fsyntax-only", unit.name],
                                   capture_output=True, text=True)
            if alone.returncode != 0:
                found.add(where, "does not compile alone: " + alone.stderr.splitlines()[0])
                continue
            text = subprocess.run([compiler, *flags, "-E", unit.name], capture_output=True, text=True)
            lines = text.stdout.count("\n")
            limit = LINES_MAX_UMBRELLA if path.stem == "shale" else LINES_MAX
            if lines > limit:
                found.add(where, f"preprocesses to {lines} lines, at most {limit} allowed")


def check_sources_are_built(root, found):
    """No source lies around that no build file names."""
    for folder in ("src", "tools", "tests", "examples"):
        lists = "\n".join(p.read_text() for pattern in ("CMakeLists.txt", "*.cmake")
                          for p in (root / folder).rglob(pattern))
        for path in sorted((root / folder).rglob("*.cpp")):
            if path.name not in lists and path.stem not in lists:
                found.add(path.relative_to(root), "is in no build file")


def check_documents_are_linked(root, found):
    """Every document can be reached from another one."""
    documents = [p for p in sorted((root / "docs").rglob("*.md")) if p.parent.name != "decisions"]
    texts = {p: p.read_text() for p in [*documents, root / "README.md"] if p.exists()}
    for document in documents:
        if not any(document.name in text for other, text in texts.items() if other != document):
            found.add(document.relative_to(root), "no other document links to it")


def check_readme_code_is_compiled(root, found):
    """The README's C++ stands, line for line, in an example that is compiled."""
    examples = [p.read_text() for p in (root / "examples").glob("*.cpp")]
    for block in re.findall(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.S):
        if not any(block in text for text in examples):
            found.add("README.md", "its C++ is in no example: " + block.strip().splitlines()[0])


def check_invariants_are_cited(root, found):
    """Numbered invariants of a source (`commit.3  …` in an opening comment) are cited by a test."""
    tests = "\n".join(p.read_text(errors="replace") for p in (root / "tests").rglob("*")
                      if p.suffix in (".cpp", ".hpp", ".py", ".sh") and p.name != "tidy.py")
    declared = re.compile(r"^//\s+([a-z_]+\.\d+)\s\s", re.M)
    for folder in ("include", "src"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            for invariant in declared.findall(path.read_text()):
                if not re.search(re.escape(invariant) + r"\b", tests):
                    found.add(path.relative_to(root), f"no test cites invariant {invariant}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    found = Findings()
    check_floors(arguments.root, found)
    check_headers(arguments.root, arguments.compiler, found)
    check_sources_are_built(arguments.root, found)
    check_documents_are_linked(arguments.root, found)
    check_readme_code_is_compiled(arguments.root, found)
    check_invariants_are_cited(arguments.root, found)
    for line in found.lines:
        print(line)
    sys.exit(1 if found.lines else 0)


if __name__ == "__main__":
    main()
