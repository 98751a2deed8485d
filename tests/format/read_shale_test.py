#!/usr/bin/python3
"""Reads containers with read_shale.py, which was written from docs/container-format.md alone, and
compares with NumPy and with what the command reads. Files that were kept, files that the command
makes here, and damaged files.

Usage: read_shale_test.py PATH/TO/shale [unittest arguments]
"""

import gzip
import json
import pathlib
import random
import re
import struct
import subprocess
import sys

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tools"))

from read_shale import Container, Damaged, PAGE, SLOTS, LIVE_PAGE, Unsupported, checksum128, typed
from shale_case import ShaleCase, main

DOCUMENT = HERE.parent.parent / "docs" / "container-format.md"
NAMES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
         "complex64 complex128 float8_e4m3fn float8_e5m2").split()
OF_NUMPY = [name for name in NAMES if not name.startswith(("bfloat", "float8"))]


def rounded(values, bits, width, mantissa, bias):
    """The bit patterns of a small float for small integers, which it holds exactly."""
    result = []
    for value in values:
        sign, number = int(value < 0), abs(int(value))
        exponent = number.bit_length() - 1
        fraction = (number << mantissa >> exponent) - (1 << mantissa) if number else 0
        result.append(sign << bits - 1 | ((exponent + bias) << mantissa | fraction if number else 0))
    return np.array(result, width)


def golden():
    """The elements of the kept files, by file and array."""
    small = np.arange(-5, 7).reshape(3, 4)
    dtypes = {name: small.astype(name) for name in OF_NUMPY}
    for name, layout in {"bfloat16": (16, "<u2", 7, 127), "float8_e4m3fn": (8, "u1", 3, 7),
                         "float8_e5m2": (8, "u1", 2, 15)}.items():
        dtypes[name] = rounded(small.reshape(-1), *layout).reshape(3, 4)
    dtypes |= {"single": np.array(-3, np.int16), "single/chunked": np.array(0.5),
               "empty": np.zeros((0, 4), np.float32), "empty/chunked": np.zeros((3, 0), np.uint32)}
    steps = np.arange(200).reshape(10, 20)
    sevenths = (np.arange(200) / 7).astype(np.float32).view(np.uint32)
    kept = (sevenths + 0x7fff + (sevenths >> 16 & 1)) & 0xffff0000  # to nearest, ties to even
    rows = np.arange(18, dtype=np.int32).reshape(3, 6)
    cut = np.zeros((10, 7), np.int64)
    cut[:6, :5] = np.arange(81).reshape(9, 9)[:6, :5]
    chunks = {"delta/bits": steps * 3, "bytes": steps * 3, "raw": (steps / 8).astype(np.float32),
              "rounded": kept.astype(np.uint32).view(np.float32), "fill": np.full((9, 9), np.nan),
              "appended": np.concatenate([np.full((5, 6), 7, np.int32), rows, rows]), "cut": cut,
              "many": np.arange(150, dtype=np.int16)}
    return {"dtypes": dtypes, "chunks": chunks}


