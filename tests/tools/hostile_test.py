#!/usr/bin/python3
"""How the built `shale` command handles hostile input and failures of the system.

Usage: hostile_test.py PATH/TO/shale [unittest arguments]
"""

import ctypes
import json
import os
import pathlib
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import numpy as np

SHALE = None
USAGE, FAILED, CORRUPT, UNSUPPORTED = 2, 3, 4, 5


class Checksum(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def checksum128(data):
    """The checksum of a container's metadata, as docs/container-format.md stores it."""
    hash_of = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    hash_of.argtypes, hash_of.restype = [ctypes.c_char_p, ctypes.c_size_t], Checksum
    return bytes(hash_of(bytes(data), len(data)))


def rename_in_catalog(path, old, new):
    """Changes the name of an array in a container to any bytes of the same length, and corrects
    every checksum above it. The catalog has to be one page."""
    data = bytearray(path.read_bytes())

    def number(at):
        return int.from_bytes(data[at:at + 8], "little")

    superblock = max((16384, 32768), key=lambda at: number(at + 32))
    root = number(superblock + 40)
    catalog = number(root + 32)
    page = data[catalog:catalog + 4096]
    assert page.count(old) >= 1 and len(old) == len(new)
    data[catalog:catalog + 4096] = page.replace(old, new)
    data[root + 40:root + 56] = checksum128(data[catalog:catalog + 4096])
    data[superblock + 56:superblock + 72] = checksum128(data[root:root + 4096])
    block = data[superblock:superblock + 496]
    data[superblock + 496:superblock + 512] = checksum128(
        block[16:32] + block[12:16] + block[0:12] + block[32:496])
    path.write_bytes(data)


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="shale-hostile-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.dem = np.arange(60 * 83, dtype=np.int16).reshape(60, 83)
        np.save(self.path / "dem.npy", self.dem)
        np.savez(self.path / "dem.npz", dem=self.dem, wave=self.dem.astype(np.float32))
        self.dem.tofile(self.path / "dem.raw")

    # ---- verbs -----------------------------------------------------------------------------------

    def start(self, *arguments, **options):
        options = {"cwd": self.path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([SHALE, *map(str, arguments)], **options)

    def shale(self, *arguments, code=0, **options):
        """Runs the command to its end. A crash has another code, a hang reaches the time-out."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(timeout=120)
        self.out, self.err = (text.decode(errors="replace") if text is not None else ""
                              for text in (out, err))
        self.assertEqual(process.returncode, code,
                         f"shale {' '.join(map(str, arguments))}\n{self.out}\n{self.err}")
        return self.out

    def refused(self, code, *arguments, names=(), **options):
        """Runs a command that must fail with this code, print no data, and name every word of `names`
        in its message."""
        self.shale(*arguments, code=code, **options)
        self.assertEqual(self.out, "")
        self.assertRegex(self.err, r"^shale[ a-z]*: ")
        for word in names:
            self.assertIn(word, self.err)

    def survey(self):
        self.shale("convert", "dem.npz", "survey.shale", "--chunk", "16,32")
        self.shale("convert", "dem.npy", "survey.shale:dense")
        return (self.path / "survey.shale").read_bytes()

    def files(self, folder=None):
        return sorted(p.name for p in (folder or self.path).iterdir())

    def readers(self, address):
        """Every command that reads elements, with the target that it would write."""
        return (["info", address], ["ls", "-l", address], ["cat", address], ["stats", address],
                ["plot", address, "-o", "x.png"], ["convert", address, "x.raw"],
                ["convert", address, "y.shale:x"],
                ["eval", "a + a", "--let", f"a={address}", "-o", "x.npy"])

    def all_refuse(self, code, address, names=(), skip=()):
        before = self.files()
        for arguments in self.readers(address):
            if arguments[0] in skip:
                continue
            with self.subTest(arguments):
                self.refused(code, *arguments, names=names)
                self.assertEqual(self.files(), before)

    # ---- damaged files ---------------------------------------------------------------------------

    def test_files_that_are_cut_are_corrupt_for_every_command(self):
        container = self.survey()
        for name, whole, at in (("c.npy", (self.path / "dem.npy").read_bytes(), 5000),
                                ("h.npy", (self.path / "dem.npy").read_bytes(), 50),
                                ("e.npy", b"", 0),
                                ("c.npz", (self.path / "dem.npz").read_bytes(), 5000),
                                ("e.npz", b"", 0),
                                ("c.shale", container, len(container) - 4096),
                                ("h.shale", container, 20000),
                                ("e.shale", b"", 0)):
            (self.path / name).write_bytes(whole[:at])
            address = name if name.endswith(".npy") else name + ":dem"
            self.all_refuse(CORRUPT, address, names=[name, "[corrupt]"],
                            skip=("info", "ls") if name == "c.npy" else ())
        # The header of an .npy file tells the size of the array, even if elements are missing.
        self.shale("info", "c.npy", code=CORRUPT)
        self.assertIn("the file has 4872", self.err)
        self.assertRegex(self.out, r"unreadable +elements are missing \[corrupt\]")
        self.assertRegex(self.out, "stored +4.8 KiB of these are present")
        told = json.loads(self.shale("info", "--json", "c.npy", code=CORRUPT))["arrays"][0]
        self.assertEqual((told["code"], told["dtype"], told["stored_bytes"]),
                         ("corrupt", "int16", 4872))
        self.shale("ls", "-l", "c.npy", code=CORRUPT)
        self.assertRegex(self.out, r"int16 +\(60, 83\)")
        self.shale("verify", "c.shale", code=1)
        self.shale("verify", "e.shale", code=1)

    def test_files_of_another_kind_are_corrupt(self):
        container = self.survey()
        (self.path / "a.npy").write_bytes(container)
        (self.path / "a.npz").write_bytes(container)
        (self.path / "a.shale").write_bytes((self.path / "dem.npz").read_bytes() + bytes(60000))
        (self.path / "text.npy").write_text("x,y\n1,2\n")
        for address in ("a.npy", "a.npz:dem", "a.shale:dem", "text.npy"):
            self.all_refuse(CORRUPT, address, names=["[corrupt]"])

    def test_a_damaged_chunk_names_file_chunk_and_checksums(self):
        data = bytearray(self.survey())
        at = data.find(b"\x28\xb5\x2f\xfd")  # a zstd frame
        data[at + 12] ^= 1
        (self.path / "survey.shale").write_bytes(data)
        self.shale("verify", "survey.shale", code=1)
        damaged = next(name for name in ("dem", "wave") if f"'{name}'" in self.out)
        for arguments in (["cat", "--csv"], ["stats"]):
            self.refused(CORRUPT, *arguments, f"survey.shale:{damaged}",
                         names=["survey.shale", "chunk", f"byte {at // 64 * 64}", "stored ",
                                "computed "])
        self.refused(CORRUPT, "convert", "survey.shale", "new.shale", names=["survey.shale"])
        self.refused(CORRUPT, "convert", "survey.shale", "new.npz", names=["survey.shale"])
        self.assertNotIn("new.shale", self.files())
        self.assertNotIn("new.npz", self.files())

    def test_a_damaged_member_of_an_archive_is_not_carried_on(self):
        self.survey()
        # Members that this command writes are mapped, and need not be copied.
        self.shale("convert", "survey.shale", "all.npz")
        data = bytearray((self.path / "all.npz").read_bytes())
        with zipfile.ZipFile(self.path / "all.npz") as archive:
            member = archive.getinfo("dem.npy")
        data[member.header_offset + member.compress_size // 2] ^= 1
        (self.path / "all.npz").write_bytes(data)
        names = ["all.npz", "dem", "stored ", "computed "]
        for target in ("new.shale", "new.npz", "new.npy:"):
            source = "all.npz:dem" if target.endswith(":") else "all.npz"
            self.refused(CORRUPT, "convert", source, target.rstrip(":"), names=names)
            self.assertNotIn(target.rstrip(":"), self.files())
        for arguments in (["stats"], ["cat"], ["cat", "--csv"]):
            self.refused(CORRUPT, *arguments, "--check", "all.npz:dem", names=names)
        self.refused(CORRUPT, "eval", "sum(a)", "--check", "--let", "a=all.npz:dem", names=names)
        self.shale("stats", "all.npz:dem")

    def test_elements_of_other_kinds_are_unsupported(self):
        np.save(self.path / "o.npy", np.array([{}, None], dtype=object), allow_pickle=True)
        np.save(self.path / "s.npy", np.zeros(3, dtype=[("a", "<i4"), ("b", "<f8")]))
        np.savez(self.path / "o.npz", a=np.array([{}, None], dtype=object))
        with zipfile.ZipFile(self.path / "n.npz", "w") as archive:
            archive.writestr("a", "no array")
        for address in ("o.npy", "s.npy", "o.npz:a"):
            self.all_refuse(UNSUPPORTED, address, names=[address.split(":")[0], "[unsupported]"])

    def mixed(self):
        np.savez(self.path / "mixed.npz", good=self.dem, objects=np.array([{}, None], dtype=object),
                 records=np.zeros(3, dtype=[("a", "<i4"), ("b", "<f8")]), wave=np.arange(5.0))

    def test_members_that_are_no_arrays_leave_the_others_to_be_seen(self):
        self.mixed()
        for arguments in (["info"], ["ls", "-l"], ["info", "--json"], ["ls", "--json"]):
            with self.subTest(arguments):
                self.shale(*arguments, "mixed.npz", code=UNSUPPORTED)
                for word in ("good", "objects", "records", "wave", "int16", "float64",
                             "unsupported"):
                    self.assertIn(word, self.out)
                self.assertIn("'objects' of mixed.npz: Python objects", self.err)
                self.assertIn("'records' of mixed.npz: structured", self.err)
        listed = {member["name"]: member for member in json.loads(self.out)}
        self.assertEqual(listed["good"]["shape"], [60, 83])
        self.assertEqual(listed["records"]["code"], "unsupported")
        self.assertIn("structured", listed["records"]["problem"])
        self.assertEqual(self.shale("ls", "mixed.npz").split(),
                         ["good", "objects", "records", "wave"])
        self.shale("info", "mixed.npz:good")
        self.refused(UNSUPPORTED, "info", "mixed.npz:objects", names=["Python objects"])
        before = self.files()
        for target in ("new.shale", "new.npz"):
            self.refused(UNSUPPORTED, "convert", "mixed.npz", target,
                         names=["'objects'", "mixed.npz:NAME"])
        self.assertEqual(self.files(), before)
        self.shale("convert", "mixed.npz:wave", "new.npz")

    def test_a_damaged_member_leaves_the_others_to_be_seen(self):
        data = (self.path / "dem.npz").read_bytes()
        (self.path / "d.npz").write_bytes(data.replace(b"'descr': '<f4'", b"'descr': '<fx'"))
        for arguments in (["info"], ["ls", "-l"]):
            self.shale(*arguments, "d.npz", code=CORRUPT)
            self.assertIn("int16", self.out)
            self.assertIn("'wave' of d.npz", self.err)

    def test_big_endian_and_fortran_order_are_read(self):
        np.save(self.path / "b.npy", self.dem.astype(">i2"))
        np.save(self.path / "f.npy", np.asfortranarray(self.dem))
        np.savez(self.path / "b.npz", b=self.dem.astype(">i2"))
        for address in ("b.npy", "f.npy", "b.npz:b"):
            self.shale("convert", address, "back.npy", "-f")
            np.testing.assert_array_equal(np.load(self.path / "back.npy"), self.dem)

    def header(self, name, shape):
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        text = text.ljust(118) + "\n"
        (self.path / name).write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") +
                                       text.encode() + b"1234")

    def test_absurd_shapes_are_refused_at_once(self):
        for shape in ("(9223372036854775807,)", "(4294967296, 4294967296)", "(2147483648, 4294967296)",
                      "(-1,)", "(18446744073709551617,)", "(1.5,)"):
            self.header("a.npy", shape)
            self.all_refuse(CORRUPT, "a.npy", names=["a.npy"])
        self.header("a.npy", "(1099511627776, 1024)")  # the elements are missing
        self.all_refuse(CORRUPT, "a.npy", names=["a.npy", "4503599627370496", "has 4"],
                        skip=("info", "ls"))
        self.header("a.npy", "(" + "1, " * 33 + ")")
        self.all_refuse(UNSUPPORTED, "a.npy", names=["a.npy", "32"])
        for shape in ("9223372036854775807", "4294967296,4294967296", "3,-1", "1" + ",1" * 32,
                      "99999999999999999999", "3,,4", "x"):
            with self.subTest(shape):
                self.refused(USAGE, "create", "new.shale:a", "--shape", shape)
                self.refused(USAGE, "cat", "dem.raw", "--dtype", "int16", "--shape", shape)
        self.refused(FAILED, "create", "new.shale:a", "--shape", "2199023255552",
                     names=["new.shale", "[out_of_space]"])
        self.assertNotIn("new.shale", self.files())

    # ---- directories, devices and missing files --------------------------------------------------

    def test_what_is_no_regular_file_is_an_error_not_a_wait(self):
        for suffix in ("npy", "npz", "raw", "shale"):
            (self.path / f"folder.{suffix}").mkdir()
            os.mkfifo(self.path / f"pipe.{suffix}")
            (self.path / f"null.{suffix}").symlink_to("/dev/zero")
            (self.path / f"loop.{suffix}").symlink_to(f"loop.{suffix}")
            (self.path / f"dangling.{suffix}").symlink_to("nowhere")
            inside = {"npz": ":a", "shale": ":a", "raw": ":int8"}.get(suffix, "")
            for kind in ("folder", "pipe", "null", "loop", "dangling"):
                file = f"{kind}.{suffix}"
                with self.subTest(file):
                    # A device of endless zeros has no end as raw bytes.
                    wanted = FAILED if kind in ("loop", "dangling") else USAGE
                    self.refused(wanted, "cat", file + inside, names=[file])
                    self.refused(wanted, "convert", file + inside, "new.shale:a", names=[file])
        self.refused(USAGE, "verify", "pipe.shale", names=["pipe.shale"])

    def test_only_regular_files_are_replaced(self):
        os.mkfifo(self.path / "pipe.png")
        os.mkfifo(self.path / "pipe.raw")
        os.mkfifo(self.path / "pipe.npy")
        os.mkfifo(self.path / "pipe.npz")
        (self.path / "null.raw").symlink_to("/dev/null")
        before = self.files()
        for arguments in (["plot", "dem.npy", "-o", "pipe.png", "-f"],
                          ["convert", "dem.npy", "pipe.raw", "-f"],
                          ["convert", "dem.npy", "pipe.npy", "-f"],
                          ["convert", "dem.npy", "pipe.npz", "-f"],
                          ["convert", "dem.npy", "null.raw", "-f"]):
            with self.subTest(arguments):
                self.refused(USAGE, *arguments, names=["regular"])
                self.assertEqual(self.files(), before)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        self.assertTrue((self.path / "pipe.raw").is_fifo())

    def test_links_are_followed_and_stay(self):
        self.shale("convert", "dem.npy", "real.shale:dem")
        for target in ("real.png", "real.raw", "real.npy"):
            (self.path / target).write_bytes(b"old")
        for suffix in ("shale", "png", "raw", "npy"):
            (self.path / f"link.{suffix}").symlink_to(f"real.{suffix}")
        self.assertEqual(self.shale("ls", "link.shale"), "dem\n")
        self.shale("create", "link.shale:b", "--shape", "3")
        self.shale("plot", "dem.npy", "-o", "link.png", "-f")
        self.shale("convert", "dem.npy", "link.raw", "-f")
        self.shale("convert", "dem.npy", "link.npy", "-f")
        for suffix in ("shale", "png", "raw", "npy"):
            self.assertTrue((self.path / f"link.{suffix}").is_symlink(), suffix)
            self.assertGreater((self.path / f"real.{suffix}").stat().st_size, 100, suffix)
        self.assertEqual(self.shale("ls", "real.shale"), "b\ndem\n")

    def as_nobody(self):
        """Options that start a command without root's rights; empty if this process has none."""
        if os.geteuid() != 0:
            return {}
        self.path.chmod(0o755)
        if subprocess.run([SHALE, "version"], user=65534, capture_output=True).returncode != 0:
            self.skipTest("the command cannot be run by another user from where it was built")
        return {"user": 65534, "group": 65534, "extra_groups": []}

    def test_files_that_may_not_be_read_or_written_are_errors(self):
        try:
            options = self.as_nobody()
        except PermissionError:
            self.skipTest("the command cannot be run by another user from where it was built")
        self.survey()
        for name in ("dem.npy", "dem.npz", "dem.raw", "survey.shale"):
            (self.path / name).chmod(0)
            inside = {"npz": ":dem", "raw": ":int16", "shale": ":dem"}.get(name.split(".")[1], "")
            self.refused(FAILED, "cat", name + inside, names=[name, "[access_denied]"], **options)
            (self.path / name).chmod(0o444)
        self.path.chmod(0o555)
        self.addCleanup(self.path.chmod, 0o755)
        before = self.files()
        for arguments in (["convert", "dem.npy", "new.npy"], ["convert", "dem.npy", "new.npz"],
                          ["convert", "dem.npy", "new.raw"], ["convert", "dem.npy", "new.shale:a"],
                          ["create", "survey.shale:b", "--shape", "3"],
                          ["plot", "dem.npy", "-o", "new.png"]):
            with self.subTest(arguments):
                self.refused(FAILED, *arguments, names=["[access_denied]"], **options)
                self.assertEqual(self.files(), before)

    def test_files_that_disappear_between_listing_and_opening_are_named(self):
        self.survey()
        names = [p for p in self.files() if p.endswith((".npy", ".npz", ".shale"))]
        for name in names:
            self.shale("ls", name)
            (self.path / name).unlink()
            address = name if name.endswith(".npy") else name + ":dem"
            self.all_refuse(FAILED, address, names=[name, "[not_found]"])

    # ---- untrusted text --------------------------------------------------------------------------

    def test_attributes_and_names_cannot_drive_the_terminal(self):
        self.shale("create", "a.shale:a", "--shape", "3", "--attribute", "title=\x1b[2J\x07",
                   *(word for text in (b"bytes=\xff\xfe", b"k\xff=1", b"k\xfe=2", b"\xed\xa0\x80=3")
                     for word in ("--attribute", text.decode(errors="surrogateescape"))))
        self.shale("info", "a.shale")
        self.assertIn("\\x1b[2J", self.out)
        self.assertIn("\\xff\\xfe", self.out)
        attributes = json.loads(self.shale("info", "a.shale", "--json"))["arrays"][0]["attributes"]
        self.assertEqual(attributes["title"], "\x1b[2J\x07")
        # JSON cannot hold the bytes; different ones stay different.
        self.assertEqual(attributes["bytes"], "\\xff\\xfe")
        self.assertEqual((attributes["k\\xff"], attributes["k\\xfe"]), (1, 2))
        self.assertEqual(attributes["\\xed\\xa0\\x80"], 3)
        with zipfile.ZipFile(self.path / "a.npz", "w") as archive:
            archive.writestr("e\x1b[2J.npy", (self.path / "dem.npy").read_bytes())
        for arguments in (["ls"], ["ls", "-l"], ["info"]):
            self.assertNotIn("\x1b", self.shale(*arguments, "a.npz"))
            # Lists show names as addresses write them.
            self.assertIn("\\x1b[[2J", self.out)
        self.assertEqual(json.loads(self.shale("ls", "--json", "a.npz"))[0]["name"], "e\x1b[2J")
        self.shale("convert", "a.npz", "b.npz")
        self.assertIn("b.npz:e\\x1b[[2J: int16", self.err)
        self.refused(USAGE, "convert", "a.npz", "b.shale", names=["e\\x1b[2J"])
        with zipfile.ZipFile(self.path / "lines.npz", "w") as archive:
            archive.writestr("g\nh.npy", (self.path / "dem.npy").read_bytes())
        self.refused(USAGE, "convert", "lines.npz", "b.shale",
                     names=["convert lines.npz:g\\nh: create 'g\\x0ah' in b.shale: not a name"])
        with zipfile.ZipFile(self.path / "two.npz", "w") as archive:
            for name in ("e\x1b[2J.npy", "f\xc2\x9b.npy"):
                archive.writestr(name, (self.path / "dem.npy").read_bytes())
        self.refused(USAGE, "cat", "two.npz", names=["e\\x1b[[2J"])
        self.assertNotRegex(self.err, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    def test_names_in_a_made_up_catalog_cannot_drive_the_terminal(self):
        self.shale("create", "a.shale:e_2J", "--shape", "3")
        self.assertEqual(self.shale("ls", "a.shale"), "e_2J\n")
        rename_in_catalog(self.path / "a.shale", b"e_2J", b"e\x1b2J")
        for arguments in (["ls"], ["ls", "-l"], ["ls", "--json"], ["info"], ["info", "--json"]):
            self.refused(CORRUPT, *arguments, "a.shale", names=["it holds an array 'e\\x1b2J'"])
        for arguments in (["ls"], ["ls", "-r"], ["ls", "-l"]):
            self.refused(CORRUPT, *arguments, "a.shale:/", names=["it holds an array 'e\\x1b2J'"])
        for arguments in (["verify"], ["verify", "--json"]):
            self.assertIn("e\\x1b2J" if len(arguments) == 1 else "e\\\\x1b2J",
                          self.shale(*arguments, "a.shale", code=1))
            self.assertNotIn("\x1b", self.out + self.err)

    def test_arrays_of_older_files_that_are_levels_too_are_used_as_before(self):
        for name in ("raw", "raw_x"):
            self.shale("create", f"a.shale:{name}", "--shape", "3", "--attribute", "unit=m")
        rename_in_catalog(self.path / "a.shale", b"raw_x", b"raw/x")
        self.shale("create", "a.shale:raw", "--shape", "4", "--attribute", "unit=m", "-f")
        for name in ("raw", "raw/x"):
            self.shale("convert", "dem.npy", f"a.shale:{name}", "-f")
            self.shale("set", f"a.shale:{name}", "by=me")
            self.shale("convert", f"a.shale:{name}", "back.npy", "-f")
            self.assertTrue(np.array_equal(np.load(self.path / "back.npy"), self.dem))
            told = json.loads(self.shale("info", f"a.shale:{name}", "--json"))["arrays"][0]
            self.assertEqual(told["attributes"], {"unit": "m", "by": "me"})
        self.assertEqual(self.shale("ls", "a.shale:/"), "raw\nraw/\n")
        self.assertEqual(self.shale("ls", "a.shale:raw/"), "raw/x\n")
        self.refused(FAILED, "create", "a.shale:raw/y", "--shape", "3", names=["its level 'raw' is an array"])
        self.refused(FAILED, "convert", "a.shale", "b.shale",
                     names=["convert a.shale:raw/x", "its level 'raw' is an array"])
        self.assertNotIn("b.shale", self.files())
        self.shale("mv", "a.shale:raw", "top")
        self.shale("convert", "a.shale", "--replace")
        self.assertEqual(self.shale("ls", "a.shale"), "raw/x\ntop\n")

    # ---- usage -----------------------------------------------------------------------------------

    def test_every_command_refuses_what_it_does_not_know(self):
        for command in "info ls cat stats plot convert create eval verify version".split():
            with self.subTest(command):
                self.refused(USAGE, command, "--no-such-option", names=[f"shale {command}", "--help"])
        for command in "info ls cat stats plot convert create eval verify".split():
            with self.subTest(command):
                self.refused(USAGE, command)
        self.refused(USAGE, "cat", "dem.npy", "more", "words")
        self.refused(USAGE, "stats", "a" * 5000)
        self.refused(USAGE, "eval", "(" * 5000)
        self.refused(USAGE, "eval", "-" * 100000 + "1")

    def test_errors_say_what_was_got_and_what_to_do(self):
        self.survey()
        self.refused(USAGE, "cat", "dem.npy[99]", names=["dem.npy", "99", "60", "axis 0"])
        self.refused(USAGE, "cat", "dem.npy[0, 0, 0]", names=["dem.npy", "2", "3"])
        self.refused(USAGE, "cat", "dem.raw", names=["dem.raw:float32"])
        self.refused(USAGE, "cat", "dem.raw:int16(60,84)", names=["dem.raw", "60, 84", "9960"])
        self.refused(USAGE, "cat", "dem.raw:complex128", names=["dem.raw", "complex128", "9960"])
        self.refused(USAGE, "cat", "survey.shale", names=["survey.shale:NAME", "dem"])
        self.refused(FAILED, "cat", "survey.shale:denses", names=["survey.shale", "did you mean 'dense'"])
        self.refused(FAILED, "convert", "dem.npy", "survey.shale:dem", names=["survey.shale:dem", "-f"])
        for target in ("dem.npy", "dem.npz", "dem.raw"):
            self.refused(FAILED, "convert", "survey.shale:dem", target, names=[target, "-f"])
        self.refused(FAILED, "convert", "survey.shale", "dem.npz", names=["dem.npz", "-f"])
        self.assertNotIn("::", self.err)
        with open(self.path / "two.npy", "wb") as two:
            np.save(two, self.dem)
            np.save(two, self.dem)
        self.refused(CORRUPT, "cat", "two.npy", names=["after the last element", "np.savez"])
        self.assertNotIn("::", self.err)
        self.refused(CORRUPT, "cat", "dem.raw:bool", names=["dem.raw", "x.raw:uint8"])
        self.refused(FAILED, "create", "survey.shale:dem", "--shape", "3", names=["dem", "-f"])
        self.refused(FAILED, "plot", "dem.npy", "-o", "dem.npy/x.png", names=["dem.npy"])
        self.refused(USAGE, "plot", "survey.shale:dem[0]", "-o", "x.png", names=["(83,)", "axes"])
        self.refused(USAGE, "eval", "a + b", "--let", "a=dem.npy", "--let", "b=dem.npy[:, 1:]",
                     names=["83", "82"])

    # ---- streams ---------------------------------------------------------------------------------

    def big(self):
        """An array of eight tebibytes, too large to print. Its first rows are printed soon."""
        self.shale("create", "big.shale:z", "--shape", "17179869184,256", "--dtype", "int16",
                   "--chunk", "4096,256", "--fill", "7")

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        self.big()
        with self.start("cat", "--csv", "big.shale:z") as process:
            self.assertTrue(process.stdout.read(10).startswith(b"7,7,7"))
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(timeout=60), -signal.SIGPIPE)

    def test_a_reader_that_goes_away_ends_it_where_the_signal_is_ignored(self):
        self.big()
        with self.start("cat", "--csv", "big.shale:z", restore_signals=False) as process:
            process.stdout.read(10)
            process.stdout.close()
            self.assertIn(b"standard output", process.stderr.read())
            self.assertEqual(process.wait(timeout=60), FAILED)

    def for_long(self, target):
        """Arguments of a command that makes the partial file of its target at once, then computes
        for many seconds and reports its progress every second."""
        if not (self.path / "long.shale").exists():
            self.shale("create", "long.shale:z", "--shape", "8388608,256", "--dtype", "int16",
                       "--chunk", "4096,256", "--fill", "7")
        return ["eval", "sum(sin(cos(astype(z, float64))))", "--let", "z=long.shale:z", "-o", target,
                "-f", "--progress"]

    def test_a_reader_of_progress_that_goes_away_ends_it_without_a_trace(self):
        for target in ("t.npy", "t.npz", "t.raw", "t.shale:a", "old.shale:a"):
            arguments = self.for_long(target)
            (self.path / "t.npy").write_bytes(b"precious")
            if target.startswith("old"):
                self.shale("create", "old.shale:b", "--shape", "3", "-f")
                generation = json.loads(self.shale("info", "--json", "old.shale"))["generation"]
            before = self.files()
            # Both streams go to the pipe, as in `2>&1 | head -c1`.
            with self.subTest(target), self.start(*arguments, stderr=subprocess.STDOUT) as process:
                self.assertEqual(len(process.stdout.read(1)), 1)
                process.stdout.close()
                self.assertEqual(process.wait(timeout=60), -signal.SIGPIPE)
                self.assertEqual(self.files(), before)
                self.assertEqual((self.path / "t.npy").read_bytes(), b"precious")
                if target.startswith("old"):
                    self.shale("verify", "old.shale")
                    after = json.loads(self.shale("info", "--json", "old.shale"))["generation"]
                    self.assertEqual(after, generation)

    def test_a_pipe_that_is_closed_from_the_start_ends_it_without_a_trace(self):
        arguments = self.for_long("t.npy")
        before = self.files()
        reader, writer = os.pipe()
        os.close(reader)
        self.shale(*arguments, code=-signal.SIGPIPE, stderr=writer)
        self.assertEqual(self.files(), before)
        # A command that prints nothing does not notice the broken pipe.
        self.shale("convert", "dem.npy", "t.npy", stdout=writer)
        os.close(writer)

    def test_shells_see_the_signal(self):
        arguments = shlex.join(self.for_long("t.npy"))
        before = self.files()
        done = subprocess.run(["bash", "-c", f"set -o pipefail; '{SHALE}' {arguments} 2>&1 | head -c1"],
                              cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, restore_signals=True)
        self.assertEqual((done.returncode, len(done.stdout), done.stderr), (128 + signal.SIGPIPE, 1, b""))
        self.assertEqual(self.files(), before)

    def test_progress_that_nobody_reads_is_no_matter_where_the_signal_is_ignored(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.shale("convert", "dem.npy", "new.npy", "--progress", stderr=writer, restore_signals=False)
        os.close(writer)
        np.testing.assert_array_equal(np.load(self.path / "new.npy"), self.dem)

    def test_progress_onto_a_full_disk_is_no_matter(self):
        with open("/dev/full", "w") as full:
            self.shale("convert", "dem.npy", "new.npy", "--progress", stderr=full)
        np.testing.assert_array_equal(np.load(self.path / "new.npy"), self.dem)

    def test_the_signal_that_somebody_sends_leaves_nothing_behind(self):
        arguments = self.for_long("t.npy")[:-1]
        before = self.files()
        with self.start(*arguments) as process:
            while not any(name.endswith(".partial") for name in self.files()):
                self.assertIsNone(process.poll(), "it ended before it could be interrupted")
                time.sleep(0.001)
            process.send_signal(signal.SIGPIPE)
            self.assertEqual(process.communicate(timeout=60), (b"", b""))
        self.assertEqual(process.returncode, -signal.SIGPIPE)
        self.assertEqual(self.files(), before)

    def test_an_interruption_ends_the_script_around_it(self):
        """Bash goes on with its script if a command exits by itself, also with 130."""
        script = f"'{SHALE}' {shlex.join(self.for_long('t.npy'))}; echo went on"
        before = self.files()
        with subprocess.Popen(["bash", "-c", script], cwd=self.path, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            self.assertEqual(len(process.stderr.read(1)), 1)  # it reports its progress
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
            out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, b""), err)
        self.assertEqual(self.files(), before)

    def changes(self):
        """Commands that change something and report it, in an order in which each can be done."""
        return (["create", "new.shale:a", "--shape", "3,4", "--json"],
                ["rm", "new.shale:a", "--json"],
                ["convert", "dem.npy", "new.npy", "--json"],
                ["convert", "dem.npy", "new.npz", "--json"],
                ["convert", "dem.npy", "new.shale:dem", "--json"],
                ["eval", "a + 1", "--let", "a=dem.npy", "-o", "new.shale:other", "--json"],
                ["eval", "a + 1", "--let", "a=dem.npy", "-o", "new.raw", "--json"],
                ["set", "new.shale:dem", "unit=m", "--json"],
                ["create", "new.shale:grows", "--shape", "0,5", "--chunk", "2,5", "--json"],
                ["resize", "new.shale:grows", "4,5", "--json"],
                ["append", "new.shale:grows", "new.shale:grows[1:]", "--json"],
                ["rechunk", "new.shale:grows", "1,5", "--json"],
                ["rm", "new.shale:grows", "--json"],
                ["mv", "new.shale:dem", "height", "--json"],
                ["rm", "new.shale:other", "--json"],
                ["convert", "new.shale", "--replace", "--json"])

    def expect_changes(self):
        np.testing.assert_array_equal(np.load(self.path / "new.npy"), self.dem)
        self.assertEqual(self.shale("ls", "new.shale"), "height\n")
        self.shale("verify", "new.shale")
        for name in ("new.npy", "new.npz", "new.raw", "new.shale"):
            os.remove(self.path / name)

    def test_changes_succeed_even_if_nobody_reads_their_report(self):
        reader, writer = os.pipe()
        os.close(reader)  # before a command begins: one that is faster would write into the pipe
        for arguments in self.changes():
            with self.subTest(arguments), self.start(*arguments, stdout=writer) as process:
                self.assertIn(b"could not be reported", process.stderr.read())
                self.assertEqual(process.wait(timeout=60), 0)
        self.expect_changes()
        # Nor if nobody reads the summary, which goes to stderr.
        for arguments in self.changes():
            with self.subTest(arguments):
                self.shale(*(word for word in arguments if word != "--json"), stderr=writer)
        self.expect_changes()
        self.shale("plot", "dem.npy", "-o", "new.png", stderr=writer)
        os.close(writer)

    def test_changes_succeed_even_if_their_report_cannot_be_written(self):
        for arguments in self.changes():
            with self.subTest(arguments), open("/dev/full", "w") as full:
                self.shale(*arguments, stdout=full)
                self.assertIn("could not be reported", self.err)
                self.assertIn("standard output: No space left on device", self.err)
        self.expect_changes()
        for arguments in self.changes():
            with self.subTest(arguments):
                self.shale(*arguments, preexec_fn=lambda: os.close(1))
        self.expect_changes()

    def test_a_report_that_cannot_be_written_hides_no_failure(self):
        names = [f"array-with-a-long-name-{number}" for number in range(40)]
        for name in names:
            self.shale("create", f"one.shale:{name}", "--shape", "1")
        self.shale("create", "two.shale:a", "--shape", "2097152", "--fill", "1")
        arguments = ["rm", "--json", *(f"one.shale:{name}" for name in names), "two.shale:a"]
        # The second container cannot be changed, because its pages lie beyond the largest file.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
        with open("/dev/full", "w") as full:
            self.shale(*arguments, code=FAILED, stdout=full, preexec_fn=limit)
        self.assertIn("could not be reported", self.err)
        self.assertIn("two.shale", self.err)
        self.assertEqual(self.shale("ls", "one.shale", "two.shale").split(),
                         ["one.shale:", "two.shale:", "a"])

    def test_output_that_is_full_is_an_error_at_once(self):
        self.big()
        self.survey()
        for arguments in (["cat", "--csv", "big.shale:z"], ["cat", "-a", "dem.npy"],
                          ["cat", "dem.npy"], ["ls", "survey.shale"], ["ls", "-l", "survey.shale"],
                          ["info", "survey.shale"], ["info", "--json", "survey.shale"],
                          ["stats", "dem.npy"], ["verify", "survey.shale"], ["eval", "1 + 1"],
                          ["eval", "--functions"], ["version"], ["--help"], ["--version"]):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                self.shale(*arguments, code=FAILED, stdout=full)
                self.assertIn("standard output: No space left on device", self.err)

    def test_messages_that_cannot_be_printed_change_nothing(self):
        with open("/dev/full", "w") as full:
            self.shale("cat", "nosuch.npy", code=FAILED, stderr=full)
            self.shale("nosuch", code=USAGE, stderr=full)
            self.shale("info", "--nosuch", code=USAGE, stderr=full)
            self.shale(code=USAGE, stderr=full)
            self.shale("convert", "dem.npy", "new.npy", stderr=full)
        np.testing.assert_array_equal(np.load(self.path / "new.npy"), self.dem)

    def test_closed_descriptors_change_no_command_that_writes(self):
        for closed in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
            close = lambda: [os.close(descriptor) for descriptor in closed]
            with self.subTest(closed):
                self.shale("create", "new.shale:made", "--shape", "3,4", "--fill", "7", "--json",
                           preexec_fn=close)
                for arguments in self.changes():
                    self.shale(*arguments, preexec_fn=close)
                self.shale("convert", "new.shale:made", "made.npy", "-f", preexec_fn=close)
                np.testing.assert_array_equal(np.load(self.path / "made.npy"), np.full((3, 4), 7))
                self.shale("rm", "new.shale:made", preexec_fn=close)
                self.expect_changes()

    def test_closed_descriptors_need_no_devices(self):
        hidden = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\" >&- 2>&-", "sh"]
        if subprocess.run([*hidden, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no right to mount over /dev")
        arguments = self.for_long("t.npy")
        with subprocess.Popen([*hidden, SHALE, *arguments], cwd=self.path) as process:
            while not any(name.endswith(".partial") for name in self.files()):
                self.assertIsNone(process.poll(), "it ended too early")
                time.sleep(0.001)
            opened = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (1, 2)]
            process.terminate()
        self.assertEqual(opened, ["/", "/"])

    def test_closed_descriptors_are_not_given_to_files(self):
        for closed in ([2], [1, 2], [0, 1, 2]):
            close = lambda: [os.close(descriptor) for descriptor in closed]
            self.shale("convert", "dem.npy", "new.shale:dem", "-f", preexec_fn=close)
            self.shale("convert", "dem.npy", "new.npy", "-f", preexec_fn=close)
            self.shale("plot", "dem.npy", "-o", "new.png", "-f", preexec_fn=close)
            self.shale("verify", "new.shale")
            np.testing.assert_array_equal(np.load(self.path / "new.npy"), self.dem)
            self.shale("convert", "new.shale:dem", "back.npy", "-f")
            np.testing.assert_array_equal(np.load(self.path / "back.npy"), self.dem)
        self.shale("cat", "dem.npy", code=FAILED, preexec_fn=lambda: os.close(1))

    # ---- full disks ------------------------------------------------------------------------------

    def writers(self, to):
        """Every command that writes more than a MiB, with the target that it would replace."""
        noise = self.path / "noise.npy"
        if not noise.exists():
            np.save(noise, np.random.default_rng(1).standard_normal((1200, 1400)))
        return ((["convert", noise, to / "a.npy", "-f"], "a.npy"),
                (["convert", noise, to / "a.npz", "-f"], "a.npz"),
                (["convert", noise, to / "a.raw", "-f"], "a.raw"),
                (["convert", noise, f"{to}/a.shale:dem", "-f"], "a.shale"),
                (["convert", noise, f"{to}/a.shale:more", "--chunked"], "a.shale"),
                (["create", f"{to}/a.shale:more", "--shape", "2000,2000", "--fill", "3"], "a.shale"),
                (["eval", "a * 2", "--let", f"a={noise}", "-o", to / "a.npy", "-f"], "a.npy"),
                (["eval", "a * 2", "--let", f"a={noise}", "-o", f"{to}/a.shale:dem", "-f"], "a.shale"),
                (["plot", noise, "-o", to / "a.png", "-f", "--width", "1400"], "a.png"),
                (["convert", noise, f"{to}/new.shale:a"], None),
                (["convert", noise, to / "new.npy"], None),
                (["plot", noise, "-o", to / "new.png", "--width", "1400"], None))

    def prepare(self, to):
        small = self.path / "small.npy"
        np.save(small, np.arange(50, dtype=np.int16).reshape(5, 10))
        for target in ("a.npy", "a.npz", "a.raw", "a.shale:dem"):
            self.shale("convert", small, f"{to}/{target}")
        self.shale("plot", small, "-o", to / "a.png")

    def contents(self, to):
        """The contents of targets. A container is represented by its arrays, because its free space
        may have changed."""
        found = {name: (to / name).read_bytes() for name in self.files(to) if name != "a.shale"}
        found["a.shale"] = self.shale("cat", "-a", f"{to}/a.shale:dem")
        found["names"] = self.shale("ls", to / "a.shale")
        return found

    def expect_targets_to_survive(self, to, codes, **options):
        self.prepare(to)
        before = self.contents(to)
        for arguments, target in self.writers(to):
            with self.subTest(arguments):
                self.refused(FAILED, *arguments, names=[target or "new."], **options)
                self.assertRegex(self.err, codes)
                self.assertNotIn(".partial", self.err)  # a name that is gone when it is read
                self.assertEqual(self.contents(to), before)
        self.shale("verify", to / "a.shale")
        # A failed command frees the space that it took.
        self.shale("convert", self.path / "dem.npy", to / "new.npy")

    def test_a_full_disk_leaves_targets_as_they_were(self):
        disk = self.path / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk],
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no right to mount a small file system")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        self.expect_targets_to_survive(disk, r"\[out_of_space\]")

    def test_a_limit_on_file_sizes_leaves_targets_as_they_were(self):
        target = self.path / "limited"
        target.mkdir()
        # The command ignores the signal SIGXFSZ, which would end it.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        self.expect_targets_to_survive(target, r"\[out_of_space\]", preexec_fn=limit)

    # ---- interruption ----------------------------------------------------------------------------

    def interrupt(self, began, *arguments):
        """Interrupts a long command as soon as `began` is true."""
        with self.start(*arguments) as process:
            while not began():
                self.assertIsNone(process.poll(), "it ended before it could be interrupted")
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        self.assertEqual(out, b"")
        self.assertIn(b"[cancelled]", err)

    def test_unfinished_files_are_closed_to_those_who_may_not_read_the_old_one(self):
        with open(self.path / "zeros.raw", "wb") as zeros:
            zeros.truncate(1 << 30)
        for target in ("t.npy", "t.npz", "t.raw"):
            (self.path / target).write_bytes(b"precious")
            (self.path / target).chmod(0o600)
            modes = set()

            def partial():
                for path in self.path.glob(".*.partial"):
                    modes.add(path.stat().st_mode & 0o777)
                return bool(modes)

            with self.subTest(target):
                self.interrupt(partial, "convert", "zeros.raw:float32", target, "-f")
                self.assertEqual(modes, {0o600})

    def test_an_interrupted_conversion_leaves_the_old_target(self):
        with open(self.path / "zeros.raw", "wb") as zeros:
            zeros.truncate(1 << 30)  # a hole, which is read without the disk
        for target in ("t.npy", "t.npz", "t.raw"):
            (self.path / target).write_bytes(b"precious")
            before = self.files()
            partial = lambda: any(name.endswith(".partial") for name in self.files())
            with self.subTest(target):
                self.interrupt(partial, "convert", "zeros.raw:float32", target, "-f")
                self.assertEqual((self.path / target).read_bytes(), b"precious")
                self.assertEqual(self.files(), before)

    def test_a_second_interruption_leaves_nothing_behind_either(self):
        with open(self.path / "zeros.raw", "wb") as zeros:
            zeros.truncate(1 << 29)
        for target in ("t.npy", "t.npz", "t.raw", "new.shale:a"):
            before = self.files()
            unfinished = re.compile(rf"\.{target.split(':')[0]}\.[0-9a-f]{{16}}\.partial")
            with self.subTest(target), \
                    self.start("convert", "zeros.raw:float32", target) as process:
                while not any(unfinished.fullmatch(name) for name in self.files()):
                    self.assertIsNone(process.poll(), "it ended before it could be interrupted")
                    time.sleep(0.001)
                # Both signals are pending when the process continues, so it cannot clean up
                # between them. SIGINT comes first: its number is the lower one.
                for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
                    process.send_signal(number)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, -signal.SIGTERM)
                self.assertEqual(self.files(), before)

    def test_a_target_that_appears_meanwhile_stays_and_advice_names_options(self):
        with open(self.path / "zeros.raw", "wb") as zeros:
            zeros.truncate(1 << 29)
        for target in ("t.npy", "t.npz", "t.raw"):
            with self.subTest(target), \
                    self.start("convert", "zeros.raw:float32", target) as process:
                while not any(name.endswith(".partial") for name in self.files()):
                    self.assertIsNone(process.poll(), "it ended before it could be overtaken")
                    time.sleep(0.001)
                process.send_signal(signal.SIGSTOP)
                (self.path / target).write_bytes(b"somebody else's")
                process.send_signal(signal.SIGCONT)
                err = process.communicate(timeout=60)[1].decode()
                self.assertEqual(process.returncode, FAILED)
                self.assertIn("-f replaces it", err)
                self.assertNotIn("::", err)
                self.assertEqual((self.path / target).read_bytes(), b"somebody else's")

    def test_an_interrupted_conversion_leaves_the_old_generation(self):
        self.big()
        self.survey()
        before = json.loads(self.shale("info", "--json", "survey.shale"))
        # Chunks with the fill value alone are not stored, whatever their number. With another codec they are
        # written one by one; with the same one, all of them are carried at once.
        busy = lambda: (self.path / "survey.shale").stat().st_mtime_ns != modified
        for target in ("survey.shale:dem", "new.shale:dem"):
            files = self.files()
            modified = (self.path / "survey.shale").stat().st_mtime_ns
            began = busy if target.startswith("survey") else (
                lambda: any(name.endswith(".partial") for name in self.files()))
            with self.subTest(target):
                self.interrupt(began, "convert", "big.shale:z", target, "-f", "--codec", "lz4")
                self.assertEqual(self.files(), files)
                after = json.loads(self.shale("info", "--json", "survey.shale"))
                self.assertEqual(after["generation"], before["generation"])
                self.shale("verify", "survey.shale")


if __name__ == "__main__":
    SHALE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
