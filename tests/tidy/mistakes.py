#!/usr/bin/python3
"""Runs clang-tidy over what a build (of the preset `tidy`) compiles: the sources that changed since a
commit, or in the last day, or all of them. Floors and tools are compiled several sources at once, and
read so, as most of the time goes into their headers: a change reads its neighbours too. Of a kernel the
baseline's unit is read; those of other processors are the same text."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

# Checking the tree leaves nothing in it.
sys.dont_write_bytecode = True

from changed import changed


def units(root, build):
    """(file that is compiled, the sources of ours that are in it), in the order of the build."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(command["file"])
        if not file.is_relative_to(build):
            yield file, {file}
        elif "_avx" not in file.name:
            included = re.findall(r'^#include "(.*\.cpp)"', file.read_text(), re.M)
            yield file, {path if path.is_absolute() else root / "src" / path
                         for path in map(pathlib.Path, included)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    root, build = arguments.root.resolve(), arguments.build.resolve()

    wanted = list(units(root, build))
    if not arguments.all:
        touched = set(changed(root, arguments.since))
        wanted = [(file, sources) for file, sources in wanted if sources & touched]
    print(f"{sum(len(sources) for _, sources in wanted)} sources in {len(wanted)} units", flush=True)
    # The largest begin first: the commands' unit comes last in the build, and would be read alone.
    wanted.sort(key=lambda unit: sum(path.stat().st_size for path in unit[1]), reverse=True)

    def read(unit):
        # Units that hold several sources include them.
        return subprocess.run(["clang-tidy-14", "-p", str(build), "--quiet",
                               "--checks=-bugprone-suspicious-include", str(unit[0])],
                              cwd=root, capture_output=True, text=True)

    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(read, wanted):
            failed |= result.returncode != 0
            print(result.stdout, end="", flush=True)
            if result.returncode != 0:
                print(re.sub(r"^\d+ warnings.* generated\.\n", "", result.stderr, flags=re.M), end="")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
