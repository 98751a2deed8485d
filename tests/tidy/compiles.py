#!/usr/bin/python3
"""Lets compilers read, without making code, the sources that changed since a commit or in the last day, as
one or several builds would compile them. Where more changed than can be read in a minute or two, the first
ones, those that changed last, are read, and a line says so: the builds read the others."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

# Checking the tree leaves nothing in it.
sys.dont_write_bytecode = True

from changed import changed

SOURCES_MAX = 24  # of each compiler; one takes 2 to 5 seconds


def written_for(unit, build, root):
    """The source that a unit made by the build includes, as those of the kernels do, or None."""
    if not unit.is_relative_to(build) or not unit.exists():
        return None
    included = re.fullmatch(r'#include "(.*[.]cpp)"\n', unit.read_text())
    return root / "src" / included[1] if included else None


def commands_of(build, root, touched):
    """(folder, words) of each changed source that the build compiles, without what makes files. A source
    that is compiled once per instruction set is read once for each."""
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        source = written_for(file, build, root)
        entries.setdefault(source or file, []).append(entry)
        if source:
            for header in source.parent.glob("*.hpp"):  # no other unit may read it
                entries.setdefault(header, []).append(entry)
    chosen = {entry["file"]: entry for path in touched for entry in entries.get(path, ())}
    for entry in chosen.values():
        words = shlex.split(entry["command"])
        at = words.index("-o")
        del words[at:at + 2]
        yield entry["directory"], words + ["-fsyntax-only"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, action="append", required=True)
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--all", action="store_true", help="the builds do this")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    touched = changed(root, arguments.since)

    chosen = []
    for build in arguments.build:
        commands = list(commands_of(build.resolve(), root, touched))
        chosen += commands[:SOURCES_MAX]
        compiler = os.path.basename(commands[0][1][0]) if commands else build.name
        print(f"{compiler}: {min(len(commands), SOURCES_MAX)} of {len(commands)} sources that changed",
              flush=True)

    def read(command):
        folder, words = command
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace")

    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(read, chosen):
            failed |= result.returncode != 0
            print(result.stderr, end="", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
