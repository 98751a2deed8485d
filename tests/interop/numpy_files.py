"""NumPy's side of the tests.

write DIRECTORY   makes files of every kind, each with NAME.expect: the elements' bytes, row-major
                  and little-endian; prints nothing. The list is DIRECTORY/manifest, one line each:
                  file | member | dtype | extents | how
check DIRECTORY   reads what Shale wrote; DIRECTORY/manifest says what must be there, one line each:
                  file | member | dtype | extents of the base | seed | expression over the base a
"""

import io
import struct
import sys
import zipfile

import numpy as np

DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
          "float16 float32 float64 complex64 complex128").split()


def pattern(shape, dtype, seed):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    i = np.arange(count, dtype=np.uint64)
    data = ((i * np.uint64(2654435761) + np.uint64(seed * 40503)) >> np.uint64(13)).astype(np.uint8)
    if dtype == np.bool_:
        data &= 1
    return data.view(dtype).reshape(shape)


def little(array):
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()


class Corpus:
    def __init__(self, directory):
        self.directory = directory
        self.lines = []

    def expect(self, file, member, array, how):
        at = "%s/%d.expect" % (self.directory, len(self.lines))
        with open(at, "wb") as out:
            out.write(little(array))
        extents = " ".join(map(str, array.shape))
        self.lines.append("|".join((file, member, array.dtype.name, extents, how)))

    def npy(self, file, array, how, version=None):
        with open("%s/%s" % (self.directory, file), "wb") as out:
            np.lib.format.write_array(out, array, version=version)
        self.expect(file, "", array, how)


