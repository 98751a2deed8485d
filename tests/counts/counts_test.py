"""Counts what small calls cost: instructions (by callgrind), allocations, threads. The limits are a
tenth above what was counted when they were set, so that a call which becomes more expensive is
noticed; three of them are closer, because sources that are compiled as one (SHALE_UNITY) need up
to 60 instructions more there. They hold for the kernels of the x86-64 baseline, the distribution's compiler and its
C library.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CALLS = 100

# name: (instructions, allocations) of one call on eight elements, at most
LIMITS = {
    "apply": (1540, 0),
    "copy": (1850, 1),
    "fill": (1930, 1),
    "eval_into_new_expression": (3380, 3),
    "eval_into_kept_expression": (1810, 0),
    "eval_kept_expression": (3280, 2),
    "build_expression": (1630, 3),
    "exp": (2910, 2),
    "sum": (4290, 5),
}


# Calls that evaluate many parts. Four times as many may cost this many times the instructions: work
# that grows with the square of their number costs ten times or more.
GROWING = ("concat_of_parts", "concat_of_slices", "stack_of_parts", "all_parts", "all_sums")
GROWTH_MAX = 5


class Calls(unittest.TestCase):
    def count(self, name, calls=CALLS, *parts):
        """Instructions and allocations of one call, and the threads of the process afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            profile = pathlib.Path(folder) / "profile"
            done = subprocess.run(
                [ARGUMENTS.valgrind, "--tool=callgrind", f"--callgrind-out-file={profile}",
                 ARGUMENTS.program, name, str(calls), *map(str, parts)],
                env={**os.environ, "SHALE_ISA": "baseline"}, capture_output=True, text=True,
                timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            # The first dump is the one that the program asks for, the last one is made at its end.
            dump = (pathlib.Path(folder) / "profile.1").read_text()
        instructions = int(re.search(r"^totals: (\d+)", dump, re.MULTILINE).group(1))
        allocations, threads = map(int, done.stdout.split())
        return instructions / calls, allocations / calls, threads


class SmallCalls(Calls):
    def test_cost_no_more_than_they_did(self):
        for name, (instructions_max, allocations_max) in LIMITS.items():
            with self.subTest(name):
                instructions, allocations, threads = self.count(name)
                print(f"{name}: {instructions:.0f} instructions, {allocations:g} allocations")
                self.assertLessEqual(instructions, instructions_max)
                self.assertLessEqual(allocations, allocations_max)
                self.assertEqual(threads, 1, "a small call has started threads")

    def test_program_is_counted_at_all(self):
        """A limit of no instruction and no allocation would be exceeded."""
        instructions, allocations, _ = self.count("sum")
        self.assertGreater(instructions, 100)
        self.assertGreater(allocations, 0)


class CallsOfManyParts(Calls):
    def test_cost_in_proportion_to_the_parts(self):
        for name in GROWING:
            with self.subTest(name):
                few, many = (self.count(name, 1, parts)[0] for parts in (500, 2000))
                print(f"{name}: {few / 500:.0f} and {many / 2000:.0f} instructions for each part")
                self.assertLessEqual(many, GROWTH_MAX * few)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--valgrind", required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
