#!/usr/bin/python3
"""NumPy's side of script/demo: recomputes from the elevation model alone what Shale has computed, and
compares every element. Works in blocks, so that it needs no more memory than one row of tiles.

Every check prints one line and exits with 1, saying where and by how much, if a value is off."""

import argparse
import json
import math
import re
import sys
import zlib

import numpy as np

# Where float32 results are compared with float64 ones: one unit in the last place of the largest
# value there is, since Shale computes in float64 too and rounds once.
SLOPE_TOLERANCE = 90 * 2.0**-23
SHADE_TOLERANCE = 255 * 2.0**-23

# The normalised copies are computed in float32: mean and deviation are rounded to it (2^-25 of 800
# against a deviation near 160), then the difference and the quotient (2^-24 of values up to 4 each).
NORMAL_TOLERANCE = 1e-6

# Sums of 10^9 float64 values, in whatever order.
RELATIVE_STATISTICS_TOLERANCE = 1e-11


def fail(what):
    print(f"demo_check: {what}", file=sys.stderr)
    sys.exit(1)


def say(what):
    print(f"   ok: {what}")


class Model:
    def __init__(self, path):
        with np.load(path) as archive:
            self.elevation = archive["elevation"]
            self.dx, self.dy, self.latitude = (float(archive[k]) for k in ("dx", "dy", "ymin"))

    def gradient(self):
        """Horn's, in metres a metre, eastwards and southwards."""
        z = self.elevation.astype(np.float64)
        metres = math.radians(1) * 6371000
        east = metres * self.dx * math.cos(math.radians(self.latitude))
        south = metres * self.dy
        gx = (z[:-2, 2:] + 2 * z[1:-1, 2:] + z[2:, 2:]
              - z[:-2, :-2] - 2 * z[1:-1, :-2] - z[2:, :-2]) / (8 * east)
        gy = (z[2:, :-2] + 2 * z[2:, 1:-1] + z[2:, 2:]
              - z[:-2, :-2] - 2 * z[:-2, 1:-1] - z[:-2, 2:]) / (8 * south)
        return gx, gy

    def slope(self):
        return np.degrees(np.arctan(np.hypot(*self.gradient())))

    def hillshade(self):
        """The cosine between the surface's normal and the sun in the north-west, 45 degrees high:
        as vectors, where Shale's expression goes by angles."""
        gx, gy = self.gradient()
        azimuth, height = math.radians(315), math.radians(45)
        normal = np.stack((-gx, gy, np.ones_like(gx)))
        sun = (math.sin(azimuth) * math.cos(height), math.cos(azimuth) * math.cos(height),
               math.sin(height))
        cosine = sum(s * n for s, n in zip(sun, normal)) / np.sqrt((normal**2).sum(axis=0))
        return np.clip(cosine, 0, 1) * 255


class Mosaic:
    """R x C copies of the model, each lifted by an amount of its own."""

    def __init__(self, model, tiles):
        self.model = model
        self.rows, self.columns = tiles
        height, width = model.elevation.shape
        self.shape = (self.rows * height, self.columns * width)

    def blocks(self):
        """(first row, float64 elements) for each row of tiles."""
        height, width = self.model.elevation.shape
        across = np.tile(self.model.elevation.astype(np.float64), (1, self.columns))
        for i in range(self.rows):
            lift = [((31 * i + 17 * j) % 97) * 0.25 for j in range(self.columns)]
            yield i * height, across + np.repeat(np.array(lift), width)[None, :]

    def statistics(self):
        count, total = 0, 0.0
        low, high = math.inf, -math.inf
        for _, block in self.blocks():
            count += block.size
            total += block.sum()
            low, high = min(low, block.min()), max(high, block.max())
        mean = total / count
        squares = sum(((block - mean)**2).sum() for _, block in self.blocks())
        return {"count": count, "nan_count": 0, "min": low, "max": high, "mean": mean,
                "std": math.sqrt(squares / count)}


def compare(name, got, wanted, tolerance, first_row=0):
    """The largest difference; exits if it is above `tolerance` or anything is not a number."""
    difference = np.abs(got.astype(np.float64) - wanted)
    largest = float(difference.max()) if difference.size else 0.0
    if not largest <= tolerance:
        row, column = np.unravel_index(np.argmax(~(difference <= tolerance)), difference.shape)
        fail(f"{name}: element [{first_row + row}, {column}] is {got[row, column]!r}, "
             f"NumPy has {wanted[row, column]!r} (tolerance {tolerance:g})")
    return largest


