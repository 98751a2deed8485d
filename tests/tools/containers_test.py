#!/usr/bin/python3
"""Tests the built `shale` command on whole arrays of containers: copies that keep their form,
replacing, removing, renaming, attributes and names. NumPy is the oracle for values.

Usage: containers_test.py PATH/TO/shale [unittest arguments]
"""

import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import time

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "format"))

import read_shale
from shale_case import ShaleCase, main

USAGE, FAILED, CORRUPT, UNSUPPORTED = 2, 3, 4, 5
ODD_NAMES = ["/a", "a/", "a//b", ".", "..", "a/../b", "/", "a\x01", "a\x7f"]


class Containers(ShaleCase):
    def facts(self, address, *keys):
        """The facts that `info` prints about one array; with `keys`, these facts alone."""
        array = self.shale("info", address, "--json").json()["arrays"][0]
        return [array.get(key) for key in keys] if keys else array

    def form(self, address):
        """All properties of an array except its elements."""
        return self.facts(address, "dtype", "shape", "kind", "chunk_shape", "codec", "fill_value",
                          "attributes")

    def names(self, file):
        return self.shale("ls", file).out.splitlines()

    def refused(self, code, *arguments, says=()):
        err = self.shale(*arguments, code=code).err
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, err)
        return err

    def forms(self):
        """A container with an array of every form; returns its elements by name."""
        arrays = {"dense": (self.dem, ["--dense"]),
                  "packed": (self.dem, ["--chunk", "16,32", "--codec", "delta,bitshuffle,zstd:7"]),
                  "rounded": (self.wave, ["--chunk", "5,40", "--codec", "bitround:4,shuffle,zstd:2"]),
                  "quick": (self.wave, ["--chunk", "9,30", "--codec", "shuffle,lz4:3"]),
                  "raw": (self.wave, ["--chunk", "17,8", "--codec", "raw"]),
                  "wide": (self.wave[:, 0], ["--chunk", "1000"]),
                  "single": (np.array(7, np.uint8), ["--chunked"]),
                  "empty": (np.zeros((0, 4)), ["--chunk", "3,2"])}
        for name, (values, how) in arrays.items():
            np.save(self.path / "x.npy", values)
            fill = "0" if name == "packed" else "9"
            shape = ",".join(map(str, values.shape)) or "()"
            self.shale("create", f"forms.shale:{name}", "--shape", shape, "--dtype",
                       values.dtype.name, "--fill", fill, "--attribute", f"who={name}",
                       "--attribute", "n=[1, 2]", *how)
            self.shale("convert", "x.npy", f"forms.shale:{name}", "-f")
        return {name: self.load(f"forms.shale:{name}") for name in arrays}

    def make_later(self, file, name):
        """Gives an array a dtype that no version knows. All checksums are right."""
        path = self.path / file
        raw = bytearray(path.read_bytes())
        with read_shale.Container(path) as container:
            newest, catalog = container.superblock, container.catalog[0]
            arrays = dict(container.walk(container.catalog, read_shale.CATALOG, "catalog"))
        descriptor = arrays[name.encode()]
        table = read_shale.Table(descriptor, struct.unpack_from("<I", descriptor)[0], name)
        raw[raw.index(descriptor, catalog) + table.inline(1)] = 99

        def sum_up(place, covered):
            struct.pack_into("<QQ", raw, place, *read_shale.checksum128(bytes(covered)))

        slot, root = read_shale.SLOTS[newest.slot], newest.root
        sum_up(root + 40, raw[catalog:catalog + read_shale.PAGE])
        sum_up(slot + 56, raw[root:root + read_shale.PAGE])
        sum_up(slot + 496, raw[slot + 16:slot + 32] + raw[slot + 12:slot + 16] + raw[slot:slot + 12]
               + raw[slot + 32:slot + 496])
        path.write_bytes(raw)

    # ---- copies ----------------------------------------------------------------------------------

    def test_copies_are_what_their_sources_are(self):
        values = self.forms()
        def converted(source, target):
            made = self.shale("convert", source, target, "--json").json()["converted"]
            return {array["target"]: array["stored_bytes"] for array in made}

        told = converted("forms.shale", "all.shale")
        self.assertEqual(self.names("all.shale"), sorted(values))
        for name, wanted in values.items():
            with self.subTest(name):
                told |= converted(f"forms.shale:{name}", "one.shale:other/name")
                for copy in (f"all.shale:{name}", "one.shale:other/name"):
                    self.assertEqual(self.form(copy), self.form(f"forms.shale:{name}"))
                    self.assertEqual(self.facts(copy, "stored_bytes"),
                                     self.facts(f"forms.shale:{name}", "stored_bytes"))
                    self.assertEqual(self.facts(copy, "stored_bytes"), [told[copy]])
                    self.assert_same(self.load(copy), wanted)
                self.shale("rm", "one.shale:other/name")
        self.shale("verify", "all.shale")

    def stored_chunks(self, address):
        """The chunks of an array, without their places in the file."""
        chunks = self.shale("ls", "--chunks", "--json", address).json()[0]["stored_chunks"]
        return [{key: chunk[key] for key in chunk if key != "offset"} for chunk in chunks]

    def test_copies_carry_chunks_on_as_they_are(self):
        values = self.forms()
        chunked = ["packed", "rounded", "quick", "raw", "wide", "single"]
        for command in (["copy.shale"], ["--replace"]):
            before = {name: self.stored_chunks(f"forms.shale:{name}") for name in chunked}
            done = self.shale("convert", "forms.shale", *command, "--json").json()
            self.assertEqual(done["cost"]["tiles_decoded"], 0)
            file = "forms.shale" if command == ["--replace"] else command[0]
            for name in chunked:
                with self.subTest(file=file, name=name):
                    self.assertEqual(self.stored_chunks(f"{file}:{name}"), before[name])
                    self.assert_same(self.load(f"{file}:{name}"), values[name])
            self.shale("verify", file)
        # One array, and one that replaces another; then forms that are not those of the source.
        self.shale("convert", "forms.shale:quick", "one.shale:a")
        for how, decoded in ((["-f"], False), (["-f", "--codec", "shuffle,lz4:3"], False),
                             (["-f", "--codec", "shuffle,lz4:4"], True),
                             (["-f", "--chunk", "9,31"], True), (["-f", "--as", "float64"], True)):
            with self.subTest(how):
                done = self.shale("convert", "forms.shale:quick", "one.shale:a", *how, "--json").json()
                self.assertEqual(done["cost"]["tiles_decoded"] > 0, decoded)
                self.assert_same(self.load("one.shale:a"), values["quick"].astype(self.load("one.shale:a").dtype))
                self.shale("convert", "forms.shale:quick", "one.shale:a", "-f", "--chunk", "9,30",
                           "--codec", "shuffle,lz4:3", "--as", values["quick"].dtype.name)

    def test_damaged_chunks_are_not_carried_on(self):
        self.forms()
        path = self.path / "forms.shale"
        chunk = self.shale("ls", "--chunks", "--json", "forms.shale:quick").json()[0]["stored_chunks"][3]
        bytes_now = bytearray(path.read_bytes())
        bytes_now[chunk["offset"] + 5] ^= 16
        path.write_bytes(bytes_now)
        index = ", ".join(map(str, chunk["index"]))
        for target in (["new.shale"], ["new.shale:a"], ["--replace"]):
            with self.subTest(target):
                source = "forms.shale:quick" if target == ["new.shale:a"] else "forms.shale"
                self.refused(CORRUPT, "convert", source, *target,
                             says=["[corrupt]", f"chunk ({index}) of 'quick' in forms.shale",
                                   f"byte {chunk['offset']}"])
                self.assertEqual([file for file in self.files() if file.startswith("new")], [])
        self.refused(CORRUPT, "cat", "forms.shale:quick", says="[corrupt]")

    def test_copies_carry_no_damage_on(self):
        self.survey()
        bytes_now = bytearray((self.path / "survey.shale").read_bytes())
        at = bytes_now.find(self.dem.tobytes())
        self.assertGreater(at, 0)
        bytes_now[at + 1000] ^= 16
        (self.path / "survey.shale").write_bytes(bytes_now)
        says = ["[corrupt]", "segment 0 of 'dem' in survey.shale", f"at byte {at} "]
        for target in ("new.shale", "new.npz", "new.npy", "new.shale:dem"):
            source = "survey.shale" if target in ("new.shale", "new.npz") else "survey.shale:dem"
            with self.subTest(target):
                self.refused(CORRUPT, "convert", source, target, says=says)
                self.assertEqual([file for file in self.files() if file.startswith("new")], [])
        # The undamaged arrays of the same file are still copied.
        self.shale("convert", "survey.shale:wave", "wave.npy")
        self.assert_same(np.load(self.path / "wave.npy"), self.wave)
        for command in (["eval", "sum(a)", "--let", "a=survey.shale:dem"], ["stats", "survey.shale:dem"],
                        ["cat", "survey.shale:dem"]):
            with self.subTest(command):
                self.shale(*command)
                self.refused(CORRUPT, *command, "--check", says=says)

    def test_copies_of_containers_leave_free_space_out(self):
        noise = np.random.default_rng(3).integers(0, 256, (1024, 1024)).astype(np.uint8)
        np.save(self.path / "noise.npy", noise)
        for name in "abc":
            self.shale("convert", "noise.npy", f"full.shale:{name}", "--chunked")
        self.shale("rm", "full.shale:a", "full.shale:c")
        self.shale("convert", "full.shale", "compact.shale")
        full, compact = ((self.path / f"{name}.shale").stat().st_size for name in ("full", "compact"))
        self.assertGreater(full, 3 * noise.nbytes)
        self.assertLess(compact, 1.2 * noise.nbytes)
        self.assert_same(self.load("compact.shale:b"), noise)

    def test_a_container_is_written_anew_in_its_place(self):
        before = self.forms()
        (self.path / "forms.shale").chmod(0o640)
        (self.path / "link.shale").symlink_to("forms.shale")
        self.shale("rm", "forms.shale:wide")
        size = (self.path / "forms.shale").stat().st_size
        self.shale("convert", "link.shale", "--replace")
        after = (self.path / "forms.shale").stat()
        self.assertLess(after.st_size, size)
        self.assertEqual(after.st_mode & 0o7777, 0o640)
        self.assertTrue((self.path / "link.shale").is_symlink())
        for name, values in before.items():
            if name != "wide":
                self.assert_same(self.load(f"forms.shale:{name}"), values)
        self.shale("verify", "forms.shale")
        self.assertEqual([file.name for file in self.path.glob(".*partial*")], [])
        self.refused(USAGE, "convert", "forms.shale", "other.shale", "--replace", says="no target")
        self.refused(USAGE, "convert", "forms.shale:dense", "--replace", says="whole")
        self.refused(USAGE, "convert", "forms.shale", says="--replace")

    def test_a_container_that_is_written_anew_keeps_its_owner(self):
        if os.geteuid() != 0:
            return  # only root may change a file's owner
        self.forms()
        place = self.path / "forms.shale"
        place.chmod(0o640)
        os.chown(place, 1234, 2345)
        self.assertNotIn("not kept", self.shale("convert", "forms.shale", "--replace").err)
        after = place.stat()
        self.assertEqual((after.st_uid, after.st_gid, after.st_mode & 0o7777), (1234, 2345, 0o640))
        # A user who may write the file, but may not change its owner.
        place.chmod(0o666)
        self.path.chmod(0o777)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        try:
            subprocess.run([self.command, "version"], check=True, capture_output=True, **nobody)
        except (PermissionError, subprocess.CalledProcessError):
            return  # the command cannot be run by another user from where it was built
        said = self.shale("convert", "forms.shale", "--replace", **nobody).err
        self.assertIn("not kept: owner 1234: the file is user 65534's now\n", said)
        self.assertIn("not kept: group 2345: the file is group 65534's now\n", said)
        after = place.stat()
        self.assertEqual((after.st_uid, after.st_gid, after.st_mode & 0o7777), (65534, 65534, 0o666))

    def test_a_container_is_changed_beside_others_that_compact_it(self):
        self.shale("create", "busy.shale:a", "--shape", "3")
        again = "while :; do \"$1\" convert -q busy.shale --replace || exit 1; done"
        with subprocess.Popen(["sh", "-c", again, "sh", self.command], cwd=self.path,
                              start_new_session=True) as compacting:
            try:
                for number in range(25):
                    self.shale("set", "-q", "busy.shale:a", f"n={number}")
                self.assertIsNone(compacting.poll())
            finally:
                os.killpg(compacting.pid, signal.SIGKILL)
        self.assertEqual(self.facts("busy.shale:a", "attributes"), [{"n": 24}])

    def test_a_container_that_is_written_to_is_not_replaced(self):
        self.forms()
        holder = subprocess.Popen(
            [sys.executable, "-c",
             "import fcntl,sys\nf=open(sys.argv[1],'r+')\nfcntl.lockf(f,fcntl.LOCK_EX,1,2**60)\n"
             "print(flush=True)\nsys.stdin.read()", str(self.path / "forms.shale")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            holder.stdout.readline()
            inode = (self.path / "forms.shale").stat().st_ino
            self.refused(FAILED, "convert", "forms.shale", "--replace", says=f"process {holder.pid}")
            self.assertEqual((self.path / "forms.shale").stat().st_ino, inode)
        finally:
            holder.communicate(b"")

    def test_chunks_that_were_never_written_stay_so(self):
        self.shale("create", "s.shale:a", "--shape", "4096,4096", "--chunk", "512,512", "--fill",
                   "-2.5")
        self.shale("convert", "s.shale", "t.shale")
        self.assertEqual(self.facts("t.shale:a", "stored_bytes", "fill_value"), [0, "-2.5"])
        self.assert_same(self.load("t.shale:a[::1000, 1::2048]"),
                         np.full((5, 2), -2.5, np.float32))

    def test_copied_slices_take_the_chunks_of_their_axes(self):
        cube = np.arange(20 * 30 * 40, dtype=np.int32).reshape(20, 30, 40)
        np.save(self.path / "cube.npy", cube)
        self.shale("convert", "cube.npy", "c.shale:c", "--chunk", "4,15,64", "--codec",
                   "delta,shuffle,zstd:3")
        self.shale("set", "c.shale:c", "unit=m", '_ARRAY_DIMENSIONS=["z", "y", "x"]')
        # The letters are the names of the axes; a new axis has none.
        for number, (index, (chunk, axes)) in enumerate({
                "5": ((15, 64), "yx"), ":, 3": ((4, 64), "zx"), "..., 7": ((4, 15), "zy"),
                "2, ..., 1": ((15,), "y"), "1, 2, 3": ((), ""), "::7": ((3, 15, 64), "zyx"),
                ":2, :, 10:20": ((2, 15, 10), "zyx"), ":, ::-1": ((4, 15, 64), "zyx"),
                "None, 4": ((1, 15, 64), " yx"), "..., None": ((4, 15, 64, 1), "zyx "),
                "None, ..., None, 3": ((1, 4, 15, 1), " zy "), "3:3": ((1, 15, 64), "zyx"),
                "...": ((4, 15, 64), "zyx")}.items()):
            with self.subTest(index):
                copy = f"c.shale:copy-{number}"
                self.shale("convert", f"c.shale:c[{index}]", copy)
                self.assert_same(self.load(copy), eval(f"cube[{index}]"))
                self.assertEqual(self.facts(copy, "kind", "chunk_shape", "codec", "attributes"),
                                 ["chunked", list(chunk), "delta,shuffle,zstd:3",
                                  {"unit": "m", "_ARRAY_DIMENSIONS": [name.strip() for name in axes]}])
        done = self.shale("convert", "c.shale:c[5]", "c.shale:c", "-f", "--json").json()
        self.assertFalse([text for text in done["converted"][0]["not_kept"] if "dimension names" in text])
        self.assertEqual(self.facts("c.shale:c", "attributes"),
                         [{"unit": "m", "_ARRAY_DIMENSIONS": ["y", "x"]}])
        done = self.shale("convert", "cube.npy", "c.shale:c", "-f", "--json").json()
        self.assertIn("dimension names: the new array has another rank", done["converted"][0]["not_kept"])
        self.assertEqual(self.facts("c.shale:c", "attributes"), [{"unit": "m"}])
        self.shale("verify", "c.shale")

    def test_options_say_what_a_copy_does_not_keep(self):
        self.forms()
        for options, wanted in (
                (["--dense"], ["int16", "dense", None, None]),
                (["--chunk", "60,10"], ["int16", "chunked", [60, 10], "delta,bitshuffle,zstd:7"]),
                (["--codec", "raw"], ["int16", "chunked", [16, 32], "raw"]),
                (["--chunked"], ["int16", "chunked", [16, 32], "delta,bitshuffle,zstd:7"]),
                (["--as", "int64"], ["int64", "chunked", [16, 32], "delta,bitshuffle,zstd:7"])):
            with self.subTest(options):
                done = self.shale("convert", "forms.shale:packed", "o.shale:o", *options, "--json")
                self.assertEqual(done.json()["converted"][0]["not_kept"], [])
                self.assertEqual(self.facts("o.shale:o", "dtype", "kind", "chunk_shape", "codec"),
                                 wanted)
                np.testing.assert_array_equal(self.load("o.shale:o"), self.dem)
                self.shale("rm", "o.shale:o")
        self.shale("convert", "forms.shale:dense", "o.shale:o", "--chunked")
        self.assertEqual(self.facts("o.shale:o", "kind", "chunk_shape"), ["chunked", [60, 83]])
        self.assert_same(self.load("o.shale:o"), self.dem)

    def test_what_does_not_suit_a_dtype_is_named(self):
        self.forms()
        err = self.shale("convert", "forms.shale:packed", "o.shale:a", "--as", "float32").err
        self.assertIn("not kept: codec stage delta: float32 is not an integer type", err)
        self.assertEqual(self.facts("o.shale:a", "chunk_shape", "codec"),
                         [[16, 32], "bitshuffle,zstd:7"])
        self.assert_same(self.load("o.shale:a"), self.dem.astype(np.float32))
        self.shale("create", "o.shale:holes", "--shape", "9", "--chunk", "4", "--fill", "nan",
                   "--codec", "bitround:0,zstd:1")
        done = self.shale("convert", "o.shale:holes", "o.shale:b", "--as", "int8", "--json").json()
        lost = done["converted"][0]["not_kept"]
        self.assertEqual([line.split(":")[0] for line in lost],
                         ["fill value nan", "codec stage bitround"])
        self.assert_same(self.load("o.shale:b"), np.zeros(9, np.int8))

    def test_what_other_files_do_not_keep_is_named(self):
        self.forms()
        attributes, fill = "2 attributes (n, who)", "fill value 9"
        for name, lost in (("dense", [attributes]), ("packed", [attributes]), ("wide", [attributes, "fill value 9.0"]),
                           ("single", [attributes, fill]), ("wide[::2]", [attributes, "fill value 9.0"])):
            for target in ("o.npy", "o.npz:o", "o.raw", "o.t7", "p.t7:o"):
                with self.subTest(name, target=target):
                    done = self.shale("convert", f"forms.shale:{name}", target, "-f", "--json").json()
                    self.assertEqual((done["converted"][0]["not_kept"], done["not_kept"]), (lost, []))
        said = self.shale("convert", "forms.shale:single", "o.npy", "-f").err
        self.assertIn(f"\n  not kept: {attributes}\n  not kept: {fill}\n", said)
        self.shale("set", "-q", "forms.shale:single", *(f"k{i}=1" for i in range(8)))
        said = self.shale("convert", "forms.shale:single", "o.npy", "-f").err
        self.assertIn("not kept: 10 attributes (k0, k1, k2, k3, k4, k5, k6, k7, …)\n", said)
        # Computed values have never had these properties.
        done = self.shale("eval", "a", "--let", "a=forms.shale:wide", "-o", "o.npy", "-f", "--json").json()
        self.assertEqual(done["not_kept"], [])

    def test_what_other_files_do_not_keep_of_whole_containers_is_named(self):
        self.survey()
        self.shale("convert", "survey.shale:wave", "survey.shale:raw/2026/wave")
        for target in ("all.npz", "all.t7"):
            done = self.shale("convert", "survey.shale", target, "--json").json()
            self.assertEqual((done["not_kept"], [each["not_kept"] for each in done["converted"]]), ([], [[]] * 4))
        self.shale("set", "-q", "survey.shale", "title=Dem")
        self.shale("set", "-q", "survey.shale:raw/", "who=x")
        self.shale("set", "-q", "survey.shale:raw/2026/", "source=aerial", "year=2026")
        self.shale("set", "-q", "survey.shale:dem", "unit=m")
        lost = ["1 attribute (title) of the container", "attributes of 2 levels (raw/, raw/2026/)"]
        for target in ("all.npz", "all.t7"):
            done = self.shale("convert", "survey.shale", target, "-f", "--json").json()
            self.assertEqual(done["not_kept"], lost)
            self.assertEqual({each["target"]: each["not_kept"] for each in done["converted"]},
                             {f"{target}:dem": ["1 attribute (unit)"], f"{target}:dx": [], f"{target}:wave": [],
                              f"{target}:raw/2026/wave": []})
            said = self.shale("convert", "survey.shale", target, "-f").err
            for line in ("  not kept: 1 attribute (unit)", *(f"not kept: {text}" for text in lost)):
                self.assertIn(f"\n{line}\n", said)
            self.assertNotIn("not kept", self.shale("convert", "-q", "survey.shale", target, "-f").err)
        self.assertEqual(self.shale("convert", "survey.shale", "copy.shale", "--json").json()["not_kept"], [])

    # ---- a codec that is chosen from the elements ------------------------------------------------

    def test_a_codec_is_chosen_and_says_why(self):
        ramp = np.cumsum(np.random.default_rng(1).integers(0, 200, 50_000)) + 10**9
        np.save(self.path / "ramp.npy", ramp)
        done = self.shale("convert", "ramp.npy", "a.shale:ramp", "--codec", "auto", "--json")
        choice = done.json()["converted"][0]["codec_choice"]
        self.assertEqual(self.facts("a.shale:ramp", "codec"), [choice["codec"]])
        self.assertIn("delta", choice["codec"])
        self.assertEqual(choice["sample_bytes"], ramp.nbytes)
        stored = {trial["codec"]: trial["stored_bytes"] for trial in choice["trials"]}
        self.assertEqual(stored["raw"], ramp.nbytes)
        self.assertEqual(self.facts("a.shale:ramp", "stored_bytes"), [stored[choice["codec"]]])
        self.assert_same(self.load("a.shale:ramp"), ramp)
        said = self.shale("eval", "a * 3", "--let", "a=ramp.npy", "-o", "a.shale:b", "--codec", "auto").err
        self.assertRegex(said, r"codec: delta,\S+ stores [0-9.]+ % of a sample of 391 KiB")
        self.assert_same(self.load("a.shale:b"), ramp * 3)

    def test_noise_is_stored_raw_if_the_codec_is_chosen(self):
        np.save(self.path / "noise.npy", np.random.default_rng(2).integers(0, 256, 5000, np.uint8))
        said = self.shale("convert", "noise.npy", "a.shale", "--codec", "auto").err
        self.assertIn("codec: raw stores 100.0 % of a sample of 4.9 KiB", said)
        np.save(self.path / "none.npy", np.zeros((0, 3)))
        said = self.shale("convert", "none.npy", "a.shale", "--codec", "auto").err
        self.assertIn("no elements to try others on", said)

    def test_archives_have_neither_chunks_nor_codecs(self):
        self.forms()
        for how in (["--codec", "auto"], ["--codec", "zstd"], ["--chunk", "3"], ["--chunked"]):
            self.refused(USAGE, "convert", "forms.shale", "o.npz", *how,
                         says="only .shale containers have chunks and codecs")
        self.assertNotIn("o.npz", self.files())

    def test_a_codec_is_chosen_only_where_there_are_elements_and_chunks(self):
        self.refused(USAGE, "create", "a.shale:a", "--shape", "3", "--codec", "auto",
                     says="needs elements to try codecs on")
        self.forms()
        self.refused(USAGE, "convert", "forms.shale:dense", "o.npy", "--codec", "auto",
                     says="only .shale containers have chunks and codecs")
        self.refused(USAGE, "convert", "forms.shale:dense", "o.shale:o", "--codec", "auto", "--dense",
                     says="--dense")

    # ---- names that are typed differently from how they are stored -------------------------------

    def odd_names(self):
        np.savez(self.path / "odd.npz", **{"con[1]": self.dem, "a[": self.wave, "plain": self.dem})
        self.shale("convert", "odd.npz", "odd.shale", "-f")
        return {"con[1]": "con[[1]", "a[": "a[[", "plain": "plain"}

    def test_json_has_names_as_they_are_and_addresses_to_type(self):
        names = self.odd_names()
        for file in ("odd.npz", "odd.shale"):
            for found in (self.shale("ls", "--json", file).json(),
                          self.shale("info", "--json", file).json()["arrays"]):
                self.assertEqual({array["name"]: array["address"] for array in found},
                                 {name: f"{file}:{typed}" for name, typed in names.items()})
            for name, typed in names.items():
                one, = self.shale("info", "--json", f"{file}:{typed}").json()["arrays"]
                self.assertEqual((one["name"], one["address"]), (name, f"{file}:{typed}"))
                self.assertEqual(self.load(one["address"]).shape, tuple(one["shape"]))
        np.save(self.path / "x.npy", self.dem)
        self.dem.tofile(self.path / "x.raw")
        for address in ("x.npy", "x.raw:int16(60,83)"):
            for one, in (self.shale("ls", "--json", address).json(),
                         self.shale("info", "--json", address).json()["arrays"]):
                self.assertEqual(one["address"], address)
                self.assert_same(self.load(address), self.dem)
        said = self.shale("set", "odd.shale:con[[1]", "unit=m", "--json").json()
        self.assertEqual((said["array"], said["address"]), ("con[1]", "odd.shale:con[[1]"))
        said = self.shale("mv", "odd.shale:con[[1]", "b[2]", "--json").json()
        self.assertEqual((said["to"], said["address"]), ("b[2]", "odd.shale:b[[2]"))
        said = self.shale("rm", said["address"], "--json").json()["removed"][0]
        self.assertEqual((said["array"], said["address"]), ("b[2]", "odd.shale:b[[2]"))

    def test_texts_have_names_as_they_are_typed(self):
        names = self.odd_names()
        for file in ("odd.npz", "odd.shale"):
            titles = [part.splitlines()[0] for part in self.shale("info", file).out.split("\n\n")[1:]]
            self.assertEqual(sorted(titles), sorted(names.values()))
            one = self.shale("info", f"{file}:con[[1]").out.splitlines()
            self.assertEqual([line.split()[1] for line in one if line.startswith("array")],
                             ["con[[1]"])
            err = self.refused(USAGE, "cat", file, says="does not say which array")
            listed = err.split("there are ")[1].strip().split(", ")
            self.assertEqual(sorted(listed), sorted(names.values()))
        err = self.refused(FAILED, "convert", "odd.shale:plain", "odd.npz:new", says="holds other arrays")
        self.assertEqual(sorted(err.split("other arrays: ")[1].split(" [already")[0].split(", ")),
                         sorted(names.values()))

    def test_suggestions_can_be_typed(self):
        self.odd_names()
        for typed in ("con[[2]", "con[[1", "kon[[1]"):
            for arguments in (["cat", f"odd.shale:{typed}"], ["info", f"odd.shale:{typed}"],
                              ["stats", f"odd.shale:{typed}"], ["rm", f"odd.shale:{typed}"],
                              ["rm", "odd.shale:plain", f"odd.shale:{typed}"],
                              ["mv", f"odd.shale:{typed}", "new"],
                              ["set", f"odd.shale:{typed}", "unit=m"],
                              ["set", f"odd.shale:{typed}", "--unset", "unit"],
                              ["eval", "a", "--let", f"a=odd.shale:{typed}"],
                              ["convert", f"odd.shale:{typed}", "new.npy"]):
                with self.subTest(arguments):
                    err = self.refused(FAILED, *arguments, says="did you mean 'con[1]'?")
                    suggested, = [line.split("typed as ")[1] for line in err.splitlines()
                                  if "typed as" in line]
                    self.assertEqual(suggested, "odd.shale:con[[1]")
        self.assert_same(self.load(suggested), self.dem)
        # Names that are typed as they are stored need no advice, and neither do other errors.
        for arguments in (["cat", "odd.shale:plane"], ["set", "odd.shale:con[[1]", "--unset", "unit"],
                          ["mv", "odd.shale:plai", "new"]):
            self.assertNotIn("typed as", self.refused(FAILED, *arguments))
        for arguments in (["cat", "odd.npz:con1"], ["info", "odd.npz:con1"]):
            self.refused(FAILED, *arguments, says=["con[1]", "a '[' in a name is typed '[['"])

    # ---- replacing -------------------------------------------------------------------------------

    def target(self):
        self.shale("create", "t.shale:t", "--shape", "60,83", "--dtype", "float64", "--chunk", "16,32",
                   "--codec", "bitshuffle,zstd:4", "--fill", "-1", "--attribute", "unit=m",
                   "--attribute", "who=target", "-f")

    def test_replaced_arrays_keep_their_form_whatever_the_extents(self):
        self.target()
        kept = ["float64", "chunked", "bitshuffle,zstd:4", "-1.0", {"unit": "m", "who": "target"}]
        fields = ["dtype", "kind", "codec", "fill_value", "attributes"]
        for values, chunk in ((self.dem, [16, 32]), (self.dem[:50], [16, 32]), (self.wave, [16, 32]),
                              (self.dem[:7], [7, 32]), (self.dem[:, :1], [7, 1])):
            np.save(self.path / "x.npy", values)
            done = self.shale("convert", "x.npy", "t.shale:t", "-f", "--json").json()
            self.assertEqual(done["converted"][0]["not_kept"], [])
            self.assertEqual(self.facts("t.shale:t", *fields), kept)
            self.assertEqual(self.facts("t.shale:t", "chunk_shape"), [chunk])
            self.assert_same(self.load("t.shale:t"), values.astype(np.float64))

    def test_chunks_of_another_rank_are_named_as_not_kept(self):
        for command in (["convert", "dem.npz:dem[3]", "t.shale:t", "-f"],
                        ["eval", "dem[3]", "--let", "dem=dem.npz:dem", "-o", "t.shale:t", "-f"]):
            self.target()
            self.assertIn("not kept: chunks of (16, 32): the shape (83,) has another number of axes",
                          self.shale(*command).err)
            self.assertEqual(self.facts("t.shale:t", "dtype", "kind", "chunk_shape", "codec"),
                             ["float64", "chunked", [83], "bitshuffle,zstd:4"])
            self.assert_same(self.load("t.shale:t"), self.dem[3].astype(np.float64))
        self.target()
        self.assertEqual(len(self.shale(*command, "--json").json()["not_kept"]), 1)
        self.target()
        self.assertEqual(self.shale(*command, "--json", "--dense").json()["not_kept"], [])

    def test_arrays_that_cannot_hold_values_of_other_extents_change_their_dtype_and_say_so(self):
        for source, wanted in (("wave", self.wave), ("dem", self.dem)):
            self.shale("create", "t.shale:t", "--shape", "4", "--dtype", "int8", "-f")
            err = self.shale("convert", f"dem.npz:{source}", "t.shale:t", "-f").err
            self.assertIn(f"not kept: dtype int8: the new values are {wanted.dtype.name}", err)
            self.assert_same(self.load("t.shale:t"), wanted)
        self.shale("create", "t.shale:t", "--shape", "60,83", "--dtype", "int8", "-f")
        self.refused(USAGE, "convert", "dem.npz:dem", "t.shale:t", "-f", says=["holds int8", "--as"])
        np.save(self.path / "u.npy", np.arange(3, dtype=np.uint64))
        self.shale("create", "t.shale:t", "--shape", "3", "--dtype", "int64", "-f")
        self.refused(USAGE, "convert", "u.npy", "t.shale:t", "-f", says=["holds int64", "--as"])
        self.shale("convert", "u.npy", "t.shale:t", "-f", "--as", "int64")
        self.assert_same(self.load("t.shale:t"), np.arange(3))

    def test_a_copy_onto_an_array_takes_that_ones_form_and_both_ones_attributes(self):
        self.target()
        self.forms()
        self.shale("convert", "forms.shale:packed", "t.shale:t", "-f")
        self.assertEqual(self.facts("t.shale:t", "dtype", "chunk_shape", "codec", "attributes"),
                         ["float64", [16, 32], "bitshuffle,zstd:4",
                          {"unit": "m", "who": "packed", "n": [1, 2]}])
        self.assert_same(self.load("t.shale:t"), self.dem.astype(np.float64))

    def test_create_replaces_everything(self):
        self.target()
        self.shale("create", "t.shale:t", "--shape", "5", "-f")
        self.assertEqual(self.form("t.shale:t"), ["float32", [5], "dense", None, None, None, {}])

    # ---- parts -----------------------------------------------------------------------------------

    def parts(self):
        """Two arrays of the same int32 elements, chunked and dense; returns the elements."""
        values = np.arange(20 * 30, dtype=np.int32).reshape(20, 30)
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "p.shale:c", "--chunk", "7,8")
        self.shale("convert", "x.npy", "p.shale:d")
        return values

    def test_eval_writes_a_part_of_an_array(self):
        values = self.parts()
        small = values[:10, :15]
        for index, expression, result in (
                ("10:20, ::2", "a[:10, :15] * 3", small * 3),
                ("::-3, 4", "7", 7),
                ("19::-2, ::-2", "a[:10, :15]", small),
                ("..., None, 5:9", "a[0, :4]", values[0, :4]),
                ("3:3", "1", 1),
                ("2", "a[0] + sum(a)", values[0] + values.sum())):
            wanted = self.load("p.shale:c").copy()
            exec(f"wanted[{index}] = result", {"wanted": wanted, "result": result})
            for name in "cd":
                with self.subTest(index, name=name):
                    done = self.shale("eval", expression, "--dtype", "int32", "--let", "a=x.npy",
                                      "-o", f"p.shale:{name}[{index}]", "--json").json()
                    self.assertEqual((done["output"], done["dtype"]),
                                     (f"p.shale:{name}[{index}]", "int32"))
                    self.assert_same(self.load(f"p.shale:{name}"), wanted)
        self.assertEqual(self.facts("p.shale:c", "chunk_shape"), [[7, 8]])
        # The array itself is read as it was before the command.
        wanted = self.load("p.shale:c").copy()
        wanted[1:] = wanted[:-1].copy()
        said = self.shale("eval", "a[:-1]", "--let", "a=p.shale:c", "-o", "p.shale:c[1:]").err
        self.assertIn("p.shale:c[1:]: int32 (19, 30)", said)
        self.assert_same(self.load("p.shale:c"), wanted)
        self.shale("verify", "p.shale")

    def test_parts_that_do_not_fit_are_refused(self):
        values = self.parts()
        generation = self.shale("info", "p.shale", "--json").json()["generation"]
        for name in "cd":
            for arguments, says in ((["a", "-o", f"p.shale:{name}[1:]"], "broadcast"),
                                    (["a[:, :3]", "-o", f"p.shale:{name}[:, :4]"], "broadcast"),
                                    (["1", "-o", f"p.shale:{name}[20]"], "outside"),
                                    (["1", "-o", f"p.shale:{name}[0, 0, 0]"], "more entries"),
                                    (["1", "-o", f"p.shale:{name}[::0]"], "step"),
                                    (["1.5", "-o", f"p.shale:{name}[0]"], "cannot represent"),
                                    (["1", "-o", f"p.shale:{name}[0]", "--chunk", "2,2"], "form"),
                                    (["1", "-o", f"p.shale:{name}[0]", "--dense"], "form")):
                with self.subTest(arguments):
                    self.refused(USAGE, "eval", *arguments, "--let", "a=x.npy", says=says)
        self.refused(USAGE, "eval", "1", "-o", "y.npy[0]", says="whole array")
        self.refused(USAGE, "eval", "1", "-o", "p.shale[0]", says="name of an array")
        self.refused(FAILED, "eval", "1", "-o", "p.shale:e[0]", says="no array 'e'")
        self.refused(FAILED, "eval", "1", "-o", "nosuch.shale:a[0]", says="nosuch.shale")
        self.assertEqual(self.shale("info", "p.shale", "--json").json()["generation"], generation)
        self.assert_same(self.load("p.shale:c"), values)
        self.assert_same(self.load("p.shale:d"), values)

    # ---- append, resize --------------------------------------------------------------------------

    def grown(self):
        """A chunked array of int32 that was written in part; returns its elements."""
        values = np.arange(15, dtype=np.int32).reshape(3, 5)
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "g.shale:a", "--chunk", "2,2")
        return values

    def test_dense_arrays_grow_and_shrink(self):
        values = np.arange(15, dtype=np.int32).reshape(3, 5)
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "g.shale:a", "--dense")
        for axis in (0, 1, -2):
            more = np.take(values, [0, 1, 2], axis) * 10
            np.save(self.path / "more.npy", more)
            self.shale("append", "g.shale:a", "more.npy", "--axis", axis, "-q")
            values = np.append(values, more, axis)
            self.assert_same(self.load("g.shale:a"), values)
        self.shale("resize", "g.shale:a", "4,7", "-q")
        self.shale("resize", "g.shale:a", "5,8", "-q")
        expected = np.zeros((5, 8), np.int32)
        expected[:4, :7] = values[:4, :7]
        self.assert_same(self.load("g.shale:a"), expected)
        self.assertEqual(self.facts("g.shale:a", "kind"), ["dense"])
        self.shale("verify", "g.shale")

    def test_append_makes_an_array_longer(self):
        values = self.grown()
        for axis in (0, 1, -1, -2):
            with self.subTest(axis=axis):
                more = np.take(values, [0, 1, 2], axis) * 10
                np.save(self.path / "more.npy", more)
                done = self.shale("append", "g.shale:a", "more.npy", "--axis", axis, "--json").json()
                values = np.append(values, more, axis)
                self.assertEqual((done["address"], done["shape"], done["dtype"]),
                                 ("g.shale:a", list(values.shape), "int32"))
                self.assert_same(self.load("g.shale:a"), values)
        self.assertEqual(self.facts("g.shale:a", "chunk_shape"), [[2, 2]])
        np.save(self.path / "more.npy", np.array([1.0, 2.0]))
        self.shale("create", "g.shale:empty", "--shape", "0", "--dtype", "int16", "--chunk", "4")
        self.refused(USAGE, "append", "g.shale:empty", "more.npy",
                     says=["holds int16, the new elements are float64", "--dtype int16 converts them"])
        err = self.shale("append", "g.shale:empty", "more.npy", "--dtype", "int16").err
        self.assertIn("g.shale:empty: int16 (2,) in generation", err)
        self.shale("append", "g.shale:empty", "g.shale:empty[::-1]", "-q")
        self.assert_same(self.load("g.shale:empty"), np.array([1, 2, 2, 1], np.int16))
        self.shale("verify", "g.shale")

    def test_resize_cuts_off_and_fills(self):
        values = self.grown()
        done = self.shale("resize", "g.shale:a", "2,9", "--json").json()
        self.assertEqual((done["old_shape"], done["shape"], done["address"]),
                         ([3, 5], [2, 9], "g.shale:a"))
        err = self.shale("resize", "g.shale:a", "1x3").err
        self.assertIn("g.shale:a: (1, 3) instead of (2, 9) in generation", err)
        self.assertEqual(self.shale("resize", "g.shale:a", "(4, 6)", "-q").err, "")
        expected = np.zeros((4, 6), np.int32)
        expected[:1, :3] = values[:1, :3]
        self.assert_same(self.load("g.shale:a"), expected)
        self.shale("verify", "g.shale")

    def test_rechunk_keeps_all_but_the_chunks(self):
        values = self.grown()
        self.shale("set", "g.shale:a", "unit=m")
        generation = self.shale("info", "g.shale", "--json").json()["generation"]
        plan = self.shale("rechunk", "g.shale:a", "3,1", "--plan", "--json").json()
        self.assertEqual(plan, {"passes": 1, "block_shape": [3, 5], "chunks_decoded": 2 * 3,
                                "chunks_encoded": 5, "scratch_bytes": 0})
        self.assertEqual(self.shale("rechunk", "g.shale:a", "3,1", "--plan").out,
                         "1 pass: 6 chunks are decoded, 5 encoded, in blocks of (3, 5)\n")
        self.assertEqual(self.shale("info", "g.shale", "--json").json()["generation"], generation)
        done = self.shale("rechunk", "g.shale:a", "3,1", "--json").json()
        self.assertEqual((done["plan"], done["generation"]), (plan, generation + 1))
        self.assert_same(self.load("g.shale:a"), values)
        self.assertEqual(self.facts("g.shale:a", "chunk_shape", "attributes"), [[3, 1], {"unit": "m"}])
        self.assertEqual(self.names("g.shale"), ["a"])
        self.shale("verify", "g.shale")

    def test_rechunk_goes_through_a_file_if_memory_is_short(self):
        values = np.arange(512 * 512, dtype=np.int32).reshape(512, 512)
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "g.shale:a", "--chunk", "1,512")
        done = self.shale("rechunk", "g.shale:a", "512,1", "--mem", "1MiB", "--json").json()
        # An eighth of the memory holds 64 columns; each of eight such blocks needs all rows.
        self.assertEqual(done["plan"], {"passes": 2, "block_shape": [512, 64], "chunks_decoded": 512,
                                        "chunks_encoded": 512, "scratch_bytes": 1 << 20})
        self.assertEqual(done["cost"]["tiles_decoded"], 512)
        self.assert_same(self.load("g.shale:a"), values)
        self.shale("verify", "g.shale")

    def test_rechunk_needs_no_other_name(self):
        np.save(self.path / "x.npy", np.arange(15, dtype=np.int32).reshape(3, 5))
        name = "n" * 1020  # the longest name has 1,024 bytes
        for array in (name, "a", "a.rechunked"):
            self.shale("convert", "x.npy", f"g.shale:{array}", "--chunk", "2,2")
        names = self.names("g.shale")
        for array in (name, "a"):
            self.shale("rechunk", f"g.shale:{array}", "3,1")
            self.assertEqual(self.facts(f"g.shale:{array}", "chunk_shape"), [[3, 1]])
        self.assertEqual(self.facts("g.shale:a.rechunked", "chunk_shape"), [[2, 2]])
        self.assertEqual(self.names("g.shale"), names)

    def test_rechunk_keeps_codec_fill_value_and_dimensions(self):
        self.shale("create", "g.shale:holes", "--shape", "40,40", "--chunk", "8,8", "--fill", "7", "--dtype",
                   "int16", "--codec", "delta,shuffle,zstd:3")
        self.shale("eval", "arange(40)", "--dtype", "int16", "-o", "g.shale:holes[3]")
        self.shale("set", "g.shale:holes", '_ARRAY_DIMENSIONS=["y", "x"]')
        before = self.facts("g.shale:holes", "dtype", "shape", "kind", "codec", "fill_value", "attributes",
                            "attribute_kinds")
        values = self.load("g.shale:holes")
        self.shale("rechunk", "g.shale:holes", "1,40")
        self.assert_same(self.load("g.shale:holes"), values)
        self.assertEqual(self.facts("g.shale:holes", "dtype", "shape", "kind", "codec", "fill_value", "attributes",
                                    "attribute_kinds"), before)
        # Only the row that was written is stored; the others are the fill value.
        listed, = self.shale("ls", "g.shale:holes", "--chunks", "--json").json()
        self.assertEqual([chunk["index"] for chunk in listed["stored_chunks"]], [[3, 0]])
        self.shale("verify", "g.shale")

    def test_copies_to_other_chunks_decode_each_chunk_once(self):
        values = np.arange(512 * 512, dtype=np.int32).reshape(512, 512)
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "rows.shale:a", "--chunk", "1,512")
        for target, arguments, dtype in (("columns.shale:a", ["--chunk", "512,1"], np.int32),
                                         ("columns.shale:wide", ["--chunk", "512,1", "--as", "float64"], np.float64),
                                         ("rows.shale:a", ["--chunk", "512,1", "-f"], np.int32)):
            with self.subTest(target):
                done = self.shale("convert", "rows.shale:a", target, *arguments, "--mem", "1MiB", "--json").json()
                self.assertEqual(done["cost"]["tiles_decoded"], 512)
                self.assertEqual(self.facts(target, "chunk_shape"), [[512, 1]])
                self.assert_same(self.load(target), values.astype(dtype))
        for file in ("rows.shale", "columns.shale"):
            self.shale("verify", file)
        # Columns become rows of two, and a part of the array is no copy of it.
        self.shale("convert", "rows.shale:a[:, ::2]", "part.shale:a", "--chunk", "2,256", "--mem", "1MiB")
        self.assert_same(self.load("part.shale:a"), values[:, ::2])
        self.shale("convert", "rows.shale:a", "whole.shale:a", "--chunk", "2,512", "--mem", "1GiB")
        self.assert_same(self.load("whole.shale:a"), values)

    def test_rechunk_refuses_what_does_not_fit(self):
        self.grown()
        self.shale("convert", "x.npy", "g.shale:dense", "--dense")
        for arguments, says in ((["g.shale:dense", "2,2"], "has no chunks"),
                                (["g.shale:a", "2"], "does not fit"),
                                (["g.shale:a", "0,2"], "does not fit"),
                                (["g.shale:a"], "chunk")):
            with self.subTest(arguments):
                self.refused(USAGE, "rechunk", *arguments, says=says)
        for plan in ([], ["--plan"]):
            self.refused(FAILED, "rechunk", "g.shale:b", "2,2", *plan, says="no array 'b'")
            self.refused(FAILED, "rechunk", "nosuch.shale:a", "2,2", *plan, says="nosuch.shale")

    def test_append_and_resize_refuse_what_does_not_fit(self):
        values = self.grown()
        np.save(self.path / "row.npy", values[0])
        self.shale("convert", "x.npy", "g.shale:dense", "--dense")
        self.shale("create", "g.shale:one", "--shape", "()", "--chunked")
        generation = self.shale("info", "g.shale", "--json").json()["generation"]
        for arguments, says in ((["append", "g.shale:a", "row.npy"], "expand_dims"),
                                (["append", "g.shale:a", "x.npy[:, 1:]"], "axis 1 must be 5"),
                                (["append", "g.shale:a", "x.npy", "--axis", "2"], "axis"),
                                (["append", "g.shale:a", "x.npy", "--axis", "-3"], "axis"),
                                (["append", "g.shale:a", "x.npy", "--axis", "one"], "--axis"),
                                (["append", "g.shale:dense", "row.npy"], "expand_dims"),
                                (["append", "g.shale:one", "row.npy[0]"], "rank 0"),
                                (["append", "g.shale", "x.npy"], "does not say which array"),
                                (["append", "x.npy", "x.npy"], ".shale container"),
                                (["append", "g.shale:a[0]", "x.npy"], "whole array"),
                                (["append", "g.shale:a"], "source"),
                                (["resize", "g.shale:dense", "3"], "another rank"),
                                (["resize", "g.shale:one", "()"], "rank 0"),
                                (["resize", "g.shale:a", "3"], "another rank"),
                                (["resize", "g.shale:a", ",".join(["1"] * 33)], "32"),
                                (["resize", "g.shale:a", "9223372036854775807,1"], "more elements"),
                                (["resize", "g.shale:a", "9223372036854775808,1"], ""),
                                (["resize", "g.shale:a", "-1,5"], ""),
                                (["resize", "g.shale:a"], "shape")):
            with self.subTest(arguments):
                self.refused(USAGE, *arguments, says=says)
        self.refused(FAILED, "append", "g.shale:b", "x.npy", says="no array 'b'")
        self.refused(FAILED, "append", "g.shale:a", "nosuch.npy", says="nosuch.npy")
        self.refused(FAILED, "append", "nosuch.shale:a", "x.npy", says="nosuch.shale")
        self.refused(FAILED, "resize", "g.shale:b", "3,5", says="no array 'b'")
        self.refused(FAILED, "resize", "nosuch.shale:a", "3,5", says="nosuch.shale")
        self.assertFalse((self.path / "nosuch.shale").exists())
        self.assert_same(self.load("g.shale:a"), values)
        self.assertEqual(self.shale("info", "g.shale", "--json").json()["generation"], generation)

    # ---- rm --------------------------------------------------------------------------------------

    def test_rm_removes_arrays(self):
        self.survey()
        self.shale("convert", "survey.shale", "other.shale")
        self.shale("rm", "survey.shale:dem")
        self.assertEqual(self.names("survey.shale"), ["dx", "wave"])
        done = self.shale("rm", "survey.shale:dx", "other.shale:dem", "survey.shale:wave", "--json")
        removed = done.json()["removed"]
        self.assertEqual([(removal["file"], removal["array"]) for removal in removed],
                         [("survey.shale", "dx"), ("survey.shale", "wave"), ("other.shale", "dem")])
        self.assertEqual(self.names("survey.shale"), [])
        self.assertEqual(self.names("other.shale"), ["dx", "wave"])
        self.shale("verify", "survey.shale")

    def test_rm_removes_all_or_nothing(self):
        self.survey()
        self.refused(FAILED, "rm", "survey.shale:dem", "survey.shale:wav", says="did you mean 'wave'?")
        self.assertEqual(self.names("survey.shale"), ["dem", "dx", "wave"])
        self.assert_same(self.load("survey.shale:dem"), self.dem)
        self.shale("convert", "survey.shale", "other.shale")
        for present, missing in (("survey", "other"), ("survey", "./survey")):
            self.refused(FAILED, "rm", f"{present}.shale:dem", f"{missing}.shale:nosuch",
                         says="no array 'nosuch'")
            self.assertEqual(self.names("survey.shale"), ["dem", "dx", "wave"])
        self.refused(USAGE, "rm", "survey.shale:dem", "./survey.shale:dem", says="named twice")
        self.shale("rm", "survey.shale:dem", "./survey.shale:dx")
        self.assertEqual(self.names("survey.shale"), ["wave"])

    def test_rm_refuses_what_is_no_array_of_a_container(self):
        self.survey()
        before = self.files()
        self.refused(USAGE, "rm", "survey.shale", says="does not say which array")
        self.refused(USAGE, "rm", "dem.npz:dem", says=".shale container")
        self.refused(USAGE, "rm", "survey.shale:dem[0]", says="whole array")
        self.refused(USAGE, "rm")
        self.refused(FAILED, "rm", "nosuch.shale:a", says="nosuch.shale")
        self.assertEqual(self.files(), before)
        self.assertEqual(self.names("survey.shale"), ["dem", "dx", "wave"])

    # ---- mv --------------------------------------------------------------------------------------

    def test_mv_renames(self):
        self.forms()
        wanted, values = self.form("forms.shale:packed"), self.load("forms.shale:packed")
        done = self.shale("mv", "forms.shale:packed", "kept/2026/dem", "--json").json()
        self.assertEqual((done["from"], done["to"]), ("packed", "kept/2026/dem"))
        self.shale("mv", "forms.shale:kept/2026/dem", "forms.shale:dem")
        self.assertNotIn("packed", self.names("forms.shale"))
        self.assertEqual(self.form("forms.shale:dem"), wanted)
        self.assert_same(self.load("forms.shale:dem"), values)

    def test_archives_of_large_arrays_stay_inside_the_budget(self):
        self.shale("eval", "zeros((8192, 8192), dtype=int16)", "-o", "big.shale:z", "--chunked")
        for options in ([], ["--as", "float32"]):
            kib = self.peak_memory("convert", "-q", "-f", "big.shale", "big.npz", "--mem", "16MiB", *options)
            if not self.is_sanitized():
                self.assertLess(kib, (16 + 64) * 1024)
        values = np.load(self.path / "big.npz")["z"]
        self.assertEqual((values.shape, values.dtype, values.any()), ((8192, 8192), np.float32, False))

    def test_copies_of_many_arrays_hold_one_at_a_time(self):
        ones = np.ones(1 << 20)
        np.savez_compressed(self.path / "deflated.npz", **{f"m{i:02}": i * ones for i in range(16)})
        self.shale("convert", "deflated.npz", "dense.shale")
        for source in ("deflated.npz", "dense.shale"):
            for target in ("new.shale", "new.npz"):
                with self.subTest(f"{source} to {target}"):
                    (self.path / target).unlink(missing_ok=True)
                    kib = self.peak_memory("convert", "-q", source, target, "--mem", "16MiB")
                    if not self.is_sanitized():
                        self.assertLess(kib, (16 + 64) * 1024)  # all the arrays are 128 MiB
                    for i in (0, 15):
                        self.assert_same(self.load(f"{target}:m{i:02}"), i * ones)

    def test_copies_of_many_arrays_need_few_descriptors(self):
        names = [f"m{i:03}" for i in range(300)]
        np.savez(self.path / "numpys.npz", **{name: np.arange(8) + i for i, name in enumerate(names)})
        # Members that Shale has written are aligned, so they are mapped, each with a descriptor.
        self.shale("convert", "-q", "numpys.npz", "aligned.npz")
        self.shale("convert", "-q", "numpys.npz", "dense.shale")
        few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))}
        for source in ("aligned.npz", "dense.shale"):
            for target in ("new.shale", "new.npz"):
                with self.subTest(f"{source} to {target}"):
                    (self.path / target).unlink(missing_ok=True)
                    self.shale("convert", "-q", source, target, **few)
                    self.assertEqual(self.names(target), names)
                    self.assert_same(self.load(f"{target}:m299"), np.arange(8) + 299)

    def test_archives_take_no_two_names_that_find_one_member(self):
        for name in ("a", "a.npy"):
            self.shale("eval", f"{len(name)}", "-o", f"p.shale:{name}")
        self.refused(USAGE, "convert", "p.shale", "p.npz", says=["'a.npy' of p.npz", 'differs by ".npy" alone'])
        self.assertFalse((self.path / "p.npz").exists())
        self.shale("mv", "p.shale:a.npy", "p.shale:b.npy")
        self.shale("convert", "p.shale", "p.npz")
        for name, wanted in {"a": 1, "b.npy": 5}.items():
            self.assert_same(self.load(f"p.npz:{name}"), np.int64(wanted))
        with np.load(self.path / "p.npz") as archive:
            self.assertEqual({name: int(archive[name]) for name in archive.files}, {"a": 1, "b.npy": 5})

    def test_an_interrupted_mv_has_changed_nothing(self):
        np.save(self.path / "a.npy", np.arange(3))
        self.shale("convert", "a.npy", "c.shale:a")
        name, other, codes = "a", "b", set()
        # Chance decides where each attempt ends; a sanitized process takes three times as long.
        for attempt in range(30 if self.is_sanitized() else 120):
            process = subprocess.Popen([self.command, "mv", "-q", f"c.shale:{name}", other], cwd=self.path)
            time.sleep(attempt % 20 / 1000)
            process.send_signal(signal.SIGINT)
            codes.add(process.wait())
            now = self.shale("ls", "c.shale").out.strip()
            self.assertEqual(now, other if process.returncode == 0 else name, process.returncode)
            if now == other:
                name, other = other, name
        self.assertLessEqual(codes, {0, -signal.SIGINT})

    def test_mv_overwrites_only_when_told(self):
        self.survey()
        self.refused(FAILED, "mv", "survey.shale:dem", "wave", says=["'survey.shale:wave' exists", "-f"])
        self.assert_same(self.load("survey.shale:wave"), self.wave)
        self.refused(FAILED, "mv", "survey.shale:den", "wave", "-f", says="did you mean 'dem'")
        self.refused(USAGE, "mv", "survey.shale:dem", "dem", "-f", says="already")
        self.assertEqual(self.names("survey.shale"), ["dem", "dx", "wave"])
        self.shale("mv", "survey.shale:dem", "wave", "-f")
        self.assertEqual(self.names("survey.shale"), ["dx", "wave"])
        self.assert_same(self.load("survey.shale:wave"), self.dem)
        self.shale("verify", "survey.shale")

    def test_mv_stays_in_its_container(self):
        self.survey()
        self.shale("convert", "survey.shale", "other.shale")
        for name in ("other.shale:new", "other.shale", "new.npy", "new.npy:3", "new.npy[[",
                     "./other.shale:new", "./new.npy"):
            self.refused(USAGE, "mv", "survey.shale:dem", name,
                         says=["another file", "write survey.shale:NAME", "shale convert"])
        self.refused(FAILED, "mv", "missing.shale:a", "./missing.shale:b", says="missing.shale")
        self.refused(USAGE, "mv", "survey.shale:dem", "./survey.shale", says="does not say which array")
        self.shale("mv", "survey.shale:dem", "survey.shale:new.npy")
        self.assertEqual(self.names("survey.shale"), ["dx", "new.npy", "wave"])
        self.shale("mv", "survey.shale:new.npy", "./survey.shale:dem")
        self.assertEqual(self.names("survey.shale"), ["dem", "dx", "wave"])

    # ---- set -------------------------------------------------------------------------------------

    def test_set_keeps_json_and_text_apart(self):
        self.survey()
        self.shale("set", "survey.shale:dem", "n=3", "x=-2.5e-3", "on=true", "none=null", "l=[1, [2]]",
                   'o={"a": "b"}', "unit=m", "empty=", "note=a = b", 'quoted="bare"', 'version="1.0"',
                   "zip=00123", "nan=nan", "broken=[1,", "id=123456789012345678901234567890",
                   "ä=ö")
        wanted = {"n": 3, "x": -2.5e-3, "on": True, "none": None, "l": [1, [2]], "o": {"a": "b"},
                  "unit": "m", "empty": "", "note": "a = b", "quoted": "bare", "version": "1.0",
                  "zip": "00123", "nan": "nan", "broken": "[1,",
                  "id": "123456789012345678901234567890", "ä": "ö"}
        self.assertEqual(self.facts("survey.shale:dem", "attributes"), [wanted])
        shown = self.shale("info", "survey.shale:dem").out
        self.assertRegex(shown, r"attribute quoted +bare\n")
        self.assertRegex(shown, r'attribute version +"1.0"\n')
        self.assert_same(self.load("survey.shale:dem"), self.dem)

    def test_keys_may_have_any_length(self):
        self.survey()
        keys = [letter * 100_000 for letter in "abc"]
        self.shale("set", "survey.shale:dem", *[f"{key}=1" for key in keys])
        self.assertEqual(self.facts("survey.shale:dem", "attributes"), [{key: 1 for key in keys}])
        self.refused(FAILED, "set", "survey.shale:dem", "--unset", "d" * 100_000, says="no attribute")

    def test_every_json_value_comes_back(self):
        self.survey()
        values = [0, -1, 2**63 - 1, 2**64 - 1, 0.1, 1e300, True, False, None, "", "a", "1", "true",
                  '"', "\\", " ", "[", "{}", '"x"', "null ", "höhe", [], {}, [["a"], {"b": [None]}]]
        for value in values:
            with self.subTest(value=value):
                done = self.shale("set", "survey.shale:dem", f"v={json.dumps(value)}", "--json")
                self.assertEqual(done.json()["attributes"], {"v": value})
                self.assertEqual(self.facts("survey.shale:dem", "attributes"), [{"v": value}])

    def test_deeply_nested_attributes_are_text(self):
        self.survey()
        def nested(depth, inside=""):
            return "[" * depth + inside + "]" * depth

        deep = [nested(17), nested(17, "1"), nested(16, "{}"), nested(50000)]
        near = [nested(16), nested(16, "1"), nested(15, "{}")]
        self.shale("set", "survey.shale:dem", *(f"deep{k}={text}" for k, text in enumerate(deep)),
                   *(f"near{k}={text}" for k, text in enumerate(near)))
        attributes = self.facts("survey.shale:dem", "attributes")[0]
        for k, text in enumerate(deep):
            self.assertEqual(attributes[f"deep{k}"], text)
        for k, text in enumerate(near):
            self.assertEqual(attributes[f"near{k}"], json.loads(text))

    def test_kinds_of_attributes_are_told(self):
        self.survey()
        done = self.shale("set", "survey.shale:dem", "n=3", "x=0.5", "on=true", 'l=["y", "x"]', "none=null",
                          'version="1.0"', "big=18446744073709551615", "unit=m", "mixed=[1, 0.5]",
                          "--json").json()
        wanted = {"n": "int64", "x": "double", "on": "bool", "l": "list of texts", "none": "JSON",
                  "version": "text", "big": "uint64", "unit": "text", "mixed": "list of double"}
        self.assertEqual(done["attribute_kinds"], wanted)
        self.assertEqual(self.facts("survey.shale:dem", "attribute_kinds"), [wanted])
        self.assertEqual(self.shale("ls", "--json", "survey.shale:dem").json()[0]["attribute_kinds"], wanted)
        shown = self.shale("info", "survey.shale:dem").out
        self.assertRegex(shown, r"attribute n +3\n")
        self.assertRegex(shown, r'attribute l +\["y","x"\]\n')

    def test_containers_and_levels_have_attributes(self):
        self.survey()
        self.shale("mv", "survey.shale:dx", "raw/2026/dx")
        self.shale("set", "survey.shale", "title=Survey")
        self.shale("set", "survey.shale:/", "n=3")
        done = self.shale("set", "survey.shale:raw/2026/", "source=aerial", "--json").json()
        self.assertEqual((done["attributes"], done["address"]),
                         ({"source": "aerial"}, "survey.shale:raw/2026/"))
        self.shale("set", "survey.shale:new/", "empty=true")
        for file in ("survey.shale", "copy.shale"):
            told = self.shale("info", file, "--json").json()
            self.assertEqual(told["attributes"], {"title": "Survey", "n": 3})
            self.assertEqual(told["attribute_kinds"], {"title": "text", "n": "int64"})
            self.assertEqual({level: notes["attributes"] for level, notes in told["levels"].items()},
                             {"raw/2026": {"source": "aerial"}, "new": {"empty": True}})
            shown = self.shale("info", file).out
            self.assertRegex(shown, r"attribute title +Survey\n")
            self.assertRegex(shown, r"attribute source of raw/2026/ +aerial\n")
            self.assertEqual(self.names(file), ["dem", "raw/2026/dx", "wave"])
            if file == "survey.shale":
                self.shale("convert", file, "copy.shale")
        self.shale("create", "other.shale:y", "--shape", "3", "-q")
        self.shale("set", "other.shale", "title=Other", "n=3")
        self.refused(FAILED, "convert", "survey.shale", "other.shale",
                     says=["another attribute 'title'", "-f replaces it"])
        self.assertEqual(self.names("other.shale"), ["y"])
        self.shale("convert", "survey.shale", "other.shale", "-f", "-q")
        self.assertEqual(self.shale("info", "other.shale", "--json").json()["attributes"],
                         {"title": "Survey", "n": 3})
        self.shale("convert", "survey.shale", "--replace")
        self.assertEqual(self.shale("info", "survey.shale", "--json").json()["attributes"],
                         {"title": "Survey", "n": 3})
        self.shale("verify", "survey.shale")
        self.shale("set", "survey.shale", "--unset", "title", "--unset", "n")
        self.shale("set", "survey.shale:new/", "--unset", "empty")
        told = self.shale("info", "survey.shale", "--json").json()
        self.assertEqual((told["attributes"], list(told["levels"])), ({}, ["raw/2026"]))
        self.refused(FAILED, "set", "survey.shale", "--unset", "title", says="no attribute")
        self.refused(FAILED, "set", "survey.shale:dem/", "a=1", says="'dem' is an array")
        self.refused(USAGE, "create", "survey.shale:.attributes", "--shape", "3", says="reserved")

    def climate(self):
        """A level with temperatures over time, y and x, and coordinates of most axes."""
        for name, shape, dims in (("t2m", (4, 2, 3), "time y x"), ("time", (4,), "time"), ("y", (2,), "y"),
                                  ("lat", (2, 3), "y x")):
            np.save(self.path / "x.npy", np.arange(np.prod(shape)).reshape(shape) / 2)
            self.shale("convert", "x.npy", f"c.shale:run/{name}")
            self.shale("set", f"c.shale:run/{name}", f"_ARRAY_DIMENSIONS={json.dumps(dims.split())}")
        self.shale("set", "c.shale:run/t2m", "units=K", "coordinates=lat")
        self.shale("set", "c.shale:run/y", "units=1")

    def test_conventions_of_coordinates_are_shown(self):
        self.climate()
        told = self.facts("c.shale:run/t2m")
        self.assertEqual([told[key] for key in ("dimensions", "units", "coordinates")],
                         [["time", "y", "x"], "K", {"axes": ["run/time", "run/y", None], "others": ["run/lat"]}])
        self.assertNotIn("conventions_problem", told)
        self.assertEqual(self.facts("c.shale:run/y", "units", "attribute_kinds", "dimensions"),
                         ["1", {"_ARRAY_DIMENSIONS": "list of texts", "units": "text"}, ["y"]])
        shown = self.shale("info", "c.shale:run/t2m").out
        for line in (r"dimensions +time, y, x\n", r"units +K\n", r"coordinates +time: run/time\n +y: run/y\n"
                     r" +also run/lat\n"):
            self.assertRegex(shown, line)
        self.assertNotIn("attribute", shown)
        lines = self.shale("ls", "-l", "c.shale").out.splitlines()
        self.assertEqual([line.split()[-1] for line in lines],
                         ["name", "run/lat", "run/t2m", "run/time", "run/y"])
        self.assertRegex(lines[0], r"^dtype +shape +units +kind")
        self.assertRegex(lines[2], r"^float64 +\(time: 4, y: 2, x: 3\) +K +dense")
        listed = {array["name"]: array for array in self.shale("ls", "--json", "c.shale").json()}
        self.assertEqual(listed["run/t2m"], told)
        self.survey()
        self.assertNotIn("units", self.shale("ls", "-l", "survey.shale").out)
        self.assertFalse({"units", "dimensions", "coordinates"} & set(self.facts("survey.shale:dem")))

    def test_coordinates_that_do_not_fit_are_noted(self):
        self.climate()
        self.shale("resize", "c.shale:run/time", "5")
        done = self.shale("set", "c.shale:run/t2m", "units=degC")
        self.assertIn("coordinates do not fit their array", done.err)
        self.assertIn("got extent 5, the array has 4", done.err)
        self.assertEqual(self.shale("set", "c.shale:run/t2m", "units=K", "-q").err, "")
        told = self.facts("c.shale:run/t2m")
        self.assertIn("do not fit", told["conventions_problem"])
        self.assertEqual((told["units"], told["dimensions"]), ("K", ["time", "y", "x"]))
        self.assertNotIn("coordinates", told)
        shown = self.shale("info", "c.shale:run/t2m").out
        self.assertRegex(shown, r"conventions +coordinates do not fit their array \[corrupt\]\n")
        self.assertRegex(shown, r"attribute coordinates +lat\n")
        self.shale("resize", "c.shale:run/time", "4")
        done = self.shale("set", "c.shale:run/t2m", "coordinates=lat lon", "--json")
        self.assertIn("no array 'run/lon'", done.json()["conventions_problem"])
        done = self.shale("set", "c.shale:run/t2m", '_ARRAY_DIMENSIONS=["y"]', "--json")
        self.assertIn("got 1 names, its rank is 3", done.json()["conventions_problem"])
        self.shale("set", "c.shale:run/t2m", '_ARRAY_DIMENSIONS=["y", "", "x"]', "coordinates=/run/lat")
        self.refused(FAILED, "set", "c.shale:none", "units=K", says="no array")

    def test_ls_lists_a_level(self):
        self.survey()
        self.shale("mv", "survey.shale:dx", "raw/2026/dx")
        self.shale("mv", "survey.shale:wave", "raw/wave")
        self.assertEqual(self.names("survey.shale"), ["dem", "raw/2026/dx", "raw/wave"])
        self.assertEqual(self.names("survey.shale:/"), ["dem", "raw/"])
        self.assertEqual(self.names("survey.shale:raw/"), ["raw/2026/", "raw/wave"])
        self.assertEqual(self.shale("ls", "-r", "survey.shale:raw/").out.split(), ["raw/2026/dx", "raw/wave"])
        self.assertEqual(self.shale("ls", "-r", "survey.shale:/").out, self.shale("ls", "survey.shale").out)
        told = self.shale("ls", "--json", "survey.shale:raw/").json()
        self.assertEqual(told[0], {"name": "raw/2026/", "address": "survey.shale:raw/2026/", "kind": "level"})
        self.assertEqual((told[1]["name"], told[1]["kind"]), ("raw/wave", "dense"))
        lines = self.shale("ls", "-l", "survey.shale:raw/").out.splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["name", "raw/2026/", "raw/wave"])
        self.refused(FAILED, "ls", "survey.shale:none/", says="no level 'none/'")
        self.refused(FAILED, "create", "survey.shale:raw", "--shape", "3", says="which holds 'raw/2026/dx'")
        self.refused(FAILED, "create", "survey.shale:dem/x", "--shape", "3", says="its level 'dem' is an array")

    def test_set_changes_and_removes_attributes_all_or_none(self):
        self.survey()
        self.shale("set", "survey.shale:dem", "unit=m", "who=me", "n=1")
        done = self.shale("set", "survey.shale:dem", "unit=km", "--unset", "who", "--unset", "n",
                          "--json").json()
        self.assertEqual(done["attributes"], {"unit": "km"})
        generation = self.shale("info", "survey.shale", "--json").json()["generation"]
        self.assertEqual(done["generation"], generation)
        self.refused(FAILED, "set", "survey.shale:dem", "a=1", "--unset", "units",
                     says="did you mean 'unit'?")
        self.refused(FAILED, "set", "survey.shale:den", "a=1", says="did you mean 'dem'")
        for arguments in ([], ["unit"], ["=3"], ["a=1", "--unset", "a"], ["a=1", "a=2"],
                          ["--unset", "a", "--unset", "a"]):
            self.refused(USAGE, "set", "survey.shale:dem", *arguments)
        self.refused(USAGE, "set", "dem.npz", "a=1")
        self.refused(USAGE, "set", "dem.npz:dem", "a=1")
        self.assertEqual(self.facts("survey.shale:dem", "attributes"), [{"unit": "km"}])
        self.assertEqual(self.shale("info", "survey.shale", "--json").json()["generation"],
                         generation)

    # ---- places in the file ----------------------------------------------------------------------

    def test_chunks_are_listed_with_their_places(self):
        values = np.arange(40, dtype=np.int16).reshape(8, 5)
        np.save(self.path / "x.npy", values)
        self.shale("create", "c.shale:x", "--shape", "12,5", "--dtype", "int16", "--fill", "-1",
                   "--chunk", "3,4", "--codec", "raw")
        self.shale("eval", "x", "--let", "x=x.npy", "-o", "c.shale:x[:8]")
        self.shale("create", "c.shale:zeros", "--shape", "5000", "--chunk", "5000")
        self.shale("eval", "a + 3", "--let", "a=c.shale:zeros", "-o", "c.shale:threes", "--chunk", "5000")
        self.shale("create", "c.shale:dense", "--shape", "4")
        whole = np.full((12, 8), -1, np.int16)
        whole[:8, :5] = values
        raw = (self.path / "c.shale").read_bytes()
        listed = {a["name"]: a for a in self.shale("ls", "--chunks", "--json", "c.shale").json()}
        self.assertEqual([chunk["index"] for chunk in listed["x"]["stored_chunks"]],
                         [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]])
        for chunk in listed["x"]["stored_chunks"]:
            (i, j), at = chunk["index"], chunk["offset"]
            wanted = np.ascontiguousarray(whole[3 * i:3 * i + 3, 4 * j:4 * j + 4])
            self.assertEqual(raw[at:at + chunk["stored_bytes"]], wanted.tobytes())
            self.assertEqual((chunk["raw"], chunk["start"], chunk["shape"]),
                             (True, [3 * i, 4 * j], [3, 4 if j == 0 else 1]))
        self.assertEqual(listed["zeros"]["stored_chunks"], [])
        threes, = listed["threes"]["stored_chunks"]
        self.assertEqual((threes["raw"], threes["stored_bytes"]),
                         (False, listed["threes"]["stored_bytes"]))
        self.assertNotIn("stored_chunks", listed["dense"])

        text = self.shale("ls", "--chunks", "c.shale:x").out.splitlines()
        self.assertEqual(text[0], "c.shale:x:")
        self.assertEqual(text[1].split(), ["offset", "stored", "checksum", "form", "chunk", "elements"])
        first = listed["x"]["stored_chunks"][0]
        self.assertEqual(text[2].split()[:4], [str(first["offset"]), "24", first["checksum"], "raw"])
        self.assertTrue(text[2].endswith("(0, 0)  [0:3, 0:4]"), text[2])
        self.assertEqual(len(text), 8)
        all_text = self.shale("ls", "--chunks", "c.shale").out
        self.assertEqual([line for line in all_text.splitlines() if line.startswith("c.shale")],
                         ["c.shale:threes:", "c.shale:x:", "c.shale:zeros:"])
        self.shale("create", "c.shale:none", "--shape", "0,3")
        for name in ("dense", "none"):
            self.refused(USAGE, "ls", "--chunks", f"c.shale:{name}", says="has no chunks")
            self.refused(USAGE, "ls", "--chunks", "--json", f"c.shale:{name}", says="has no chunks")
        self.refused(USAGE, "ls", "--chunks", "x.npy", says="only arrays of containers")
        self.refused(USAGE, "ls", "--chunks", "--json", "x.npy", says="only arrays of containers")
        self.refused(USAGE, "ls", "--chunks", "-l", "c.shale")

    def test_a_damaged_index_leaves_the_chunks_of_other_arrays_to_be_listed(self):
        np.save(self.path / "x.npy", np.arange(40.0))
        for name in "abc":
            self.shale("convert", "x.npy", f"c.shale:{name}", "--chunk", "5")
        raw = (self.path / "c.shale").read_bytes()
        damaged = []
        for page in range(8192, len(raw), 4096):
            changed = bytearray(raw)
            changed[page + 2000] ^= 1
            (self.path / "c.shale").write_bytes(changed)
            done = subprocess.run([self.command, "ls", "--chunks", "--json", "c.shale"], cwd=self.path,
                                  text=True, capture_output=True, timeout=120)
            if done.returncode != CORRUPT or not done.stdout:
                continue
            arrays = json.loads(done.stdout)
            wrong = [a["name"] for a in arrays if "problem" in a]
            self.assertEqual([a["name"] for a in arrays], ["a", "b", "c"])
            self.assertEqual([a["name"] for a in arrays if len(a.get("stored_chunks", ())) != 8], wrong)
            damaged += wrong
            text = self.refused(CORRUPT, "ls", "--chunks", "c.shale", says="[corrupt]")
            self.assertEqual(text.count("[corrupt]"), len(wrong))
        self.assertEqual(sorted(damaged), ["a", "b", "c"])

    def test_an_array_of_a_later_version_hides_no_other(self):
        np.save(self.path / "x.npy", np.arange(40.0))
        for name in "abc":
            self.shale("convert", "x.npy", f"c.shale:{name}", "--chunk", "5")
        before = self.shale("du", "c.shale", "--json").json()
        self.make_later("c.shale", "b")

        def told(*arguments):
            done = self.shale(*arguments, code=UNSUPPORTED)
            self.assertEqual(done.err.count("[unsupported]"), 1, done.err)
            for text in ("array 'b'", "dtype 99", "c.shale"):
                self.assertIn(text, done.err)
            return done

        self.assertEqual(self.names("c.shale"), ["a", "b", "c"])
        lines = told("ls", "-l", "c.shale").out.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:]], ["float64", "unsupported", "float64"])
        self.assertEqual([line.split()[-1] for line in lines[1:]], ["a", "b", "c"])
        lines = told("ls", "--chunks", "c.shale").out.splitlines()
        self.assertEqual([line for line in lines if line.startswith("c.shale")],
                         ["c.shale:a:", "c.shale:c:"])
        for arrays in (told("ls", "--json", "c.shale").json(),
                       told("info", "--json", "c.shale").json()["arrays"],
                       told("ls", "--chunks", "--json", "c.shale").json(),
                       told("du", "--json", "c.shale").json()["arrays"]):
            self.assertEqual([array["name"] for array in arrays], ["a", "b", "c"])
            self.assertEqual([array.get("code") for array in arrays], [None, "unsupported", None])
        found = told("verify", "--json", "c.shale").json()
        self.assertEqual((found["sound"], found["findings"], found["arrays"]), (True, [], 3))
        self.assertEqual([(array["name"], array["code"]) for array in found["unchecked"]],
                         [("b", "unsupported")])
        self.assertEqual(told("verify", "c.shale").out.splitlines()[-2:],
                         ["not checked: 1 array of a later version", "sound otherwise"])
        listed = told("ls", "--chunks", "--json", "c.shale").json()
        self.assertEqual([len(array.get("stored_chunks", ())) for array in listed], [8, 0, 8])
        told("ls", "--chunks", "c.shale:b")
        told("convert", "c.shale", "copy.shale")
        self.assertNotIn("copy.shale", self.files())
        self.assert_same(self.load("c.shale:a"), np.arange(40.0))

        after = told("du", "--json", "c.shale").json()
        of_b = before["arrays"][1]["data_bytes"] + before["arrays"][1]["index_bytes"]
        self.assertEqual((before["unknown_bytes"], after["unknown_bytes"]), (0, of_b))
        for report in (before, after):
            del report["arrays"][1], report["unknown_bytes"]
        self.assertEqual(after, before)
        first, second = told("du", "c.shale").out.split("\n\n")
        self.assertEqual([line.split()[-1] for line in first.splitlines()], ["array", "a", "c", "b"])
        self.assertEqual(first.splitlines()[-1].split()[0], "unsupported")
        rows = {line.split("  ")[0]: line for line in second.splitlines()}
        self.assertIn(f" {of_b:,} ", rows["arrays of later versions"])

    def test_du_adds_up_to_the_file(self):
        self.forms()
        self.shale("rm", "forms.shale:dense", "forms.shale:wide")
        told = self.shale("du", "forms.shale", "--json").json()
        kinds = ("metadata", "held_by_readers", "retained", "previous", "free")
        arrays = sum(a["data_bytes"] + a["index_bytes"] for a in told["arrays"])
        self.assertEqual(arrays + sum(told[f"{kind}_bytes"] for kind in kinds), told["file_bytes"])
        self.assertEqual(told["file_bytes"], (self.path / "forms.shale").stat().st_size)
        self.assertEqual([a["name"] for a in told["arrays"]], self.names("forms.shale"))
        for array in told["arrays"]:
            stored, = self.facts(array["address"], "stored_bytes")
            self.assertGreaterEqual(array["data_bytes"], stored)
        self.assertGreater(told["previous_bytes"], self.dem.nbytes)
        self.assertIsNone(told["oldest_read"])

        first, second = self.shale("du", "forms.shale").out.split("\n\n")
        self.assertEqual(sorted(line.split()[-1] for line in first.splitlines()[1:]),
                         self.names("forms.shale"))
        rows = {line.split("  ")[0]: line for line in second.splitlines()}
        self.assertEqual(list(rows), ["space", "arrays", "metadata", "the generation before", "free",
                                      "file"])
        self.assertIn(f"{told['previous_bytes']:,}", rows["the generation before"])
        self.assertTrue(rows["file"].endswith("100.0 %"))
        self.refused(USAGE, "du", "forms.shale:raw", says="only whole .shale containers")
        self.refused(USAGE, "du", "dem.npz", says="only whole .shale containers")
        self.refused(FAILED, "du", "nosuch.shale", says="[not_found]")

    # ---- names -----------------------------------------------------------------------------------

    def test_odd_names_are_not_given(self):
        self.survey()
        for name in ODD_NAMES:
            with self.subTest(name):
                for target in (f"survey.shale:{name}", f"new.shale:{name}"):
                    self.refused(USAGE, "create", target, "--shape", "3")
                    self.refused(USAGE, "convert", "dem.npz:dem", target)
                self.refused(USAGE, "mv", "survey.shale:dem", name)
        self.refused(USAGE, "mv", "survey.shale:dem", "")
        self.refused(USAGE, "create", "survey.shale:a//b", "--shape", "3", says="byte 2")
        self.refused(USAGE, "create", "survey.shale:a/..", "--shape", "3", says="level '..'")
        self.assertEqual(self.names("survey.shale"), ["dem", "dx", "wave"])
        self.assertEqual(self.files(), ["dem.npz", "survey.shale"])

    def test_copies_say_which_array_is_refused(self):
        np.savez(self.path / "odd.npz", **{"ok": self.dem, "/a": self.dem})
        self.refused(USAGE, "convert", "odd.npz", "n.shale", says="convert odd.npz:/a")
        self.assertNotIn("n.shale", self.files())
        self.shale("convert", "odd.npz:/a", "n.shale:a")
        self.assert_same(self.load("n.shale:a"), self.dem)

    def test_names_with_brackets_are_addressed_with_doubled_ones(self):
        np.savez(self.path / "b.npz", **{"x[0]": self.dem, "x": self.wave, "[": self.dem[0]})
        self.shale("convert", "b.npz", "b.shale")
        self.assertEqual(self.names("b.shale"), ["[[", "x", "x[[0]"])
        for file in ("b.shale", "b.npz"):
            self.assert_same(self.load(f"{file}:x[0]"), self.wave[0])
            self.assert_same(self.load(f"{file}:x[[0]"), self.dem)
            self.assert_same(self.load(f"{file}:x[[0][2:4, ::-1]"), self.dem[2:4, ::-1])
            self.assert_same(self.load(f"{file}:[[[5]"), self.dem[0][5])
        said = self.shale("eval", "a + 1", "--let", "a=b.shale:x[[0][1:]", "-o", "b.shale:y[[1]").err
        self.assertIn("b.shale:y[[1]: int16", said)
        self.assert_same(self.load("b.shale:y[[1]"), self.dem[1:] + np.int16(1))
        self.shale("set", "b.shale:y[[1]", "unit=m")
        self.shale("mv", "b.shale:y[[1]", "z[2]")
        self.assertIn("with '[[' for a '['", self.shale("mv", "--help").out)
        self.shale("mv", "b.shale:x[[0]", "b.shale:w[[3]")
        self.shale("rm", "b.shale:z[[2]")
        self.assertEqual(self.names("b.shale"), ["[[", "w[[3]", "x"])

    def test_arguments_in_brackets_are_taken_as_they_are(self):
        address = "[b].shale:x[[1]"
        self.shale("eval", "7", "-o", address)
        self.shale("eval", "8", "-o", "{}.shale:ab")
        self.assertEqual(self.shale("ls", address, "{}.shale").out.splitlines(),
                         ["x[[1]", "", "{}.shale:", "ab"])
        self.shale("set", address, "[k=1]", "[k]=[1, 2]", "{}=3")
        self.assertEqual(self.facts(address, "attributes"), [{"[k": "1]", "[k]": [1, 2], "{}": 3}])
        self.shale("set", address, "--unset", "[k]", "--unset", "{}")
        self.assertEqual(self.facts(address, "attributes"), [{"[k": "1]"}])
        self.shale("create", "c.shale:c", "--shape", "2", "--attribute", "[k]=[1, 2]", "--attribute", "[l=3]")
        self.assertEqual(self.facts("c.shale:c", "attributes"), [{"[k]": [1, 2], "[l": "3]"}])
        for nothing in ("[]", "{}", "[,]"):
            self.refused(USAGE, "rm", nothing, says=nothing)
            self.refused(USAGE, "ls", nothing, says=nothing)
            self.refused(USAGE, "set", address, nothing, says="expected KEY=VALUE")
        self.shale("rm", "--quiet", address, "{}.shale:ab")
        self.assertEqual(self.names("[b].shale") + self.names("{}.shale"), [])
        self.refused(USAGE, "rm", says="arrays is required")

    def test_slices_that_may_be_names_are_explained(self):
        self.shale("convert", "dem.npz:dem", "b.shale:x[[0]")
        self.refused(FAILED, "cat", "b.shale:x[0]", says="the array 'x[0]' is written b.shale:x[[0]")
        self.refused(FAILED, "cat", "b.shale:x[[1, 2]]", says="'[[' begins no slice")
        self.refused(USAGE, "cat", "b.shale:x[m]", says="is written '[['")
        self.refused(USAGE, "rm", "b.shale:x[0]", says="is written '[['")


if __name__ == "__main__":
    main()
