#!/usr/bin/python3
"""script/bench streams on small files: whether every work runs, and its row says what moved."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MATRIX = 4 * 1408 * 1408  # bytes: the largest square with sides of a multiple of 128 below 8 MiB
CUBE = 4 * 128**3
MOVED = {"sum(a)": MATRIX, "mean(a, axis 0)": MATRIX, "mean(a, axis 1)": MATRIX, "sum(a + b.T)": 2 * MATRIX,
         "c = a + b": 3 * MATRIX, "c = sqrt(a*a + b*b)": 3 * MATRIX, "a = a*0.5 + 1, in place": 2 * MATRIX,
         "c = (a - mean(a)) / stddev(a)": 3 * MATRIX, "transposed copy": 2 * MATRIX, "permute (2, 0, 1)": 2 * CUBE,
         "histogram(a), 256 bins": MATRIX, "topk(a, 100)": MATRIX, "median(a)": 2 * MATRIX,
         "c = cumulative_sum(a)": 2 * MATRIX, "sort(a)": 4 * MATRIX, "c = matmul(a, b)": 3 * 4 * 128**2,
         "tall QR, 128 columns": MATRIX, "PCA, 5 of 128 columns": 7 * MATRIX}
IN_MEMORY = ("matmul", "QR", "PCA")  # compared with the same in memory


class Streams(unittest.TestCase):
    build = None

    def rows(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder, "rows.json")
            done = subprocess.run([str(ROOT / "script/bench"), "streams", "--size", "8MiB", "--rounds", "1", "--build",
                                   str(self.build), "--json", str(rows), *options],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return {row["work"]: row for row in map(json.loads, rows.read_text().splitlines())}

    def test_every_work_is_done(self):
        rows = self.rows()
        self.assertEqual({work: row["bytes"] for work, row in rows.items()}, MOVED)
        for work, row in rows.items():
            self.assertGreater(row["seconds"], 0, work)
            self.assertGreater(row["peak_rss_bytes"], 0, work)
            in_memory = any(name in work for name in IN_MEMORY)
            self.assertEqual(row["reach"]["against"], "memory" if in_memory else "the disk", work)

    def test_works_can_be_chosen(self):
        self.assertEqual(list(self.rows("--only", "permute")), ["permute (2, 0, 1)"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    Streams.build = arguments.build
    unittest.main(argv=[sys.argv[0], *rest])
