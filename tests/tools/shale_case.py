"""The base of the tests of the built `shale` command: a folder with data, and verbs."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


class ShaleCase(unittest.TestCase):
    command = None  # the path of the built command

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="shale-command-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        rng = np.random.default_rng(7)
        self.dem = rng.integers(200, 1100, (60, 83)).astype(np.int16)
        self.wave = rng.standard_normal((17, 40)).astype(np.float32)
        np.savez_compressed(self.path / "dem.npz", dem=self.dem, dx=np.float64(0.25), wave=self.wave)

    # ---- verbs -----------------------------------------------------------------------------------

    def shale(self, *arguments, code=0, **options):
        done = Result(subprocess.run([self.command, *map(str, arguments)], cwd=self.path, text=True,
                                     capture_output=True, timeout=120, **options))
        self.assertEqual(done.code, code, f"shale {' '.join(map(str, arguments))}\n"
                                          f"{done.out}\n{done.err}")
        if code >= 2:
            self.assertRegex(done.err, r"^(shale[ a-z]*: |Tensors larger than memory)")
        return done

    def files(self):
        return sorted(p.name for p in self.path.iterdir())

    def load(self, address):
        """The elements of an address: the command converts them to .npy, which NumPy reads."""
        self.shale("convert", address, "back.npy", "-f")
        return np.load(self.path / "back.npy")

    def survey(self, *how):
        self.shale("convert", "dem.npz", "survey.shale", *how)

    def peak_memory(self, *arguments):
        """
        The peak resident memory of one command in KiB. A small process starts the command: Linux counts
        the memory of whoever calls exec to the program that it becomes, and this process may be large.
        """
        starter = ("import resource, subprocess, sys;"
                   "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        return int(subprocess.run([sys.executable, "-S", "-c", starter, self.command, *arguments], check=True,
                                  cwd=self.path, stdout=subprocess.PIPE).stdout)

    def is_sanitized(self):
        """Whether AddressSanitizer is in the command: it holds memory of its own."""
        return b"__asan_init" in pathlib.Path(self.command).read_bytes()

    def isas(self):
        """The instruction sets whose kernels can run here: values of SHALE_ISA."""
        found = []
        for isa in ("baseline", "avx2", "avx512"):
            done = subprocess.run([self.command, "eval", "exp(zeros(1))"], env={**os.environ, "SHALE_ISA": isa},
                                  text=True, capture_output=True, timeout=120)
            if done.returncode == 0:
                found.append(isa)
            else:
                self.assertIn("usable on this CPU", done.stderr)
        self.assertIn("baseline", found)
        return found

    def assert_same(self, got, wanted):
        wanted = np.asarray(wanted)
        self.assertEqual(got.dtype, wanted.dtype)
        self.assertEqual(got.shape, wanted.shape)
        np.testing.assert_array_equal(got, wanted)


def main():
    """For test programs: PATH/TO/shale [unittest arguments]."""
    ShaleCase.command = os.path.abspath(sys.argv.pop(1))
    unittest.main()
