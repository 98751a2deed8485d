"""The peer of `rechunk` in the suite `container`: the package rechunker, which needs Zarr 2 and so an environment of its
own.

Usage: rechunk_peers.py SETTINGS

SETTINGS is a text of JSON: {"threads": …, "folder": …, "rechunk": {"shape": …, "from": …, "to": …, "bytes": …}}, with
the shape of the array, the shapes of its chunks before and after, and the memory that may be used. Requests and answers
are those of serve.py.
"""

import json
import os
import sys

from serve import module, seconds_of, serve
from stores import remove, sync_all

SETTINGS = json.loads(sys.argv[1])
THREADS, FOLDER, ASKED = SETTINGS["threads"], SETTINGS["folder"], SETTINGS["rechunk"]
np, zarr, numcodecs, rechunker = map(module, ("numpy", "zarr", "numcodecs", "rechunker"))


def path_of(name):
    return os.path.join(FOLDER, f"rechunker-{name}")


def codec():
    return numcodecs.Blosc(cname="zstd", clevel=1, shuffle=numcodecs.Blosc.SHUFFLE)


def source():
    """The array before, which is written at the first call, chunk by chunk along its first axis."""
    if not os.path.exists(path_of("source")):
        shape, chunks = tuple(ASKED["shape"]), tuple(ASKED["from"])
        made = zarr.open(path_of("source"), mode="w", shape=shape, chunks=chunks, dtype="f4", compressor=codec())
        plane = np.sin(np.arange(shape[1])[:, None] / 170) * np.cos(np.arange(shape[2]) / 300)
        for begin in range(0, shape[0], chunks[0]):
            x = np.arange(begin, min(begin + chunks[0], shape[0]))[:, None, None]
            made[begin:begin + chunks[0]] = np.round((np.sin(x / 100) + plane) * 100) / 1000
        sync_all(path_of("source"))
    return zarr.open(path_of("source"), mode="r")


def rechunk():
    before = source()
    for name in ("target", "between"):
        remove(path_of(name))

    def run():
        # Every worker may use this much memory.
        plan = rechunker.rechunk(before, tuple(ASKED["to"]), ASKED["bytes"] // THREADS, path_of("target"),
                                 temp_store=path_of("between"), target_options={"compressor": codec()})
        plan.execute(scheduler="threads", num_workers=THREADS)
        remove(path_of("between"))  # so that the sync does not wait for it
        sync_all(path_of("target"))
    taken = seconds_of(run)
    if not np.array_equal(zarr.open(path_of("target"), mode="r")[:, 0, 0], before[:, 0, 0]):
        raise ValueError("it stored other values")
    return taken


def answer(peer, work):
    if work == "version":
        return module("importlib.metadata").version("rechunker")
    return rechunk() if work.startswith("rechunk under ") else None


serve(["rechunker"] if rechunker and zarr else [], answer)
for stored in ("source", "target", "between"):
    remove(path_of(stored))
