#!/usr/bin/python3
"""Computes the special cases of the array API standard, which the folder `standard` lists.

Usage: standard_test.py PATH/TO/shale [unittest arguments]
"""

import collections
import os
import re
import sys

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree

import standard_cases
from shale_case import ShaleCase, main

# Results that the standard leaves to be rounded, in ulp: the promises of docs/numerics.md.
ULPS_MAX = {"float16": 1, "float32": 1, "float64": 1, "complex64": 4, "complex128": 4}


def is_as_wanted(got, wanted, dtype):
    """Whether a number, or a part of a complex one, is what its case asks for."""
    value, kind = wanted
    if kind == "sign":
        return bool(np.isnan(got) == np.isnan(value) and np.signbit(got) == np.signbit(value))
    if value != value:
        return bool(np.isnan(got))
    if kind.endswith("size"):
        got, value = abs(got), abs(value)
    if kind.startswith("near"):
        part = np.dtype(standard_cases.PARTS.get(dtype, dtype)).type
        return bool(abs(np.float64(got) - value) <= ULPS_MAX[dtype] * np.float64(np.spacing(part(abs(value)))))
    if np.issubdtype(np.asarray(got).dtype, np.floating):
        return bool(got == np.asarray(value, got.dtype) and (kind == "size" or np.signbit(got) == np.signbit(value)))
    return int(got) == int(value)


class Group:
    """The tables of one dtype whose results have one dtype, as expressions of slices of shared operands."""

    def __init__(self, dtype, gives, tables):
        self.dtype, self.gives, self.terms = dtype, gives, []
        columns = [[], [], []]
        for table in tables:
            begin = len(columns[0])
            for parts in table.operands:
                # Complex numbers are made of pairs of parts.
                numbers = parts if dtype not in standard_cases.PARTS else [
                    complex(*parts[at:at + 2]) for at in range(0, len(parts), 2)]
                for column, number in zip(columns, [*numbers, 1, 1, 1]):
                    column.append(number)
            self.terms += [(text, begin, len(columns[0]), table) for text in table.expressions]
        self.operands = [np.array(column, dtype) for column in columns]

    def save(self, folder):
        for number, array in enumerate(self.operands, 1):
            strided = np.ones((len(array), 3), array.dtype)
            strided[:, 1] = array
            np.save(folder / f"flat{number}.npy", array)
            np.save(folder / f"strided{number}.npy", strided)

    def expression(self, view):
        """All results, one after the other; `view` is what stands for the elements of an operand."""
        texts = []
        for text, begin, end, _ in self.terms:
            texts.append(re.sub(r"\bx([123]?)\b", lambda x: f"x{x[1] or 1}{view.format(begin, end)}", text))
        return f"concat(({', '.join(texts)},))"

    def failures(self, got):
        wrong, at = [], 0
        for text, begin, end, table in self.terms:
            for parts, wanted, number in zip(table.operands, table.wanted, got[at:at + end - begin]):
                found = (number.real, number.imag) if self.gives in standard_cases.PARTS else (number,)
                if not all(is_as_wanted(part, asked, self.gives) for part, asked in zip(found, wanted, strict=True)):
                    wrong.append(f"{text} of {parts}: got {number}, wanted {wanted}")
            at += end - begin
        return wrong


class Standard(ShaleCase):
    def test_elementwise_functions_have_the_special_cases_of_the_standard(self):
        groups = collections.defaultdict(list)
        for table in standard_cases.ElementwiseCases().tables:
            self.assertGreater(len(table.operands), 0, table.expressions)
            groups[table.dtype, table.gives].append(table)
        self.assertGreater(sum(len(table.operands) for tables in groups.values() for table in tables), 100_000)
        isas = self.isas()
        for (dtype, gives), tables in groups.items():
            group = Group(dtype, gives, tables)
            group.save(self.path)
            passed = set()
            for isa in isas:
                for layout, view in (("flat", "[{0}:{1}]"), ("strided", "[{0}:{1}, 1]")):
                    with self.subTest(isa=isa, dtype=dtype, gives=gives, layout=layout):
                        lets = [word for n in (1, 2, 3) for word in ("--let", f"x{n}={layout}{n}.npy")]
                        self.shale("eval", *lets, "-o", "got.npy", "-f", "--", group.expression(view),
                                   env={**os.environ, "SHALE_ISA": isa})
                        got = np.load(self.path / "got.npy")
                        self.assertEqual(got.dtype, gives)
                        self.assertEqual(len(got), sum(end - begin for _, begin, end, _ in group.terms))
                        if got.tobytes() not in passed:
                            wrong = group.failures(got)
                            self.assertEqual(wrong[:20], [], f"{len(wrong)} results are wrong")
                            passed.add(got.tobytes())

    def test_wrong_results_are_seen(self):
        nan, inf, pi = np.float32("nan"), np.float32("inf"), np.float32(np.pi)
        below = np.nextafter(pi, np.float32(0))
        for got, value, kind, is_right in (
                (np.float32(0), 0.0, "exact", True), (np.float32(-0.0), 0.0, "exact", False),
                (np.float32(-0.0), 0.0, "size", True), (np.float32(1), 1, "exact", True), (-inf, inf, "exact", False),
                (-inf, inf, "size", True), (nan, inf, "size", False), (inf, np.nan, "exact", False),
                (-nan, np.nan, "exact", True), (-nan, np.nan, "sign", False), (nan, np.nan, "sign", True),
                (nan, 1.0, "sign", False), (np.float32(-0.0), 1.0, "sign", False), (inf, 1.0, "sign", True),
                (below, np.pi, "near", True), (np.nextafter(below, np.float32(0)), np.pi, "near", False),
                (-pi, np.pi, "near", False), (-pi, np.pi, "near size", True), (nan, np.pi, "near", False)):
            with self.subTest(got=got, value=value, kind=kind):
                self.assertEqual(is_as_wanted(got, standard_cases.Wanted(value, kind), "float32"), is_right)

    def test_functions_of_arrays_have_the_results_of_the_standard(self):
        cases = standard_cases.array_cases()
        self.assertGreater(len(cases), 700)
        for case in cases:
            with self.subTest(case.text, line=case.line, **{k: v.dtype.name for k, v in case.arrays.items()}):
                lets = []
                for name, array in case.arrays.items():
                    np.save(self.path / f"{name}.npy", array)
                    lets += ["--let", f"{name}={name}.npy"]
                self.shale("eval", *lets, "-o", "got.npy", "-f", "--", case.text, code=2 if case.dtype is None else 0)
                if case.dtype is not None:
                    self.expect_equal(np.load(self.path / "got.npy"), case.result)

    def expect_equal(self, got, wanted):
        self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_array_equal(got, wanted)
        if got.dtype.kind == "f":
            numbers = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])


if __name__ == "__main__":
    main()
