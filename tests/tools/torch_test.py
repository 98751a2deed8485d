#!/usr/bin/python3
"""Tests the built `shale` command on files of Torch7. torch_files.py, which shares no code with it, is the
oracle for their bytes, and NumPy for their elements.

Usage: torch_test.py PATH/TO/shale [unittest arguments]
"""

import sys

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree

import torch_files
from shale_case import ShaleCase, main

USAGE, CORRUPT, UNSUPPORTED = 2, 4, 5


class Torch(ShaleCase):
    def net(self, ascii_form=False):
        """Saves a tree with tensors in it; returns them by path."""
        weights = torch_files.Storage(np.arange(12, dtype=np.float32))
        tree = {"weights": {1: torch_files.Tensor(weights, [3, 4], [4, 1]),
                            2: torch_files.Tensor(weights, [4, 3], [1, 4])},
                "net": torch_files.Object("nn.Linear", {"bias": np.array([0.5, -2.25]), "train": True}),
                "size": torch_files.Storage(np.array([3, -4], np.int64)),
                "rate": 0.1, "name": "a net"}
        torch_files.save(self.path / "net.t7", tree, ascii_form)
        whole = np.arange(12, dtype=np.float32).reshape(3, 4)
        return {"weights/1": whole, "weights/2": whole.T, "net/bias": np.array([0.5, -2.25]),
                "size": np.array([3, -4], np.int64)}

    def test_tensors_are_listed_described_and_read_by_their_paths(self):
        for ascii_form in (False, True):
            arrays = self.net(ascii_form)
            self.assertEqual(self.shale("ls", "net.t7").out.splitlines(), list(arrays))
            listed = self.shale("info", "net.t7", "--json").json()
            self.assertEqual(listed["format"], "t7")
            self.assertEqual([array["name"] for array in listed["arrays"]], list(arrays))
            for array, values in zip(listed["arrays"], arrays.values()):
                self.assertEqual(array["dtype"], values.dtype.name)
                self.assertEqual(array["shape"], list(values.shape))
                self.assertEqual("ASCII" in array["kind"], ascii_form)
            self.assertIn("strided", listed["arrays"][1]["kind"])
            self.assertEqual(listed["arrays"][1]["stored_bytes"], 48)
            self.assertIn("storage", listed["arrays"][3]["kind"])
            for name, values in arrays.items():
                self.assert_same(self.load(f"net.t7:{name}"), values)
            self.assert_same(self.load("net.t7:weights/2[::2, -1]"), arrays["weights/2"][::2, -1])
            self.assertIn("float64 (2,)", self.shale("cat", "net.t7:net/bias").out)
            self.assertIn("weights/2", self.shale("ls", "-l", "net.t7").out)

    def test_a_whole_file_becomes_a_container_and_comes_back(self):
        for ascii_form in (False, True):
            arrays = self.net(ascii_form)
            err = self.shale("convert", "net.t7", "net.shale", "-f").err
            self.assertIn("not kept: 1 number, 1 boolean, 1 string", err)
            done = self.shale("convert", "net.t7", "net.shale", "-f", "--json").json()
            self.assertEqual(done["not_kept"], ["1 number, 1 boolean, 1 string"])
            for name, values in arrays.items():
                self.assert_same(self.load(f"net.shale:{name}"), values)
            self.shale("convert", "net.shale", "back.t7", "-f")
            back = torch_files.load(self.path / "back.t7")
            self.assertEqual(sorted(back), sorted(arrays))
            for name, values in arrays.items():
                self.assert_same(back[name], values)
            self.shale("convert", "net.t7", "net.npz", "-f")
            with np.load(self.path / "net.npz") as archive:
                for name, values in arrays.items():
                    self.assert_same(archive[name], values)

    def test_one_tensor_is_a_file_by_itself(self):
        self.shale("convert", "dem.npz:dem", "dem.t7")
        self.assert_same(torch_files.load(self.path / "dem.t7"), self.dem)
        self.assertEqual(self.shale("ls", "dem.t7").out, "dem.t7\n")
        self.assert_same(self.load("dem.t7"), self.dem)
        self.assert_same(self.load("dem.t7[3, ::-1]"), self.dem[3, ::-1])
        self.shale("convert", "dem.t7", "one.shale")
        self.assertEqual(self.shale("ls", "one.shale").out, "dem\n")
        self.shale("convert", "dem.t7", "again.t7")
        self.assert_same(torch_files.load(self.path / "again.t7"), self.dem)
        self.shale("convert", "dem.npz:dem", "named.t7:a/b")
        self.assert_same(torch_files.load(self.path / "named.t7")["a/b"], self.dem)
        self.shale("eval", "a + a", "--let", "a=dem.t7", "-o", "twice.t7")
        self.assert_same(torch_files.load(self.path / "twice.t7"), self.dem + self.dem)

    def test_every_dtype_of_torch_is_written(self):
        for code in torch_files.TYPES.values():
            values = (np.arange(6) - (0 if code == "u1" else 3)).astype(code).reshape(2, 3)
            np.save(self.path / "x.npy", values)
            self.shale("convert", "x.npy", "x.t7", "-f")
            self.assert_same(torch_files.load(self.path / "x.t7"), values)
        np.save(self.path / "x.npy", np.float64(1.5))
        self.shale("convert", "x.npy", "x.t7", "-f")
        self.assert_same(torch_files.load(self.path / "x.t7"), np.array([1.5]))

    def test_a_dtype_that_torch_does_not_have_is_refused_with_advice(self):
        for dtype in (np.uint16, np.uint32, np.uint64, np.complex64, np.bool_):
            np.save(self.path / "x.npy", np.ones(3, dtype))
            for target in ("x.t7", "x.t7:a"):
                err = self.shale("convert", "x.npy", target, code=UNSUPPORTED).err
                self.assertIn("convert to one of", err)
        np.save(self.path / "x.npy", np.array([True, False]))
        self.shale("convert", "x.npy", "x.t7", "--as", "uint8")
        self.assert_same(torch_files.load(self.path / "x.t7"), np.array([1, 0], np.uint8))
        self.assertEqual(self.files(), ["dem.npz", "x.npy", "x.t7"])

    def test_a_file_with_such_a_dtype_is_refused_before_an_array_is_read(self):
        values = np.arange(1000, dtype=np.float64)
        np.savez(self.path / "mixed.npz", a=values, b=np.ones(3, np.bool_))
        damaged = bytearray((self.path / "mixed.npz").read_bytes())
        damaged[damaged.index(values[500:510].tobytes())] ^= 1
        (self.path / "mixed.npz").write_bytes(damaged)
        self.shale("convert", "mixed.npz:a", "x.t7", code=CORRUPT)
        err = self.shale("convert", "mixed.npz", "x.t7", code=UNSUPPORTED).err
        self.assertIn("mixed.npz:b", err)
        self.shale("convert", "mixed.npz", "x.t7", "--as", "complex64", code=UNSUPPORTED)
        self.shale("convert", "mixed.npz", "x.t7", "--as", "float32", code=CORRUPT)
        self.assertEqual(self.files(), ["dem.npz", "mixed.npz"])

    def test_targets_are_replaced_whole_and_only_with_force(self):
        self.net()
        before = (self.path / "net.t7").read_bytes()
        for target in ("net.t7", "net.t7:weights/1", "net.t7:new"):
            self.shale("convert", "dem.npz:dem", target, code=3)
        err = self.shale("convert", "dem.npz:dem", "net.t7:new", "-f", code=3).err
        self.assertIn("holds other arrays: weights/1, weights/2", err)
        self.assertIn("a .t7 file is written whole", err)
        self.assertEqual((self.path / "net.t7").read_bytes(), before)
        self.shale("convert", "dem.npz:dem", "net.t7", "-f")
        self.assert_same(torch_files.load(self.path / "net.t7"), self.dem)
        self.shale("convert", "dem.npz", "x.t7", "--chunk", "3", code=USAGE)

    def test_tensors_that_look_alike_leave_the_others_to_be_seen(self):
        one, two = np.array([1], np.uint8), np.array([2], np.uint8)
        torch_files.save(self.path / "x.t7", {1: one, "1": two, "c": self.dem})
        self.assertEqual(self.shale("ls", "x.t7", code=UNSUPPORTED).out.splitlines(), ["1", "c"])
        self.assertIn("several tensors", self.shale("ls", "-l", "x.t7", code=UNSUPPORTED).err)
        self.shale("cat", "x.t7:1", code=UNSUPPORTED)
        self.assert_same(self.load("x.t7:c"), self.dem)
        self.assertIn("convert", self.shale("convert", "x.t7", "y.shale", code=UNSUPPORTED).err)

    def test_names_that_are_missing_are_answered_with_those_that_there_are(self):
        self.net()
        self.assertIn("weights/1", self.shale("cat", "net.t7:weights", code=3).err)
        self.assertIn("write net.t7:NAME", self.shale("cat", "net.t7", code=USAGE).err)
        torch_files.save(self.path / "none.t7", {"a": 1.5})
        self.assertIn("holds none", self.shale("cat", "none.t7", code=USAGE).err)
        self.assertEqual(self.shale("ls", "none.t7").out, "")

    def test_what_is_no_file_of_torch_is_refused(self):
        self.net()
        whole = (self.path / "net.t7").read_bytes()
        for data, code in ((whole[:-1], CORRUPT), (whole + b"\0", CORRUPT), (b"", CORRUPT),
                           (b"\x93NUMPY", CORRUPT), (b"\0\0\0\3" + whole[4:], UNSUPPORTED),
                           (whole.replace(b"nn.Linear", b"tds.Hash2"), 0),
                           (torch_files.dumps(torch_files.Object("torch.CudaTensor", None)),
                            UNSUPPORTED)):
            (self.path / "x.t7").write_bytes(data)
            for words in (["ls"], ["info"], ["cat"]):
                wanted = USAGE if code == 0 and words == ["cat"] else code
                err = self.shale(*words, "x.t7", code=wanted).err
                self.assertTrue(code == 0 or "x.t7" in err, err)


if __name__ == "__main__":
    main()
