#!/usr/bin/python3
"""Reads Shale's containers. It is written from docs/container-format.md alone and shares no code with
the library, so it shows that the document is enough to write a reader. Numbers in parentheses are
sections of the document. It uses NumPy and the C libraries of XXH3, Zstandard and LZ4.

    with Container("survey.shale") as file:
        file.arrays["dem"].read(), file.arrays["dem"].attributes, file.verify()

Every byte is compared with its checksum before it is used. Damage raises Damaged, which names the
place; what belongs to later versions raises Unsupported. NumPy has no bfloat16 and no types of 8 bits:
such elements are returned as their bits, in uint16 and uint8.

Usage: read_shale.py FILE [ARRAY]   verifies the file and lists its arrays, or prints one
"""

import ctypes
import fcntl
import math
import os
import re
import struct
import sys
from dataclasses import dataclass, field

import numpy as np

PAGE, FIRST_EXTENT, SLOTS, LIVE_PAGE = 4096, 53248, (16384, 32768), 49152
FIXED = (1, PAGE, *SLOTS, LIVE_PAGE, FIRST_EXTENT)
ROOT, CATALOG, CHUNKS, SPACE, RETAINED = range(5)
NEVER = 2**64 - 1
DTYPES = [None, "?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<u2", "<f4", "<f8",
          "<c8", "<c16", "u1", "u1"]
BITROUND, DELTA, BYTE_SHUFFLE, BIT_SHUFFLE, ZSTD, LZ4 = range(1, 7)


class Damaged(Exception):
    """The file is not what its checksums, or the document, say."""


class Unsupported(Exception):
    """A later version of the format wrote this."""


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def function(library, name, result, *arguments):
    found = getattr(ctypes.CDLL(library), name)
    found.restype, found.argtypes = result, arguments
    return found


SIZE, BYTES, INT = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int
xxh3_64 = function("libxxhash.so.0", "XXH3_64bits", ctypes.c_uint64, BYTES, SIZE)
xxh3_128 = function("libxxhash.so.0", "XXH3_128bits", Hash128, BYTES, SIZE)
zstd_frame = function("libzstd.so.1", "ZSTD_findFrameCompressedSize", SIZE, BYTES, SIZE)
zstd_decompress = function("libzstd.so.1", "ZSTD_decompress", SIZE, ctypes.c_void_p, SIZE, BYTES, SIZE)
lz4_decompress = function("liblz4.so.1", "LZ4_decompress_safe", INT, BYTES, ctypes.c_void_p, INT, INT)


def checksum64(data):
    return xxh3_64(data, len(data))


def checksum128(data):
    hashed = xxh3_128(data, len(data))
    return hashed.low, hashed.high


def require(condition, what):
    if not condition:
        raise Damaged(what)


class Table:
    """A table of a FlatBuffer. Fields are numbered as in the schema (7). Every access is checked
    against the end of the buffer, which is why nothing is verified beforehand."""

    def __init__(self, data, at, place):
        self.data, self.at, self.place = data, at, place
        self.fields = at - self.numbers("<i", at)[0]

    def numbers(self, form, at):
        require(0 <= at <= len(self.data) - struct.calcsize(form), f"{self.place}: ends too early")
        return struct.unpack_from(form, self.data, at)

    def inline(self, number):
        """Where a field's bytes lie, or None if it has its default."""
        slot = 4 + 2 * number
        if slot + 2 > self.numbers("<H", self.fields)[0]:
            return None
        offset, = self.numbers("<H", self.fields + slot)
        return self.at + offset if offset else None

    def get(self, number, form, default=None):
        """A number, or a struct as a tuple."""
        at = self.inline(number)
        found = default if at is None else self.numbers(form, at)
        return found[0] if at is not None and len(found) == 1 else found

    def target(self, number):
        at = self.inline(number)
        return None if at is None else at + self.numbers("<I", at)[0]

    def table(self, number):
        at = self.target(number)
        return None if at is None else Table(self.data, at, self.place)

    def vector(self, number, form):
        at = self.target(number)
        if at is None:
            return []
        count, size = self.numbers("<I", at)[0], struct.calcsize(form)
        require(at + 4 + count * size <= len(self.data), f"{self.place}: ends too early")
        found = [self.numbers(form, at + 4 + i * size) for i in range(count)]
        return [f[0] for f in found] if len(form.strip("<")) == 1 else found

    def bytes(self, number):
        return bytes(self.vector(number, "<B"))

    def tables(self, number):
        start = (self.target(number) or 0) + 4
        return [Table(self.data, start + 4 * i + offset, self.place)
                for i, offset in enumerate(self.vector(number, "<I"))]


