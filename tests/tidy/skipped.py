#!/usr/bin/python3
"""Fails if a test was skipped that may not be: reads what `ctest --output-junit FILE` wrote and the
list of those that may, a pattern and a reason a line. Prints one line a skipped test.

Skipped is what called GTEST_SKIP, what ctest did not run (disabled, not built, nothing to run), and
what a unittest program left out."""

import argparse
import fnmatch
import pathlib
import re
import sys
import xml.etree.ElementTree


def allowed(path):
    """(pattern, reason) of every line that is no comment; both must be there."""
    result = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" ")
        if not reason.strip():
            sys.exit(f"{path}:{number}: no reason for {pattern}")
        result.append((pattern, reason.strip()))
    return result


def skipped(path):
    """(test, why) of every test in the results that did not run, or not all of it."""
    cases = list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    if not cases:
        sys.exit(f"{path}: no test in it")
    for case in cases:
        output = case.findtext("system-out") or ""
        if case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None:
            # GoogleTest prints `file:line: Skipped`, then the reason.
            said = re.search(r": Skipped\n([^\n]*)", output)
            skip = case.find("skipped")
            yield case.get("name"), (said.group(1) if said else
                                     skip.get("message") if skip is not None else
                                     case.get("status"))
        elif part := re.search(r"^(?:OK|FAILED) \(.*skipped=(\d+)", output, re.M):
            yield case.get("name"), f"{part.group(1)} of its tests skipped"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=pathlib.Path, nargs="+")
    parser.add_argument("--allow", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    may = allowed(arguments.allow)
    failed = False
    for results in arguments.results:
        for name, why in skipped(results):
            reason = next((r for pattern, r in may if fnmatch.fnmatchcase(name, pattern)), None)
            print(f"{name}: skipped: {why}" +
                  (f" [allowed: {reason}]" if reason else f" [not in {arguments.allow}]"))
            failed |= reason is None
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
