"""The peers of the suite `container`: libraries that keep arrays in compressed chunks, and dask, which computes on them.

Usage: container_peers.py SETTINGS

SETTINGS is a text of JSON: {"threads": …, "folder": …, "memory_folder": …, "kept_bytes": …, "chunks": {NAME: SHAPE}}.
The data set NAME lies in FOLDER/NAME.npy. Stores are made in FOLDER, or in MEMORY_FOLDER where only the program is to
be measured. Requests and answers are those of serve.py, and names of works those of bench/container. A work "NAME: …"
is about a data set, whose stores are removed at the first work that is about another one. All peers read new arrays.
"""

import json
import os
import re
import sys

# Large arrays that are freed are used again, so that no peer waits for new pages of the system.
HEAP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 26)}
if not HEAP.items() <= os.environ.items():
    os.execve(sys.executable, [sys.executable, *sys.argv], dict(os.environ) | HEAP)

import numpy as np

from serve import seconds_of, serve
from stores import STORES, files_below, number, remove, sync_all

SETTINGS = json.loads(sys.argv[1])
THREADS, FOLDER, MEMORY_FOLDER = SETTINGS["threads"], SETTINGS["folder"], SETTINGS["memory_folder"]
WORKS = []  # (pattern, function)


def work(pattern):
    """The function does the work whose name fits: it gets the store's name, the store, and the pattern's groups, and
    returns seconds or another number, or None."""
    def register(function):
        WORKS.append((re.compile(pattern), function))
        return function
    return register


class DataSet:
    """The values of a data set, and what the peers have stored of it."""

    def __init__(self, name):
        self.name = name
        self.values = np.load(os.path.join(FOLDER, name + ".npy"))
        self.chunks = tuple(SETTINGS["chunks"][name])
        self.handles = {}

    def path(self, peer, folder=FOLDER):
        return os.path.join(folder, f"{self.name}-{peer}")

    def handle(self, peer, store):
        """The peer's store of this data set, which is written and compared at the first call."""
        if peer not in self.handles:
            path = self.path(peer)
            remove(path)
            store.save(path, self.values, self.chunks)
            sync_all(path)
            handle = self.handles[peer] = store.open(path)
            if store.read and not np.array_equal(store.read(handle, whole(self.values)), self.values):
                raise ValueError("it reads other values than were written")
        return self.handles[peer]

    def forget(self):
        for peer in self.handles:
            remove(self.path(peer))
        self.handles.clear()


class Current:
    data = None


def data_set(name):
    if Current.data is None or Current.data.name != name:
        if Current.data is not None:
            Current.data.forget()
        Current.data = None
        Current.data = DataSet(name)
    return Current.data


def whole(values):
    return (slice(None),) * values.ndim


def make_cold(path):
    """Lets the system forget the bytes of a store, which are durable."""
    for file in files_below(path):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def scratch(peer, folder=FOLDER):
    path = os.path.join(folder, f"scratch-{peer}")
    remove(path)
    return path


# ---- whole arrays -----------------------------------------------------------------------------------------------


@work(r"(\w+): stored bytes")
def stored_bytes(peer, store, name):
    if store.save is None or store.read is None:
        return None
    data = data_set(name)
    data.handle(peer, store)
    return sum(os.path.getsize(file) for file in files_below(data.path(peer)))


@work(r"(\w+): write all")
def write_all(peer, store, name):
    if store.save is None or store.read is None:
        return None
    data, path = data_set(name), scratch(peer, MEMORY_FOLDER)
    taken = seconds_of(lambda: store.save(path, data.values, data.chunks))
    remove(path)
    return taken


@work(r"(\w+): write all, durable")
def write_durable(peer, store, name):
    if store.save is None or store.read is None:
        return None
    data, path = data_set(name), scratch(peer)

    def write():
        store.save(path, data.values, data.chunks)
        sync_all(path)
    taken = seconds_of(write)
    remove(path)
    return taken


@work(r"(\w+): read all, warm")
def read_warm(peer, store, name):
    if store.save is None or store.read is None:
        return None
    data = data_set(name)
    handle = data.handle(peer, store)
    return seconds_of(lambda: store.read(handle, whole(data.values)))


@work(r"(\w+): read all, cold")
def read_cold(peer, store, name):
    if store.save is None or store.read is None:
        return None
    data = data_set(name)
    data.handle(peer, store)
    make_cold(data.path(peer))
    return seconds_of(lambda: store.read(store.open(data.path(peer)), whole(data.values)))


# ---- parts of arrays --------------------------------------------------------------------------------------------

RANDOM = np.random.default_rng(1)


