#!/usr/bin/python3
"""Tests the built `shale` command on times and texts: NumPy's datetime64, timedelta64, S and U. NumPy is the
oracle for files, for dates in ISO 8601 and for texts.

Usage: logical_test.py PATH/TO/shale [unittest arguments]
"""

import csv
import io
import sys

import numpy as np

sys.dont_write_bytecode = True  # a test run leaves no files in the tree

from shale_case import ShaleCase, main

USAGE, FAILED, CORRUPT, UNSUPPORTED = 2, 3, 4, 5
NAT = -2**63
KEY = "_LOGICAL_DTYPE"


def samples():
    counts = np.array([[0, -1, 86399], [10**9, NAT, -10**12]])
    units = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "3M"]
    small = np.array([[0, -1, 30], [-700, NAT, 99]])
    arrays = {f"date_{unit}": (small if unit[-1] in "YMWDh" else counts).view(f"M8[{unit}]") for unit in units}
    arrays |= {"span_us": counts.view("m8[us]"), "span_7D": counts.view("m8[7D]"), "span": counts.view("m8"),
               "bytes": np.array([[b"", b"a b", b"x,y"], [b'"q"', b"\xff\x1b", b"0123456789"]]),
               "text": np.array([["", "höhe", "高さ"], ["😀", "it's, \"so\"", " "]]),
               "scalar": np.array("2026-01-31T12:30", "M8[m]"), "word": np.array("word"),
               "none": np.zeros((0, 4), "M8[s]"), "no_words": np.zeros((3, 0), "U6"),
               "long": np.array(["x" * 300, "y"])}
    return arrays


