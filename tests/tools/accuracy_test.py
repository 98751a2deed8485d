#!/usr/bin/python3
"""Computes the accuracy sets that NumPy publishes, with the kernels of every instruction set.

A set has a file for each function. A row has an argument, the function's value rounded to the dtype, and
the most ulp by which NumPy's result may differ from it.

Usage: accuracy_test.py PATH/TO/shale [unittest arguments]
"""

import collections
import os
import pathlib
import re
import sys

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree

from shale_case import ShaleCase, main

# Debian's python3-numpy, on which the tests depend, brings the sets.
SETS = [path for folder in ("core", "_core") for path in sorted(
    (pathlib.Path(np.__file__).parent / folder / "tests/data").glob("umath-validation-set-*.csv"))]
ROWS_MIN = 26610
FUNCTIONS = ("arccos arccosh arcsin arcsinh arctan arctanh cbrt cos cosh exp exp2 expm1 log log10 log1p log2 "
             "sin sinh tan tanh").split()

# docs/numerics.md promises this for every function, and no set asks for more.
ULPS_MAX = 1

# Rows of the layout "short rows" are no multiple of any vector's width.
SHORT = 13

Set = collections.namedtuple("Set", "function arguments values bounds")


def read_set(path, dtype):
    """The rows of one dtype. Every line of the file is a row of some dtype, a comment or the header."""
    bits = {"float32": np.uint32, "float64": np.uint64}
    rows = []
    for line in path.read_text().splitlines():
        row = re.fullmatch(r"np\.(float32|float64),0x([0-9a-fA-F]+),0x([0-9a-fA-F]+),(\d+)", line.strip())
        if row is None and not re.fullmatch(r"#.*|dtype,input,output,ulperrortol|", line.strip()):
            raise ValueError(f"{path}: not a row: {line}")
        if row is not None and row[1] == dtype:
            rows.append((int(row[2], 16), int(row[3], 16), int(row[4])))
    arguments, values, bounds = zip(*rows)
    as_floats = [np.array(column, bits[dtype]).view(dtype) for column in (arguments, values)]
    return Set(path.stem.removeprefix("umath-validation-set-"), *as_floats, np.array(bounds))


def ulps(got, wanted):
    """
    The distance in units in the last place of `wanted`. An infinity counts as the power of two above the
    largest number. NaN is equal to NaN alone, and a result of the other sign is wrong, also if it is zero.
    """
    limits = np.finfo(wanted.dtype)
    beyond = np.ldexp(np.longdouble(1), limits.maxexp)

    def finite(values):
        return np.where(np.isinf(values), np.copysign(beyond, values), values.astype(np.longdouble))

    exponents = np.where(wanted == 0, limits.minexp, np.frexp(np.minimum(np.abs(wanted), limits.max))[1])
    last = np.ldexp(np.longdouble(1), np.maximum(exponents, limits.minexp + 1) - limits.nmant - 1)
    distance = np.abs(finite(got) - finite(wanted)) / last
    distance[np.isnan(got) | np.isnan(wanted) | (np.signbit(got) != np.signbit(wanted))] = np.inf
    distance[np.isnan(got) & np.isnan(wanted)] = 0
    return distance