def space_of(used):
    """The bytes of extents in whole granules."""
    return sum(-(-size // granule) * granule for _, size, granule in used)


class Reader(ShaleCase):
    def open(self, name, generation=None):
        file = Container(self.path / name, generation)
        self.addCleanup(file.close)
        return file

    def assert_holds(self, name, wanted):
        """The reader verifies the file and reads these arrays; the command reads them, too."""
        with Container(self.path / name) as file:
            file.verify()
            self.assertEqual(list(file.arrays), sorted(wanted, key=str.encode))
            for array, values in wanted.items():
                with self.subTest(name, array=array):
                    self.assert_same(file.arrays[array].read(), values)
                    self.assert_bits(self.exported(f"{name}:{array}", values), values)
        self.shale("verify", name)

    def assert_bits(self, got, wanted):
        self.assertEqual(np.ascontiguousarray(got).tobytes(), np.ascontiguousarray(wanted).tobytes())

    def exported(self, address, like):
        """What the command reads; as bytes, because NumPy does not have every dtype."""
        self.shale("convert", address.replace("[", "[["), "back.raw", "-f")
        return np.fromfile(self.path / "back.raw", like.dtype).reshape(like.shape)

    def unpacked(self, name):
        packed = (HERE / "golden" / f"{name}.shale.gz").read_bytes()
        (self.path / f"{name}.shale").write_bytes(gzip.decompress(packed))
        return f"{name}.shale"

    # ---- files that were kept --------------------------------------------------------------------

    def test_the_example_of_the_document_is_read(self):
        raw = bytearray(0x16000)
        for line in re.findall(r"^([0-9a-f]{8}  [0-9a-f ]{48})", DOCUMENT.read_text(), re.M):
            at, data = int(line[:8], 16), bytes.fromhex(line[8:])
            raw[at:at + 16] = data
        (self.path / "example.shale").write_bytes(raw)
        wanted = {"c": np.array([1, 2, 3, 4, -1, -1], np.int16), "d": np.array([1, 2, 3], np.float32)}
        self.assert_holds("example.shale", wanted)
        self.assertEqual(self.open("example.shale").arrays["d"].attributes, {"unit": b"m"})
        older = self.open("example.shale", 1)
        older.verify()
        self.assertEqual((older.superblock.generation, older.arrays), (1, {}))

    def test_kept_files_stay_readable(self):
        for name, wanted in golden().items():
            self.assert_holds(self.unpacked(name), wanted)
        attributes = self.open("dtypes.shale").arrays["int16"].attributes
        self.assertEqual(attributes, {"größe": b"klein", "range": b"[-5, 6]", "unit": b"m"})
        comment = self.open("chunks.shale").arrays["fill"].attributes["comment"]
        self.assertEqual(comment.decode().strip(), " ".join(["long"] * 400))

    def test_the_commands_that_made_them_still_do(self):
        script = re.search(r"```sh\n(.*?)```", (HERE / "golden" / "README.md").read_text(), re.S)[1]
        subprocess.run(["bash", "-euc", f'shale() {{ "{self.command}" "$@" 2>> log; }}\n{script}'],
                       cwd=self.path, check=True, timeout=120)
        for name, wanted in golden().items():
            subprocess.run(["gunzip", f"{name}.shale.gz"], cwd=self.path, check=True)
            self.assert_holds(f"{name}.shale", {array.replace("/chunked", "-chunked"): values
                                                for array, values in wanted.items()})

    # ---- files of the command --------------------------------------------------------------------

    def test_every_dtype_is_read_in_every_codec(self):
        rng = np.random.default_rng(5)
        steps = rng.integers(0, 9, (23, 31)).cumsum(axis=1) % 100
        values = {name: steps.astype(name) for name in OF_NUMPY}
        values["bool"] = steps % 3 == 0
        for form, how in {"dense": ["--dense"], "packed": ["--codec", "shuffle,zstd:1", "--chunk", "5,7"],
                          "bits": ["--codec", "bitshuffle,zstd:5", "--chunk", "3,11"],
                          "plain": ["--codec", "zstd:9", "--chunk", "40,3"],
                          "raw": ["--codec", "raw"],
                          "quick": ["--codec", "shuffle,lz4:1", "--chunk", "6,8"],
                          "high": ["--codec", "bitshuffle,lz4:12"],
                          "delta": ["--codec", "delta,bitshuffle,zstd:1", "--chunk", "9,9"],
                          "steps": ["--codec", "delta,zstd:1", "--chunk", "5,31"]}.items():
            held = {name: array for name, array in values.items()
                    if "delta" not in " ".join(how) or array.dtype.kind in "iu"}
            np.savez(self.path / "all.npz", **held)
            self.shale("convert", "all.npz", f"{form}.shale", "-q", *how)
            self.shale("convert", f"{form}.shale", "back.npz", "-f", "-q")
            with Container(self.path / f"{form}.shale") as file, np.load(self.path / "back.npz") as back:
                file.verify()
                self.assertEqual(list(file.arrays), sorted(held))
                for name, array in held.items():
                    with self.subTest(form, array=name):
                        self.assert_same(file.arrays[name].read(), array)
                        self.assert_same(back[name], array)

    def test_attributes_have_the_kinds_of_the_document(self):
        np.save(self.path / "x.npy", self.dem)
        self.shale("convert", "x.npy", "a.shale:x")
        values = {"on": ("bool", True), "n": ("int64", -3), "big": ("uint64", 2**64 - 1), "x": ("double", 0.1),
                  "unit": ("text", "m/s"), "number": ("text", "1.0"), "name": ("text", "größe"),
                  "none": ("JSON", "null"), "o": ("JSON", '{"a": [1, null]}'), "raw": ("bytes", b"\xfe\xff"),
                  "bools": ("list of bool", [True, False]), "range": ("list of int64", [0, -1200]),
                  "large": ("list of uint64", [2**63, 0]), "scales": ("list of double", [0.5, 2.0]),
                  "_ARRAY_DIMENSIONS": ("list of text", ["y", "", "ö"])}
        typed_as = {key: value.decode(errors="surrogateescape") if kind == "bytes" else
                    value if kind == "JSON" or key in ("unit", "name") else json.dumps(value)
                    for key, (kind, value) in values.items()}
        self.shale("set", "a.shale:x", *(f"{key}={text}" for key, text in typed_as.items()))
        self.shale("set", "a.shale", "title=Survey", "n=3")
        self.shale("set", "a.shale:raw/2026/", "source=aerial")
        file = self.open("a.shale")
        file.verify()
        read = {key: typed(value) for key, value in file.arrays["x"].attributes.items()}
        self.assertEqual(read, values)
        self.assertEqual(file.arrays["x"].attributes["unit"], b"m/s")
        levels = {name: array for name, array in file.arrays.items() if name.endswith(".attributes")}
        self.assertEqual(sorted(levels), [".attributes", "raw/2026/.attributes"])
        for array in levels.values():
            self.assertEqual((array.shape, array.code, array.dense is not None), ((0,), 1, True))
        read = {key: typed(value) for key, value in levels[".attributes"].attributes.items()}
        self.assertEqual(read, {"title": ("text", "Survey"), "n": ("int64", 3)})
        self.assertEqual(levels["raw/2026/.attributes"].attributes, {"source": b"aerial"})

    def test_logical_dtypes_are_those_of_the_document(self):
        held = {"ns": np.array([["2026-01-31", "NaT"]], "M8[ns]"), "generic": np.array([5, -7], "m8"),
                "span": np.array([1, -2, 3], "m8[25s]"), "text": np.array([["höhe", ""], ["b", "高さ"]]),
                "bytes": np.array([b"ab", b"\xff"]), "word": np.array("x"), "plain": np.arange(3)}
        np.savez(self.path / "all.npz", **held)
        for form, how in (("dense", ["--dense"]), ("packed", ["--chunked"])):
            self.shale("convert", "all.npz", f"{form}.shale", "-q", *how)
            with Container(self.path / f"{form}.shale") as file:
                file.verify()
                for name, values in held.items():
                    with self.subTest(form, array=name):
                        self.assert_same(file.arrays[name].read_logical(), values)
        for text in ("period[Q]", "S5", "datetime64[]", "timedelta64[0s]"):
            self.shale("set", "dense.shale:plain", f"_LOGICAL_DTYPE={text}")
            with self.assertRaisesRegex(Unsupported, "logical dtype"):
                self.open("dense.shale").arrays["plain"].read_logical()
            self.assert_same(self.open("dense.shale").arrays["plain"].read(), held["plain"])
        self.shale("set", "dense.shale:plain", "_LOGICAL_DTYPE=U")
        with self.assertRaisesRegex(Damaged, "U of dtype 5"):
            self.open("dense.shale").arrays["plain"].read_logical()

    def test_rounded_mantissas_are_read_as_they_were_stored(self):
        np.save(self.path / "x.npy", self.wave)
        self.shale("convert", "x.npy", "r.shale:x", "--codec", "bitround:5,bitshuffle,zstd:3")
        read = self.open("r.shale").arrays["x"].read()
        self.assert_bits(read, self.load("r.shale:x"))
        self.assertFalse(np.any(read.view(np.uint32) & (2**18 - 1)))
        np.testing.assert_allclose(read, self.wave, rtol=2**-6)

    def test_trees_of_several_levels_are_read(self):
        rng = np.random.default_rng(6)
        long = [f"{'long ' * 120}{i:03}" for i in range(60)]
        arrays = {name: rng.integers(0, 99, 3) for name in (*(f"n{i}" for i in range(300)), *long)}
        np.savez(self.path / "many.npz", **arrays)
        self.shale("convert", "many.npz", "many.shale", "-q")
        chunks = rng.integers(0, 255, 12000).astype(np.uint8)
        np.save(self.path / "x.npy", chunks)
        self.shale("convert", "x.npy", "many.shale:chunks", "--chunk", "1", "--codec", "raw", "-q")
        file = self.open("many.shale")
        file.verify()
        levels = {tree: max(level for found, level in self.pages(file) if found == tree)
                  for tree in (1, 2, 3)}
        self.assertGreaterEqual(levels[1], 2)
        self.assertGreaterEqual(levels[2], 2)
        self.assertEqual(list(file.arrays), sorted([*arrays, "chunks"]))
        for name, values in arrays.items():
            self.assert_same(file.arrays[name].read(), values)
        self.assert_same(file.arrays["chunks"].read(), chunks)

    def pages(self, file):
        """(tree, level) of every page of the generation."""
        for offset, size, _ in file.used:
            page = file.pread(offset, size, "page")
            if size == PAGE and struct.unpack_from("<Q", page, 16)[0] == offset:
                yield page[24], page[1]

    def test_large_dense_arrays_have_a_checksum_for_each_mebibyte(self):
        values = np.random.default_rng(8).integers(0, 2**40, (300, 7001))
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "big.shale:x")
        file = self.open("big.shale")
        file.verify()
        self.assert_same(file.arrays["x"].read(), values)
        raw = bytearray((self.path / "big.shale").read_bytes())
        at = raw.find(values[1].tobytes())
        for segment in (0, 7, 16):
            changed = at - values[0].nbytes + (segment << 20) + 99
            raw[changed] ^= 4
            (self.path / "cut.shale").write_bytes(raw)
            with self.assertRaisesRegex(Damaged, f"array 'x', segment {segment}: checksum"):
                self.open("cut.shale").verify()
            raw[changed] ^= 4

    def test_a_history_is_read_step_by_step(self):
        rng = random.Random(11)
        held, now = {}, {}
        for step in range(60):
            before = dict(now)
            name = rng.choice("abcd")
            if name not in now:
                shape = (rng.randrange(9), rng.randrange(1, 9))
                now[name] = np.full(shape, step, np.int32)
                self.shale("create", f"h.shale:{name}", "--shape", f"{shape[0]},{shape[1]}", "--dtype",
                           "int32", "--fill", step, "--chunk", rng.choice(["2,3", "4,1", "1,5"]), "-q")
                held[name] = step
            elif (change := rng.random()) < 0.15:
                self.shale("rm", f"h.shale:{name}", "-q")
                del now[name]
            elif change < 0.5:
                shape = (rng.randrange(12), rng.randrange(1, 12))
                new = np.full(shape, held[name], np.int32)
                both = tuple(map(min, shape, now[name].shape))
                new[:both[0], :both[1]] = now[name][:both[0], :both[1]]
                now[name] = new
                self.shale("resize", f"h.shale:{name}", f"{shape[0]},{shape[1]}", "-q")
            else:
                rows = np.arange(3 * now[name].shape[1], dtype=np.int32).reshape(3, -1) * step
                now[name] = np.concatenate([now[name], rows])
                np.save(self.path / "rows.npy", rows)
                self.shale("append", f"h.shale:{name}", "rows.npy", "-q")
            self.assert_read("h.shale", None, now)
            if step:  # the other superblock still names the generation before
                self.assert_read("h.shale", step + 1, before)

    def assert_read(self, name, generation, wanted):
        with Container(self.path / name, generation) as file:
            file.verify()
            self.assertEqual(list(file.arrays), sorted(wanted))
            for array, values in wanted.items():
                self.assert_same(file.arrays[array].read(), values)

    def test_a_generation_that_the_reader_pins_is_not_written_over(self):
        self.survey("--chunked")
        file = self.open("survey.shale")
        for step in range(6):
            self.shale("eval", f"arange(5000).reshape(50, 100) + {step}", "-f", "-o",
                       f"survey.shale:{'dem' if step % 2 else 'wave'}", "-q")
        self.assert_same(file.arrays["dem"].read(), self.dem)
        self.assert_same(file.arrays["wave"].read(), self.wave)
        self.assertEqual(self.open("survey.shale").arrays["dem"].read()[0, 0], 5)
        self.shale("verify", "survey.shale")

    def test_du_tells_the_space_that_this_reader_meets(self):
        for name in golden():
            told = self.shale("du", self.unpacked(name), "--json").json()
            used = {}  # space of extents by who refers to them
            with Container(self.path / f"{name}.shale") as file:
                file.verify()
                for array in file.arrays.values():
                    file.used = []
                    array.read()
                    used[array.name] = space_of(file.used)
                file.verify()
                live = 53248 + space_of(file.used)
            self.assertEqual({a["name"]: a["data_bytes"] + a["index_bytes"] for a in told["arrays"]}, used)
            self.assertEqual(told["metadata_bytes"], live - sum(used.values()))
            self.assertEqual(told["file_bytes"], (self.path / f"{name}.shale").stat().st_size)
            unused = told["held_by_readers_bytes"] + told["retained_bytes"] + told["previous_bytes"]
            self.assertEqual(live + unused + told["free_bytes"], told["file_bytes"])

    def test_du_tells_what_this_reader_holds(self):
        self.survey()
        with Container(self.path / "survey.shale") as file:
            for step in range(4):
                self.shale("eval", f"a * 0 + {step}", "--let", "a=dem.npz:dem", "-f", "-o",
                           "survey.shale:dem", "-q")
            told = self.shale("du", "survey.shale", "--json").json()
            self.assertEqual(told["oldest_read"], file.superblock.generation)
            self.assertGreaterEqual(told["held_by_readers_bytes"], self.dem.nbytes)
            self.assertIn(f"held by readers of generation {told['oldest_read']} and later",
                          self.shale("du", "survey.shale").out)
        after = self.shale("du", "survey.shale", "--json").json()
        self.assertEqual((after["oldest_read"], after["held_by_readers_bytes"]), (None, 0))
        self.assertEqual(after["free_bytes"], told["free_bytes"] + told["held_by_readers_bytes"])

    def test_retained_generations_are_found_in_their_tree(self):
        """No writer retains generations yet; this file gets the tree by hand."""
        self.survey()
        self.shale("rm", "survey.shale:dem", "-q")
        with Container(self.path / "survey.shale", 1 if self.generation() == 2 else 2) as old:
            kept, wanted = old.superblock.raw[32:80], old.arrays["dem"].read()
        raw = bytearray((self.path / "survey.shale").read_bytes())
        newest = self.open("survey.shale").superblock
        leaf_at, key = len(raw), struct.pack(">Q", struct.unpack_from("<Q", kept)[0])
        cell = struct.pack("<HH", 8, 56) + key + kept + bytes(8)
        leaf = struct.pack("<BBHIQQB7xH", 1, 0, 1, 34 + len(cell), newest.generation, leaf_at, 4, 34)
        leaf = (leaf + cell).ljust(PAGE, b"\0")
        raw += leaf
        root = raw[newest.root:newest.root + PAGE]
        root[80:104] = struct.pack("<QQQ", leaf_at, *checksum128(bytes(leaf)))
        raw[newest.root:newest.root + PAGE] = root
        slot = SLOTS[newest.slot]
        raw[slot + 56:slot + 80] = struct.pack("<QQQ", *checksum128(bytes(root)), len(raw))
        summed = raw[slot + 16:slot + 32] + raw[slot + 12:slot + 16] + raw[slot:slot + 12]
        summed = bytes(summed + raw[slot + 32:slot + 496])
        raw[slot + 496:slot + 512] = struct.pack("<QQ", *checksum128(summed))
        raw[SLOTS[1 - newest.slot]:SLOTS[1 - newest.slot] + 512] = bytes(512)
        (self.path / "kept.shale").write_bytes(raw)
        old = struct.unpack_from("<Q", kept)[0]
        self.assertEqual([s.generation for s in self.open("kept.shale").retained()], [old])
        self.assertNotIn("dem", self.open("kept.shale").arrays)
        told = self.shale("du", "kept.shale", "--json").json()
        self.assertGreaterEqual(told["retained_bytes"], self.dem.nbytes)
        self.assertEqual((told["previous_bytes"], told["held_by_readers_bytes"]), (0, 0))
        self.assert_same(self.open("kept.shale", old).arrays["dem"].read(), wanted)
        with self.assertRaisesRegex(LookupError, "generation 77 is not kept"):
            self.open("kept.shale", 77)

    def generation(self):
        return self.open("survey.shale").superblock.generation

    # ---- damage ----------------------------------------------------------------------------------

    def test_a_changed_bit_is_refused_and_its_place_named(self):
        rng = random.Random(12)
        for name in golden():
            raw = bytearray((self.path / self.unpacked(name)).read_bytes())
            with Container(self.path / f"{name}.shale") as file:
                file.verify()
                places = sorted(file.used)
                newest = file.superblock
            for offset, size, _ in places:
                is_page = size == PAGE and raw[offset + 16:offset + 24] == struct.pack("<Q", offset)
                bit = rng.randrange(8 * size)
                with self.subTest(name, offset=offset, bit=bit):
                    self.assert_refused(raw, offset + bit // 8, 1 << bit % 8, "checksum mismatch",
                                        f"page at byte {offset}" if is_page else "array|value")
            slot = SLOTS[newest.slot]
            for at, says in [(0, "not a container"), (20, "header.*checksum"), (4090, "header.*checksum"),
                             (slot + 40, f"superblock {newest.slot}: checksum"),
                             (slot + 505, f"superblock {newest.slot}: checksum")]:
                self.assert_refused(raw, at, 2, says)

    def assert_refused(self, raw, at, mask, *says):
        raw[at] ^= mask
        (self.path / "damaged.shale").write_bytes(raw)
        raw[at] ^= mask
        try:
            with Container(self.path / "damaged.shale") as file:
                file.verify()
        except Damaged as error:
            for text in says:
                self.assertRegex(str(error), text)
        else:
            self.fail(f"byte {at} was changed and nothing noticed it")

    def test_a_lost_commit_is_told_from_a_torn_one(self):
        self.unpacked("chunks")
        raw = bytearray((self.path / "chunks.shale").read_bytes())
        newest = self.open("chunks.shale").superblock
        raw[SLOTS[newest.slot] + 40] ^= 1
        # As a power cut leaves it: the generation was never announced.
        raw[LIVE_PAGE:LIVE_PAGE + 4] = struct.pack("<I", newest.generation - 1)
        (self.path / "torn.shale").write_bytes(raw)
        older = self.open("torn.shale")
        self.assertEqual(older.superblock.generation, newest.generation - 1)
        older.verify()
        self.assertIn("removed", older.arrays)

    def test_a_shorter_file_is_refused(self):
        self.unpacked("dtypes")
        raw = (self.path / "dtypes.shale").read_bytes()
        end = self.open("dtypes.shale").superblock.end
        for size in (0, 4095, 49152, end - 1):
            (self.path / "short.shale").write_bytes(raw[:size])
            with self.assertRaisesRegex(Damaged, "ends before|bytes long"):
                self.open("short.shale")


if __name__ == "__main__":
    main()