class Logical(ShaleCase):
    def facts(self, address):
        return self.shale("info", address, "--json").json()["arrays"][0]

    def refused(self, code, *arguments, says):
        err = self.shale(*arguments, code=code).err
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, err)

    def dates(self, file="t.shale:when"):
        values = np.arange("2026-01-01", "2026-01-13", dtype="M8[D]").reshape(3, 4)
        np.save(self.path / "dates.npy", values)
        self.shale("convert", "dates.npy", file, "-q")
        return values

    # ---- files of NumPy --------------------------------------------------------------------------

    def test_files_of_numpy_come_back_as_they_were(self):
        arrays = samples()
        np.savez(self.path / "all.npz", **arrays)
        for name, how in (("dense", []), ("packed", ["--chunked"])):
            self.shale("convert", "all.npz", f"{name}.shale", "-q", *how)
            self.shale("convert", f"{name}.shale", "copy.shale", "-f", "-q")
            self.shale("convert", "copy.shale", "back.npz", "-f", "-q")
            with np.load(self.path / "back.npz") as back:
                for array, values in arrays.items():
                    with self.subTest(name, array=array):
                        self.assert_same(back[array], values)
                        self.assert_same(self.load(f"{name}.shale:{array}"), values)
            self.shale("verify", "copy.shale")

    def test_every_order_of_bytes_and_axes_is_read(self):
        for name, values in samples().items():
            for order in "<>":
                for form in "CF":
                    # `astype` leaves a timedelta64 without a unit in its order of bytes.
                    swapped = values.byteswap().view(values.dtype.newbyteorder(order))
                    np.save(self.path / "x.npy", np.asarray(values if order == "<" else swapped, order=form))
                    with self.subTest(name, order=order, form=form):
                        self.shale("convert", "x.npy", "y.npy", "-f", "-q")
                        self.assert_same(np.load(self.path / "y.npy"), values)

    def test_a_file_is_told_by_its_logical_dtype(self):
        for name, values in samples().items():
            np.save(self.path / "x.npy", values)
            told = self.facts("x.npy")
            wanted = values.dtype.name if values.dtype.kind in "mM" else values.dtype.str[1:]
            with self.subTest(name):
                self.assertEqual((told["logical_dtype"], told["logical_shape"]), (wanted, list(values.shape)))
                self.assertIn(f" {wanted}\n", self.shale("info", "x.npy").out)
                self.assertTrue(self.shale("ls", "-l", "x.npy").out.splitlines()[1].startswith(wanted))

    # ---- containers ------------------------------------------------------------------------------

    def test_arrays_are_integers_with_an_attribute(self):
        np.savez(self.path / "x.npz", when=np.array(["2026-01-31", "NaT"], "M8[s]"), word=np.array(["ab", "c"]),
                 raw=np.array([b"abc"]))
        self.shale("convert", "x.npz", "x.shale", "-q")
        for name, dtype, shape, logical, told in (("when", "int64", [2], "datetime64[s]", "datetime64[s]"),
                                                  ("word", "uint32", [2, 2], "U", "U2"),
                                                  ("raw", "uint8", [1, 3], "S", "S3")):
            facts = self.facts(f"x.shale:{name}")
            self.assertEqual((facts["dtype"], facts["shape"], facts["attributes"], facts["logical_dtype"]),
                             (dtype, shape, {KEY: logical}, told))
        shown = self.shale("info", "x.shale:word").out
        self.assertRegex(shown, r"dtype +U2\n")
        self.assertRegex(shown, r"shape +2\n")
        self.assertRegex(shown, r"elements +2\n")
        self.assertRegex(shown, r"stored as +uint32, 2 x 2\n")
        self.assertNotIn(KEY, shown)
        done = self.shale("eval", "a[0] + 1", "--let", "a=x.shale:when", "--json").json()
        self.assertEqual(done["value"], int(np.datetime64("2026-01-31", "s").astype(int)) + 1)

    def test_arrays_are_created_for_times_and_texts(self):
        for how in ([], ["--chunked"]):
            for name, dtype, shape, wanted in (
                    ("dates", "datetime64[s]", "2,3", np.zeros((2, 3), "M8[s]")),
                    ("spans", "m8[25ms]", "4", np.zeros(4, "m8[25ms]")),
                    ("words", "U5", "2,3", np.zeros((2, 3), "U5")),
                    ("word", "S4", "()", np.zeros((), "S4"))):
                done = self.shale("create", f"c.shale:{name}", "--shape", shape, "--dtype", dtype, "-f", "--json",
                                  *how).json()
                shown = wanted.dtype.name if wanted.dtype.kind in "mM" else wanted.dtype.str[1:]
                with self.subTest(name, how=how):
                    self.assertEqual((done["logical_dtype"], done["logical_shape"]), (shown, list(wanted.shape)))
                    facts = self.facts(f"c.shale:{name}")
                    self.assertEqual((facts["logical_dtype"], facts["logical_shape"]), (shown, list(wanted.shape)))
                    self.assertEqual(done["shape"], facts["shape"])
                    self.assert_same(self.load(f"c.shale:{name}"), wanted)
            self.shale("create", "c.shale:never", "--shape", "3", "--dtype", "datetime64[D]", "--fill", "NaT", "-f",
                       "-q", *how)
            self.assert_same(self.load("c.shale:never"), np.full(3, "NaT", "M8[D]"))
            self.shale("create", "c.shale:later", "--shape", "3", "--dtype", "M8[D]", "--fill=-2**3", "-f", "-q",
                       *how)
            self.assert_same(self.load("c.shale:later"), np.full(3, -8).astype("M8[D]"))
        for arguments, says in ((["--dtype", "S"], "number of characters"),
                                (["--dtype", "datetime64[q]"], "no dtype"),
                                (["--dtype", "U4", "--fill", "x"], "--fill is for numbers and times"),
                                (["--dtype", "float32", "--fill", "NaT"], "NaT"),
                                (["--dtype", "M8[s]", "--fill", "0.5"], "int64 cannot represent")):
            self.refused(USAGE, "create", "c.shale:new", "--shape", "2", *arguments, says=says)
        self.assertNotIn("new", self.shale("ls", "c.shale").out.split())

    def test_changes_keep_the_logical_dtype(self):
        values = self.dates()
        self.shale("mv", "t.shale:when", "then")
        self.shale("append", "t.shale:then", "dates.npy", "-q")
        self.assert_same(self.load("t.shale:then"), np.concatenate([values, values]))
        self.shale("resize", "t.shale:then", "2,4", "-q")
        self.shale("eval", "arange(4)", "-o", "t.shale:then[1]", "-q")
        values[1] = np.arange(4).astype("M8[D]")
        self.assert_same(self.load("t.shale:then"), values[:2])
        self.shale("convert", "t.shale", "--replace", "-q")
        self.shale("convert", "t.shale:then", "t.shale:packed", "--chunk", "1,3", "-q")
        self.shale("rechunk", "t.shale:packed", "2,1", "-q")
        self.assert_same(self.load("t.shale:packed"), values[:2])

    def test_texts_grow_with_their_last_axis(self):
        np.save(self.path / "x.npy", np.array(["ab", "c"]))
        self.shale("convert", "x.npy", "x.shale:w", "--chunked", "-q")
        self.shale("resize", "x.shale:w", "3,4", "-q")
        self.assert_same(self.load("x.shale:w"), np.array(["ab", "c", ""], "U4"))
        self.shale("resize", "x.shale:w", "3,1", "-q")
        self.assert_same(self.load("x.shale:w"), np.array(["a", "c", ""], "U1"))

    def test_slices_keep_what_they_can(self):
        values = self.dates()
        np.save(self.path / "x.npy", np.array([["ab", "c"], ["", "de"]]))
        self.shale("convert", "x.npy", "t.shale:w", "-q")
        words = np.load(self.path / "x.npy")
        for source in ("t.shale:when", "dates.npy"):
            self.assert_same(self.load(f"{source}[1:, ::-1]"), values[1:, ::-1])
            self.assert_same(self.load(f"{source}[2, 3]"), values[2, 3])
        for source in ("t.shale:w", "x.npy"):
            for index, wanted in (("[1]", words[1]), ("[..., 0, :]", words[:, 0]), ("[None]", words[None]),
                                  ("[:, None, ...]", words[:, None]), ("[1, 1]", words[1, 1]),
                                  ("[:, :, :1]", words.astype("U1")), ("[:, :, :, ...]", words)):
                with self.subTest(source, index=index):
                    self.assert_same(self.load(source + index), np.asarray(wanted))
            codes = words.reshape(-1).view(np.uint32).reshape(2, 2, 2)
            for index, wanted in (("[..., 0]", codes[..., 0]), ("[0, 0, 1]", codes[0, 0, 1]),
                                  ("[:, :, :, None]", codes[..., None]), ("[..., None]", codes[..., None])):
                with self.subTest(source, index=index):
                    self.assert_same(self.load(source + index), np.asarray(wanted))
        done = self.shale("convert", "t.shale:w[..., 0]", "t.shale:first", "--json").json()
        self.assertIn("logical dtype U", done["converted"][0]["not_kept"][0])
        self.assertEqual(self.facts("t.shale:first")["attributes"], {})

    def test_what_is_not_kept_is_named(self):
        values = self.dates()
        for target, dtype in (("t.shale:f", "float64"), ("f.npy", "float64"), ("f.npz:f", "float64"),
                              ("f.raw", "int64"), ("f.t7", "int64")):
            how = ["--as", "float64"] if dtype == "float64" else []
            done = self.shale("convert", "t.shale:when", target, "--json", *how).json()["converted"][0]
            self.assertEqual(done["not_kept"], [f"logical dtype datetime64[D]: the elements are {dtype}"])
        self.assert_same(np.load(self.path / "f.npy"), values.astype(int).astype(float))
        self.assertEqual(self.facts("t.shale:f")["attributes"], {})
        # Where a file has the logical dtype, the attribute that said it is not lost.
        self.assertEqual(self.shale("convert", "t.shale:when", "w.npy", "--json").json()["converted"][0]["not_kept"],
                         [])
        for target in ("all.npz", "all.shale"):
            done = self.shale("convert", "t.shale", target, "--as", "float32", "--json").json()
            self.assertIn("datetime64[D]", done["converted"][1]["not_kept"][0])

    def test_an_array_that_is_replaced_stands_for_its_new_values(self):
        values = self.dates()
        np.save(self.path / "s.npy", values.astype("M8[s]"))
        self.shale("convert", "s.npy", "t.shale:when", "-f", "-q")
        self.assert_same(self.load("t.shale:when"), values.astype("M8[s]"))
        # Numbers keep what the array was, as they keep its other attributes.
        self.shale("eval", "arange(12).reshape(3, 4)", "-o", "t.shale:when", "-f", "-q")
        self.assert_same(self.load("t.shale:when"), np.arange(12).reshape(3, 4).view("M8[s]"))
        np.save(self.path / "w.npy", np.array([["ab"]]))
        self.shale("convert", "w.npy", "t.shale:when", "-f", "-q", "--as", "uint32")
        self.assert_same(self.load("t.shale:when"), np.array([["ab"]]))

    def test_elements_of_another_unit_are_refused(self):
        values = self.dates()
        np.save(self.path / "s.npy", values.astype("M8[s]"))
        np.save(self.path / "span.npy", values.view("m8[D]"))
        np.save(self.path / "n.npy", values.astype(int))
        self.shale("convert", "n.npy", "t.shale:plain", "-q")
        for name, says in (("s", "datetime64[s]"), ("span", "timedelta64[D]")):
            self.refused(USAGE, "append", "t.shale:when", f"{name}.npy", says=["datetime64[D]", says])
        self.refused(USAGE, "append", "t.shale:plain", "dates.npy", says=["int64", "datetime64[D]"])
        self.assert_same(self.load("t.shale:when"), values)
        self.shale("append", "t.shale:when", "n.npy", "-q")
        self.assert_same(self.load("t.shale:when"), np.concatenate([values, values]))
        np.save(self.path / "short.npy", np.array(["a"]))
        np.save(self.path / "long.npy", np.array(["abc"]))
        self.shale("convert", "short.npy", "t.shale:w", "-q")
        self.refused(USAGE, "append", "t.shale:w", "long.npy", says="axis 1 must be 1")

    def test_an_attribute_makes_integers_times(self):
        np.save(self.path / "x.npy", np.array([0, NAT, 5]))
        self.shale("convert", "x.npy", "x.shale:a", "-q")
        self.shale("set", "x.shale:a", f"{KEY}=datetime64[h]")
        self.assert_same(self.load("x.shale:a"), np.array([0, NAT, 5]).view("M8[h]"))
        self.shale("set", "x.shale:a", "--unset", KEY)
        self.assert_same(self.load("x.shale:a"), np.array([0, NAT, 5]))

    def test_logical_dtypes_that_do_not_fit_leave_integers(self):
        self.survey()
        values = np.arange(3)
        np.save(self.path / "x.npy", values)
        self.shale("convert", "x.npy", "survey.shale:x", "-q")
        for address, text, says in (("survey.shale:wave", "datetime64[ns]", "does not fit"),
                                    ("survey.shale:dx", "U", "does not fit"),
                                    ("survey.shale:x", "period[Q]", "is not known"),
                                    ("survey.shale:x", "S5", "is not known"), ("survey.shale:x", "3", "int64")):
            with self.subTest(text):
                self.assertIn(says, self.shale("set", address, f"{KEY}={text}").err)
                facts = self.facts(address)
                self.assertNotIn("logical_dtype", facts)
                self.assertIn(KEY, facts["conventions_problem"])
                self.assertRegex(self.shale("info", address).out, rf"attribute {KEY} +")
                self.shale("cat", address)
        self.shale("set", "survey.shale:x", f"{KEY}=period[Q]")
        self.assert_same(self.load("survey.shale:x"), values)
        # A copy keeps what a later version knows.
        self.shale("convert", "survey.shale", "copy.shale", "-q")
        self.assertEqual(self.facts("copy.shale:x")["attributes"], {KEY: "period[Q]"})

    # ---- computing -------------------------------------------------------------------------------

    def test_eval_names_the_operands_whose_meaning_is_lost(self):
        values = self.dates()
        np.save(self.path / "w.npy", np.array(["ab", "c"]))
        lost = ["logical dtype datetime64[D] of a: expressions compute with int64",
                "logical dtype U2 of w: expressions compute with uint32"]
        command = ["eval", "a[::-1] + w[0, 0] * n", "--let", "a=t.shale:when[:2]", "--let", "w=w.npy", "--let", "n=0"]
        for target in ([], ["-o", "o.npy", "-f"], ["-o", "o.shale:a", "-f"]):
            with self.subTest(target):
                self.assertEqual(self.shale(*command, *target, "--json").json()["not_kept"], lost)
                said = self.shale(*command, *target).err
                for line in lost:
                    self.assertEqual(said.count(f"not kept: {line}\n"), 1, said)
                self.assertEqual(self.shale(*command, *target, "-q").err, "")
        self.assert_same(np.load(self.path / "o.npy"), values[1::-1].astype(int))
        self.assertEqual(self.shale("eval", "n + 1", "--let", "n=2", "--json").json()["not_kept"], [])

    def test_stats_leave_nat_out_and_show_dates(self):
        counts = np.array([[5, NAT, -3], [NAT, 40, 7]])
        valid = counts[counts != NAT]
        for unit in ("D", "M", "s", "ns", "25s"):
            values = counts.view(f"M8[{unit}]")
            least, most = (str(np.datetime_as_string(count.view(values.dtype))) for count in (valid.min(), valid.max()))
            np.save(self.path / "x.npy", values)
            self.shale("convert", "x.npy", "x.shale:a", "-f", "-q", "--chunked")
            for address in ("x.npy", "x.shale:a"):
                with self.subTest(unit, address=address):
                    stats = self.shale("stats", address, "--json").json()
                    self.assertEqual([stats[key] for key in ("dtype", "logical_dtype", "count", "nan_count")],
                                     ["int64", f"datetime64[{unit}]", 6, 2])
                    self.assertEqual((stats["min"], stats["max"]), (least, most))
                    self.assertAlmostEqual(stats["mean"], valid.mean(), delta=1e-9)
                    self.assertAlmostEqual(stats["std"], valid.std(), delta=1e-9)
                    shown = self.shale("stats", address).out
                    for line in (rf"dtype +datetime64\[{unit}\]; mean and std are counts of its unit",
                                 r"nat +2 \(left out below\)", f"min +{least}", f"max +{most}"):
                        self.assertRegex(shown, rf"(?m)^{line}$")
        self.assertEqual(self.shale("stats", "x.npy[0, ::2]", "--json").json()["nan_count"], 0)
        self.assertRegex(self.shale("stats", "x.npy[0, ::2]").out, r"(?m)^nat +0$")
        none = self.shale("stats", "x.npy[0, 1:2]", "--json").json()
        self.assertEqual([none[key] for key in ("count", "nan_count", "min", "max", "mean", "std")],
                         [1, 1] + [None] * 4)
        self.assertRegex(self.shale("stats", "x.npy[0, 1:2]").out, r"(?m)^min +-$")
        np.save(self.path / "x.npy", counts.view("m8[us]"))
        stats = self.shale("stats", "x.npy", "--json").json()
        self.assertEqual((stats["nan_count"], stats["min"], stats["max"]), (2, -3, 40))
        # Without a logical dtype, the least integer is a number.
        np.save(self.path / "x.npy", counts)
        stats = self.shale("stats", "x.npy", "--json").json()
        self.assertEqual((stats["nan_count"], stats["min"]), (0, NAT))
        self.assertNotIn("logical_dtype", stats)

    def test_stats_of_texts_are_those_of_their_characters(self):
        np.save(self.path / "x.npy", np.array(["ab", "b"]))
        stats = self.shale("stats", "x.npy", "--json").json()
        self.assertEqual([stats[key] for key in ("logical_dtype", "count", "nan_count", "min", "max")],
                         ["U2", 4, 0, 0, ord("b")])
        self.assertRegex(self.shale("stats", "x.npy").out, r"(?m)^dtype +U2; these are the numbers of its characters$")

    # ---- text ------------------------------------------------------------------------------------

    def test_cat_prints_iso_8601(self):
        for name, values in samples().items():
            if values.dtype.kind != "M":
                continue
            np.save(self.path / "x.npy", values)
            self.shale("convert", "x.npy", "x.shale:a", "-f", "-q", "--chunked")
            shown = np.datetime_as_string(values)
            for address in ("x.npy", "x.shale:a"):
                with self.subTest(name, address=address):
                    lines = self.shale("cat", address).out.splitlines()
                    self.assertEqual("\n".join(lines[:-1]).translate(str.maketrans("[]", "  ")).split(),
                                     [str(text) for text in shown.reshape(-1)])
                    self.assertTrue(lines[-1].startswith(values.dtype.name))
                    printed = self.shale("cat", "--csv", address).out
                    self.assertEqual([row for row in csv.reader(io.StringIO(printed))],
                                     np.atleast_2d(shown).astype(str).tolist() if values.size else [])

    def test_cat_prints_texts(self):
        np.save(self.path / "x.npy", np.array([["ab", "höhe"], ["", "c"]]))
        self.assertEqual(self.shale("cat", "x.npy").out, "[[  'ab' 'höhe']\n [    ''    'c']]\nU4 (2, 2)\n")
        np.save(self.path / "x.npy", np.array(["a,b", 'q"q', " x", "", "plain", "\x1b[2J\n"]))
        printed = self.shale("cat", "--csv", "x.npy").out
        self.assertEqual([row for row, in csv.reader(io.StringIO(printed))],
                         ["a,b", 'q"q', " x", "", "plain", "\\x1b[2J\\n"])
        np.save(self.path / "x.npy", np.array([f"n{i}" for i in range(5000)]))
        self.shale("convert", "x.npy", "x.shale:a", "--chunked", "-q")
        shown = self.shale("cat", "x.npy").out
        self.assertIn("...", shown)
        self.assertIn("'n4999']\nU5 (5000,)", shown)
        self.assertEqual(self.shale("cat", "x.shale:a").out, shown)
        self.assertEqual(self.shale("cat", "--csv", "--mem", "1MiB", "x.shale:a").out.split(),
                         [f"n{i}" for i in range(5000)])

    # ---- hostile headers -------------------------------------------------------------------------

    def test_hostile_headers_are_refused(self):
        np.save(self.path / "good.npy", np.zeros(3, "M8[ns]"))
        good = (self.path / "good.npy").read_bytes()
        for descr, code in (("<M8[0s]", CORRUPT), ("<M8[-1]", CORRUPT), ("<M8[xx]", CORRUPT), ("<M8(ns)", CORRUPT),
                            ("<M9[ns]", CORRUPT), ("|S99999", CORRUPT), ("|S-0001", CORRUPT), ("<U-1", CORRUPT),
                            ("|V24", UNSUPPORTED), ("|O", UNSUPPORTED)):
            header = good.replace(b"'<M8[ns]'", f"'{descr}'".encode().ljust(9) if len(descr) < 7 else
                                  f"'{descr}'".encode())
            self.assertEqual(len(header), len(good))
            (self.path / "bad.npy").write_bytes(header)
            with self.subTest(descr):
                for arguments in (["info"], ["cat"], ["ls", "-l"]):
                    self.shale(*arguments, "bad.npy", code=code)
        # As many characters as a text can have, and no bytes for them.
        big = good.replace(b"'<M8[ns]'", b"'<U536870911'")
        (self.path / "bad.npy").write_bytes(big)
        self.shale("cat", "bad.npy", code=CORRUPT)
        # Numbers that are no characters of Unicode are shown as U+FFFD, and kept.
        codes = np.array([0xd800, 0x110000, 0xffffffff, 0x41], np.uint32)
        np.save(self.path / "codes.npy", codes.view("U4"))
        self.assertEqual(self.shale("cat", "codes.npy").out, "['\ufffd\ufffd\ufffdA']\nU4 (1,)\n")
        self.shale("convert", "codes.npy", "c.shale:c", "-q")
        self.shale("convert", "c.shale:c", "back.npy", "-q")
        self.assertEqual((self.path / "back.npy").read_bytes(), (self.path / "codes.npy").read_bytes())


if __name__ == "__main__":
    main()