@work(r"(\w+): ([\d,]+) random chunks")
def random_chunks(peer, store, name, count):
    if store.save is None or store.read is None:
        return None
    data = data_set(name)
    handle = data.handle(peer, store)
    grid = [extent // chunk for extent, chunk in zip(data.values.shape, data.chunks)]
    regions = [tuple(slice(k * c, (k + 1) * c) for k, c in zip(RANDOM.integers(grid), data.chunks))
               for _ in range(number(count))]

    def read():
        for region in regions:
            store.read(handle, region)
    return seconds_of(read)


@work(r"(\w+): a plane across axis (\d)")
def plane(peer, store, name, axis):
    if store.save is None or store.read is None:
        return None
    data = data_set(name)
    handle = data.handle(peer, store)
    region = list(whole(data.values))
    k = int(RANDOM.integers(data.values.shape[int(axis)]))
    region[int(axis)] = slice(k, k + 1)
    return seconds_of(lambda: store.read(handle, tuple(region)))


def random_places(values, count):
    return RANDOM.integers(np.array(values.shape)[:, None], size=(values.ndim, number(count)))


@work(r"(\w+): ([\d,]+) single elements, one by one")
def singles(peer, store, name, count):
    if store.save is None or store.read is None:
        return None
    data = data_set(name)
    data.handle(peer, store)
    handle = store.open_keeping(data.path(peer), SETTINGS["kept_bytes"])
    places = [tuple(int(k) for k in place) for place in random_places(data.values, count).T]

    def read():
        for place in places:
            store.read(handle, place)
    return seconds_of(read)


@work(r"(\w+): ([\d,]+) single elements, one gather")
def gather(peer, store, name, count):
    if store.save is None or store.gather is None:
        return None
    data = data_set(name)
    handle, places = data.handle(peer, store), random_places(data.values, count)
    found = []
    taken = seconds_of(lambda: found.append(store.gather(handle, places)))
    if not np.array_equal(found[-1], data.values[tuple(places)]):
        raise ValueError("it gathers other elements than were asked for")
    return taken


# ---- computing --------------------------------------------------------------------------------------------------


@work(r"(\w+): sum")
def total(peer, store, name):
    if store.total is None:
        return None
    data = data_set(name)
    handle = data.handle(peer, store)
    return seconds_of(lambda: store.total(handle))


@work(r"(\w+): normalised copy")
def normalised(peer, store, name):
    if store.normalised is None:
        return None
    data, path = data_set(name), scratch(peer, MEMORY_FOLDER)
    handle = data.handle(peer, store)
    taken = seconds_of(lambda: store.normalised(handle, path, data.chunks))
    remove(path)
    return taken


# ---- small changes, many arrays ---------------------------------------------------------------------------------


@work(r"([\d,]+) small updates, each durable")
def small_updates(peer, store, count):
    if store.updater is None:
        return None
    path = scratch(peer)
    update = store.updater(path, number(count), 64)
    sync_all(path)

    def run():
        for k in range(number(count)):
            update(k)
    return seconds_of(run)


@work(r"([\d,]+) rows appended to a chunked array, each durable")
def appended_rows(peer, store, count):
    if store.appender is None:
        return None
    append = store.appender(scratch(peer), 1024)

    def run():
        for _ in range(number(count)):
            append()
    return seconds_of(run)


class Many:
    stores = {}


def many(peer, store, count):
    """The peer's store of so many arrays, which is made at the first call."""
    if (peer, count) not in Many.stores:
        path = os.path.join(FOLDER, f"arrays-{peer}-{count}")
        store.make_many(path, count)
        Many.stores[peer, count] = path
    return Many.stores[peer, count]


@work(r"open and find one of ([\d,]+) arrays")
def find(peer, store, count):
    # A library with a folder for each array does not depend on their number; making them would take minutes.
    if store.find is None or (store.names is None and number(count) > 10000):
        return None
    path = many(peer, store, number(count))
    name = store.name_of(int(RANDOM.integers(number(count))))
    return seconds_of(lambda: store.find(path, name), series=True)


@work(r"list ([\d,]+) names")
def names(peer, store, count):
    if store.names is None:
        return None
    path = many(peer, store, number(count))
    return seconds_of(lambda: store.names(path))


def main():
    stores = {name: make(THREADS) for name, make in STORES.items()}
    stores = {name: store for name, store in stores.items() if store.is_there()}

    def answer(peer, asked):
        if asked == "version":
            return stores[peer].version()
        for pattern, function in WORKS:
            found = pattern.fullmatch(asked)
            if found:
                return function(peer, stores[peer], *found.groups())
        return None

    serve(stores, answer)
    if Current.data is not None:
        Current.data.forget()
    for path in Many.stores.values():
        remove(path)


main()
