#!/usr/bin/python3
"""Taste that a machine can check: which floor includes which, what public headers drag in, what is
tested, documented, linked and dead. Prints one line a finding; exits 1 if there is any."""

import argparse
import pathlib
import sys

# Checking the tree leaves nothing in it.
sys.dont_write_bytecode = True

from commits import check_subjects
from contracts import check_contracts
from documents import (check_ancestors, check_documents, check_invariants, check_named_tests,
                       check_readme)
from floors import check_floors
from headers import check_headers
from house import House
from mutated import check_mutations
from references import check_references
from tested import check_skips, check_tested

CHECKS = {
    "floors": check_floors,
    "headers": check_headers,
    "tested": check_tested,
    "skips": check_skips,
    "references": check_references,
    "contracts": check_contracts,
    "documents": check_documents,
    "named": check_named_tests,
    "mutations": check_mutations,
    "readme": check_readme,
    "ancestors": check_ancestors,
    "invariants": check_invariants,
    "subjects": check_subjects,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--only", default=",".join(CHECKS), metavar="CHECK,…",
                        help="of " + ", ".join(CHECKS))
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    if unknown := set(chosen) - CHECKS.keys():
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    house = House(arguments.root, arguments.compiler)
    for name in chosen:
        CHECKS[name](house)
    for line in house.findings:
        print(line)
    sys.exit(1 if house.findings else 0)


if __name__ == "__main__":
    main()
