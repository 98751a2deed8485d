#!/usr/bin/python3
"""Drives the built `shale` command as its users do, with NumPy as the oracle.

Usage: command_test.py PATH/TO/shale [unittest arguments]
"""

import ctypes
import json
import math
import operator
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import time
import zlib

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree

import random_reference
from shale_case import ShaleCase, main

COMMANDS = ("info ls cat stats plot convert create append resize rechunk eval set mv rm verify du doctor "
            "version").split()


def partial_pivots(a):
    """The matrices p, l and u of Gaussian elimination with exchanges of rows: a = p l u."""
    packed, rows, k = a.astype(float), np.arange(len(a)), min(a.shape)
    for j in range(k):
        swapped = [j, j + np.argmax(abs(packed[j:, j]))]
        packed[swapped], rows[swapped] = packed[swapped[::-1]], rows[swapped[::-1]]
        packed[j + 1:, j] /= packed[j, j]
        packed[j + 1:, j + 1:] -= np.outer(packed[j + 1:, j], packed[j, j + 1:])
    return np.eye(len(a))[:, rows], np.tril(packed[:, :k], -1) + np.eye(len(a), k), np.triu(packed[:k])


def positive_qr(a):
    """The QR factors whose triangle has no negative number on its diagonal."""
    q, r = np.linalg.qr(a)
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    return q * signs, r * signs[:, None]


