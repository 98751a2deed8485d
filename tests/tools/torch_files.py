"""Reads and writes the .t7 files of Torch7, as torch.save and torch.load do, from the description of the
format alone. A table is a dict, a tensor a NumPy array, a storage a Storage, an object of another class an
Object."""

import re
import struct

import numpy as np

TYPES = {"Byte": "u1", "Char": "i1", "Short": "<i2", "Int": "<i4", "Long": "<i8", "Half": "<f2",
         "Float": "<f4", "Double": "<f8"}
NAMES = {np.dtype(code): name for name, code in TYPES.items()}


class Storage:
    def __init__(self, elements):
        self.elements = np.asarray(elements)


class Object:
    def __init__(self, of_class, held):
        self.of_class, self.held = of_class, held


class Tensor:
    """Strides and offset count elements of the storage."""

    def __init__(self, storage, sizes, strides, offset=0):
        self.storage, self.sizes, self.strides, self.offset = storage, sizes, strides, offset


class _Writer:
    def __init__(self, ascii_form):
        self.ascii, self.out, self.known, self.kept = ascii_form, bytearray(), {}, []

    def numbers(self, code, *values):
        if self.ascii:
            form = "%.17g" if code == "d" else "%.9g" if code in "fe" else "%d"
            self.out += " ".join(form % value for value in values).encode()
            self.out += b"\n" if values else b""
        else:
            self.out += struct.pack(f"<{len(values)}{code}", *values)

    def raw(self, data):
        self.out += data + (b"\n" if self.ascii and data else b"")

    def text(self, text):
        data = text.encode() if isinstance(text, str) else text
        self.numbers("i", len(data))
        self.raw(data)

    def begin(self, kind, value):
        """Whether the object has to be written: its index alone stands where it has been before."""
        self.numbers("i", kind)
        index = self.known.get(id(value))
        if index is None:
            self.kept.append(value)  # so that no other object gets its id
            self.known[id(value)] = len(self.kept)
        self.numbers("i", index or len(self.kept))
        return index is None

    def torch_class(self, name):
        self.text("V 1")
        self.text(name)

    def write(self, value):
        if value is None:
            self.numbers("i", 0)
        elif isinstance(value, bool):
            self.numbers("i", 5)
            self.numbers("i", int(value))
        elif isinstance(value, (int, float)):
            self.numbers("i", 1)
            self.numbers("d", value)
        elif isinstance(value, (str, bytes)):
            self.numbers("i", 2)
            self.text(value)
        elif isinstance(value, dict):
            if self.begin(3, value):
                self.numbers("i", len(value))
                for key, held in value.items():
                    self.write(key)
                    self.write(held)
        elif isinstance(value, Storage):
            if self.begin(4, value):
                self.storage(value.elements)
        elif isinstance(value, Object):
            if self.begin(4, value):
                self.torch_class(value.of_class)
                self.write(value.held)
        elif self.begin(4, value):
            self.tensor(value)

    def storage(self, elements):
        self.torch_class(f"torch.{NAMES[elements.dtype]}Storage")
        self.numbers("q", elements.size)
        if self.ascii and elements.itemsize > 1:
            self.numbers(elements.dtype.char if elements.dtype.kind == "f" else "q", *elements.tolist())
        else:
            self.raw(elements.tobytes())

    def tensor(self, value):
        if isinstance(value, np.ndarray):
            strides = [np.prod(value.shape[axis + 1:], dtype=int) for axis in range(value.ndim)]
            value = Tensor(Storage(value.ravel()), value.shape, strides)
        self.torch_class(f"torch.{NAMES[value.storage.elements.dtype]}Tensor")
        self.numbers("i", len(value.sizes))
        self.numbers("q", *value.sizes)
        self.numbers("q", *value.strides)
        self.numbers("q", value.offset + 1)
        self.write(value.storage)


def dumps(value, ascii_form=False):
    writer = _Writer(ascii_form)
    writer.write(value)
    return bytes(writer.out)


def save(path, value, ascii_form=False):
    with open(path, "wb") as file:
        file.write(dumps(value, ascii_form))


class _Reader:
    """Of binary files."""

    def __init__(self, data):
        self.data, self.at, self.known = data, 0, {}

    def bytes(self, count):
        assert 0 <= count <= len(self.data) - self.at, "the file is too short"
        self.at += count
        return self.data[self.at - count:self.at]

    def numbers(self, code, count):
        return struct.unpack(f"<{count}{code}", self.bytes(count * struct.calcsize(f"<{code}")))

    def int(self):
        return self.numbers("i", 1)[0]

    def text(self):
        return self.bytes(self.int())

    def read(self):
        kind = self.int()
        if kind == 0:
            return None
        if kind == 1:
            return self.numbers("d", 1)[0]
        if kind == 2:
            return self.text().decode()
        if kind == 5:
            return self.int() == 1
        assert kind in (3, 4), f"a value of type {kind}"
        index = self.int()
        if index not in self.known:
            assert index == len(self.known) + 1, "Torch counts objects from 1 on"
            self.known[index] = {}
            if kind == 3:
                for _ in range(self.int()):
                    key = self.read()
                    self.known[index][key] = self.read()
            else:
                self.known[index] = self.torch()
        return self.known[index]

    def torch(self):
        version = self.text()
        assert int(re.fullmatch(rb"V (.*)", version).group(1)) == 1
        kind, what = re.fullmatch(r"torch\.([A-Z][a-z]+)(Tensor|Storage)", self.text().decode()).groups()
        if what == "Storage":
            count = self.numbers("q", 1)[0]
            code = np.dtype(TYPES[kind])
            return np.frombuffer(self.bytes(count * code.itemsize), code)
        rank = self.int()
        sizes, strides = self.numbers("q", rank), self.numbers("q", rank)
        offset = self.numbers("q", 1)[0] - 1
        storage = self.read()
        assert storage.dtype == np.dtype(TYPES[kind])
        return np.lib.stride_tricks.as_strided(
            storage[offset:], sizes, [stride * storage.itemsize for stride in strides]).copy()


def load(path):
    with open(path, "rb") as file:
        reader = _Reader(file.read())
    value = reader.read()
    assert reader.at == len(reader.data), "bytes after the object"
    return value
