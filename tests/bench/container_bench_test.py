#!/usr/bin/python3
"""script/bench container --quick: whether every work of Shale runs, beside the peers that the distribution has."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# One thread, and as many as there are processors.
ALL = len(os.sched_getaffinity(0))
ON_ALL = f"{ALL} thread{'s' * (ALL > 1)}"

# The works on a data set, each on one thread and on all.
ON_EACH = ["write all", "write all, durable", "read all, warm", "read all, cold"]
ON_SMOOTH = ["2 random chunks", "a plane across axis 0", "a plane across axis 1", "a plane across axis 2",
             "10 single elements, one by one", "10 single elements, one gather", "sum", "normalised copy"]
OTHERS = ["5 small updates, each durable",
          "5 single elements of a dense array of 64 KiB, each durable",
          "5 single elements of a dense array of 4,096 KiB, each durable",
          "5 rows appended to a dense array of 64 KiB, each durable",
          "5 rows appended to a dense array of 4,096 KiB, each durable",
          "5 rows appended to a chunked array, each durable",
          f"create, fill and commit a dense array of 1 MiB, {ON_ALL}",
          f"map and sum a dense array of 1 MiB, warm, {ON_ALL}",
          "open and find one of 20 arrays", "open and find one of 50 arrays", "list 20 names", "list 50 names",
          f"read 100 chunks of 2 KiB, {ON_ALL}", "smooth: read all beside 100 commits a second, 1 thread"]
PEERS = ["TensorStore", "zarr", "zarrs", "Blosc2", "h5py", "TileDB", "dask", "rechunker"]


class Container(unittest.TestCase):
    build = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder, "rows.json")
            done = subprocess.run([str(ROOT / "script/bench"), "container", "--quick", "--build", str(cls.build),
                                   "--python", "/usr/bin/python3", "--json", str(rows)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
            cls.printed = done.stdout
            cls.rows = {row["work"]: row for row in map(json.loads, rows.read_text().splitlines())}

    def test_every_work_is_done(self):
        works = [f"{name}: {work}, {threads}" for threads in ("1 thread", ON_ALL) for name, some in (
            ("smooth", ON_EACH + ON_SMOOTH), ("elevation", ON_EACH), ("noise", ON_EACH)) for work in some]
        for work in works + OTHERS:
            self.assertIn(work, self.rows)
            self.assertGreater(self.rows[work]["seconds"], 0, work)
            self.assertIn(f"| {work} |", self.printed)

    def test_what_is_measured_has_its_limit(self):
        for work, limit in ((f"smooth: write all, {ON_ALL}", "encode alone"),
                            ("smooth: read all, warm, 1 thread", "decode alone"),
                            ("smooth: read all, warm, 1 thread", "zstd and unshuffle"),
                            ("smooth: read all, cold, 1 thread", "the slower of decoding and the disk"),
                            ("5 small updates, each durable", "two fdatasync each")):
            own = [row["reach"]["against"] for name, row in self.rows.items()
                   if name in (work, f"{work}: {limit}") and "reach" in row]
            self.assertIn(limit, own, work)

    def test_values_are_stored_in_fewer_bytes_unless_they_are_noise(self):
        self.assertGreater(self.rows["smooth: write all, 1 thread"]["packing"]["shale"], 1.5)
        self.assertGreater(self.rows["elevation: write all, 1 thread"]["packing"]["shale"], 1.2)
        self.assertLess(self.rows["noise: write all, 1 thread"]["packing"]["shale"], 1.5)

    def test_arrays_are_rechunked_if_this_version_can(self):
        row = self.rows["rechunk under 16 MiB"]
        self.assertTrue(row["seconds"] > 0 or row["note"] == "not in this version", row)

    def test_every_peer_has_a_row_that_says_whether_it_is_there(self):
        for peer in PEERS:
            note = self.rows[f"peer: {peer}"]["note"]
            self.assertIn(f"| peer: {peer} |", self.printed)
            if note != "not installed":
                self.assertRegex(note, r"^\d+\.")

    def test_peers_that_are_there_take_part(self):
        if self.rows["peer: h5py"]["note"] == "not installed":
            self.fail("h5py is missing; script/setup --bench installs it")
        for work in ("open and find one of 20 arrays", "list 50 names"):
            self.assertGreater(self.rows[work]["peers"]["h5py"][0], 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    Container.build = arguments.build
    unittest.main(argv=[sys.argv[0], *rest])