def open_array(path, shape, dtype):
    array = np.load(path, mmap_mode="r")
    if array.shape != tuple(shape) or array.dtype != dtype:
        fail(f"{path}: {array.dtype} {array.shape}, wanted {np.dtype(dtype)} {tuple(shape)}")
    return array


def check_whole(name, path, wanted, dtype, tolerance):
    got = open_array(path, wanted.shape, dtype)
    largest = compare(name, got, wanted, tolerance)
    say(f"{name}: {got.size:,} elements, largest difference {largest:.3g} (tolerance {tolerance:g})")


def check_blocks(name, path, mosaic, of_block, tolerance):
    got = open_array(path, mosaic.shape, np.float32)
    largest = 0.0
    for first, block in mosaic.blocks():
        wanted = of_block(block)
        largest = max(largest, compare(name, got[first:first + len(wanted)], wanted, tolerance, first))
    say(f"{name}: {got.size:,} elements, largest difference {largest:.3g} (tolerance {tolerance:g})")


def check_statistics(path, wanted, name):
    with open(path) as file:
        got = json.load(file)
    for key in ("count", "nan_count", "min", "max"):
        if got[key] != wanted[key]:
            fail(f"{name}: {key} is {got[key]}, NumPy has {wanted[key]}")
    for key in ("mean", "std"):
        off = abs(got[key] - wanted[key])
        if not off <= RELATIVE_STATISTICS_TOLERANCE * abs(wanted[key]):
            fail(f"{name}: {key} is {got[key]!r}, NumPy has {wanted[key]!r}")
    say(f"{name}: count, min, max exact; mean {got['mean']:.9g} and deviation {got['std']:.9g} within "
        f"{RELATIVE_STATISTICS_TOLERANCE:g}")


def check_cat(path, model):
    got = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    wanted = model.elevation[100:104, ::50]
    if got.shape != wanted.shape or (got != wanted).any():
        fail(f"cat: printed {got.tolist()}, NumPy has {wanted.tolist()}")
    say(f"cat: {got.size} printed numbers")


def read_png(path):
    """Rows of 8-bit RGB pixels of a PNG that is not interlaced."""
    data = open(path, "rb").read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        fail(f"{path} is no PNG file")
    at, packed = 8, b""
    while at < len(data):
        length, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + length]
        if int.from_bytes(data[at + 8 + length:at + 12 + length], "big") != zlib.crc32(kind + body):
            fail(f"{path}: damaged {kind.decode()}")
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
            if body[8:] != b"\x08\x02\0\0\0":
                fail(f"{path}: not plain 8-bit RGB")
        if kind == b"IDAT":
            packed += body
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    pixels = np.zeros((height + 1, 3 * width + 3), np.int64)  # a border of zeros above and left
    for y in range(height):
        kind, line, above = lines[y, 0], lines[y, 1:].astype(np.int64), pixels[y]
        row = pixels[y + 1]
        if kind in (0, 2):
            row[3:] = (line + (above[3:] if kind == 2 else 0)) % 256
            continue
        for x in range(3 * width):
            left, up, corner = row[x], above[x + 3], above[x]
            if kind == 1:
                guess = left
            elif kind == 3:
                guess = (left + up) // 2
            else:
                near = left + up - corner
                guess = min((left, up, corner), key=lambda v: abs(near - v))
            row[x + 3] = (line[x] + guess) % 256
    return pixels[1:, 3:].reshape(height, width, 3)


def check_picture(path, model):
    """From black for the smallest to white for the largest, to the nearest level."""
    shade = model.hillshade().astype(np.float32).astype(np.float64)
    pixels = read_png(path)
    if pixels.shape[:2] != shade.shape:
        fail(f"{path}: {pixels.shape[1]} x {pixels.shape[0]} pixels for an array {shade.shape}")
    levels = (shade - shade.min()) / (shade.max() - shade.min()) * 255
    # Half a level for the rounding, and the float32 tolerance of what is drawn.
    off = np.abs(pixels - levels[..., None]).max()
    if not off <= 0.5 + 2 * SHADE_TOLERANCE:
        fail(f"{path}: a pixel is {off} levels off")
    say(f"{path}: {pixels.shape[1]} x {pixels.shape[0]} pixels, each the nearest of 256 greys")


