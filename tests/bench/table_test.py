#!/usr/bin/python3
"""What bench/table.py makes of the rows of a benchmark."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tables(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def table(self, *rows, causes=None, suite="container", status=0, arguments=()):
        """The cells of the table, row by row, each as a dictionary by column."""
        path = self.folder / "rows.json"
        path.write_text("".join(json.dumps({"bytes": 0, "seconds": 1, "gb_per_s": 0, "peak_rss_bytes": 0} | row)
                                + "\n" for row in rows))
        command = [sys.executable, "-B", str(ROOT / "bench/table.py"), suite, str(path), *map(str, arguments)]
        if causes is not None:
            (self.folder / "causes.json").write_text(json.dumps(causes))
            command += ["--causes", str(self.folder / "causes.json")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, status, done.stdout)
        cells = [[cell.strip() for cell in line.strip("|").split(" | ")]
                 for line in done.stdout.splitlines() if line.startswith("| ")]
        for row in cells[1:]:
            self.assertEqual(len(row), len(cells[0]), row)
        return [dict(zip(cells[0], row)) for row in cells[1:]]

    def test_a_loss_shows_the_cause_of_the_first_pattern_that_fits(self):
        losses = [{"work": "smooth: sum, 1 thread", "peers": {"dask": [0.5, 0.4, 0.6]}},
                  {"work": "smooth: sum, 2 threads", "met": False,
                   "reach": {"ratio": [1, 1, 1], "at_least": 2, "against": "dask"}},
                  {"work": "noise: sum, 1 thread", "met": True, "peers": {"dask": [1.5, 1.4, 1.6]},
                   "reach": {"ratio": [1.5, 1.4, 1.6], "at_least": 1.5, "against": "dask"}},
                  {"work": "noise: write all, 1 thread", "peers": {"dask": [0.9, 0.8, 1.2]}}]
        causes = {"container": {"smooth: sum*": "it adds carefully", "smooth:*": "another"}}
        said = [row["remarks"] for row in self.table(*losses, causes=causes)]
        self.assertEqual(said, ["it adds carefully", "it adds carefully", "", "cause not known"])

    def test_suites_without_causes_and_notes_have_no_remarks(self):
        rows = self.table({"work": "sum", "met": False, "reach": {"ratio": [1, 1, 1], "at_least": 2, "against": "x"}},
                          causes={"container": {}}, suite="engine")
        self.assertNotIn("remarks", rows[0])
        self.assertEqual(rows[0]["met"], "**no**")

    def test_a_peer_that_is_not_there_has_a_row(self):
        row, = self.table({"work": "peer: TileDB", "seconds": 0, "note": "not installed"}, causes={"container": {}})
        self.assertEqual((row["work"], row["seconds"], row["remarks"]), ("peer: TileDB", "–", "not installed"))

    def test_packing_stands_beside_each_peer_that_has_it(self):
        rows = self.table({"work": "a", "packing": {"shale": 2.18, "zarr": 1.97},
                           "peers": {"zarr": [3, 2.5, 3.5], "dask": [4, 4, 4]}}, {"work": "b"})
        self.assertEqual(rows[0]["packs"], "2.18")
        self.assertEqual(rows[0]["zarr / Shale"], "3 (2.5–3.5), packs 1.97")
        self.assertEqual(rows[0]["dask / Shale"], "4")
        self.assertEqual(rows[1]["packs"], "")

    def test_an_update_replaces_one_suite_only(self):
        document = self.folder / "page.md"
        document.write_text("<!-- bench engine -->\nold\n<!-- end engine -->\n"
                            "<!-- bench container -->\nold\n<!-- end container -->\nafter\n")
        self.table({"work": "new work"}, arguments=("--update", document))
        text = document.read_text()
        self.assertTrue(text.startswith("<!-- bench engine -->\nold\n<!-- end engine -->\n"))
        self.assertTrue(text.endswith("<!-- end container -->\nafter\n"))
        self.assertIn("| new work |", text)
        self.assertEqual(text.count("old"), 1)

    def test_the_pages_and_causes_have_a_place_for_every_suite(self):
        page = (ROOT / "docs/performance.md").read_text()
        for suite in ("pool", "mapping", "engine", "container"):
            self.assertIn(f"<!-- bench {suite} -->", page)
            self.assertIn(f"<!-- end {suite} -->", page)
        self.assertIn("container", json.loads((ROOT / "bench/causes.json").read_text()))


if __name__ == "__main__":
    unittest.main()