def with_header(text, version, data):
    text = text.encode("latin1")
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def integers(array):
    """What times and texts are stored as."""
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    if array.dtype.kind in "mM":
        return array.view(np.int64)
    character = {"S": np.uint8, "U": np.uint32}[array.dtype.kind]
    return array.view(character).reshape(*array.shape, array.dtype.itemsize // np.dtype(character).itemsize)


def write_logical(corpus):
    """Times and texts, in every order of bytes and of axes."""
    counts = pattern((3, 4), "int64", 9)
    counts[1, 2] = -2**63  # NaT
    words = np.array([["", "a", "bc"], ["h\u00f6he", "\u9ad8\u3055", "\U0001f600"]])
    arrays = {"date_ns": counts.view("M8[ns]"), "date_25s": counts.view("M8[25s]"), "date_D": counts.view("M8[D]"),
              "span_us": counts.view("m8[us]"), "span": counts.view("m8"), "text": words,
              "bytes": np.array([[b"", b"a", b"bc"], [b"\xff\x00b", b"0123456", b"x"]])}
    for name, array in arrays.items():
        for order, how in (("<", "mapped"), (">", "mapped" if name == "bytes" else "copied")):
            for form in "CF":
                file = "%s_%s_%s.npy" % (name, {"<": "little", ">": "big"}[order], form)
                # `astype` leaves a timedelta64 without a unit in its order of bytes.
                swapped = array.byteswap().view(array.dtype.newbyteorder(order))
                stored = np.asarray(array if order == "<" else swapped, order=form)
                np.save("%s/%s" % (corpus.directory, file), stored)
                corpus.expect(file, "", integers(array), how)
    for file, save in (("times.npz", np.savez), ("times_deflate.npz", np.savez_compressed)):
        save("%s/%s" % (corpus.directory, file), **arrays)
        for name, array in arrays.items():
            corpus.expect(file, name, integers(array), "any")


def write(directory):
    corpus = Corpus(directory)
    shapes = {"scalar": (), "vector": (7,), "cube": (2, 3, 5), "empty": (3, 0, 2), "ones": (1, 1)}
    seed = 0
    for dtype in DTYPES:
        for label, shape in shapes.items():
            seed += 1
            array = pattern(shape, dtype, seed)
            corpus.npy("%s_%s.npy" % (dtype, label), array, "mapped")
        array = pattern((2, 3, 5), dtype, seed + 1000)
        corpus.npy(dtype + "_fortran.npy", np.asfortranarray(array), "mapped")
        swapped = array.astype(array.dtype.newbyteorder(">"))
        how = "mapped" if array.dtype.itemsize == 1 else "copied"
        corpus.npy(dtype + "_big.npy", swapped, how)
        corpus.npy(dtype + "_big_fortran.npy", np.asfortranarray(swapped), how)
    for version in (1, 2, 3):
        corpus.npy("version_%d.npy" % version, pattern((4, 3), "int32", version), "mapped",
                   (version, 0))
    corpus.npy("rank_32.npy", pattern((1,) * 30 + (2, 3), "int16", 5), "mapped")

    # Headers that NumPy reads but would not write today.
    array = pattern((2, 3), "int16", 77)
    data = array.tobytes()
    odd = {
        "python2_longs": (1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }"),
        "other_order": (2, '{"shape":(2,3),"descr":"<i2","fortran_order":False}'),
        "spread": (3, " {'descr' : 'i2' ,\n 'fortran_order':\tFalse, 'shape': ( 2 , 3 , ) }  "),
        "native_mark": (1, "{'descr': '=i2', 'fortran_order': False, 'shape': (2, 3)} "),
        "no_order_mark": (1, "{'descr': '|i2', 'fortran_order': False, 'shape': (2, 3)} "),
    }
    for label, (version, text) in odd.items():
        for filler in (0, 1):
            name = "%s_%d.npy" % (label, filler)
            raw = with_header(text + " " * filler, version, data)
            with open("%s/%s" % (directory, name), "wb") as out:
                out.write(raw)
            assert np.array_equal(np.load("%s/%s" % (directory, name)), array), name
            aligned = (len(raw) - len(data)) % 2 == 0
            corpus.expect(name, "", array, "mapped" if aligned else "copied")

    arrays = {"elevation": pattern((30, 17), "int16", 91), "flag": pattern((9,), "bool", 92),
              "big": pattern((4, 3), "float64", 93).astype(">f8"),
              "columns": np.asfortranarray(pattern((5, 6), "float32", 94)),
              "scalar": pattern((), "complex128", 95), "none": pattern((0, 4), "uint8", 96),
              "h\u00f6he/\u9ad8\u3055": pattern((3,), "int64", 97)}
    np.savez(directory + "/stored.npz", **arrays)
    np.savez_compressed(directory + "/deflate.npz", **arrays)
    for file in ("stored.npz", "deflate.npz"):
        for member, array in arrays.items():
            corpus.expect(file, member, array, "any")

    def npy_bytes(array):
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    # Members without the suffix, both forms side by side, a directory, a comment.
    with zipfile.ZipFile(directory + "/names.npz", "w") as archive:
        archive.comment = b"PK\x05\x06 is in this comment too, and some bytes follow it: " + b"x" * 40
        for member, number in (("plain", 1), ("both", 2), ("both.npy", 3), ("a/b.npy", 4)):
            archive.writestr(member, npy_bytes(pattern((4,), "int32", number)))
        archive.writestr(zipfile.ZipInfo("folder/"), b"")
        archive.writestr("readme.txt", b"not an array")
    for member, number in (("plain", 1), ("both", 2), ("both.npy", 3), ("a/b", 4), ("a/b.npy", 4)):
        corpus.expect("names.npz", member, pattern((4,), "int32", number), "any")

    # ZIP64 records everywhere, and sizes that follow the data.
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 1
    for file, method in (("zip64_stored.npz", zipfile.ZIP_STORED),
                         ("zip64_deflate.npz", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(directory + "/" + file, "w", method) as archive:
            for number in (1, 2, 3):
                with archive.open("m%d.npy" % number, "w", force_zip64=True) as out:
                    out.write(npy_bytes(pattern((50, number), "float32", number)))
        for number in (1, 2, 3):
            corpus.expect(file, "m%d" % number, pattern((50, number), "float32", number), "any")
    zipfile.ZIP64_LIMIT = limit

    class Pipe(io.RawIOBase):  # no seeking: zipfile writes data descriptors then
        def __init__(self, out):
            self.out = out

        def writable(self):
            return True

        def write(self, data):
            return self.out.write(data)

        def flush(self):
            self.out.flush()

    for file, method in (("piped_stored.npz", zipfile.ZIP_STORED),
                         ("piped_deflate.npz", zipfile.ZIP_DEFLATED)):
        with open(directory + "/" + file, "wb") as out:
            with zipfile.ZipFile(Pipe(out), "w", method) as archive:
                for number in (1, 2):
                    archive.writestr("m%d.npy" % number, npy_bytes(pattern((60,), "int32", number)))
        for number in (1, 2):
            corpus.expect(file, "m%d" % number, pattern((60,), "int32", number), "any")

    np.savez(directory + "/no_members.npz")
    with open(directory + "/several.npy", "wb") as out:
        np.save(out, pattern((3,), "int16", 1))
        np.save(out, pattern((2, 2), "float64", 2))
    np.save(directory + "/object.npy", np.array([None, 1], dtype=object), allow_pickle=True)
    np.save(directory + "/structured.npy", np.zeros(3, dtype=[("a", "<i4"), ("b", "<f8", (2,))]))
    write_logical(corpus)
    np.save(directory + "/void.npy", np.zeros(3, dtype="V2"))
    np.save(directory + "/long_double.npy", np.zeros(3, dtype=np.longdouble))
    with open(directory + "/manifest", "w") as out:
        out.write("\n".join(corpus.lines) + "\n")


def check(directory):
    with open(directory + "/manifest") as lines:
        entries = [line.rstrip("\n").split("|") for line in lines]
    assert entries
    for file, member, dtype, extents, seed, expression in entries:
        base = pattern(tuple(map(int, extents.split())), dtype, int(seed))
        wanted = eval(expression, {"np": np, "a": base})
        loaded = np.load("%s/%s" % (directory, file))
        if member:
            assert zipfile.ZipFile("%s/%s" % (directory, file)).testzip() is None
            assert member in loaded.files, (file, member, loaded.files)
            loaded = loaded[member]
        where = (file, member, expression)
        assert loaded.dtype == wanted.dtype, (where, loaded.dtype)
        assert loaded.shape == wanted.shape, (where, loaded.shape)
        assert loaded.tobytes() == wanted.tobytes(), where
        if not member:  # the very bytes that NumPy would have written
            out = io.BytesIO()
            np.save(out, wanted)
            with open("%s/%s" % (directory, file), "rb") as written:
                head = written.read(len(out.getvalue()) - wanted.nbytes)
            assert head == out.getvalue()[: len(head)], (where, head)


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