def check_attached(path, model):
    rows = model.elevation.shape[0]
    middle = model.elevation[rows // 4:rows // 4 + rows - rows // 2].astype(np.int64)
    old, new = int(middle.sum()), int(middle.sum()) + middle.size
    lines = open(path).read().splitlines()
    said = [re.fullmatch(r"(.*) (\d+) sum (\d+)", line) for line in lines]
    if len(said) != 3 or not all(said):
        fail(f"attach said {lines}")
    generations = [int(m.group(2)) for m in said]
    sums = [int(m.group(3)) for m in said]
    if sums != [old, new, old]:
        fail(f"attach: sums {sums}, NumPy has {[old, new, old]}")
    if not generations[0] == generations[2] < generations[1]:
        fail(f"attach: generations {generations}")
    say(f"attach: generation {generations[0]} sums to {old}, {generations[1]} to {new}, and the old "
        f"view still to {old}")


def gigabytes_per_second(number):
    return f"{number:.2f} GB/s" if number else "-"


def check_cost(path, peak_bytes_max):
    with open(path) as file:
        cost = json.load(file)["cost"]
    peak = cost["peak_rss_bytes"]
    line = (f"{(cost['bytes_read'] + cost['bytes_written']) / 2**30:.2f} GiB in {cost['seconds']:.1f} s: "
            f"{gigabytes_per_second(cost['gb_per_s'])}; peak resident memory {peak / 2**20:.0f} MiB")
    for disk in cost["disks"]:
        line += f"; the disk reads at {gigabytes_per_second(disk['gb_per_s'])} ({disk['method']})"
    if peak > peak_bytes_max:
        fail(f"{path}: {line}, more than {peak_bytes_max / 2**20:.0f} MiB")
    say(line)


def summarize(names):
    rows = [("step", "GiB", "seconds", "GB/s", "disk reads GB/s", "peak MiB")]
    for name in names:
        with open(f"{name}.json") as file:
            cost = json.load(file)["cost"]
        moved = cost["bytes_read"] + cost["bytes_written"]
        disk = cost["disks"][0]["gb_per_s"] if cost["disks"] else None
        rows.append((name, f"{moved / 2**30:.2f}", f"{cost['seconds']:.1f}",
                     f"{cost['gb_per_s']:.2f}" if cost["gb_per_s"] else "-",
                     f"{disk:.2f}" if disk else "-", f"{cost['peak_rss_bytes'] / 2**20:.0f}"))
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if c == 0 else cell.rjust(w)
                        for c, (cell, w) in enumerate(zip(row, widths))))


def tile_counts(bytes_min):
    """Rows and columns of a nearly square mosaic of float32 that takes at least so many bytes."""
    tile_bytes = 344 * 403 * 4
    wanted = -(-bytes_min // tile_bytes)
    rows = math.isqrt(wanted - 1) + 1
    return rows, -(-wanted // rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices="tiles cat statistics elevation slope hillshade picture "
                                         "mosaic normalised attached cost summary".split())
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--model")
    parser.add_argument("--tiles", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--of", choices=("elevation", "mosaic"))
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--peak-bytes-max", type=int)
    given = parser.parse_intermixed_args()
    if given.check == "tiles":
        print(*tile_counts(given.bytes))
        return
    if given.check == "summary":
        summarize(given.paths)
        return
    (path,) = given.paths
    if given.check == "cost":
        check_cost(path, given.peak_bytes_max)
        return
    model = Model(given.model)
    mosaic = Mosaic(model, given.tiles) if given.tiles else None
    if given.check == "cat":
        check_cat(path, model)
    elif given.check == "picture":
        check_picture(path, model)
    elif given.check == "attached":
        check_attached(path, model)
    elif given.check == "elevation":
        check_whole("elevation", path, model.elevation, np.int16, 0)
    elif given.check == "slope":
        check_whole("slope", path, model.slope(), np.float32, SLOPE_TOLERANCE)
    elif given.check == "hillshade":
        check_whole("hillshade", path, model.hillshade(), np.float32, SHADE_TOLERANCE)
    elif given.check == "mosaic":
        check_blocks("mosaic", path, mosaic, lambda block: block, 0)
    elif given.check == "normalised":
        found = mosaic.statistics()
        check_blocks("normalised", path, mosaic,
                     lambda block: (block - found["mean"]) / found["std"], NORMAL_TOLERANCE)
    elif given.of == "mosaic":
        check_statistics(path, mosaic.statistics(), "statistics of the mosaic")
    else:
        wide = model.elevation.astype(np.float64)
        check_statistics(path, {"count": wide.size, "nan_count": 0, "min": wide.min(),
                                "max": wide.max(), "mean": wide.mean(), "std": wide.std()},
                         "statistics of the elevation")


if __name__ == "__main__":
    main()