@dataclass
class Superblock:
    generation: int
    root: int
    root_bytes: int
    root_checksum: tuple
    end: int
    version: int = 1
    incompatible: int = 0
    slot: int = -1  # the one it lies in; -1 if the tree of retained generations holds it
    raw: bytes = field(default=b"", repr=False)


def superblock(raw, slot, uuid):
    """The superblock of a slot, or None if it is not valid (4)."""
    summed = raw[16:32] + raw[12:16] + raw[:12] + raw[32:496]
    if raw[:8] != b"SHALESB\n" or raw[16:32] != uuid or struct.unpack_from("<I", raw, 12)[0] != slot \
            or checksum128(summed) != struct.unpack_from("<QQ", raw, 496):
        return None
    generation, root, size, low, high, end, incompatible = struct.unpack_from("<QQQQQQQ", raw, 32)
    return Superblock(generation, root, size, (low, high), end, struct.unpack_from("<I", raw, 8)[0],
                      incompatible, slot, raw)


class Container:
    """One generation of a container: the newest, or an older one that a superblock or the tree of
    retained generations still names. It is pinned until it is closed (11)."""

    def __init__(self, path, generation=None):
        self.path, self.used = str(path), []  # used: offset, bytes, granule of what was read
        while not self._open(generation):
            os.close(self.descriptor)
        try:
            self._read_root()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.close(self.descriptor)

    def pread(self, offset, size, place):
        found = os.pread(self.descriptor, size, offset)
        require(len(found) == size, f"{self.path}, {place}: the file ends before byte {offset + size}")
        return found

    def _superblocks(self):
        """The valid superblocks, the newest first (3, 4)."""
        header = self.pread(0, PAGE, "header")
        require(header[:8] == b"\x89SHALE\r\n", f"{self.path}: not a container of Shale")
        require(checksum128(header[:4080]) == struct.unpack_from("<QQ", header, 4080),
                f"{self.path}, header at byte 0: checksum mismatch")
        fixed = struct.unpack_from("<II16xQQQQ", header, 8)
        if fixed != FIXED:
            raise Unsupported(f"{self.path}: header {fixed}")
        live, = struct.unpack("<I", self.pread(LIVE_PAGE, 4, "live page"))
        valid = [superblock(self.pread(at, 512, f"superblock {slot}"), slot, header[16:32])
                 for slot, at in enumerate(SLOTS)]
        valid = sorted(filter(None, valid), key=lambda s: -s.generation)
        require(valid, f"{self.path}, superblocks at bytes {SLOTS}: none is valid")
        lost = len(valid) == 1 and 1 <= (live - valid[0].generation) % 2**32 < 2**31
        require(not lost, f"{self.path}, superblock {1 - valid[0].slot}: checksum mismatch; generation "
                          f"{live} was announced, only {valid[0].generation} is whole")
        return valid

    def _lock(self, generation):
        request = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 2**61 + generation, 1, 0)
        fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, request)

    def _open(self, generation):
        """Opens and pins the newest generation; false if it was replaced meanwhile."""
        self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            known = self._superblocks()
            chosen = [s for s in known if generation in (None, s.generation)][:1]
            self.superblock = (chosen or known)[0]
            self._lock(self.superblock.generation)
            mine, there = os.fstat(self.descriptor), os.stat(self.path)
            if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino) or self._changed():
                return False
            if not chosen:
                self._read_root()
                kept = [s for s in self.retained() if s.generation == generation]
                if not kept:
                    raise LookupError(f"{self.path}: generation {generation} is not kept")
                self._lock(generation)
                if self._changed():
                    return False
                self.superblock = kept[0]
            return True
        except BaseException:
            self.close()
            raise

    def _changed(self):
        slot = self.superblock.slot
        return self.superblock.raw != self.pread(SLOTS[slot], 512, f"superblock {slot}")

    def _read_root(self):
        own = self.superblock
        if own.version != 1 or own.incompatible:
            raise Unsupported(f"{self.path}: version {own.version}, features {own.incompatible:#x}")
        size = os.fstat(self.descriptor).st_size
        require(size >= own.end, f"{self.path}: {size} bytes long, its generation needs {own.end}")
        self.used = []
        page = self.page(own.root, own.root_checksum, ROOT, f"root page of generation {own.generation}")
        head = struct.unpack_from("<BBHIQ", page)
        require(head == (3, 0, 0, 32, own.generation) and own.root_bytes == PAGE and not any(page[112:]),
                f"{self.path}, root page at byte {own.root}: malformed")
        self.catalog, self.space, self.kept = (struct.unpack_from("<QQQ", page, at) for at in (32, 56, 80))
        self.arrays = {}
        for key, value in self.walk(self.catalog, CATALOG, "catalog"):
            name = key.decode()
            require(not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name), f"{self.path}: {name!r}")
            self.arrays[name] = Array(self, name, value)
        count, = struct.unpack_from("<Q", page, 104)
        require(count == len(self.arrays), f"{self.path}: {count} arrays expected in the catalog")

    # ---- trees (5) -------------------------------------------------------------------------------

    def page(self, offset, checksum, tree, place):
        place = f"{self.path}, {place}, page at byte {offset}"
        page = self.pread(offset, PAGE, place)
        require(checksum128(page) == tuple(checksum), f"{place}: checksum mismatch")
        require(struct.unpack_from("<Q", page, 16)[0] == offset and page[24] == tree
                and not any(page[25:32]), f"{place}: malformed header")
        self.used.append((offset, PAGE, PAGE))
        return page

    def walk(self, reference, tree, place, level=None, low=b"", high=None):
        """(key, value) of every entry of a tree, in the order of the keys."""
        if reference[0] == 0 and level is None:
            return
        page = self.page(reference[0], reference[1:], tree, place)
        where = f"{self.path}, {place}, page at byte {reference[0]}"
        kind, here, count, end = struct.unpack_from("<BBHI", page)
        require(count and end <= PAGE and kind == (1 if here == 0 else 2) and here <= 23
                and level in (None, here) and not any(page[end:]), f"{where}: malformed header")
        cells = [*struct.unpack_from(f"<{count}H", page, 32), end]
        require(cells[0] == 32 + 2 * count, f"{where}: malformed slots")
        entries = []
        for at, after in zip(cells, cells[1:]):
            require(at + 4 <= after, f"{where}: malformed slots")
            size, word = struct.unpack_from("<HH", page, at)
            inside = word if word < 2**15 else 32
            start, length = (at + 28, 0) if here else (at + 4, inside)
            key, rest = page[start:start + size], page[start + size:start + size + length]
            require(start + size + length == after and (word in (0, 2**15) or (not here and word < 2**15))
                    and (size <= 1024 and after - at <= 1352), f"{where}: malformed cell")
            entries.append((key, struct.unpack_from("<QQQ", page, at + 4) if here else
                            rest if word < 2**15 else self.overflow(rest, where)))
        keys = [key for key, _ in entries]
        if here:
            require(keys[0] == b"", f"{where}: malformed first key")
            keys[0] = low
        require(all(a < b for a, b in zip(keys, keys[1:])) and all(keys[not not here:])
                and keys[0] >= low and (high is None or keys[-1] < high), f"{where}: keys out of order")
        if here == 0:
            yield from entries
            return
        for (_, child), begin, end in zip(entries, keys, [*keys[1:], high]):
            yield from self.walk(child, tree, place, here - 1, begin, end)

    def overflow(self, cell, place):
        offset, size, low, high = struct.unpack("<QQQQ", cell)
        require(size <= 2**26, f"{place}: an overflow value of {size} bytes")
        value = self.pread(offset, size, place)
        require(checksum128(value) == (low, high), f"{place}, value at byte {offset}: checksum mismatch")
        self.used.append((offset, size, PAGE))
        return value

    def retained(self):
        """The superblocks of the retained generations (12)."""
        result = []
        for key, value in self.walk(self.kept, RETAINED, "retained generations"):
            generation, root, size, low, high, end = struct.unpack_from("<QQQQQQ", value)
            require(int.from_bytes(key, "big") == generation, f"{self.path}: generation {generation}")
            result.append(Superblock(generation, root, size, (low, high), end))
        return result

    # ---- everything ------------------------------------------------------------------------------

    def verify(self):
        """Reads every byte that the generation refers to, and compares the space map with them (9)."""
        self._read_root()
        self.retained()
        for array in self.arrays.values():
            array.read()
        end, ranges = FIRST_EXTENT, {1: [], 2: []}
        for key, value in self.walk(self.space, SPACE, "space map"):
            section, offset = struct.unpack(">BQ", key)
            size, born, freed = struct.unpack("<QQQ", value)
            good = 0 < born <= self.superblock.generation and freed == NEVER if section == 1 else \
                born < freed <= self.superblock.generation or (born, freed) == (0, 0)
            require(section in ranges and size and offset % 64 == size % 64 == 0 and good,
                    f"{self.path}, space map: range at byte {offset}: {size, born, freed}")
            ranges[section].append((offset, size))
        for offset, size in sorted(ranges[1] + ranges[2]):
            require(offset == end, f"{self.path}, space map: gap or overlap at byte {end}")
            end += size
        require(end == self.superblock.end, f"{self.path}, space map: ends at byte {end}")
        used = [(at, -(-size // granule) * granule) for at, size, granule in self.used]
        require(joined(ranges[1]) == joined(used), f"{self.path}, space map: live ranges are wrong")


def joined(ranges):
    """The same bytes in as few ranges as possible."""
    result = []
    for offset, size in sorted(ranges):
        if result and result[-1][0] + result[-1][1] == offset:
            result[-1][1] += size
        else:
            require(not result or sum(result[-1]) < offset, f"extents overlap at byte {offset}")
            result.append([offset, size])
    return result


def typed(value):
    """What the bytes of an attribute stand for (7, "Attributes"): (kind, content). A text and JSON are str."""
    mark, place = b"\xffSHATT", "an attribute"
    if not value.startswith(mark):
        try:
            return "text", value.decode()
        except UnicodeDecodeError:
            return "bytes", value
    require(len(value) >= 8, f"{place}: ends inside its head")
    version, code, content = value[6], value[7], value[8:]
    kind = {0: "", 1: "bool", 2: "int64", 3: "uint64", 4: "double", 5: "text"}.get(code & 15, "")
    if version != 1 or not (1 <= code <= 7 or 17 <= code <= 21):
        raise Unsupported(f"{place}: version {version}, kind {code}")
    if code in (5, 6):
        return {5: "text", 6: "JSON"}[code], content.decode()
    if code == 7:
        return "bytes", content
    items = []
    if kind == "text":
        while content:
            length, = struct.unpack_from("<I", content)
            require(4 + length <= len(content), f"{place}: a text is too long")
            items.append(content[4:4 + length].decode())
            content = content[4 + length:]
    else:
        require(kind != "bool" or max(content, default=0) <= 1, f"{place}: a bool is neither 0 nor 1")
        require(len(content) % (1 if kind == "bool" else 8) == 0, f"{place}: a number is cut off")
        items = [item for item, in struct.iter_unpack(
            {"bool": "<?", "int64": "<q", "uint64": "<Q", "double": "<d"}[kind], content)]
    if code > 16:
        return f"list of {kind}", items
    require(len(items) == 1, f"{place}: {len(items)} numbers")
    return kind, items[0]


class Array:
    """An array of a container, as its descriptor describes it (7)."""

    def __init__(self, container, name, value):
        self.container, self.name = container, name
        self.place = f"{container.path}, array {name!r}"
        require(value[4:8] == b"SHAR", f"{self.place}: no descriptor")
        top = Table(value, struct.unpack_from("<I", value)[0], self.place)
        require(top.bytes(0).decode() == name, f"{self.place}: the descriptor has another name")
        self.code, self.shape = top.get(1, "<B", 0), tuple(top.vector(2, "<Q"))
        self.fill, self.live = top.bytes(3), top.get(4, "<?", False)
        self.dense, self.chunked = top.table(5), top.table(6)
        self.attributes = {a.bytes(0).decode(): a.bytes(1) for a in top.tables(7)}
        self.created, self.modified = top.get(8, "<Q", 0), top.get(9, "<Q", 0)
        require(list(self.attributes) == sorted(self.attributes, key=str.encode)
                and len(self.attributes) == len(top.tables(7)), f"{self.place}: attributes out of order")

    def read(self):
        if not 0 < self.code < len(DTYPES) or self.live or (self.dense is None) == (self.chunked is None):
            raise Unsupported(f"{self.place}: belongs to a later version")
        self.dtype = np.dtype(DTYPES[self.code])
        self.bytes = math.prod(self.shape) * self.dtype.itemsize
        require(len(self.shape) <= 32 and self.bytes <= 2**59 and len(self.fill) == self.dtype.itemsize,
                f"{self.place}: malformed descriptor")
        return self._read_dense() if self.dense is not None else self._read_chunked()

    def read_logical(self):
        """The elements as what they stand for, by the attribute _LOGICAL_DTYPE (7): NumPy's times and texts."""
        elements = self.read()
        if "_LOGICAL_DTYPE" not in self.attributes:
            return elements
        kind, text = typed(self.attributes["_LOGICAL_DTYPE"])
        unit = r"([1-9][0-9]{0,9})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)"
        if kind != "text" or not re.fullmatch(rf"(datetime64|timedelta64)(\[{unit}\])?|S|U", text):
            raise Unsupported(f"{self.place}: logical dtype {text!r}")
        require(self.code == {"S": 6, "U": 8}.get(text, 5), f"{self.place}: {text} of dtype {self.code}")
        if text not in "SU":
            return elements.view(text)
        require(self.shape, f"{self.place}: {text} without an axis of characters")
        if not self.shape[-1] or not elements.size:
            return np.zeros(self.shape[:-1], f"{text}{max(self.shape[-1], 1)}")
        return np.ascontiguousarray(elements).view(f"{text}{self.shape[-1]}").reshape(self.shape[:-1])

    def _read_dense(self):
        data, left = [], self.bytes
        for offset, size in self.dense.vector(0, "<QQ"):
            data.append(self.container.pread(offset, min(size, left), self.place))
            left -= len(data[-1])
            self.container.used.append((offset, size, PAGE))
        require(left == 0, f"{self.place}: its extents are too short")
        data = b"".join(data)
        sums_at, sums_bytes = self.dense.get(1, "<QQ", (0, 0))
        if sums_bytes:
            raw = self.container.pread(sums_at, sums_bytes, f"{self.place}, checksums")
            require(checksum128(raw) == self.dense.get(2, "<QQ"),
                    f"{self.place}, checksums at byte {sums_at}: checksum mismatch")
            self.container.used.append((sums_at, sums_bytes, PAGE))
            require(sums_bytes == 8 * -(-self.bytes // 2**20), f"{self.place}: malformed checksums")
            for i, stored in enumerate(np.frombuffer(raw, "<u8")):
                require(checksum64(data[i << 20:(i + 1) << 20]) == stored,
                        f"{self.place}, segment {i}: checksum mismatch")
        return np.frombuffer(data, self.dtype).reshape(self.shape)

    def _read_chunked(self):
        chunk, capacity = self.chunked.vector(0, "<Q"), self.chunked.vector(1, "<Q")
        require(len(chunk) == len(capacity) == len(self.shape) and all(chunk) and
                math.prod(chunk) * self.dtype.itemsize <= 2**30, f"{self.place}: malformed chunks")
        grid = [-(-n // c) for n, c in zip(self.shape, chunk)]
        require(all(c >= max(g, 1) for c, g in zip(capacity, grid)) and math.prod(capacity) <= 2**62,
                f"{self.place}: malformed grid")
        stages = [(s.get(0, "<B", 0), s.get(1, "<i", 0)) for s in self.chunked.tables(2)]
        kinds = [kind for kind, _ in stages]
        if not set(kinds) <= set(range(1, 7)):
            raise Unsupported(f"{self.place}: stages {kinds}")
        require(kinds == sorted(set(kinds)) and {BYTE_SHUFFLE, BIT_SHUFFLE} - set(kinds)
                and {ZSTD, LZ4} - set(kinds),
                f"{self.place}: stages {kinds}")
        result = np.full(self.shape, np.frombuffer(self.fill, self.dtype)[0], self.dtype)
        index = self.chunked.get(3, "<QQQ", (0, 0, 0))
        count = total = 0
        for key, value in self.container.walk(index, CHUNKS, f"array {self.name!r}, index"):
            number, at = int.from_bytes(key, "big"), []
            for length in reversed(capacity):
                at.insert(0, number % length)
                number //= length
            place = f"{self.place}, chunk {tuple(at)}"
            require(len(key) == 8 and number == 0 and all(a < g for a, g in zip(at, grid)),
                    f"{place}: not needed by shape {self.shape}")
            part = tuple(slice(a * c, min((a + 1) * c, n)) for a, c, n in zip(at, chunk, self.shape))
            elements, stored = self._read_chunk(value, kinds, math.prod(chunk), place)
            result[part] = elements.reshape(chunk)[tuple(slice(0, p.stop - p.start) for p in part)]
            count, total = count + 1, total + stored
        require((count, total) == (self.chunked.get(4, "<Q", 0), self.chunked.get(5, "<Q", 0)),
                f"{self.place}: {count} chunks of {total} bytes are not those of the descriptor")
        return result

    def _read_chunk(self, value, kinds, count, place):
        """The elements of one chunk, and how many bytes it takes in the file (8)."""
        offset, size, checksum, flags, reserved = struct.unpack("<QQQII", value)
        full, width = count * self.dtype.itemsize, self.dtype.itemsize
        require(offset % 64 == 0 and 1 <= size <= full and size * 32768 >= full and flags < 2
                and reserved == 0, f"{place}: malformed entry")
        data = self.container.pread(offset, size, place)
        require(checksum64(data) == checksum, f"{place} at byte {offset}: checksum mismatch")
        self.container.used.append((offset, size, 64))
        if flags & 1:
            require(size == full, f"{place}: {size} raw bytes")
            return np.frombuffer(data, self.dtype), size
        plain = ctypes.create_string_buffer(full)
        if LZ4 in kinds:
            decoded = lz4_decompress(data, plain, size, full)
        else:
            require(ZSTD in kinds and zstd_frame(data, size) == size, f"{place}: not one frame of zstd")
            decoded = zstd_decompress(plain, full, data, size)
        require(decoded == full, f"{place}: does not decompress")
        plain = np.frombuffer(plain, np.uint8)
        if BYTE_SHUFFLE in kinds:
            plain = plain.reshape(width, count).T.reshape(-1)
        if BIT_SHUFFLE in kinds:
            split = count // 8 * 8 * width
            bits = np.unpackbits(plain[:split].reshape(8 * width, -1), axis=1, bitorder="little")
            plain = np.concatenate([np.packbits(bits.T, axis=1, bitorder="little").reshape(-1),
                                    plain[split:]])
        if DELTA in kinds:
            plain = np.add.accumulate(np.ascontiguousarray(plain).view(f"<u{width}"), dtype=f"<u{width}")
        return np.ascontiguousarray(plain).view(self.dtype), size


def main():
    with Container(sys.argv[1]) as file:
        if len(sys.argv) > 2:
            print(file.arrays[sys.argv[2]].read())
            return
        file.verify()
        print(f"{file.path}: generation {file.superblock.generation}, {file.superblock.end} bytes")
        for name, array in file.arrays.items():
            kind = "dense" if array.dense else "chunked"
            print(name, array.dtype, array.shape, kind, array.attributes)


if __name__ == "__main__":
    sys.exit(__doc__) if len(sys.argv) not in (2, 3) else main()