class Layouts:
    """The arguments of all sets of one dtype in files, and the expressions that compute them from there."""

    def __init__(self, sets, folder):
        self.sets, self.parts, parts = sets, [], []
        begin = 0
        for each in sets:
            # Whole rows of the layout "short rows": the last argument is repeated.
            padded = np.pad(each.arguments, (0, -len(each.arguments) % SHORT), mode="edge")
            self.parts.append((begin, begin + len(padded)))
            parts.append(padded)
            begin += len(padded)
        flat = np.concatenate(parts)
        rows = np.full((len(flat) // SHORT, SHORT + 1), 7, flat.dtype)
        rows[:, :SHORT] = flat.reshape(-1, SHORT)
        columns = np.full((len(flat), 3), 7, flat.dtype)
        columns[:, 1] = flat
        for name, array in (("flat", flat), ("backwards", flat[::-1]), ("rows", rows), ("columns", columns)):
            np.save(folder / f"{name}.npy", array)

    def expressions(self):
        """Layout: (file, expression). The results of all functions stand one after the other."""
        forms = {"contiguous": ("flat", "x[{0}:{1}]"), "reversed": ("backwards", "x[::-1][{0}:{1}]"),
                 "short rows": ("rows", f"x[{{2}}:{{3}}, :{SHORT}]"), "strided": ("columns", "x[{0}:{1}, 1]")}
        for layout, (file, view) in forms.items():
            terms = [f"ravel({each.function}({view.format(begin, end, begin // SHORT, end // SHORT)}))"
                     for each, (begin, end) in zip(self.sets, self.parts)]
            yield layout, f"{file}.npy", f"concat(({', '.join(terms)}))"

    def results(self, got):
        """The results of each set, in the order of its rows."""
        for each, (begin, _) in zip(self.sets, self.parts):
            yield each, got[begin:begin + len(each.arguments)]


class Accuracy(ShaleCase):
    def test_the_sets_of_every_function_are_there(self):
        self.assertEqual([path.stem.removeprefix("umath-validation-set-") for path in SETS], FUNCTIONS,
                         "python3-numpy is to bring these sets, in core/tests/data beside its __init__.py")
        rows = sum(len(read_set(path, dtype).arguments) for path in SETS for dtype in ("float32", "float64"))
        self.assertGreaterEqual(rows, ROWS_MIN)

    def test_results_are_within_the_bounds_of_the_sets_and_of_numerics(self):
        isas = self.isas()
        for dtype in ("float32", "float64"):
            layouts = Layouts([read_set(path, dtype) for path in SETS], self.path)
            for isa in isas:
                for layout, file, text in layouts.expressions():
                    with self.subTest(isa=isa, dtype=dtype, layout=layout):
                        self.shale("eval", text, "--let", f"x={file}", "-o", "got.npy", "-f",
                                   env={**os.environ, "SHALE_ISA": isa})
                        got = np.load(self.path / "got.npy")
                        self.assertEqual(got.dtype, dtype)
                        self.assertEqual(len(got), layouts.parts[-1][1])
                        self.expect_within_bounds(layouts, got)

    def expect_within_bounds(self, layouts, got):
        wrong = []
        for each, results in layouts.results(got):
            distances = ulps(results, each.values)
            wrong += [f"{each.function}({float(each.arguments[i]).hex()}): got {float(results[i]).hex()}, "
                      f"published {float(each.values[i]).hex()}, {float(distances[i]):.3g} ulp"
                      for i in np.flatnonzero(distances > np.minimum(each.bounds, ULPS_MAX))]
        self.assertEqual(wrong[:20], [], f"{len(wrong)} results are wrong")

    def test_distances_are_those_in_the_last_place(self):
        below, least, most = np.nextafter(np.float32(1), np.float32(0)), 2.0 ** -149, 2.0 ** 128 - 2.0 ** 104
        cases = [(1, 1, 0), (1 + 2.0 ** -23, 1, 1), (below, 1, 0.5), (1, below, 1), (3, 1, 2 ** 24),
                 (least, 0, 1), (3 * least, 4 * least, 1), (-least, least, np.inf), (-0.0, 0, np.inf),
                 (np.inf, most, 1), (most, np.inf, 1), (-np.inf, np.inf, np.inf),
                 (np.nan, 1, np.inf), (1, np.nan, np.inf), (np.nan, -np.nan, 0)]
        for got, wanted, distance in cases:
            with self.subTest(got=got, wanted=wanted):
                self.assertEqual(ulps(*np.array([[got], [wanted]], np.float32))[0], distance)


if __name__ == "__main__":
    main()
