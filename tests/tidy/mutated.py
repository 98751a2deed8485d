"""Whether the entries of tests/mutations/table.py apply to the tree as it is, without building it."""

import fnmatch
import importlib
import re
import sys

TABLE = "tests/mutations/table.py"


def names_of_tests(house):
    """Every GoogleTest as a filter sees it; a parameter's name or number is "*"."""
    names = {".".join(test) for test in house.tests}
    for name in house.under("tests", suffixes=(".cpp",)):
        for prefix, suite in re.findall(r"^INSTANTIATE_T\w+_SUITE_P\(\s*(\w+),\s*(\w+)",
                                        house.text(name), re.M):
            names |= {f"{prefix}/{suite}.{test}/*" for owner, test in house.tests if owner == suite}
    return names


def check_mutations(house):
    """Each entry's text is once in its file and overlaps no other's, and its tests exist."""
    sys.path.insert(0, str(house.root / "tests/mutations"))
    table = importlib.import_module("mutations")
    for path in sorted({each.file for each in table.MUTATIONS}):
        if not house.has(path):
            owners = ", ".join(each.name for each in table.MUTATIONS if each.file == path)
            house.add(TABLE, f"{owners}: there is no {path}")
            continue
        for line in table.places_in(path, house.text(path))[1]:
            house.add(TABLE, line)
    names = names_of_tests(house)
    for each in table.MUTATIONS:
        for pattern in each.tests.split(":"):
            # What is behind a second slash is a parameter.
            bare = re.sub(r"(\.[^/]*)/.*", r"\1/*", pattern)
            if not any(fnmatch.fnmatchcase(name, bare) for name in names):
                house.add(TABLE, f"{each.name}: there is no test {pattern}")