def signed_svd(a, rank, oversampling=10, iterations=2, *, seed):
    """The largest singular values; the largest element of each row of vh is positive."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    signs = np.array([np.sign(row[np.argmax(abs(row))]) for row in vh])
    return (u * signs)[:, :rank], s[:rank], (vh * signs[:, None])[:rank]


def principal_components(samples, count, oversampling=10, iterations=2, *, seed):
    """Mean, components, explained variance, its share, and singular values."""
    mean = samples.mean(0)
    _, s, vh = signed_svd(samples - mean, len(mean), seed=seed)
    variance = s**2 / (len(samples) - 1)
    return mean, vh[:count], variance[:count], variance[:count] / variance.sum(), s[:count]


class Command(ShaleCase):
    # ---- help and usage --------------------------------------------------------------------------

    def test_every_command_explains_itself_with_examples(self):
        overview = self.shale("--help")
        for command in COMMANDS:
            self.assertIn(f"  {command} ", overview.out)
            explained = self.shale(command, "--help")
            self.assertIn("Examples:", explained.out)
            self.assertIn(f"shale {command}", explained.out)
            self.assertEqual(explained.err, "")

    def test_wrong_usage_exits_with_2_and_says_so_on_stderr(self):
        for arguments in ([], ["nosuch"], ["info"], ["info", "a.shale", "--nosuch"],
                          ["stats", "dem.npz"], ["stats", "dem.h5"], ["cat", "dem.npz:dem[0"],
                          ["stats", "dem.npz:dem", "--mem", "much"],
                          ["stats", "dem.npz:dem", "--mem", "1"],
                          ["stats", "dem.npz:dem", "--mem", "0"],
                          ["stats", "dem.npz:dem", "--threads", "0"],
                          ["eval"], ["eval", "a +", "--let", "a=dem.npz:dem"],
                          ["eval", "1", "--let", "1a=dem.npz:dem"],
                          ["eval", "a", "--let", "a"], ["verify", "dem.npz"],
                          ["create", "x.npy", "--shape", "3"],
                          ["create", "x.shale:a", "--shape", "3,-1"],
                          ["create", "x.shale:a", "--shape", "3", "--dtype", "float7"],
                          ["create", "x.shale:a", "--shape", "3", "--dtype", "int8", "--fill", "300"],
                          ["create", "x.shale:a", "--shape", "3", "--dense", "--chunk", "3"],
                          ["create", "x.shale:a", "--shape", "3", "--codec", "gzip"],
                          ["create", "x.shale:a", "--shape", "3", "--attribute", "unit"],
                          ["convert", "dem.npz:dem", "x.shale:a", "--chunk", "3"],
                          ["convert", "dem.npz:dem", "x.npy", "--chunk", "3,3"],
                          ["convert", "dem.npz:dem", "x.npy", "--dtype", "int8"],
                          ["cat", "--csv", "dem.npz:dem[:, None, :]"],
                          ["cat", "--csv", "--precision", "2", "dem.npz:dem"],
                          ["cat", "--csv", "-a", "dem.npz:dem"],
                          ["eval", "1 + 1", "--codec", "zstd"], ["eval", "1 + 1", "-f"],
                          ["eval", "gradient(a, 2, 1)", "--let", "a=dem.npz:dem"],
                          ["convert", "--salvage", "dem.npz", "x.shale"],
                          ["info", "dem.npz:dem", "--dtype", "int8"],
                          ["convert", "dem.npz:dem", "x.raw:int8", "--as", "int16"],
                          ["convert", "dem.npz:dem", "x.raw:int16(3,4)"],
                          ["eval", "a", "--let", "a=dem.npz:dem", "--let", "a=dem.npz:wave"],
                          ["eval", "stack(a)", "--let", "a=dem.npz:dem"],
                          ["eval", "a + k", "--let", "a=dem.npz:dem", "--let", "k=(2, 3)"],
                          ["plot", "dem.npz:dem", "-o", "dem.png", "--min", "3", "--max", "2"],
                          ["plot", "dem.npz:dem", "-o", "dem.jpg"],
                          ["plot", "dem.npz:dem[0]", "-o", "dem.png"],
                          ["plot", "dem.npz:dem", "-o", "dem.png", "--colormap", "jet"]):
            with self.subTest(arguments):
                done = self.shale(*arguments, code=2)
                self.assertEqual(done.out, "")
                self.assertNotEqual(done.err, "")
        self.assertEqual(self.files(), ["dem.npz"])

    def test_misspelt_commands_get_a_hint(self):
        self.assertIn("did you mean stats?", self.shale("stat", "dem.npz:dem", code=2).err)
        self.assertIn("no command 'frobnicate'", self.shale("frobnicate", code=2).err)

    def test_errors_name_files_as_the_user_does(self):
        err = self.shale("create", "new.shale:a\x01", "--shape", "3", code=2).err
        self.assertNotIn("partial", err)
        self.assertIn("new.shale", err)

    def test_errors_in_expressions_point_at_the_place(self):
        done = self.shale("eval", "dem + nosuch", "--let", "dem=dem.npz:dem", code=2)
        lines = done.err.splitlines()
        at = next(i for i, line in enumerate(lines) if "^" in line)
        self.assertEqual(lines[at - 1][lines[at].index("^"):][:6], "nosuch")

    def test_missing_files_and_arrays_exit_with_3(self):
        self.survey()
        for arguments in (["info", "nosuch.shale"], ["cat", "nosuch.npy"], ["stats", "nosuch.npz:a"],
                          ["cat", "survey.shale:nosuch"], ["cat", "dem.npz:nosuch"],
                          ["eval", "a", "--let", "a=no.npy"], ["verify", "nosuch.shale"],
                          ["convert", "dem.npz:dem", "nosuch/x.npy"]):
            with self.subTest(arguments):
                self.assertEqual(self.shale(*arguments, code=3).out, "")

    def test_missing_folders_are_named_with_the_target(self):
        for target in ("nosuch/x.npy", "nosuch/x.npz", "nosuch/x.raw", "nosuch/x.shale:a",
                       "nosuch/x.t7", "nosuch/x.t7:a", "dem.npz/x.npy", "dem.npz/x.npz", "dem.npz/x.t7"):
            file = target.split(":")[0]
            for arguments in (["convert", "dem.npz:dem", target],
                              ["eval", "a * 2", "--let", "a=dem.npz:dem", "-o", target]):
                with self.subTest(arguments):
                    err = self.shale(*arguments, code=3).err
                    self.assertIn(f"file {file}\n", err)
                    self.assertIn(f"directory {file.split('/')[0]}\n", err)
                    self.assertNotIn("partial", err)
        err = self.shale("plot", "dem.npz:dem", "-o", "nosuch/x.png", code=3).err
        self.assertIn("file nosuch/x.png\n  directory nosuch\n", err)

    def test_missing_files_are_named_alike_by_all_who_open_them(self):
        for arguments in (["info", "nosuch.shale"], ["info", "nosuch.npy"], ["info", "nosuch.raw"],
                          ["ls", "nosuch.shale"], ["cat", "nosuch.npy"], ["stats", "nosuch.npz:a"],
                          ["verify", "nosuch.shale"]):
            with self.subTest(arguments):
                name = arguments[1].split(":")[0]
                self.assertIn("cannot open file: No such file or directory [not_found]\n"
                              f"  file {name}\n", self.shale(*arguments, code=3).err)

    def test_names_that_ls_prints_are_addresses(self):
        np.savez(self.path / "odd.npz", **{"con[1]": self.dem, "a[": self.dem, "plain": self.dem})
        self.shale("convert", "odd.npz", "odd.shale")
        for file in ("odd.npz", "odd.shale"):
            plain = self.shale("ls", file).out.split()
            long = [line.split()[-1] for line in self.shale("ls", "-l", file).out.splitlines()[1:]]
            self.assertEqual(sorted(plain), ["a[[", "con[[1]", "plain"])
            self.assertEqual(sorted(long), sorted(plain))
            for name in plain:
                self.assert_same(self.load(f"{file}:{name}"), self.dem)
                self.assertEqual(self.shale("ls", f"{file}:{name}").out, name + "\n")
        for name in self.shale("ls", "odd.shale").out.split():
            self.shale("rm", f"odd.shale:{name}")

    def test_infinities_are_told_in_json(self):
        np.save(self.path / "inf.npy", np.array([1, np.inf]))
        found = self.shale("stats", "inf.npy", "--json").json()
        self.assertEqual((found["min"], found["max"]), (1, "Infinity"))
        value = self.shale("eval", "--json", "0 - min(-a)", "--let", "a=inf.npy").json()["value"]
        self.assertEqual(float(value), np.inf)
        value = self.shale("eval", "--json", "min(-a)", "--let", "a=inf.npy").json()["value"]
        self.assertEqual(float(value), -np.inf)
        self.assertIsNone(self.shale("eval", "--json", "sum(a - a)", "--let", "a=inf.npy").json()["value"])

    def test_numbers_that_are_none_are_refused(self):
        for option in ("--percentile", "--min", "--max"):
            for value in ("nan", "inf", "-inf"):
                self.shale("plot", "dem.npz:dem", "-o", "dem.png", f"{option}={value}", code=2)
                self.assertNotIn("dem.png", self.files())

    def test_targets_that_cannot_be_are_refused_before_the_work_and_alike(self):
        for suffix in ("npy", "npz", "t7", "raw", "shale", "png"):
            (self.path / f"folder.{suffix}").mkdir()
            os.mkfifo(self.path / f"pipe.{suffix}")
        before = self.files()
        # A name with one byte too many, and a path with one byte too many.
        name, path = "{:x>256}", "./" * 2048 + "y{}"
        for place, code, says in (
                (name, 2, "File name too long"), ("folder.npy/" + name, 2, "File name too long"),
                ("x" * 256 + "/y{}", 2, "File name too long"), (path, 2, "File name too long"),
                ("nosuch/" + name, 3, "mkdir -p nosuch"), ("nosuch/y{}", 3, "mkdir -p nosuch"),
                ("dem.npz/y{}", 3, "Not a directory"), ("folder{}", 2, ""), ("pipe{}", 2, "regular")):
            for suffix in ("npy", "npz", "t7", "raw", "shale", "png"):
                file = place.format("." + suffix)
                target = file + (":a" if suffix == "shale" else "")
                for force in ([], ["-f"]):
                    # Each of these would take hours.
                    work = ["eval", f"sum({self.ENDLESS})", "-o", target]
                    if suffix == "png":
                        work = ["plot", "dem.npz:dem", "-o", target]
                    with self.subTest((file[-20:], force)):
                        err = self.shale(*work, *force, code=code).err
                        self.assertIn(says, err)
                        self.assertIn(f"file {file}\n", err)
                        self.assertNotIn("-f replaces", err)
                        if suffix in ("npz", "t7", "shale"):
                            self.shale("convert", "dem.npz", file, *force, code=code)
                        if suffix == "shale":
                            self.shale("create", target, "--shape", "3", *force, code=code)
                        self.assertEqual(self.files(), before)
        # The longest name that the file system allows.
        longest = "x" * 249 + ".shale"
        self.shale("convert", "dem.npz:dem", f"{longest}:a")
        self.assertEqual(self.shale("ls", longest).out, "a\n")

    def test_what_exists_is_refused_before_sorting(self):
        for target in ("x.npy", "x.npz:a", "x.t7", "y.t7:a", "x.raw", "x.shale:a"):
            with self.subTest(target):
                self.shale("eval", "1", "-o", target)
                # This would take hours.
                err = self.shale("eval", f"sort({self.ENDLESS})", "-o", target, code=3).err
                self.assertIn("-f replaces it", err)

    def test_arrays_larger_than_memory_are_sorted_and_have_medians(self):
        rng = np.random.default_rng(3)
        x = rng.standard_normal(1 << 22).astype(np.float32).round(3)  # 16 times the budget
        x[::4099] = np.nan
        missing, known = int(np.isnan(x).sum()), np.where(np.isnan(x), np.float32(0), x)
        np.save(self.path / "x.npy", x)
        before = self.files()
        for text, wanted in (("sort(x)", np.sort(x)),
                             ("argsort(x)", np.argsort(x, kind="stable")),
                             (f"sort(-x, descending=True)[{missing}:]", -np.sort(x)[:-missing]),
                             ("sort(x.reshape(64, -1), axis=0)", np.sort(x.reshape(64, -1), axis=0)),
                             ("argsort(x.reshape(2, -1))", np.argsort(x.reshape(2, -1), kind="stable")),
                             ("median(where(isnan(x), 0, x)[1:])", np.median(known[1:])),
                             ("median(where(isnan(x), 0, x)[:-1].reshape(3, -1), axis=1)",
                              np.median(known[:-1].reshape(3, -1), axis=1))):
            with self.subTest(text):
                self.shale("eval", text, "--let", "x=x.npy", "-o", "y.npy", "-f", "--mem", "1MiB",
                           env={**os.environ, "TMPDIR": str(self.path)})
                self.assert_same(np.load(self.path / "y.npy"), wanted)
                self.assertEqual(self.files(), sorted([*before, "y.npy"]))
        err = self.shale("eval", "sum(sort(x))", "--let", "x=x.npy", "--mem", "1MiB",
                         env={**os.environ, "TMPDIR": "missing"}, code=3).err
        self.assertIn("TMPDIR", err)

    def test_pictures_of_narrow_arrays_stay_small(self):
        for shape in ((4096, 1), (40960, 100), (3, 1), (1, 3)):
            np.save(self.path / "x.npy", np.zeros(shape))
            self.shale("plot", "x.npy", "-o", "x.png", "-f", "--width", "1000")
            width, height = struct.unpack(">II", (self.path / "x.png").read_bytes()[16:24])
            self.assertLessEqual(width, 1000)
            self.assertLessEqual(height, 4096)

    def test_members_without_a_name_are_called_by_their_suffix(self):
        np.savez(self.path / "x.npz", **{"": self.dem, "b": self.wave})
        self.assertEqual(self.shale("ls", "x.npz").out.splitlines(), [".npy", "b"])
        self.assert_same(self.load("x.npz:.npy"), self.dem)
        self.shale("convert", "x.npz", "y.shale")

    def test_empty_values_of_options_are_refused(self):
        for words in (["eval", "1+1", "-o", ""], ["stats", "dem.npz:dem", "--mem", ""],
                      ["convert", "dem.npz:dem", "x.npy", "--dtype", ""]):
            with self.subTest(words):
                self.assertIn("is empty", self.shale(*words, code=2).err)

    def test_any_number_of_threads_up_to_the_limit_works(self):
        np.save(self.path / "large.npy", np.ones(3_000_000, np.float32))
        for threads in (1, 2, 300, 1024):
            done = self.shale("eval", "sum(a * 2)", "--let", "a=large.npy", "--threads", threads,
                              "--json")
            self.assertEqual(done.err, "")
            self.assertEqual(done.json()["value"], 6_000_000)
            self.assertEqual(done.json()["cost"]["threads"], threads)
            said = self.shale("convert", "large.npy", "copy.npy", "-f", "--threads", threads).err
            self.assertIn(f"on {threads} thread" + ("s" if threads > 1 else ""), said)
            self.assertEqual(len(said.splitlines()), 3)
        for threads in ("1025", "0", "-1", "2147483647", "2147483648", "99999999999999999999", "1.5",
                        "many", ""):
            err = self.shale("eval", "sum(a)", "--let", "a=large.npy", "--threads", threads, code=2).err
            self.assertIn("not in range 1 to 1024", err)

    def test_replaced_files_lose_rights_of_their_owner(self):
        for name in ("t.npy", "t.npz", "t.t7", "t.raw", "t.png"):
            (self.path / name).write_bytes(b"old")
            os.chmod(self.path / name, 0o6755)
            if name == "t.png":
                self.shale("plot", "dem.npz:dem", "-o", name, "-f")
            else:
                self.shale("convert", "dem.npz:dem", name, "-f")
            self.assertEqual((self.path / name).stat().st_mode & 0o7777, 0o755)

    def test_replaced_files_keep_their_owner(self):
        if os.geteuid() != 0:
            return  # only root may change a file's owner
        for name in ("t.npy", "t.npz", "t.t7", "t.raw", "t.png"):
            (self.path / name).write_bytes(b"old")
            os.chown(self.path / name, 1234, 2345)
            os.chmod(self.path / name, 0o640)
            work = ["plot", "dem.npz:dem", "-o"] if name == "t.png" else ["convert", "dem.npz:dem"]
            self.shale(*work, name, "-f")
            after = (self.path / name).stat()
            self.assertEqual((after.st_uid, after.st_gid, after.st_mode & 0o7777),
                             (1234, 2345, 0o640), name)

    def test_messages_do_not_mislead(self):
        err = self.shale("eval", "1 + 1", "--mem", "1048575", code=2).err
        self.assertIn("1048576 bytes", err)
        self.assertIn("which is 1048575 bytes", err)
        os.mkfifo(self.path / "pipe.shale")
        for arguments in (["ls", "pipe.shale"], ["info", "pipe.shale"], ["verify", "pipe.shale"],
                          ["create", "pipe.shale:a", "--shape", "3"]):
            self.assertIn("not a regular file", self.shale(*arguments, code=2).err)
        large = "99999999999999999999"
        err = self.shale("eval", f"a[{large}]", "--let", "a=dem.npz:dem", code=2).err
        self.assertNotIn("float", err)
        self.assertIn("axis", err)
        self.assertIn("1e20", self.shale("eval", f"a[0] + {large}", "--let", "a=dem.npz:dem", code=2).err)

    def test_full_standard_output_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.command, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("shale: ", done.stderr)

    # ---- reading ---------------------------------------------------------------------------------

    def test_ls_names_the_arrays(self):
        self.survey()
        self.assertEqual(self.shale("ls", "survey.shale").out.split(), ["dem", "dx", "wave"])
        self.assertEqual(sorted(self.shale("ls", "dem.npz").out.split()), ["dem", "dx", "wave"])
        long = self.shale("ls", "-l", "survey.shale").out.splitlines()
        self.assertEqual(len(long), 4)
        self.assertIn("(60, 83)", long[1])
        self.assertIn("int16", long[1])

    def test_ls_names_each_of_several_files(self):
        self.survey()
        self.shale("create", "empty.shale:a", "--shape", "3")
        several = self.shale("ls", "survey.shale", "empty.shale", "dem.npz").out
        self.assertEqual(several, "survey.shale:\ndem\ndx\nwave\n\nempty.shale:\na\n\n"
                                  "dem.npz:\ndem\ndx\nwave\n")
        for name in ("x.npy", "y.npy"):
            self.shale("convert", "dem.npz:dem", name)
        self.assertEqual(self.shale("ls", "x.npy", "y.npy").out, "x.npy\ny.npy\n")
        self.assertEqual(self.shale("ls", "x.npy", "empty.shale", "x.npy", "y.npy").out,
                         "x.npy\n\nempty.shale:\na\n\nx.npy\ny.npy\n")
        self.assertEqual(self.shale("ls", "-l", "survey.shale", "empty.shale").out,
                         "survey.shale:\n" + self.shale("ls", "-l", "survey.shale").out +
                         "\nempty.shale:\n" + self.shale("ls", "-l", "empty.shale").out)
        both = self.shale("ls", "--json", "survey.shale", "empty.shale").json()
        self.assertEqual([listing["file"] for listing in both], ["survey.shale", "empty.shale"])
        self.assertEqual(both[0]["arrays"], self.shale("ls", "--json", "survey.shale").json())

    def test_ls_goes_on_behind_a_file_that_cannot_be_read(self):
        self.survey()
        (self.path / "broken.shale").write_bytes(b"nothing of the kind" * 10000)
        first, last = self.shale("ls", "survey.shale").out, self.shale("ls", "dem.npz").out
        listed = self.shale("ls", "survey.shale", "nosuch.shale", "broken.shale", "dem.npz", code=4)
        self.assertEqual(listed.out, f"survey.shale:\n{first}\ndem.npz:\n{last}")
        self.assertEqual(len(re.findall("^shale: ", listed.err, re.MULTILINE)), 2)
        for name in ("nosuch.shale", "broken.shale"):
            self.assertIn(name, listed.err)
        self.shale("ls", "broken.shale", "nosuch.shale", "dem.npz", code=4)
        both = self.shale("ls", "--json", "nosuch.shale", "dem.npz", code=3).json()
        self.assertEqual([listing["file"] for listing in both], ["nosuch.shale", "dem.npz"])
        self.assertIsNone(both[0]["arrays"])
        self.assertEqual(len(both[1]["arrays"]), 3)

    def test_info_stats_and_verify_take_several_files(self):
        self.survey()
        self.shale("create", "other.shale:a", "--shape", "3")
        for command, key, first, last in (("info", "file", "survey.shale", "other.shale"),
                                          ("stats", "source", "survey.shale:dem", "other.shale:a"),
                                          ("verify", "file", "survey.shale", "other.shale")):
            with self.subTest(command):
                both = "\n".join(f"{source}:\n{self.shale(command, source).out}" for source in (first, last))
                self.assertEqual(self.shale(command, first, last).out, both)
                quiet = [] if command == "info" else ["-q"]
                found = self.shale(command, first, "nosuch.shale", last, *quiet, code=3)
                self.assertEqual(found.out, both)
                self.assertEqual(len(re.findall("^shale: ", found.err, re.MULTILINE)), 1)
                told = self.shale(command, first, "nosuch.shale", last, "--json", code=3).json()
                self.assertEqual([each[key] for each in told], [first, "nosuch.shale", last])
                self.assertEqual(told[1], {key: "nosuch.shale"})
                self.assertEqual(told[0].keys(), self.shale(command, first, "--json").json().keys())

    def test_the_exit_code_of_several_files_is_the_worst(self):
        self.survey()
        (self.path / "broken.shale").write_bytes(b"nothing of the kind" * 10000)
        self.shale("verify", "survey.shale", "nosuch.shale", "broken.shale", "dem.npz", code=1)
        self.shale("verify", "dem.npz", "survey.shale", "nosuch.shale", code=3)
        self.shale("info", "nosuch.shale", "broken.shale", "survey.shale", code=4)
        self.shale("stats", "dem.h5", "survey.shale:dem", "nosuch.npy", code=3)

    def test_ls_names_members_that_cannot_be_read(self):
        np.savez(self.path / "o.npz", a=np.arange(3), o=np.array([None, {}], dtype=object))
        self.assertEqual(self.shale("ls", "o.npz").out.split(), ["a", "o"])

    def test_info_as_json_has_the_whole_truth(self):
        self.survey()
        self.shale("convert", "dem.npz:dem", "survey.shale:packed", "--chunk", "16,32",
                   "--codec", "delta,shuffle,zstd:3")
        info = self.shale("info", "survey.shale", "--json").json()
        self.assertEqual(info["format"], "shale")
        self.assertEqual(info["generation"], self.shale("verify", "survey.shale",
                                                        "--json").json()["generation"])
        self.assertRegex(info["uuid"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertEqual(info["file_bytes"], (self.path / "survey.shale").stat().st_size)
        arrays = {array["name"]: array for array in info["arrays"]}
        self.assertEqual(sorted(arrays), ["dem", "dx", "packed", "wave"])
        self.assertEqual(arrays["dem"]["kind"], "dense")
        self.assertEqual(arrays["dem"]["shape"], [60, 83])
        self.assertEqual(arrays["dem"]["dtype"], "int16")
        self.assertEqual(arrays["dem"]["logical_bytes"], 60 * 83 * 2)
        self.assertEqual(arrays["dem"]["stored_bytes"], 60 * 83 * 2)
        self.assertEqual(arrays["dx"]["shape"], [])
        packed = arrays["packed"]
        self.assertEqual(packed["kind"], "chunked")
        self.assertEqual(packed["chunk_shape"], [16, 32])
        self.assertEqual(packed["chunks"], 4 * 3)
        self.assertNotIn("chunks", arrays["dem"])
        self.assertEqual(packed["codec"], "delta,shuffle,zstd:3")
        self.assertGreater(packed["modified"], arrays["dem"]["modified"])
        text = self.shale("info", "survey.shale:packed").out
        self.assertIn("delta,shuffle,zstd:3", text)
        self.assertIn("60 x 83", text)

    def test_info_reads_foreign_files_without_their_elements(self):
        np.save(self.path / "f.npy", np.asfortranarray(self.dem))
        info = self.shale("info", "f.npy", "--json").json()
        self.assertEqual(info["arrays"][0]["shape"], [60, 83])
        self.assertIn("Fortran", info["arrays"][0]["kind"])
        members = self.shale("info", "dem.npz", "--json").json()["arrays"]
        self.assertEqual({m["name"] for m in members}, {"dem", "dx", "wave"})
        self.assertTrue(all(m["kind"] == "deflated" for m in members))

    def test_info_describes_raw_files_as_told(self):
        self.dem.tofile(self.path / "x.raw")
        for arguments, dtype, shape in ((["x.raw"], "uint8", [self.dem.nbytes]),
                                        (["x.raw:int16"], "int16", [self.dem.size]),
                                        (["x.raw", "--dtype", "int16", "--shape", "60,83"], "int16",
                                         [60, 83])):
            array = self.shale("info", *arguments, "--json").json()["arrays"][0]
            self.assertEqual((array["dtype"], array["shape"]), (dtype, shape))
            self.assertEqual(array["stored_bytes"], self.dem.nbytes)
        self.assertIn("contradicts", self.shale("info", "x.raw:int16", "--dtype", "int8", code=2).err)
        self.shale("convert", "dem.npz:wave", "y.raw:float64")
        self.assertEqual((self.path / "y.raw").read_bytes(), self.wave.astype(np.float64).tobytes())

    def test_only_regular_files_are_described_as_raw_arrays(self):
        (self.path / "folder.raw").mkdir()
        os.mkfifo(self.path / "pipe.raw")
        (self.path / "device.raw").symlink_to("/dev/zero")
        (self.path / "generated.raw").symlink_to("/proc/self/status")
        for name in ("folder.raw", "pipe.raw", "device.raw", "generated.raw"):
            for command in (["info"], ["info", "--json"], ["ls"], ["ls", "-l"], ["ls", "--json"]):
                with self.subTest(name=name, command=command):
                    refused = self.shale(*command, name, code=2)
                    self.assertEqual(refused.out, "")
                    self.assertIn("[invalid_argument]", refused.err)

    def test_attributes_are_kept_and_shown(self):
        self.shale("create", "x.shale:a", "--shape", "3", "--attribute", "unit=K", "--attribute",
                   "by=me")
        array = self.shale("info", "x.shale", "--json").json()["arrays"][0]
        self.assertEqual(array["attributes"], {"unit": "K", "by": "me"})
        self.assertIn("unit", self.shale("info", "x.shale:a").out)

    def test_cat_prints_what_numpy_holds(self):
        self.survey()
        printed = self.shale("cat", "survey.shale:dem[10:12, ::-20]").out
        numbers = [int(n) for n in re.findall(r"-?\d+", printed.split("]]")[0])]
        self.assertEqual(numbers, self.dem[10:12, ::-20].ravel().tolist())

    def test_cat_computes_no_more_of_an_array_than_it_shows(self):
        for shape in ((2000,), (7, 500), (8, 500), (9, 500), (60, 83), (12, 11, 10), (2,) * 13,
                      (3, 9, 1, 9, 2, 9), (9,) * 7, (1, 8, 9) * 3):
            values = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            np.save(self.path / "x.npy", values)
            self.shale("convert", "x.npy", "x.shale:x", "--chunked", "-f")
            for edge in ("1", "3"):
                with self.subTest(shape=shape, edge=edge):
                    mapped = self.shale("cat", "--edge", edge, "x.npy").out
                    self.assertEqual(self.shale("cat", "--edge", edge, "x.shale:x").out, mapped)

    def test_cat_shows_arrays_larger_than_any_address_space(self):
        self.shale("create", "h.shale:z", "--shape", "16777216,16777216", "--dtype", "float64",
                   "--chunk", "128,128", "--fill", "2")
        for arguments in (["cat", "h.shale:z"], ["eval", "z * 1", "--let", "z=h.shale:z"]):
            lines = self.shale(*arguments).out.splitlines()
            self.assertEqual(lines[0], "[[2. 2. 2. ... 2. 2. 2.]")
            self.assertEqual(len(lines), 8)
            self.assertEqual(lines[-1], "float64 (16777216, 16777216)")

    def test_cat_as_csv_has_every_digit(self):
        self.survey("--chunked")
        out = self.shale("cat", "--csv", "survey.shale:wave").out
        read = np.array([[np.float32(x) for x in line.split(",")] for line in out.splitlines()])
        self.assert_same(read, self.wave)
        column = self.shale("cat", "--csv", "survey.shale:dem[:, 3]").out.split()
        self.assertEqual([int(x) for x in column], self.dem[:, 3].tolist())
        self.assertEqual(float(self.shale("cat", "--csv", "survey.shale:dx").out), 0.25)
        for values in (np.array([True, False]), np.array([1 + 2j, -0.5 - 4j]),
                       np.array([1.5, 65504], np.float16), np.array([2**63], np.uint64)):
            np.save(self.path / "few.npy", values)
            printed = self.shale("cat", "--csv", "few.npy").out.split()
            self.assertEqual([eval(number) for number in printed], values.tolist())

    def test_cat_as_csv_stays_inside_the_budget(self):
        for name, form in (("dense", ["--dense"]), ("chunked", ["--chunk", "64,256"])):
            self.shale("eval", "zeros((4096, 1024))", "-o", f"large.shale:{name}", *form)
            kib = self.peak_memory("cat", "--csv", f"large.shale:{name}", "--mem", "1MiB")
            if not self.is_sanitized():
                self.assertLess(kib, 32 * 1024, name)  # the array is 32 MiB
        # A budget of 1 MiB makes blocks of 128 KiB, which cut these rows.
        np.save(self.path / "wide.npy", np.arange(3 * 20000.0).reshape(3, 20000))
        wide = self.shale("cat", "--csv", "wide.npy", "--mem", "1MiB").out
        self.assertEqual(wide, self.shale("cat", "--csv", "wide.npy").out)
        self.assert_same(np.loadtxt(wide.splitlines(), delimiter=","), np.load(self.path / "wide.npy"))

    def test_cat_shows_the_corners_of_many_axes(self):
        np.save(self.path / "cube.npy", np.arange(40 * 30 * 20).reshape(40, 30, 20))
        printed = self.shale("cat", "cube.npy", "--edge", "1").out
        wanted = {i * 600 + j * 20 + k for i in (0, 39) for j in (0, 29) for k in (0, 19)}
        self.assertEqual({int(n) for n in re.findall(r"\d+", printed.split("]]]")[0])}, wanted)
        printed = self.shale("cat", "cube.npy[:, :3]", "--edge", "1").out
        wanted = {i * 600 + j * 20 + k for i in (0, 39) for j in (0, 2) for k in (0, 19)}
        self.assertEqual({int(n) for n in re.findall(r"\d+", printed.split("]]]")[0])}, wanted)

    def test_cat_shows_the_ends_of_large_arrays_only(self):
        # The command could not read eight tebibytes, and it does not need to.
        self.shale("create", "big.shale:z", "--shape", "4194304,1048576", "--dtype", "int16",
                   "--chunk", "1024,1024", "--fill", "7")
        out = self.shale("cat", "big.shale:z").out
        self.assertIn("...", out)
        self.assertNotIn("0", out.split("]]")[0])
        self.assertEqual(len(re.findall("7", out.split("]]")[0])), 36)

    def test_stats_are_numpys(self):
        self.survey()
        for address, wanted in (("survey.shale:dem", self.dem), ("dem.npz:wave", self.wave),
                                ("survey.shale:wave[3, ::-2]", self.wave[3, ::-2])):
            with self.subTest(address):
                stats = self.shale("stats", address, "--json").json()
                wide = wanted.astype(np.float64)
                self.assertEqual(stats["count"], wanted.size)
                self.assertEqual(stats["nan_count"], 0)
                self.assertEqual(stats["min"], wanted.min())
                self.assertEqual(stats["max"], wanted.max())
                self.assertAlmostEqual(stats["mean"], wide.mean(), delta=1e-12 * 1100)
                self.assertAlmostEqual(stats["std"], wide.std(), delta=1e-12 * 1100)
                self.assertGreater(stats["cost"]["peak_rss_bytes"], 0)
                self.assertGreaterEqual(stats["cost"]["bytes_read"], wanted.nbytes)

    def test_create_reports_what_it_made(self):
        made = self.shale("create", "new.shale:a/b", "--shape", "3,4", "--dtype", "int16", "--json").json()
        self.assertEqual(made, {"file": "new.shale", "array": "a/b", "address": "new.shale:a/b",
                                "dtype": "int16", "shape": [3, 4], "generation": 2})

    def test_archives_cost_what_is_read_and_written(self):
        self.survey()
        elements = self.dem.nbytes + self.wave.nbytes + 8
        for source, least, most in (("survey.shale", elements, elements),
                                    ("survey.shale:wave", self.wave.nbytes, 2 * self.wave.nbytes)):
            cost = self.shale("convert", source, "back.npz", "-f", "--json").json()["cost"]
            for key in ("bytes_read", "bytes_written"):
                with self.subTest(source + " " + key):
                    self.assertTrue(least <= cost[key] <= most, cost)
        self.assertNotIn(" 0 B read", " " + self.shale("convert", "survey.shale", "back.npz", "-f").err)

    def test_stats_leave_nan_out_and_count_it(self):
        holes = self.wave.copy()
        holes[::3, ::5] = np.nan
        np.save(self.path / "holes.npy", holes)
        stats = self.shale("stats", "holes.npy", "--json").json()
        wide = holes.astype(np.float64)
        self.assertEqual(stats["nan_count"], int(np.isnan(holes).sum()))
        self.assertRegex(self.shale("stats", "holes.npy").out,
                         rf"nan +{np.isnan(holes).sum()} \(left out below\)")
        self.assertEqual(stats["min"], float(np.nanmin(holes)))
        self.assertEqual(stats["max"], float(np.nanmax(holes)))
        self.assertAlmostEqual(stats["mean"], np.nanmean(wide), delta=1e-12)
        self.assertAlmostEqual(stats["std"], np.nanstd(wide), delta=1e-12)
        np.save(self.path / "none.npy", np.full((3,), np.nan))
        self.assertIsNone(self.shale("stats", "none.npy", "--json").json()["mean"])
        np.save(self.path / "empty.npy", np.zeros((0, 3)))
        self.assertEqual(self.shale("stats", "empty.npy", "--json").json()["count"], 0)

    def test_stats_measure_the_disk_in_the_same_run(self):
        self.survey()
        disk = self.shale("stats", "survey.shale:dem", "--json", "--disk-speed").json()["cost"]["disks"]
        self.assertEqual(len(disk), 1)
        self.assertEqual(disk[0]["file"], "survey.shale")
        self.assertEqual(disk[0]["bytes"], (self.path / "survey.shale").stat().st_size)
        self.assertGreater(len(disk[0]["method"]), 0)

    def test_eval_measures_every_disk_file_it_reads(self):
        self.survey()
        done = self.shale("eval", "sum(a) + b", "--let", "a=survey.shale:dem", "--let",
                          "b=dem.npz:dx", "--json", "--disk-speed").json()
        self.assertEqual(sorted(disk["file"] for disk in done["cost"]["disks"]),
                         ["dem.npz", "survey.shale"])
        self.assertEqual(done["value"], int(self.dem.sum()) + 0.25)
        said = self.shale("eval", "sum(a)", "--let", "a=survey.shale:dem", "--disk-speed").err
        self.assertIn("disk reads survey.shale at", said)

    def test_data_goes_to_stdout_and_messages_to_stderr(self):
        self.survey()
        loud = self.shale("stats", "survey.shale:dem")
        self.assertIn("GB/s" if "GB/s" in loud.err else "B/s", loud.err)
        self.assertIn("peak resident memory", loud.err)
        self.assertNotIn("B/s", loud.out)
        quiet = self.shale("stats", "survey.shale:dem", "--quiet")
        self.assertEqual(quiet.err, "")
        self.assertEqual(quiet.out, loud.out)

    def test_progress_is_shown_on_request_without_a_terminal(self):
        self.survey()
        silent = self.shale("eval", "sum(a)", "--let", "a=survey.shale:dem")
        self.assertNotIn("left", silent.err)
        shown = self.shale("eval", "sum(sin(arange(20000000)))", "--progress")
        self.assertIn("100%", shown.err)
        self.assertNotIn("\r", shown.err)

    # ---- converting ------------------------------------------------------------------------------

    def test_elements_survive_every_direction(self):
        values = {"i1": self.dem.astype(np.int8), "u2": self.dem.astype(np.uint16),
                  "f4": self.wave, "f8": self.wave.astype(np.float64),
                  "f2": self.wave.astype(np.float16), "b": self.dem > 600,
                  "c8": (self.wave + 1j * self.wave[::-1]).astype(np.complex64),
                  "scalar": np.array(3, np.int32), "none": np.zeros((0, 4), np.uint8),
                  "cube": np.arange(24, dtype=np.int64).reshape(2, 3, 4)}
        for name, wanted in values.items():
            with self.subTest(name):
                np.save(self.path / f"{name}.npy", wanted)
                self.shale("convert", f"{name}.npy", "all.shale")
                self.assert_same(self.load(f"all.shale:{name}"), wanted)
                self.shale("convert", f"all.shale:{name}", f"all.shale:{name}-chunked", "--chunked")
                self.assert_same(self.load(f"all.shale:{name}-chunked"), wanted)
                self.shale("convert", f"all.shale:{name}", f"{name}.raw")
                self.assertEqual((self.path / f"{name}.raw").read_bytes(), wanted.tobytes())
                shape = ",".join(map(str, wanted.shape)) or "()"
                self.shale("convert", f"{name}.raw", "again.npy", "-f", "--dtype", wanted.dtype.name,
                           "--shape", shape)
                self.assert_same(np.load(self.path / "again.npy"), wanted)
        self.shale("convert", "all.shale", "all.npz")
        with np.load(self.path / "all.npz") as archive:
            self.assertEqual(len(archive.files), 2 * len(values))
            for name, wanted in values.items():
                self.assert_same(archive[name], wanted)
                self.assert_same(archive[f"{name}-chunked"], wanted)

    def test_slices_convert_as_numpy_slices(self):
        self.survey("--chunked")
        for text, wanted in (("[10:20, ::-1]", self.dem[10:20, ::-1]), ("[..., 5]", self.dem[..., 5]),
                             ("[None, -1, 7:3:-2]", self.dem[None, -1, 7:3:-2]),
                             ("[3, 4]", self.dem[3, 4]), ("[99:]", self.dem[99:])):
            with self.subTest(text):
                self.assert_same(self.load(f"survey.shale:dem{text}"), wanted)
                self.assert_same(self.load(f"dem.npz:dem{text}"), wanted)

    def test_convert_changes_dtypes(self):
        self.shale("convert", "dem.npz:dem", "f.npy", "--as", "float32")
        self.assert_same(np.load(self.path / "f.npy"), self.dem.astype(np.float32))

    def test_one_member_does_not_replace_an_archive_of_others(self):
        np.save(self.path / "a.npy", self.dem)
        before = (self.path / "dem.npz").read_bytes()
        for name in ("dem", "new"):
            for arguments in (["convert", "a.npy", f"dem.npz:{name}"],
                              ["eval", "a", "--let", "a=a.npy", "-o", f"dem.npz:{name}"]):
                for force in ([], ["-f"]):
                    with self.subTest(arguments + force):
                        err = self.shale(*arguments, *force, code=3).err
                        self.assertIn("'dem.npz' holds other arrays: ", err)
                        self.assertIn("wave", err)
                        self.assertIn("-f replaces the whole archive if the target is dem.npz "
                                      "without a name", err)
                        self.assertEqual((self.path / "dem.npz").read_bytes(), before)
        self.shale("convert", "a.npy", "dem.npz", code=3)
        self.shale("convert", "a.npy", "dem.npz", "-f")
        self.assertEqual(self.shale("ls", "dem.npz").out, "a\n")
        for name in ("a", "a", "b"):
            self.shale("convert", "a.npy", f"dem.npz:{name}", "-f", code=3 if name == "b" else 0)
        self.assert_same(np.load(self.path / "dem.npz")["a"], self.dem)

    def test_raw_addresses_say_how_to_read_them(self):
        self.dem.tofile(self.path / "dem.raw")
        self.assert_same(self.load("dem.raw:int16(60,83)[5]"), self.dem[5])
        self.assert_same(self.load("dem.raw:int16"), self.dem.ravel())
        self.shale("cat", "dem.raw", code=2)

    # ---- computing -------------------------------------------------------------------------------

    def test_expressions_compute_what_numpy_computes(self):
        names = {"np": np, "dem": self.dem, "wave": self.wave, "dx": np.float64(0.25)}
        names.update({n: getattr(np, n) for n in (
            "sqrt exp log sin cos tan arctan arctan2 where clip tile repeat concatenate arange floor "
            "ceil trunc mean sum min max std var reshape transpose flip minimum maximum abs sign "
            "isnan expand_dims squeeze float32 float64 int32 degrees radians pi prod any all "
            "count_nonzero broadcast_to stack zeros ones full square power").split()})
        self.survey("--chunked")
        lets = [a for n in ("dem", "wave", "dx") for a in ("--let", f"{n}=survey.shale:{n}")]
        for text in (
                "sqrt(dem * 1.0)", "wave * 2.5 - 1", "dem // 7", "dem % -7", "dem / 4",
                "wave[1:-1, 2:] - wave[1:-1, :-2]", "where(wave > 0, wave, -wave)",
                "(dem > 300) & (dem < 900)", "~(dem > 300)", "wave.T",
                "mean(dem.astype(float64), axis=0)", "sum(dem, axis=1, keepdims=True)",
                "max(wave, axis=0) - min(wave, axis=0)", "clip(dem, 300, 900)",
                "tile(wave, (2, 3))", "repeat(wave, 3, axis=1)", "concatenate((wave, wave), axis=1)",
                "arange(10) * 2", "reshape(dem, (83, 60))", "flip(wave, axis=1)",
                "dem[::7, None, ::-5]", "floor(wave * 10)", "degrees(arctan2(wave, 2))",
                "stack((wave, wave * 2), axis=1)", "square(wave)[3]", "dem ** 2", "count_nonzero(dem > 500)",
                "dem.astype(np.float64) * dx", "-wave", "any(wave > 2, axis=0)", "full((2, 3), 7, dtype=int32)",
                "broadcast_to(wave[0], (3, 40))", "minimum(wave, 0.5) + maximum(wave, -0.5)"):
            with self.subTest(text):
                wanted = np.asarray(eval(text, {}, names))
                self.shale("eval", *lets, "-o", "result.npy", "-f", "--", text)
                got = np.load(self.path / "result.npy")
                self.assertEqual(got.shape, wanted.shape)
                self.assertEqual(got.dtype.kind, wanted.dtype.kind)
                np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-6)

    # Calls of every function. The name is NumPy's if NumPy 1 does not have ours.
    CALLS = {
        **{name: ["{}(p)", "{}(0.3)"] for name in
           "sqrt exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh arctan atan arcsinh asinh "
           "cbrt".split()},
        **{name: ["{}(u)", "{}(0.3)"] for name in "arcsin asin arccos acos arctanh atanh".split()},
        **{name: ["{}(p + 1)", "{}(1.3)"] for name in "arccosh acosh".split()},
        **{name: ["{}(f)", "{}(-2.5)", "{}(1.5)"] for name in
           "degrees rad2deg radians deg2rad abs absolute square sign floor ceil trunc round rint "
           "negative positive conj conjugate real imag angle signbit frac".split()},
        **{name: ["{}(h)", "{}(f)"] for name in "isnan isfinite isinf".split()},
        "erf": ["{}(f)", "{}(u)", "{}(0.3)"], "lgamma": ["{}(p + 2.5)", "{}(-3.7)", "{}(h[2:4])"],
        "sigmoid": ["{}(f)", "{}(f * 1000)", "{}(h)", "{}(i)"],
        **{name: ["{}(p)", "{}(0.3)"] for name in "reciprocal rsqrt".split()},
        **{name: ["{}(i)", "{}(i > 0)", "{}(5)"] for name in "bitwise_invert bitwise_not invert".split()},
        **{name: ["{}(i, i.T[:4, :1])", "{}(i > 0, f > 0)", "{}(6, 3)"] for name in
           "bitwise_and bitwise_or bitwise_xor".split()},
        **{name: ["{}(i, 3)", "{}(i, abs(i))", "{}(i, 80)", "{}(i, i)", "{}(-5, 2)"] for name in
           "bitwise_left_shift left_shift bitwise_right_shift right_shift".split()},
        **{name: ["{}(f, i)", "{}(h, 0)", "{}(2, 2.5)"] for name in
           "equal not_equal less less_equal greater greater_equal".split()},
        "fmod": ["{}(f, p)", "{}(i, 3)", "{}(f, 0.7)", "{}(h, 2)", "{}(3, h)"],
        "copysign": ["{}(f, u)", "{}(h, -1.0)", "{}(i, u)"],
        "nextafter": ["{}(f, u)", "{}(h, 0.0)", "{}(0.0, f)", "{}(f.astype(float32), i.astype(float32))"],
        "logaddexp": ["{}(f, p)", "{}(h, h)", "{}(f * 1000, 3)", "{}(i, f)"],
        "lerp": ["{}(abs(f), p, 0.25)", "{}(p, p + 1, abs(u))", "{}(i, 7, 0.75)", "{}(i, f, abs(i))"],
        "addcmul": ["{}(f, p, u)", "{}(f, i, 2, value=0.5)"], "addcdiv": ["{}(f, u, p)", "{}(i, f, p, 3)"],
        **{name: ["{}(f, p)", "{}(i, 3)", "{}(-7, 2.0)", "{}(-0.0, 5)", "{}(5, -0.5)"] for name in
           "add subtract multiply divide floor_divide remainder mod".split()},
        **{name: ["{}(p, f)", "{}(i, 3)", "{}(2.0, 3)"] for name in "power pow".split()},
        **{name: ["{}(f, p)", "{}(f, 0.5)"] for name in
           "arctan2 atan2 hypot minimum maximum".split()},
        "matmul": ["{}(f, f.T)", "{}(i.T, i)", "{}(f[:, :4].reshape(2, 2, 4), f)", "{}(f, f[0])"],
        "dot": ["{}(f, 2)", "{}(f[0], f[1])", "{}(f, f[0])", "{}(f.T, i)",
                "{}(f[:, :3].reshape(2, 2, 3), f.reshape(2, 3, 4))"],
        **{name: ["{}(f, i)", "{}(i > 0, f > 0)"] for name in
           "logical_and logical_or logical_xor".split()},
        "logical_not": ["{}(f)", "{}(i > 0)"],
        "clip": ["{}(f, -1, 2)"], "clamp": ["{}(f, -1, 2)"],
        "where": ["{}(f > 0, f, p)", "{}(i == 1, 7.5, p)"],
        "astype": ["{}(f, float32)"], "cast": ["{}(f, float32)"],
        **{name: ["{}(f)", "{}(f, axis=0)", "{}(f, axis=1, keepdims=True)", "{}(i, axis=(0, 1))"]
           for name in "sum prod mean min amin max amax any all count_nonzero".split()},
        **{name: ["{}(f)", "{}(i.T)", "{}(f, axis=0)", "{}(i, 1)", "{}(h)"] for name in
           "argmin argmax".split()},
        **{name: ["{}(g)", "{}(i.T)", "{}(g, axis=0)", "{}(g, 1)", "{}(h)", "{}(g, axis=1, keepdims=True)"]
           for name in "nanargmin nanargmax".split()},
        **{name: ["{}(f, 3)", "{}(i, 2, 0)", "{}(f.T, window=4, axis=1)", "{}(i > 0, 6)", "{}(f * 2, 1, -2)"]
           for name in "rolling_sum rolling_mean".split()},
        **{name: ["{}(f, 3)", "{}(i, 2, 0)", "{}(f.T, window=4, axis=1)", "{}(i > 0, 6)", "{}(h, 2)"]
           for name in "rolling_min rolling_max".split()},
        **{name: ["{}(f)", "{}(i.T)", "{}(f, axis=0)", "{}(i > 0, 1)", "{}(h, -1)"] for name in
           "cumulative_sum cumsum cumulative_prod cumprod".split()},
        **{name: ["{}(f, axis=0)", "{}(i, 1)", "{}(h, 0)"] for name in "cummin cummax".split()},
        **{name: ["{}(g)", "{}(g, axis=0)", "{}(g.T, axis=1, keepdims=True)", "{}(i)", "{}(h, 0)"] for name in
           "nansum nanprod nanmean nanmin nanmax".split()},
        **{name: ["{}(g)", "{}(g, axis=1, ddof=1)", "{}(i, 0)", "{}(h)", "{}(abs(h))"]
           for name in "nanvar nanstd".split()},
        "logsumexp": ["{}(f)", "{}(f + 0.5, axis=1)", "{}(i, 0, keepdims=True)"],
        **{name: ["{}(u)", "{}(u, axis=0)"] for name in "softmax log_softmax".split()},
        "vector_norm": ["{}(f)", "{}(f, axis=1)", "{}(i, 0, True)", "{}(f, ord=1)", "{}(f, axis=0, ord=3.5)",
                        "{}(f, 0, ord=0)", "{}(f, 1, ord=inf)", "{}(f, ord=-inf)"],
        "linspace": ["{}(0, 1)", "{}(-3, 7.5, 11)", "{}(2, 2, 4)", "{}(5, 1, num=1)", "{}(0, 1, 0)"],
        "logspace": ["{}(0, 2, 5)", "{}(-1, 3, num=4, base=2)"],
        "eye": ["{}(3)", "{}(3, 5, k=1)", "{}(4, 2, -1, dtype=int16)"],
        **{name: ["{}(f)", "{}(f, 1)", "{}(f.reshape(2, 3, 4), k=-1)"] for name in "tril triu".split()},
        "trace": ["{}(f)", "{}(i, 2)", "{}(f, -1)", "{}(f.reshape(2, 3, 4))", "{}(f.reshape(2, 3, 4), 1)"], "outer": ["{}(f, i[0])", "{}(h, h)"],
        "roll": ["{}(f, 2)", "{}(f, -1, axis=1)", "{}(i, 7, axis=0)", "{}(f, 0)", "{}(f + 1, 3, 0)"],
        "isclose": ["{}(f, f + 0.00001)", "{}(f, i)", "{}(h, h)", "{}(f, p, 0.5, atol=1)"],
        "diff": ["{}(f)", "{}(i, 2)", "{}(f, axis=0)", "{}(i > 0, n=1)"],
        **{name: ["{}(f)", "{}(f, axis=0, ddof=1)"] for name in "var std".split()},
        "arange": ["{}(7)", "{}(2, 11, 3)", "{}(5, 0, -2)", "{}(0.0, 1.0, 0.25)",
                   "{}(2, 9, dtype=float32)", "{}(0, 10, step=3)", "{}(2, stop=5)", "{}(stop=4)"],
        "full": ["{}((2, 3), 1.5)", "{}(4, 7, dtype=int16)"],
        **{name: ["{}((2, 3))", "{}(4, dtype=int16)"] for name in "zeros ones".split()},
        **{name: ["{}(f)", "{}(i, dtype=float32)"] for name in "zeros_like ones_like".split()},
        "full_like": ["{}(i, 7)", "{}(f, 2, dtype=float32)"],
        "diagonal": ["{}(f)", "{}(f, 1)", "{}(f[None], 0, 2, 1)"],
        "tile": ["{}(f, (2, 3))", "{}(f, (2, 1, 2))"],
        "repeat": ["{}(f, 3, axis=1)", "{}(f, 2)", "{}(f, [2, 0, 1, 3], axis=0)", "{}(i, abs(i[0]), 1)",
                   "{}(f[0], (1, 0, 2, 0, 0, 1))", "{}(h, [3])", "{}(f, f[0] > 0, axis=1)"],
        **{name: ["{}((f, p))", "{}((f, i), axis=1)"] for name in "concatenate concat".split()},
        "take": ["{}(f, i)", "{}(f, abs(i), axis=1)", "{}(i.T, i[0] % 4, -1)", "{}(f * 2, 3, 0)"],
        "take_along_axis": ["{}(f, i % 4, axis=0)", "{}(f, i, 1)", "{}(f, i[:1], axis=1)"],
        **{name: ["{}(f[0], p[1, :3])", "{}(i[0], i[1, :2], mode='same')", "{}(f[0], i[1], mode='full')",
                  "{}(f[0, :3], p.ravel(), mode='valid')", "{}(f[0, :4], p[1], mode='same')",
                  "{}(f.T[2, ::-1], i[0, :1])", "{}(i.ravel() > 0, i[0, :3] > 0, mode='same')",
                  "{}(i[0], i[1, :3], mode='full', method='fft')", "{}(p[0], p[1, :3] * 3, 'same', 'fft')",
                  "{}(p[0], p[1, :2], method='direct')"]
           for name in "correlate convolve".split()},
        "stack": ["{}((f, p))", "{}((f, p), axis=2)"],
        "reshape": ["{}(f, (6, 4))", "{}(f, (2, -1))"], "ravel": ["{}(f.T)"],
        "expand_dims": ["{}(f, axis=1)"], "squeeze": ["{}(f[:, None])", "{}(f[None], axis=0)"],
        "transpose": ["{}(f)", "{}(f[None], (2, 0, 1))"], "permute_dims": ["{}(f, (1, 0))"],
        "swapaxes": ["{}(f, 0, 1)"], "moveaxis": ["{}(f[None], 0, -1)"],
        "uniform": ["{}((3, 5), seed=1)", "{}(7, -2, 5, seed=2**62)", "{}([4, 100], dtype=float32, seed=3)",
                    "{}((50,), high=3, low=2.999999, dtype=float32, seed=0)"],
        "normal": ["{}((3, 6), 10, 2, seed=1)", "{}(8, stddev=0.5, mean=-4, seed=12345678901)"],
        **{name: ["{}((3, 6), seed=1)", "{}(8, 0.5, stddev=0.25, seed=7)"] for name in "log_normal lognormal".split()},
        "exponential": ["{}((3, 5), seed=1)", "{}(9, 2.5, seed=3)"],
        "cauchy": ["{}((3, 5), seed=1)", "{}(9, scale=0.5, median=2, seed=3)"],
        "geometric": ["{}((30, 5), 0.1, seed=1)", "{}(9, probability=0.5, dtype=int16, seed=3)"],
        "bernoulli": ["{}((30, 5), 0.25, seed=1)", "{}(9, probability=0, seed=3)", "{}(9, 1, dtype=int16, seed=3)"],
        "integers": ["{}((30, 5), 0, 10, seed=1)", "{}(9, -5, high=5, dtype=int16, seed=3)",
                     "{}(9, -2**60, 2**61, seed=3)"],
        "permutation": ["{}(9, seed=1)", "{}(2000, seed=2**40)"],
        "shuffle": ["{}(f, seed=1)", "{}(i, axis=-1, seed=5)", "{}(h, 0, seed=2)"],
        "choice": ["{}(f, 3, seed=1)", "{}(i, 9, axis=1, seed=2)", "{}(f, 4, False, seed=3)",
                   "{}(10, 4, replace=False, seed=4)"],
        "multinomial": ["{}(p, 50, seed=3)", "{}(abs(i[0]) + 1, 9, seed=1)", "{}(p, 4, False, seed=2)",
                        "{}(p[0], 6, replace=False, seed=2)"],
        **{name: ["{}(f)", "{}(i, 0)", "{}(h)", "{}(g.T, axis=0)"] for name in "sort argsort".split()},
        "median": ["{}(f)", "{}(i, 0)", "{}(f, axis=1)", "{}(g, 1)", "{}(f[:3], axis=0)"],
        "quantile": ["{}(f, 0.3)", "{}(i, 0.25, 0)", "{}(g, 0.9, axis=1)", "{}(p, 1, 0)", "{}(p, q=0)"],
        "nanmedian": ["{}(g)", "{}(i, 0)", "{}(g, axis=1)", "{}(h)", "{}(g[:3], axis=0)"],
        "nanquantile": ["{}(g, 0.3)", "{}(i, 0.25, 0)", "{}(g, 0.9, axis=1)", "{}(h[:2], 1)", "{}(g, q=0)"],
        "searchsorted": ["{}(linspace(-3, 3, 7), f, side='right')",
                         "{}(linspace(-3, 3, 7), g)"],
        "digitize": ["{}(f, linspace(-3, 3, 7))", "{}(f, linspace(3, -3, 7))", "{}(f, linspace(-3, 3, 7), right=True)",
                     "{}(i, linspace(3, -3, 7), True)"],
        "unique_values": ["{}(f)", "{}(i.T)", "{}(g)"],
        "unique_counts": ["{}(f)[0]", "{}(i)[1]", "{}(g)[1]"],
        "unique_inverse": ["{}(f)[1]", "{}(i.T)[1]", "{}(i)[0]"],
        "unique_all": ["{}(f)[0]", "{}(i)[1]", "{}(f.T)[2]", "{}(f)[3]"],
        "argwhere": ["{}(f > 0)", "{}(i)", "{}(h)"], "nonzero": ["{}(f > 0)[0]", "{}(i.T)[1]"],
        "bincount": ["{}(abs(i).ravel())", "{}(abs(i[0]), f[0])", "{}(abs(i[1]), minlength=12)"],
        "solve": ["{}(s, f)", "{}(s, f[:, 0])"],
        "triangular_solve": ["{}(s, f)", "{}(s, f, upper=True)"],
        "inv": ["{}(s)"], "det": ["{}(s)", "{}(i[:, :4])"],
        "cholesky": ["{}(s)", "{}(s, True)"],
        "cholesky_solve": ["{}(s, f)", "{}(s, f[:, 0], upper=True)"], "cholesky_inverse": ["{}(s)", "{}(s, True)"],
        "slogdet": ["{}(s)[0]", "{}(i[:, :4])[1]"],
        "lu": ["{0}(s)[0] @ {0}(s)[1] @ {0}(s)[2]", "{}(p)[0]", "{}(p.T)[1]", "{}(p)[2]"],
        "qr": ["{0}(f)[0] @ {0}(f)[1]", "abs({}(f)[1])", "abs({}(f.T, mode='complete')[1])", "abs({}(f.T)[0])"],
        "eigh": ["{}(s)[0]", "{0}(s)[1] * {0}(s)[0] @ {0}(s)[1].T", "abs({}(s + t, True)[1])"],
        "eig": ["1 + abs(t @ {0}(t)[1] - {0}(t)[1] * {0}(t)[0])"],
        "svd": ["{}(f)[1]", "{0}(f, False)[0] * {0}(f, False)[1] @ {0}(f, full_matrices=False)[2]",
                "abs({}(f)[0])"],
        "tsqr": ["{}(f)[0]", "{}(f)[1]", "{}(p.T)[0]", "{0}(f.T)[0] @ {0}(f.T)[1]"],
        "svd_lowrank": ["{}(f, 4, seed=1)[1]", "{}(p.T, 2, seed=3)[0]", "{}(f, 3, 1, 4, seed=2)[2]",
                        "{}(p, rank=2, oversampling=2, iterations=0, seed=0)[1]"],
        "pca": ["{}(f, 2, seed=1)[0]", "{}(p, 3, seed=3)[1]", "{}(f.T, 2, iterations=1, seed=2)[2]",
                "{}(f.T, count=2, seed=2)[3]", "{}(p, 2, 9, 0, seed=2)[4]"],
        "lstsq": ["{}(f.T, i[0])[0]", "{}(f.T, f.T[:, :2])[2]", "{}(f.T, i.T, rtol=0.2)[3]"],
        "pinv": ["{}(f)", "{}(f.T, rtol=0.2)"], "matrix_rank": ["{}(f)", "{}(f[:, :1] @ i[:1])", "{}(f, 0.5)"],
        "cond": ["{}(f)"], "svdvals": ["{}(f)", "{}(f.reshape(2, 2, 6))"],
        "eigvalsh": ["{}(i[:, :4])", "{}(f[:, :4], upper=True)"], "eigvals": ["{}(t)"],
        "matrix_norm": ["{}(f)", "{}(i, True)", "{}((i - 32763).astype(int16), ord=1)",
                        *(f"{{}}(f, ord={ord})" for ord in
                        "'fro' 'nuc' 1 -1 2 -2 inf -inf".split())],
        "matrix_power": ["{}(i[:, :4], 3)", "{}(i[:, :4], 0)", "{}(s, -2)"],
        "expm": ["{}(f[:, :4] / 4)"],
        "pad": ["{}(f, 2)", "{}(i, (1, 3), constant_values=7)", "{}(f, ((0, 0), (2, 1)), mode='edge')",
                "{}(f, ((2, 3), (5, 1)), mode='reflect')", "{}(i.T, 3, 'symmetric')", "{}(h, (2, 3), 'wrap')"],
        "rot90": ["{}(f)", "{}(i, 2)", "{}(f, -1)", "{}(f.reshape(2, 3, 4), k=1, axes=(2, 0))"],
        "meshgrid": ["{}(f[0], i[:, 0])[0]", "{}(f[0], i[:, 0])[1]", "{}(f[0], h, i[0], indexing='ij')[2]"],
        "vecdot": ["{}(f, i)", "{}(f[0], f, axis=-1)", "{}(f, i[:, :1] + 0 * f, 0)"],
        "tensordot": ["{}(f, i)", "{}(f, i.T, 1)", "{}(f, i, axes=(1, 1))", "{}(f, i, ((0, 1), [0, 1]))", "{}(f, h, 0)"],
        "einsum": ["{}('ij,kj', f, i)", "{}('ij, jk -> ki', f, f.T)", "{}('ii->i', s)", "{}('ij->', i)",
                   "{}('...j,jk,k->...', f.reshape(2, 2, 6), f.T, i[:, 0])", "{}('ij,ij,ij->j', f, i, f[:1])"],
        "kron": ["{}(f, i)", "{}(f[0], i[:2])", "{}(2, i)"],
        "cross": ["{}(f[:, :3], i[:, 3:])", "{}(f[:3], i[1:], axis=0)", "{}(f[0, :3], i[:, :3])"],
        "cdist": ["{}(f, i)", "{}(f, f[:2], 1)", "{}(i, i, p=inf)", "{}(f, p, p=3.5)"],
        "dist": ["{}(f, i)", "{}(f, 2, 1)", "{}(f, p, p=inf)"],
        "renorm": ["{}(f, 2, 0, 5)", "{}(f, 1, axis=1, maxnorm=4.5)", "{}(i, inf, -1, 3)"],
        "gradient": ["{}(f[0])", "{}(h)", "{}(f, 0.5, axis=1)", "{}(f)[0]", "{}(i, 3)[1]"],
        "topk": ["{}(f, 2)[0]", "{}(i, 3, axis=0)[1]", "{}(g, 2, -1, False)[1]"],
        "kthvalue": ["{}(f, 2)[0]", "{}(i, 3, axis=0)[1]"], "mode": ["{}(i)[0]", "{}(i > 0, 0)[1]"],
        "histogram": ["{}(f)[0]", "{}(f, 4)[1]", "{}(i, 5, range=(-2, 3))[0]", "{}(f, linspace(-5, 5, 7))[0]",
                      "{}(f, 4, density=True)[0]", "{}(f, 3, weights=p)[0]"],
        "flip": ["{}(f)", "{}(f, axis=0)"], "broadcast_to": ["{}(f[0], (3, 6))"],
    }
    # What NumPy has under no name.
    OF_OUR_OWN = {
        "logsumexp": lambda a, axis=None, keepdims=False: np.log(np.sum(np.exp(a), axis, keepdims=keepdims)),
        "softmax": lambda a, axis=-1: np.exp(a) / np.sum(np.exp(a), axis, keepdims=True),
        "log_softmax": lambda a, axis=-1: (d := a - np.max(a, axis, keepdims=True)) - np.log(
            np.sum(np.exp(d), axis, keepdims=True)),
        **{f"rolling_{name}": lambda a, window, axis=-1, fold=getattr(np, name): fold(
            np.lib.stride_tricks.sliding_window_view(a, window, axis), -1)
           for name in "sum mean min max".split()},
        **{name: lambda a, v, mode=mode, method="direct", function=getattr(np, name): function(a, v, mode)
           for name, mode in (("correlate", "valid"), ("convolve", "full"))},
        "vector_norm": lambda x, axis=None, keepdims=False, ord=2: np.linalg.norm(
            x.ravel() if axis is None else x, ord, axis, keepdims),
        "cdist": lambda a, b, p=2: np.linalg.norm(a[:, None] - b, p, -1),
        "dist": lambda a, b, p=2: np.linalg.norm((a - b).ravel(), p),
        "renorm": lambda a, p, axis, maxnorm: a * np.minimum(1, maxnorm / np.linalg.norm(
            a, p, (axis + 1) % 2, keepdims=True)),
        "topk": lambda x, k, axis=-1, largest=True: (
            order := np.argsort(-x if largest else x, axis, kind="stable").take(range(k), axis),
            )[:0] or (np.take_along_axis(x, order, axis), order),
        "kthvalue": lambda x, k, axis=-1: (np.sort(x, axis).take(k - 1, axis),
                                           np.argsort(x, axis, kind="stable").take(k - 1, axis)),
        "mode": lambda x, axis=-1: tuple(np.array(part) for part in zip(*(
            max(((row == value).sum(), -value, value, np.argmax(row == value)) for value in row.astype(int))[2:]
            for row in np.moveaxis(x, axis, -1)))),
        "vecdot": lambda a, b, axis=-1: np.sum(a * b, axis),
        **{name: getattr(np.linalg, name) for name in "solve inv det cond matrix_power".split()},
        "triangular_solve": lambda a, b, upper=False: np.linalg.solve((np.tril, np.triu)[upper](a), b),
        "cholesky_solve": lambda a, b, upper=False: (
            l := np.triu(a).T if upper else np.tril(a))[:0].sum() + np.linalg.solve(l @ l.T, b),
        "cholesky_inverse": lambda a, upper=False: (
            l := np.triu(a).T if upper else np.tril(a))[:0].sum() + np.linalg.inv(l @ l.T),
        "lu": partial_pivots, "slogdet": np.linalg.slogdet, "qr": np.linalg.qr, "eig": np.linalg.eig,
        "eigh": lambda a, upper=False: np.linalg.eigh(a, "U" if upper else "L"), "svd": np.linalg.svd,
        "tsqr": positive_qr, "svd_lowrank": signed_svd, "pca": principal_components,
        "lstsq": lambda a, b, rtol=None: (found := np.linalg.lstsq(a, b, rtol))[:2] + (int(found[2]), found[3]),
        "cholesky": lambda a, upper=False: (lambda l: l.T if upper else l)(np.linalg.cholesky(a)),
        "pinv": lambda a, rtol=1e-15: np.linalg.pinv(a, rtol),
        "matrix_rank": lambda a, rtol=None: np.linalg.matrix_rank(
            a, None if rtol is None else rtol * np.linalg.norm(a, 2)),
        "svdvals": lambda a: np.linalg.svd(a, compute_uv=False),
        "eigvalsh": lambda a, upper=False: np.linalg.eigvalsh(a, "U" if upper else "L"),
        "matrix_norm": lambda x, keepdims=False, ord="fro": np.linalg.norm(x, ord, (-2, -1), keepdims),
        "eigvals": lambda a: np.linalg.eigvals(a).astype(complex),
        "expm": lambda a: sum(np.linalg.matrix_power(a, k) / float(math.factorial(k)) for k in range(60)),
        "argsort": lambda a, axis=-1: np.argsort(a, axis, kind="stable"),
        "unique_values": lambda x: np.unique(x, equal_nan=False),
        "unique_counts": lambda x: np.unique(x, return_counts=True, equal_nan=False),
        "unique_inverse": lambda x: (found := np.unique(x, return_inverse=True))[:1] + (found[1].reshape(x.shape),),
        "unique_all": lambda x: (found := np.unique(x, True, True, True))[:2] + (
            found[2].reshape(x.shape), found[3]),
        "erf": np.vectorize(math.erf), "lgamma": np.vectorize(math.lgamma),
        "sigmoid": lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x))),
        "rsqrt": lambda x: 1 / np.sqrt(x), "frac": lambda x: x - np.trunc(x),
        "lerp": lambda a, b, weight: a * (1 - weight) + b * weight,
        "addcmul": lambda a, b, c, value=1: a + value * b * c,
        "addcdiv": lambda a, b, c, value=1: a + value * b / c,
        "astype": lambda a, to: a.astype(to), **random_reference.FUNCTIONS,
    }
    OF_MATRICES = ("solve triangular_solve inv det cholesky pinv cond svdvals eigvalsh eigvals matrix_norm "
                   "matrix_power expm cholesky_solve cholesky_inverse slogdet lu qr eigh eig svd tsqr svd_lowrank "
                   "pca lstsq").split()
    # Results are tuples.
    OF_SEVERAL = ("topk kthvalue mode histogram gradient nonzero unique_counts unique_inverse unique_all "
                  "slogdet lu qr eigh eig svd tsqr svd_lowrank pca lstsq").split()
    OTHER_NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
                   "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
                   "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
                   "bitwise_invert": "invert", "pow": "power", "lognormal": "log_normal", "clamp": "clip", "concat": "concatenate",
                   "permute_dims": "transpose", "cast": "astype", "cumulative_sum": "cumsum",
                   "cumulative_prod": "cumprod", "cummin": "minimum.accumulate",
                   "cummax": "maximum.accumulate"}

    # Arguments by the names of their parameters, and those that a function needs of its own.
    ARGUMENTS = {"dtype": "float32", "shape": "(3, 3)", "probability": "0.5", "seed": "7", "k": "1", "n": "2",
                 "shift": "1", "reps": "(2, 1)", "repeats": "2", "axis": "1", "axis1": "0", "axis2": "1",
                 "source": "0", "destination": "1", "start": "1", "stop": "4", "N": "3", "low": "0",
                 "high": "9", "fill_value": "5", "pad_width": "1", "q": "0.5", "indices": "arange(3)",
                 "condition": "(eye(3) > 0)", "count": "2", "rank": "2", "window": "2", "bins": "arange(3)",
                 "v": "arange(3)"}
    OWN_ARGUMENTS = {"asin": {"x": "(eye(3) / 2)"}, "acos": {"x": "(eye(3) / 2)"},
                     "atanh": {"x": "(eye(3) / 2)"}, "bincount": {"x": "arange(3)"},
                     "searchsorted": {"a": "arange(3)"}, "correlate": {"a": "arange(9)"},
                     "convolve": {"a": "arange(9)"}, "squeeze": {"a": "zeros((3, 1))"},
                     "reshape": {"shape": "(9, 1)"}, "broadcast_to": {"shape": "(2, 3, 3)"},
                     "take_along_axis": {"indices": "zeros((3, 1), int64)"},
                     **{name: {"x": "arange(3)", "x1": "arange(3)", "x2": "arange(3)"}
                        for name in ("bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor",
                                     "bitwise_left_shift", "bitwise_right_shift")}}

    def test_random_functions_have_the_parameters_of_the_header(self):
        header = pathlib.Path(__file__).resolve().parents[2] / "include/shale/random.hpp"
        declared = re.findall(r"^expr (\w+)\(generator& from, (const dims& shape[^)]*)\);", header.read_text(), re.M)
        self.assertEqual(len(declared), 8)
        signatures = {listed["name"]: listed["signature"]
                      for listed in self.shale("eval", "--functions", "--json").json()}
        for name, parameters in declared:
            with self.subTest(name):
                wanted = [re.findall(r"\w+", text.partition("=")[0])[-1] for text in parameters.split(",")]
                wanted[wanted.index("type")] = "dtype"
                ordered = signatures[name][len(name) + 1:-1].split(", *")[0]
                self.assertEqual([text.partition("=")[0].strip() for text in ordered.split(",")], wanted)

    def test_signatures_tell_names_order_and_defaults(self):
        terms = []
        for listed in self.shale("eval", "--functions", "--json").json():
            name, signature = listed["name"], listed["signature"]
            if "…" in signature or "[" in signature:
                continue  # any number of arguments, or one that comes before another
            needed, ordered, named, is_named_only = [], [], [], False
            for parameter in re.findall(r"(?:[^,(]|\([^)]*\))+", signature[len(name) + 1:-1]):
                key, has_default, given = parameter.strip().partition("=")
                if key == "*":
                    is_named_only = True
                    continue
                if not has_default:
                    given = self.OWN_ARGUMENTS.get(name, {}).get(key) or \
                        self.ARGUMENTS.get(key, "(eye(3) + 1)")
                text = f"{key}={given}" if is_named_only else given
                if not has_default:
                    needed.append(text)
                if not (is_named_only and has_default):
                    ordered.append(text)
                if not (key == "ddof" and "correction" in signature):  # two names of one parameter
                    named.append(f"{key}={given}")
            first = "[0]" if name in self.OF_SEVERAL else ""
            terms += [f"count_nonzero({name}({', '.join(needed)}){first} != "
                      f"{name}({', '.join(others)}){first})" for others in (ordered, named)]
        self.assertGreater(len(terms), 300)
        for at in range(0, len(terms), 16):
            text = " + ".join(terms[at:at + 16])
            with self.subTest(text):
                self.assertEqual(self.shale("eval", text).out, "0\n")
        signatures = [listed["signature"] for listed in self.shale("eval", "--functions", "--json").json()]
        moments = [text.split("(")[0] for text in signatures if "correction=0" in text]
        self.assertEqual(sorted(moments), ["nanstd", "nanvar", "std", "var"])
        for name in moments:
            self.assertEqual(self.shale("eval", f"{name}(arange(7.), correction=1)").out,
                             self.shale("eval", f"{name}(arange(7.), ddof=1)").out)

    def test_every_function_is_numpys(self):
        listed = []
        for line in self.shale("eval", "--functions").out.splitlines():
            if re.match(r"\w+\(", line):
                listed.append(line.split("(")[0])
                listed += line.partition("   also called ")[2].split(", ") if "also called" in line else []
        self.assertEqual(sorted(listed), sorted(self.CALLS))
        told = json.loads(self.shale("eval", "--functions", "--json").out)
        self.assertEqual(sorted(name for function in told
                                for name in [function["name"], *function["synonyms"]]),
                         sorted(self.CALLS))
        rng = np.random.default_rng(11)
        arrays = {"f": np.round(rng.normal(0, 3, (4, 6)) * 2) / 2, "p": rng.uniform(0.1, 5, (4, 6)),
                  "u": rng.uniform(-1, 1, (4, 6)), "i": rng.integers(-5, 6, (4, 6)),
                  "h": np.array([1.0, np.nan, np.inf, -np.inf, 0])}
        arrays["s"] = arrays["i"] @ arrays["i"].T + 90.0 * np.eye(4)
        arrays["t"] = np.triu(arrays["f"][:, :4])
        arrays["g"] = np.where(arrays["u"] > 0.6, np.nan, arrays["f"])
        np.savez(self.path / "few.npz", **arrays)
        lets = [word for name in arrays for word in ("--let", f"{name}=few.npz:{name}")]
        types = {name: np.dtype(name).type for name in ("float32", "int16")} | {"inf": np.inf, "linspace": np.linspace}
        for name, calls in self.CALLS.items():
            numpys = self.OTHER_NAMES.get(name, name)
            function = self.OF_OUR_OWN.get(numpys) or operator.attrgetter(numpys)(np)
            for text in (call.format(name) for call in calls):
                with self.subTest(text):
                    wanted = np.asarray(eval(text, {}, {name: function, **arrays, **types}))
                    self.shale("eval", *lets, "-o", "result.npy", "-f", "--", text)
                    got = np.load(self.path / "result.npy")
                    self.assertEqual(got.shape, wanted.shape)
                    self.assertEqual(got.dtype, wanted.dtype)
                    # The elements of a matrix share their error.
                    loose = 1e-13 * np.abs(wanted).max() if name in self.OF_MATRICES else 0
                    np.testing.assert_allclose(got, wanted, rtol=4e-16 * 8, atol=loose)

    def test_arrays_and_lists_are_indices_as_in_numpy(self):
        rng = np.random.default_rng(12)
        arrays = {"x": rng.normal(0, 1, (3, 4, 5)), "m": rng.normal(0, 1, (3, 4)) > 0,
                  "r": np.array([2, -1, 0], np.int32), "c": np.array([[0], [3]], np.uint8)}
        np.savez(self.path / "some.npz", **arrays)
        self.shale("convert", "some.npz:x", "x.shale:x", "--chunk", "2,3,2")
        lets = [word for name in "mrc" for word in ("--let", f"{name}=some.npz:{name}")]
        for text in ("x[[0, 2], :]", "x[x > 0]", "x[r, r]", "x[r, c]", "x[:, c, r]", "x[r, :, c]", "x[r, ::2, 1]",
                     "x[m]", "x[m, -1]", "x[..., [4, 0, 0]]", "x[m[:, 1]]", "x[1, None, r, 2:]", "x[r, None, r]",
                     "x[[True, False, True], ..., [1, 2]]", "x[[], 1]", "x[[[0, 1], [2, 2]], 0]", "x[x > 99]",
                     "x[None, r % 3, c][::-1, ..., [0]]", "x[True, 1]", "x[:, m[0], 1:3]", "(x * 2)[r + 0, 1]"):
            for source in ("some.npz:x", "x.shale:x"):
                with self.subTest(text=text, source=source):
                    self.shale("eval", *lets, "--let", f"x={source}", "-o", "result.npy", "-f", "--", text)
                    self.assert_same(np.load(self.path / "result.npy"), eval(text, {}, arrays))
        self.assertIn("index 7 along axis 1, which has 4 positions",
                      self.shale("eval", "x[0, [7]]", "--let", "x=x.shale:x", code=2).err)

    def test_random_numbers_depend_on_neither_chunks_nor_threads_nor_memory_nor_the_cpu(self):
        for text in ("uniform((90, 70), -1, 1, dtype=float32, seed=5)", "normal((90, 70), seed=6)",
                     "flip(integers((70, 90), 0, 1000, seed=7).T)"):
            self.shale("eval", text, "-o", "wanted.npy", "-f")
            wanted = np.load(self.path / "wanted.npy")
            for chunk in ("7,11", "90,1", "1,70", "64,64"):
                for threads in (1, 2, 4):
                    with self.subTest(text=text, chunk=chunk, threads=threads):
                        (self.path / "x.shale").unlink(missing_ok=True)
                        self.shale("eval", text, "-o", "x.shale:x", "--chunk", chunk,
                                   "--threads", threads, "--mem", "1MiB")
                        self.assert_same(self.load("x.shale:x"), wanted)
            self.shale("eval", text, "-o", "got.npy", "-f", env={**os.environ, "SHALE_ISA": "baseline"})
            self.assert_same(np.load(self.path / "got.npy"), wanted)

    def test_optional_numbers_may_be_none_but_nothing_else(self):
        wanted = self.shale("eval", "var(a)", "--let", "a=dem.npz:dem").out
        self.assertEqual(self.shale("eval", "var(a, ddof=None)", "--let", "a=dem.npz:dem").out, wanted)
        self.assertEqual(self.shale("eval", "matrix_rank(eye(3), rtol=None)").out, "3\n")
        for text, reason in (("var(arange(3), ddof='x')", "must be a number"),
                             ("pinv(eye(3), rtol='x')", "must be a number"),
                             ("pinv(eye(3), rtol=-1)", "tolerance of 0 or more"),
                             ("uniform((2,), 0, 1, float64, 7)", "the seed must be named")):
            with self.subTest(text):
                err = self.shale("eval", text, code=2).err
                self.assertIn(reason, err)
                self.assertIn("^", err)

    def test_numbers_are_pythons(self):
        rng = random.Random(5)
        integers = [0, 1, -1, 2, 3, -7, 2**31, 2**53 + 1, 10**17 + 1, 2**62, 2**63 - 1, -2**63, 2**63, 2**64 - 1]
        floats = [0.5, -0.5, 3.0, 2.0**53, 2.0**63, -2.0**63, 2.0**64, 1e300]
        compare = ["==", "!=", "<", "<=", ">", ">="]
        texts = [f"({rng.choice(integers)}) {op} ({rng.choice(integers)})"
                 for op in ["+", "-", "*", "/", "//", "%", "&", "|", "^", ">>"] + compare for _ in range(6)]
        texts += [f"({rng.choice(integers)}) {op} ({rng.choice([0, 1, 2, 3, -3, 20, 63, 64])})"
                  for op in ("**", "<<") for _ in range(10)]
        texts += [f"({a}) {rng.choice(compare)} ({b})" for number in integers
                  for a, b in [rng.choice([(number, rng.choice(floats)), (rng.choice(floats), number)])]]
        for text in texts:
            with self.subTest(text):
                try:
                    wanted = eval(text)
                except ZeroDivisionError:
                    self.assertIn("division by zero", self.shale("eval", text, code=2).err)
                    continue
                except ValueError:  # a negative number of places
                    self.assertIn("negative number of places", self.shale("eval", text, code=2).err)
                    continue
                if type(wanted) is int and not -2**63 <= wanted < 2**64:
                    self.assertIn("does not fit in 64 bits", self.shale("eval", text, code=2).err)
                    continue
                got = self.shale("eval", text, "--json").json()["value"]
                self.assertEqual((got, type(got)), (wanted, type(wanted)))

    def test_scalar_results_are_printed(self):
        self.assertEqual(self.shale("eval", "2 + 3 * 4").out, "14\n")
        done = self.shale("eval", "sum(a)", "--let", "a=dem.npz:dem")
        self.assertEqual(int(done.out), int(self.dem.sum()))
        parsed = self.shale("eval", "sum(a) * k", "--let", "a=dem.npz:dem", "--let", "k=2**3",
                            "--json").json()
        self.assertEqual(parsed["value"], 8 * int(self.dem.sum()))

    def test_numbers_can_be_bound_and_stay_numbers(self):
        lets = ["--let", "a=dem.npz:dem", "--let", "n=3", "--let", "s=(2, 4)", "--let", "k=2 * pi"]
        for text, wanted in (("a[n]", self.dem[3]), ("zeros(s)", np.zeros((2, 4))),
                             ("full((n, 1), k)", np.full((3, 1), 2 * np.pi)),
                             ("a * n", self.dem * 3)):
            with self.subTest(text):
                self.shale("eval", text, *lets, "-o", "result.npy", "-f")
                self.assert_same(np.load(self.path / "result.npy"), wanted)

    def test_scalar_results_of_every_kind_are_json(self):
        for text, wanted in (("a[0] > 3", False), ("a[0] + 0.5", 2.5), ("a[1]", 2**64 - 1),
                             ("a[0] / 0.0", "Infinity"), ("(a[0] - a[0]) / 0.0", None)):
            np.save(self.path / "a.npy", np.array([2, 2**64 - 1], np.uint64))
            self.assertEqual(self.shale("eval", text, "--let", "a=a.npy", "--json").json()["value"],
                             wanted)
        np.save(self.path / "c.npy", np.array([1 - 2j]))
        self.assertEqual(self.shale("eval", "c[0]", "--let", "c=c.npy", "--json").json()["value"],
                         [1, -2])

    def test_steps_over_chunks_are_counted_as_the_chunks_that_are_decoded(self):
        values = np.random.default_rng(3).standard_normal((300, 500))
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "x.shale:x", "--chunk", "32,64", "--codec", "raw")
        for rows, columns in (("::64", "::100"), ("::31", "::-1"), ("5:6", "130:135"), (":", "::499")):
            touched = {(int(row) // 32, int(column) // 64)
                       for row in np.arange(300)[eval(f"np.s_[{rows}]")]
                       for column in np.arange(500)[eval(f"np.s_[{columns}]")]}
            decoded = sum(min(32, 300 - 32 * row) * min(64, 500 - 64 * column) * 8
                          for row, column in touched)
            with self.subTest(rows=rows, columns=columns):
                arguments = ("eval", f"a[{rows}, {columns}] + 0", "--let", "a=x.shale:x")
                plan = self.shale(*arguments, "--plan", "--json").json()
                self.assertEqual((plan["tiles_decoded"], plan["bytes_read"]), (len(touched), decoded))
                self.assertIn(f"in {len(touched)} tile", self.shale(*arguments, "--plan").out)
                cost = self.shale(*arguments, "-o", "y.npy", "-f", "--json").json()["cost"]
                self.assertEqual((cost["tiles_decoded"], cost["bytes_read"]), (len(touched), decoded))
                # Raw chunks are stored whole, even at the edges of the array.
                self.assertEqual(cost["stored_bytes_read"], len(touched) * 32 * 64 * 8)
                self.assert_same(np.load(self.path / "y.npy"),
                                 eval(f"values[{rows}, {columns}]") + 0)

    def test_plan_says_what_it_would_do_and_does_nothing(self):
        self.survey()
        plan = self.shale("eval", "(a - mean(a)) / std(a)", "--let", "a=survey.shale:wave", "--plan",
                          "-o", "x.npy", "--json").json()
        self.assertEqual(plan["passes"], 2)
        self.assertEqual(plan["bytes_written"] // self.wave.nbytes, 1)
        self.assertGreater(len(self.shale("eval", "a + 1", "--let", "a=survey.shale:wave",
                                          "--plan").out), 0)
        self.assertNotIn("x.npy", self.files())

    def test_results_land_in_containers_dense_and_chunked(self):
        self.shale("eval", "wave * 2", "--let", "wave=dem.npz:wave", "-o", "r.shale:dense")
        self.shale("eval", "wave * 2", "--let", "wave=dem.npz:wave", "-o", "r.shale:packed",
                   "--chunk", "8,16", "--codec", "shuffle,zstd:1", "--dtype", "float64")
        self.assert_same(self.load("r.shale:dense"), self.wave * 2)
        self.assert_same(self.load("r.shale:packed"), (self.wave * 2).astype(np.float64))
        self.shale("verify", "r.shale")

    def test_created_arrays_keep_their_form_when_they_are_filled(self):
        self.shale("create", "m.shale:m", "--shape", "17,40", "--dtype", "float64", "--chunk", "4,40",
                   "--codec", "shuffle,zstd:2", "--fill", "-1.5", "--attribute", "unit=m")
        self.assert_same(self.load("m.shale:m"), np.full((17, 40), -1.5))
        self.shale("eval", "w", "--let", "w=dem.npz:wave", "-o", "m.shale:m", code=3)
        self.shale("eval", "w", "--let", "w=dem.npz:wave", "-o", "m.shale:m", "-f")
        array = self.shale("info", "m.shale:m", "--json").json()["arrays"][0]
        self.assertEqual(array["chunk_shape"], [4, 40])
        self.assertEqual(array["codec"], "shuffle,zstd:2")
        self.assertEqual(array["dtype"], "float64")
        self.assertEqual(array["attributes"], {"unit": "m"})
        self.assert_same(self.load("m.shale:m"), self.wave.astype(np.float64))

    def test_fill_values_reach_the_ends_of_their_dtype(self):
        for dtype, text in (("int64", "-9223372036854775808"), ("uint64", "18446744073709551615"),
                            ("float64", "-0.0"), ("float32", "-inf")):
            for kind in ("--dense", "--chunked"):
                with self.subTest((dtype, text, kind)):
                    self.shale("create", "f.shale:f", "--shape", "2", "--dtype", dtype, "--fill", text,
                               kind, "-f")
                    wanted = np.full(2, text).astype(dtype)
                    self.assertEqual(self.load("f.shale:f").tobytes(), wanted.tobytes())

    def test_replaced_arrays_keep_their_dtype_only_where_it_holds_the_values(self):
        np.save(self.path / "h.npy", np.array([1.5, 300.25, -2.75, 1e9]))
        self.shale("create", "k.shale:h", "--shape", "4", "--dtype", "int8")
        for command in (["convert", "h.npy", "k.shale:h", "-f"],
                        ["eval", "arange(4) * 100", "-o", "k.shale:h", "-f"]):
            with self.subTest(command):
                refused = self.shale(*command, code=2).err
                self.assertIn("holds int8", refused)
                self.assertIn("--dtype (convert: --as)", refused)
        self.assert_same(self.load("k.shale:h"), np.zeros(4, np.int8))
        self.assertIn("float64 (4,)", self.shale("convert", "h.npy", "k.shale:h", "-f", "--as",
                                                 "float64").err)
        self.assert_same(self.load("k.shale:h"), np.load(self.path / "h.npy"))
        # float64 can hold the integers, and the message tells what is stored.
        done = self.shale("eval", "arange(4)", "-o", "k.shale:h", "-f", "--json").json()
        self.assertEqual(done["dtype"], "float64")
        self.assert_same(self.load("k.shale:h"), np.arange(4.0))
        self.shale("create", "k.shale:dem", "--shape", "60,83", "--dtype", "float32")
        self.assertIn("dem: float32", self.shale("convert", "dem.npz", "k.shale", "-f").err)
        self.assert_same(self.load("k.shale:dem"), self.dem.astype(np.float32))

    def test_created_dense_arrays_hold_their_fill_value(self):
        self.shale("create", "d.shale:zeros", "--shape", "5,6")
        self.shale("create", "d.shale:nan", "--shape", "5", "--fill", "nan", "--dtype", "float64")
        self.shale("create", "d.shale:one", "--shape", "()", "--fill", "2**10", "--dtype", "int16")
        self.assert_same(self.load("d.shale:zeros"), np.zeros((5, 6), np.float32))
        self.assert_same(self.load("d.shale:nan"), np.full(5, np.nan))
        self.assert_same(self.load("d.shale:one"), np.array(1024, np.int16))

    def test_an_array_can_be_replaced_by_what_is_computed_from_it(self):
        self.survey()
        self.shale("eval", "a[::-1] * 2", "--let", "a=survey.shale:dem", "-o", "survey.shale:dem", "-f")
        self.assert_same(self.load("survey.shale:dem"), self.dem[::-1] * np.int16(2))

    # ---- pictures --------------------------------------------------------------------------------

    def png(self, name):
        """Width, height and colour type of a PNG file."""
        head = (self.path / name).read_bytes()[:33]
        self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
        return (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"), head[25])

    def pixels(self, name):
        """The rows of an RGB picture; a pixel is (red, green, blue)."""
        data = (self.path / name).read_bytes()
        at, packed = 8, b""
        while at < len(data):
            length = int.from_bytes(data[at:at + 4], "big")
            if data[at + 4:at + 8] == b"IDAT":
                packed += data[at + 8:at + 8 + length]
            at += 12 + length
        width, height, _ = self.png(name)
        lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
        rows = np.zeros((height + 1, 3 * (width + 1)), int)  # a black margin above and to the left
        for y, (kind, *line) in enumerate(lines.tolist(), 1):
            for x, value in enumerate(line, 3):
                left, above, corner = rows[y, x - 3], rows[y - 1, x], rows[y - 1, x - 3]
                near = left + above - corner
                paeth = min((left, above, corner), key=lambda value: abs(near - value))
                rows[y, x] = (value + [0, left, above, (left + above) // 2, paeth][kind]) % 256
        return [[tuple(row[x:x + 3]) for x in range(3, len(row), 3)] for row in rows[1:].tolist()]

    def test_plot_keeps_proportions(self):
        self.survey()
        self.shale("plot", "survey.shale:dem", "-o", "dem.png", "--colormap", "terrain")
        self.assertEqual(self.png("dem.png"), (83, 60, 2))
        self.shale("plot", "survey.shale:dem", "-o", "small.png", "--width", "21")
        self.assertEqual(self.png("small.png"), (21, 15, 2))
        self.shale("plot", "survey.shale:dem", "-o", "large.png", "--width", "200")
        self.assertEqual(self.png("large.png"), (166, 120, 2))

    def test_plot_makes_one_file_beside_its_target(self):
        libc = ctypes.CDLL(None, use_errno=True)
        events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        in_moved_to, in_create = 0x80, 0x100
        libc.inotify_add_watch(events, os.fsencode(self.path), in_create | in_moved_to)
        self.shale("plot", "dem.npz:dem", "-o", "dem.png")
        made = []
        rest = os.read(events, 1 << 16)
        os.close(events)
        while rest:
            _, _, _, length = struct.unpack("iIII", rest[:16])
            made.append(os.fsdecode(rest[16:16 + length].rstrip(b"\0")))
            rest = rest[16 + length:]
        self.assertEqual(len(made), 2, made)
        self.assertRegex(made[0], r"^\.dem\.png\.[0-9a-f]{16}\.partial$")
        self.assertEqual(made[1], "dem.png")

    def test_plot_tells_large_numbers_apart(self):
        for values in (1e9 + np.arange(12.0), 20000000 + np.arange(12), 1e300 * np.arange(-6.0, 6),
                       1.5e308 * np.linspace(-1, 1, 12), 5e-324 * np.arange(12)):
            np.save(self.path / "large.npy", values.reshape(3, 4))
            self.shale("plot", "large.npy", "-o", "large.png", "-f", "--percentile", "0")
            self.assertEqual(len({pixel for row in self.pixels("large.png") for pixel in row}), 12)
            drawn = [pixel[0] for row in self.pixels("large.png") for pixel in row]
            self.assertEqual((drawn, drawn[0], drawn[-1]), (sorted(drawn), 0, 255))
        np.save(self.path / "large.npy", 1e300 * np.arange(-6.0, 6).reshape(3, 4))
        for limits in (["--min", "1e301"], ["--min", "nan"], ["--max=-1e301"]):
            self.assertIn("--min must be less than --max",
                          self.shale("plot", "large.npy", "-o", "none.png", *limits, code=2).err)

    def test_plot_says_where_no_element_is_finite(self):
        for name, values in (("nan", np.full((4, 5), np.nan)), ("inf", np.full((4, 5), -np.inf))):
            np.save(self.path / "none.npy", values)
            drawn = self.shale("plot", "none.npy", "-o", f"{name}.png").err
            self.assertEqual(drawn, f"{name}.png: 5 x 4 pixels, every element, none of them finite\n")
        np.save(self.path / "some.npy", np.array([[np.nan, 3], [1, np.inf]]))
        self.assertIn("every element, 1 to 3",
                      self.shale("plot", "some.npy", "-o", "some.png").err)

    def test_plot_leaves_holes_where_nothing_is_known(self):
        holes = self.wave.copy()
        holes[3, 4] = np.nan
        np.save(self.path / "holes.npy", holes)
        self.shale("plot", "holes.npy", "-o", "holes.png", "--min", "-1", "--max", "1")
        self.assertEqual(self.png("holes.png"), (40, 17, 6))
        dates = np.array([["2026-01-01", "NaT"], ["2026-02-01", "2026-03-01"]], "M8[D]")
        np.save(self.path / "dates.npy", dates)
        for counts, kind in (("dates.npy", 6), ("dates.npy[1:]", 2)):
            said = self.shale("plot", counts, "-o", "dates.png", "-f").err
            self.assertEqual(self.png("dates.png")[2], kind)
            self.assertIn(f", {dates[1:].astype(int).min() if kind == 2 else dates[0, 0].astype(int):g} to ", said)

    # ---- targets are whole or untouched ----------------------------------------------------------

    def test_existing_targets_need_force(self):
        for target in ("t.npy", "t.npz", "t.t7", "t.raw", "t.png"):
            (self.path / target).write_bytes(b"precious")
            with self.subTest(target):
                command = ["plot", "dem.npz:dem", "-o", target] if target.endswith("png") else [
                    "convert", "dem.npz:dem", target]
                self.assertIn("-f", self.shale(*command, code=3).err)
                self.assertEqual((self.path / target).read_bytes(), b"precious")
                self.shale(*command, "-f")
                self.assertNotEqual((self.path / target).read_bytes(), b"precious")
        self.shale("create", "t.shale:a", "--shape", "3")
        self.shale("create", "t.shale:wave", "--shape", "3")
        for command in (["create", "t.shale:a", "--shape", "4"],
                        ["convert", "dem.npz:dem", "t.shale:a"],
                        ["convert", "dem.npz", "t.shale", "--json"],
                        ["eval", "1", "-o", "t.shale:a"]):
            with self.subTest(command):
                self.assertIn("-f", self.shale(*command, code=3).err)
                done = self.shale(*command, "-f")
                if "--json" in command:
                    made = done.json()["converted"]
                    converted = {array["target"]: array["shape"] for array in made}
                    self.assertEqual(converted["t.shale:wave"], [17, 40])

    def corrupt_chunk(self):
        """A container whose array cannot be decoded to its end."""
        noise = np.random.default_rng(3).integers(0, 256, (64, 4096)).astype(np.uint8)
        np.save(self.path / "noise.npy", noise)
        self.shale("convert", "noise.npy", "bad.shale", "--chunk", "8,4096", "--codec", "raw")
        data = bytearray((self.path / "bad.shale").read_bytes())
        at = data.find(noise[40].tobytes())
        self.assertGreater(at, 0)
        data[at] ^= 1
        (self.path / "bad.shale").write_bytes(data)

    def test_damage_is_found_and_named(self):
        self.corrupt_chunk()
        found = self.shale("verify", "bad.shale", "--json", code=1).json()
        self.assertFalse(found["sound"])
        self.assertEqual(found["findings"][0]["code"], "corrupt")
        self.assertIn("finding", self.shale("verify", "bad.shale", code=1).out)
        self.shale("stats", "bad.shale:noise", code=4)
        data = bytearray((self.path / "bad.shale").read_bytes())
        data[0:8] = b"\0" * 8
        (self.path / "head.shale").write_bytes(data)
        self.shale("ls", "head.shale", code=4)
        self.shale("verify", "head.shale", code=1)

    def test_failures_leave_neither_new_files_nor_changed_ones(self):
        self.corrupt_chunk()
        before = self.files()
        for target in ("new.npy", "new.npz", "new.raw", "new.shale:a"):
            self.shale("eval", "a + 1", "--let", "a=bad.shale:noise", "-o", target, code=4)
            self.assertEqual(self.files(), before)
        self.survey()
        content = (self.path / "survey.shale").read_bytes()
        uuid = self.shale("info", "survey.shale", "--json").json()
        self.shale("eval", "a + 1", "--let", "a=bad.shale:noise", "-o", "survey.shale:dem", "-f", code=4)
        self.assertEqual(self.shale("info", "survey.shale", "--json").json()["generation"],
                         uuid["generation"])
        self.assert_same(self.load("survey.shale:dem"), self.dem)
        self.shale("verify", "survey.shale")
        self.assertGreaterEqual(len((self.path / "survey.shale").read_bytes()), len(content))

    def test_lost_commit_is_refused_or_salvaged(self):
        self.survey()
        path = self.path / "survey.shale"
        generation = self.shale("info", "survey.shale", "--json").json()["generation"]
        self.shale("eval", "a + 1", "--let", "a=survey.shale:dem", "-o", "survey.shale:dem", "-f")
        content = bytearray(path.read_bytes())
        slot = [16384, 32768][generation % 2]  # of generation + 1
        content[slot:slot + 512] = bytes(512)
        path.write_bytes(content)
        for arguments in (["cat", "survey.shale:dem"], ["set", "survey.shale:dem", "a=b"],
                          ["ls", "survey.shale"], ["convert", "survey.shale", "copy.shale"]):
            err = self.shale(*arguments, code=4).err
            self.assertIn("--salvage", err)
            self.assertIn(f"byte {slot}", err)
        self.assertIn("was committed", self.shale("verify", "survey.shale", code=1).out)
        self.assertEqual(path.read_bytes(), content)
        self.shale("convert", "--salvage", "survey.shale", "copy.shale")
        self.assert_same(self.load("copy.shale:dem"), self.dem)

    def test_verify_accounts_for_every_byte(self):
        self.survey()
        self.shale("eval", "a + 1", "--let", "a=survey.shale:dem", "-o", "survey.shale:dem", "-f")
        found = self.shale("verify", "survey.shale", "--json").json()
        space = found["space"]
        self.assertTrue(found["sound"])
        self.assertEqual(found["arrays"], 3)
        self.assertEqual(space["live_bytes"] + space["freed_bytes"] + space["free_bytes"],
                         space["file_bytes"])
        self.assertIn("sound", self.shale("verify", "survey.shale").out)

    def test_freed_space_is_taken_by_the_write_after_the_next(self):
        self.survey()
        sizes = []
        for _ in range(6):
            self.shale("convert", "dem.npz:dem", "survey.shale:dem", "-f")
            space = self.shale("verify", "survey.shale", "--json").json()["space"]
            self.assertGreaterEqual(space["freed_bytes"], self.dem.nbytes)
            sizes.append(space["file_bytes"])
        self.assertEqual(sizes[2:], [sizes[2]] * 4)

    def test_foreign_objects_are_unsupported(self):
        np.save(self.path / "o.npy", np.array([{}, None], dtype=object), allow_pickle=True)
        self.shale("info", "o.npy", code=5)
        np.save(self.path / "c.npy", np.zeros(3, np.complex64))
        self.shale("stats", "c.npy", code=5)

    # ---- interruption ----------------------------------------------------------------------------

    def interrupt(self, *arguments, number=signal.SIGINT):
        """Starts a command that would take minutes and interrupts it after it has begun. Returns
        the code of the finished process and its messages."""
        with subprocess.Popen([self.command, *map(str, arguments)], cwd=self.path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            status = pathlib.Path(f"/proc/{process.pid}/status")
            # A process that blocks the signal is ready to read it. It computes shortly afterwards.
            while not int(re.search(r"SigBlk:\s*(\w+)", status.read_text()).group(1), 16):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            time.sleep(0.5)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        self.assertEqual(out, "")
        return process.returncode, err

    ENDLESS = "sin(arange(30000000000, dtype=float64))"

    def test_an_interrupted_command_dies_of_the_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                code, err = self.interrupt("eval", f"sum({self.ENDLESS})", number=number)
                self.assertEqual(code, -number)
                self.assertIn("[cancelled]", err)

    def test_interruption_ends_the_printing_of_all_elements(self):
        np.save(self.path / "long.npy", np.random.default_rng(1).standard_normal(3_000_000))
        for arguments in (["long.npy"], ["long.npy", "--check"]):
            with self.subTest(arguments):
                code, err = self.interrupt("cat", "-a", *arguments, number=signal.SIGTERM)
                self.assertEqual(code, -signal.SIGTERM)
                self.assertIn("[cancelled]", err)

    def test_interruption_leaves_the_old_target(self):
        self.survey()
        before = self.shale("info", "survey.shale", "--json").json()
        code, _ = self.interrupt("eval", f"sum({self.ENDLESS}) * a", "--let", "a=survey.shale:dem",
                                 "-o", "survey.shale:dem", "-f", "--dtype", "float64")
        self.assertEqual(code, -signal.SIGINT)
        after = self.shale("info", "survey.shale", "--json").json()
        self.assertEqual(after["generation"], before["generation"])
        self.assert_same(self.load("survey.shale:dem"), self.dem)
        self.shale("verify", "survey.shale")

    def test_interruption_leaves_no_new_file(self):
        before = self.files()
        for target in ("new.npy", "new.raw", "new.npz:a", "new.shale:a"):
            code, _ = self.interrupt("eval", f"sum({self.ENDLESS}) * w", "--let", "w=dem.npz:wave",
                                     "-o", target)
            self.assertEqual(code, -signal.SIGINT)
            self.assertEqual(self.files(), before)

    # ---- without threads -------------------------------------------------------------------------

    def without_threads(self):
        """Options for the command as a user who may start no thread."""
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        self.path.chmod(0o777)
        user = 40000 + os.getpid() % 20000
        def begin():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        options = {"user": user, "group": user, "extra_groups": [], "preexec_fn": begin}
        try:
            subprocess.run([self.command, "version"], check=True, capture_output=True, **options)
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("the command cannot be run by another user from where it was built")
        return options

    def test_without_threads_it_computes(self):
        options = self.without_threads()
        np.save(self.path / "long.npy", np.ones(3_000_000, np.float32))
        stats = self.shale("stats", "long.npy", "--json", **options).json()
        self.assertEqual(stats["mean"], 1)
        self.shale("eval", "a * 2", "--let", "a=long.npy", "-o", "new.shale:a", "--chunked", **options)
        self.assert_same(self.load("new.shale:a"), np.full(3_000_000, 2, np.float32))
        checks = self.shale("doctor", "--json", **options).json()["checks"]
        self.assertIn(("threads", "note"), [(check["name"], check["verdict"]) for check in checks])

    def test_without_threads_it_is_interrupted(self):
        options = self.without_threads()
        before = self.files()
        with subprocess.Popen([self.command, "eval", f"sum({self.ENDLESS}) * w", "--let",
                               "w=dem.npz:wave", "-o", "new.npy"], cwd=self.path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
            status = pathlib.Path(f"/proc/{process.pid}/status")
            while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text()).group(1), 16) & 2:
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertEqual(self.files(), before)

    # ---- versions --------------------------------------------------------------------------------

    def test_version_names_its_parts(self):
        version = self.shale("version", "--json").json()
        self.assertRegex(version["shale"], r"^\d+\.\d+\.\d+$")
        self.assertIn(version["isa"], ("baseline", "avx2", "avx512"))
        self.assertGreaterEqual(version["format"], 1)
        self.assertIn("zstd", version["libraries"])
        self.assertEqual(self.shale("--version").out.strip(), version["shale"])
        forced = self.shale("version", "--json", env={**os.environ, "SHALE_ISA": "baseline"}).json()
        self.assertEqual(forced["isa"], "baseline")


if __name__ == "__main__":
    main()
