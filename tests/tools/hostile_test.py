#!/usr/bin/python3
"""What the built `shale` command makes of hostile input and of a system that fails under it.

Usage: hostile_test.py PATH/TO/shale [unittest arguments]
"""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import numpy as np

SHALE = None
USAGE, FAILED, CORRUPT, UNSUPPORTED, INTERRUPTED = 2, 3, 4, 5, 130


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
        """Runs to its end; a crash has another code, and a hang runs into the time-out."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(timeout=120)
        self.out, self.err = (text.decode(errors="replace") if text is not None else ""
                              for text in (out, err))
        self.assertEqual(process.returncode, code,
                         f"shale {' '.join(map(str, arguments))}\n{self.out}\n{self.err}")
        return self.out

    def refused(self, code, *arguments, names=(), **options):
        """Fails with that code and a message that has every word of `names`, and prints no data."""
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
        """Every command that reads elements, and where it would write them."""
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
            # An .npy file's header says what it holds, whether or not it is there.
            self.all_refuse(CORRUPT, address, names=[name, "[corrupt]"],
                            skip=("info", "ls") if name == "c.npy" else ())
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

    def test_elements_of_other_kinds_are_unsupported(self):
        np.save(self.path / "o.npy", np.array([{}, None], dtype=object), allow_pickle=True)
        np.save(self.path / "s.npy", np.zeros(3, dtype=[("a", "<i4"), ("b", "<f8")]))
        np.save(self.path / "u.npy", np.array(["text"]))
        np.save(self.path / "t.npy", np.zeros(2, "M8[ns]"))
        np.savez(self.path / "o.npz", a=np.array([{}, None], dtype=object))
        with zipfile.ZipFile(self.path / "n.npz", "w") as archive:
            archive.writestr("a", "no array")
        for address in ("o.npy", "s.npy", "u.npy", "t.npy", "o.npz:a"):
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
        listed = {each["name"]: each for each in json.loads(self.out)}
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
        self.header("a.npy", "(1099511627776, 1024)")  # declared, not there
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

    # ---- files that are none ---------------------------------------------------------------------

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
                    # Reading from a device of endless zeros as raw bytes would never end.
                    wanted = FAILED if suffix == "shale" or kind in ("loop", "dangling") else USAGE
                    self.refused(wanted, "cat", file + inside, names=[file])
                    self.refused(wanted, "convert", file + inside, "new.shale:a", names=[file])
        self.refused(FAILED, "verify", "pipe.shale", names=["pipe.shale"])

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
        """Options that start a command without root's rights; none are needed by whoever has none."""
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

    # ---- text from strangers ---------------------------------------------------------------------

    def test_attributes_and_names_cannot_drive_the_terminal(self):
        self.shale("create", "a.shale:a", "--shape", "3", "--attribute", "title=\x1b[2J\x07",
                   "--attribute", b"bytes=\xff\xfe".decode(errors="surrogateescape"))
        self.shale("info", "a.shale")
        self.assertIn("\\x1b[2J", self.out)
        self.assertIn("\\xff\\xfe", self.out)
        attributes = json.loads(self.shale("info", "a.shale", "--json"))["arrays"][0]["attributes"]
        self.assertEqual(attributes["title"], "\x1b[2J\x07")
        self.assertIn("\ufffd", attributes["bytes"])
        with zipfile.ZipFile(self.path / "a.npz", "w") as archive:
            archive.writestr("e\x1b[2J.npy", (self.path / "dem.npy").read_bytes())
        for arguments in (["ls"], ["ls", "-l"], ["info"]):
            self.assertNotIn("\x1b", self.shale(*arguments, "a.npz"))
            self.assertIn("\\x1b[2J", self.out)
        self.assertEqual(json.loads(self.shale("ls", "--json", "a.npz"))[0]["name"], "e\x1b[2J")
        self.shale("convert", "a.npz", "b.npz")
        self.assertIn("b.npz:e\\x1b[[2J: int16", self.err)
        self.refused(USAGE, "convert", "a.npz", "b.shale", names=["e\\x1b[2J"])
        with zipfile.ZipFile(self.path / "two.npz", "w") as archive:
            for name in ("e\x1b[2J.npy", "f\xc2\x9b.npy"):
                archive.writestr(name, (self.path / "dem.npy").read_bytes())
        self.refused(USAGE, "cat", "two.npz", names=["e\\x1b[2J"])
        self.assertNotRegex(self.err, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

    # ---- usage -----------------------------------------------------------------------------------

    def test_every_command_refuses_what_it_does_not_know(self):
        for command in "info ls cat stats plot convert create eval verify version".split():
            with self.subTest(command):
                self.refused(USAGE, command, "--no-such-option", names=[f"shale {command}", "--help"])
        for command in "info ls cat stats plot convert create eval verify".split():
            with self.subTest(command):
                self.refused(USAGE, command)
        self.refused(USAGE, "stats", "dem.npy", "more", "words")
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
        self.refused(CORRUPT, "cat", "two.npy", names=["behind the last element", "np.savez"])
        self.assertNotIn("::", self.err)
        self.refused(CORRUPT, "cat", "dem.raw:bool", names=["dem.raw", "x.raw:uint8"])
        self.refused(FAILED, "create", "survey.shale:dem", "--shape", "3", names=["dem", "-f"])
        self.refused(FAILED, "plot", "dem.npy", "-o", "dem.npy/x.png", names=["dem.npy"])
        self.refused(USAGE, "plot", "survey.shale:dem[0]", "-o", "x.png", names=["(83,)", "axes"])
        self.refused(USAGE, "eval", "a + b", "--let", "a=dem.npy", "--let", "b=dem.npy[:, 1:]",
                     names=["83", "82"])

    # ---- streams ---------------------------------------------------------------------------------

    def big(self):
        """Eight tebibytes, which could not be printed, of rows that are printed soon."""
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

    def test_closed_descriptors_are_not_given_to_files(self):
        for closed in ([2], [1, 2], [0, 1, 2]):
            close = lambda: [os.close(each) for each in closed]
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
        """Every way of writing more than a MiB, and the target that it would replace."""
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
        """What targets hold: containers by their arrays, since free space in them may have changed."""
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
                self.assertEqual(self.contents(to), before)
        self.shale("verify", to / "a.shale")
        # What failed has given its space back.
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
        # The command itself ignores the signal that would end it.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        self.expect_targets_to_survive(target, r"\[out_of_space\]", preexec_fn=limit)

    # ---- interruption ----------------------------------------------------------------------------

    def interrupt(self, began, *arguments):
        """Interrupts it as soon as `began` says so; it would run for long after that."""
        with self.start(*arguments) as process:
            while not began():
                self.assertIsNone(process.poll(), "it ended before it could be interrupted")
                time.sleep(0.001)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertEqual(out, b"")
        self.assertIn(b"[cancelled]", err)

    def test_an_interrupted_conversion_leaves_the_old_target(self):
        with open(self.path / "zeros.raw", "wb") as zeros:
            zeros.truncate(1 << 30)  # a hole: reading it takes no disk
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
                # Both are there when it goes on, so that nothing is cleaned up between them.
                for each in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
                    process.send_signal(each)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, INTERRUPTED)
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
        # Chunks of the fill value alone are not stored, however many are gone through.
        busy = lambda: (self.path / "survey.shale").stat().st_mtime_ns != modified
        for target in ("survey.shale:dem", "new.shale:dem"):
            files = self.files()
            modified = (self.path / "survey.shale").stat().st_mtime_ns
            began = busy if target.startswith("survey") else (
                lambda: any(name.endswith(".partial") for name in self.files()))
            with self.subTest(target):
                self.interrupt(began, "convert", "big.shale:z", target, "-f", "--chunked")
                self.assertEqual(self.files(), files)
                after = json.loads(self.shale("info", "--json", "survey.shale"))
                self.assertEqual(after["generation"], before["generation"])
                self.shale("verify", "survey.shale")


if __name__ == "__main__":
    SHALE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
