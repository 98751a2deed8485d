"""Libraries that keep arrays in compressed chunks, behind one interface, each with the options that suit it best: byte
shuffle and zstd at level 1, as many threads as it is given, chunks of the shape that it is given.

A method that a library does not have is None.
"""

import ctypes
import os
import re
import shutil

from serve import module


def files_below(path):
    """Every file of a store, which is a file itself or a folder."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def sync(*paths):
    """Makes files and folders durable."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_all(path):
    """Makes a store durable, with every file and folder that it consists of. Where these are many, one call for the
    whole file system takes less time than one for each."""
    if not os.path.isdir(path):
        sync(path, os.path.dirname(path))
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), "syncfs", path)
    finally:
        os.close(descriptor)


class Store:
    """One library. `path` names a store of one array, or of many."""

    module_name = ""
    # save(path, values, chunks): a new store of these values. Nothing of it has to be durable.
    # open(path): a handle, which `read` and others take.
    # read(handle, region): a part as a NumPy array; `region` is a tuple of slices and integers.

    def open_keeping(self, path, kept_bytes):
        """A handle that keeps decoded chunks, up to so many bytes, if the library can; none are kept yet."""
        return self.open(path)

    gather = None  # (handle, coordinates): elements at the columns of an integer array
    total = None  # (handle): the sum of all elements
    normalised = None  # (handle, path, chunks): stores (a - mean(a)) / std(a)
    updater = None  # (path, count, length): a function of k that durably replaces chunk k
    appender = None  # (path, width): a function that durably appends one row of float32
    make_many = None  # (path, count): a store of small arrays, called by `name_of`
    find = None  # (path, name): opens the store and one of its arrays
    names = None  # (path): the names of all arrays

    def __init__(self, threads):
        self.threads = threads
        self.package = module(self.module_name)

    def is_there(self):
        return self.package is not None

    def version(self):
        return self.package.__version__

    @staticmethod
    def name_of(number):
        return f"array-{number:06}"


class H5py(Store):
    """h5py with the filter Blosc2 of hdf5plugin. The filter's threads are those of the environment."""

    module_name = "h5py"

    def __init__(self, threads):
        os.environ["BLOSC_NTHREADS"] = str(threads)
        super().__init__(threads)
        self.plugin = module("hdf5plugin")
        if self.plugin is None:
            self.save = self.appender = self.updater = None

    def version(self):
        plugin = f"hdf5plugin {self.plugin.version}" if self.plugin else "hdf5plugin is not installed"
        return f"{self.package.__version__}, HDF5 {self.package.version.hdf5_version}, {plugin}"

    def filter(self):
        return self.plugin.Blosc2(cname="zstd", clevel=1, filters=self.plugin.Blosc2.SHUFFLE)

    def save(self, path, values, chunks):
        with self.package.File(path, "w", libver="latest") as file:
            file.create_dataset("values", data=values, chunks=chunks, **self.filter())

    def open(self, path):
        return self.package.File(path, "r", rdcc_nbytes=4 << 20)["values"]

    def open_keeping(self, path, kept_bytes):
        slots = 100_003  # a prime number, far above that of the chunks
        return self.package.File(path, "r", rdcc_nbytes=kept_bytes, rdcc_nslots=slots)["values"]

    def read(self, handle, region):
        return handle[region]

    def gather(self, handle, coordinates):
        import numpy
        places = self.package.h5s.create_simple(handle.shape)
        places.select_elements(numpy.ascontiguousarray(coordinates.T, dtype=numpy.uint64))
        result = numpy.empty(coordinates.shape[1], handle.dtype)
        handle.id.read(self.package.h5s.create_simple(result.shape), places, result)
        return result

    def updater(self, path, count, length):
        import numpy
        file = self.package.File(path, "w", libver="latest")
        values = file.create_dataset("values", (count * length,), "f4", chunks=(length,), **self.filter())
        new = numpy.arange(length, dtype=numpy.float32)

        def update(k):
            values[k * length:(k + 1) * length] = new + k
            file.flush()
            os.fsync(file.id.get_vfd_handle())
        return update

    def appender(self, path, width):
        import numpy
        file = self.package.File(path, "w", libver="latest")
        rows = file.create_dataset("rows", (0, width), "f4", maxshape=(None, width), chunks=(64, width),
                                   **self.filter())
        row = numpy.arange(width, dtype=numpy.float32)

        def append():
            rows.resize(rows.shape[0] + 1, axis=0)
            rows[-1] = row
            file.flush()
            os.fsync(file.id.get_vfd_handle())
        return append

    def make_many(self, path, count):
        with self.package.File(path, "w", libver="latest") as file:
            for k in range(count):
                file.create_dataset(self.name_of(k), (8,), "f4")

    def find(self, path, name):
        with self.package.File(path, "r") as file:
            return file[name].shape

    def names(self, path):
        with self.package.File(path, "r") as file:
            return list(file)


class Zarr(Store):
    """Zarr 3 with the codec pipeline of its own."""

    module_name = "zarr"
    pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"

    def configure(self):
        blosc = module("numcodecs.blosc")
        blosc.set_nthreads(self.threads)
        self.package.config.set({"codec_pipeline.path": self.pipeline, "async.concurrency": 4 * self.threads,
                                 "threading.max_workers": self.threads})

    def create(self, path, shape, dtype, chunks):
        self.configure()
        codec = self.package.codecs.BloscCodec(cname="zstd", clevel=1, shuffle="shuffle")
        return self.package.create_array(path, shape=shape, dtype=dtype, chunks=chunks, compressors=codec,
                                         overwrite=True)

    def save(self, path, values, chunks):
        self.create(path, values.shape, values.dtype, chunks)[...] = values

    def open(self, path):
        self.configure()
        return self.package.open_array(path, mode="r")

    def read(self, handle, region):
        self.configure()
        return handle[region]

    def gather(self, handle, coordinates):
        self.configure()
        return handle.vindex[tuple(coordinates)]

    def updater(self, path, count, length):
        import numpy
        values = self.create(path, (count * length,), "f4", (length,))
        new = numpy.arange(length, dtype=numpy.float32)

        def update(k):
            self.configure()
            values[k * length:(k + 1) * length] = new + k
            sync(os.path.join(path, "c", str(k)), os.path.join(path, "c"))
        return update

    def make_many(self, path, count):
        self.configure()
        group = self.package.create_group(path, overwrite=True)
        for k in range(count):
            group.create_array(self.name_of(k), shape=(8,), dtype="f4")

    def find(self, path, name):
        self.configure()
        return self.package.open_group(path, mode="r")[name].shape


class Zarrs(Zarr):
    """Zarr 3 with the codec pipeline of zarrs."""

    pipeline = "zarrs.ZarrsCodecPipeline"

    def is_there(self):
        return super().is_there() and module("zarrs") is not None

    def version(self):
        return module("importlib.metadata").version("zarrs")

    find = make_many = None  # as Zarr


class TensorStore(Store):
    """TensorStore with its driver for Zarr 3. It keeps decoded chunks only where that is asked for."""

    module_name = "tensorstore"

    def __init__(self, threads):
        super().__init__(threads)
        self.contexts = {}

    def version(self):
        return module("importlib.metadata").version("tensorstore")

    def new_context(self, durable, kept_bytes):
        return self.package.Context({
            "data_copy_concurrency": {"limit": self.threads},
            "file_io_concurrency": {"limit": max(4, 2 * self.threads)}, "file_io_sync": durable,
            "cache_pool": {"total_bytes_limit": kept_bytes}})

    def context(self, durable):
        if durable not in self.contexts:
            self.contexts[durable] = self.new_context(durable, 0)
        return self.contexts[durable]

    def create(self, path, shape, dtype, chunks, durable=False):
        import numpy
        dtype = numpy.dtype(dtype)
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}},
                  {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": "shuffle",
                                                      "typesize": dtype.itemsize, "blocksize": 0}}]
        grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
        return self.package.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path},
                                  "metadata": {"shape": list(shape), "data_type": dtype.name, "chunk_grid": grid,
                                               "codecs": codecs}},
                                 create=True, delete_existing=True, context=self.context(durable)).result()

    def save(self, path, values, chunks):
        self.create(path, values.shape, values.dtype, chunks).write(values).result()

    def open(self, path):
        return self.open_in(self.context(False), path)

    def open_keeping(self, path, kept_bytes):
        return self.open_in(self.new_context(False, kept_bytes), path)

    def open_in(self, context, path):
        # What is kept stays valid, as in a snapshot of Shale: the file is not looked at again.
        return self.package.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path},
                                  "recheck_cached_data": "open"}, open=True, read=True, context=context).result()

    def read(self, handle, region):
        return handle[region].read().result()

    def gather(self, handle, coordinates):
        return handle.vindex[tuple(coordinates)].read().result()

    def updater(self, path, count, length):
        import numpy
        values = self.create(path, (count * length,), "f4", (length,), durable=True)
        new = numpy.arange(length, dtype=numpy.float32)
        return lambda k: values[k * length:(k + 1) * length].write(new + k).result()

    def appender(self, path, width):
        import numpy
        self.create(path, (0, width), "f4", (64, width), durable=True)
        rows = self.package.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}},
                                 context=self.context(True)).result()
        row = numpy.arange(width, dtype=numpy.float32)

        def append():
            nonlocal rows
            rows = rows.resize(exclusive_max=[rows.shape[0] + 1, width]).result()
            rows[-1 + rows.shape[0]].write(row).result()
        return append

    def make_many(self, path, count):
        for k in range(count):
            self.create(os.path.join(path, self.name_of(k)), (8,), "f4", (8,))

    def find(self, path, name):
        return self.open(os.path.join(path, name)).shape


class Blosc2(Store):
    """Blosc2's arrays in one file each."""

    module_name = "blosc2"

    def parameters(self):
        blosc2 = self.package
        return {"cparams": blosc2.CParams(codec=blosc2.Codec.ZSTD, clevel=1, filters=[blosc2.Filter.SHUFFLE],
                                          nthreads=self.threads),
                "dparams": blosc2.DParams(nthreads=self.threads)}

    def save(self, path, values, chunks):
        self.package.set_nthreads(self.threads)
        self.package.asarray(values, urlpath=path, mode="w", chunks=chunks, **self.parameters())

    def open(self, path):
        self.package.set_nthreads(self.threads)
        return self.package.open(path, mode="r", dparams=self.parameters()["dparams"])

    def read(self, handle, region):
        return handle[region]

    def gather(self, handle, coordinates):
        return handle[tuple(coordinates)]

    def total(self, handle):
        return handle.sum()

    def normalised(self, handle, path, chunks):
        made = (handle - float(handle.mean())) / float(handle.std())
        made.compute(urlpath=path, mode="w", chunks=chunks, **self.parameters())

    def updater(self, path, count, length):
        import numpy
        values = self.package.zeros((count * length,), dtype=numpy.float32, urlpath=path, mode="w",
                                    chunks=(length,), **self.parameters())
        new = numpy.arange(length, dtype=numpy.float32)

        def update(k):
            values[k * length:(k + 1) * length] = new + k
            sync(path)
        return update


class TileDB(Store):
    """TileDB's dense arrays."""

    module_name = "tiledb"

    def __init__(self, threads):
        super().__init__(threads)
        if self.package is not None:
            self.context = self.package.Ctx({"sm.compute_concurrency_level": threads,
                                             "sm.io_concurrency_level": max(2, threads)})

    def save(self, path, values, chunks):
        tiledb, context = self.package, self.context
        axes = [tiledb.Dim(name=f"axis{k}", domain=(0, extent - 1), tile=chunk, dtype="int64", ctx=context)
                for k, (extent, chunk) in enumerate(zip(values.shape, chunks))]
        filters = tiledb.FilterList([tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(level=1)], ctx=context)
        schema = tiledb.ArraySchema(domain=tiledb.Domain(*axes, ctx=context), ctx=context,
                                    attrs=[tiledb.Attr(name="", dtype=values.dtype, filters=filters, ctx=context)])
        tiledb.Array.create(path, schema, ctx=context)
        with tiledb.open(path, "w", ctx=context) as array:
            array[:] = values

    def open(self, path):
        return self.package.open(path, "r", ctx=self.context)

    def read(self, handle, region):
        return handle[region]


class Dask(Zarr):
    """Dask over arrays of Zarr: it computes, and stores nothing of its own kind."""

    def __init__(self, threads):
        super().__init__(threads)
        self.dask = module("dask.array")
        if self.is_there():
            module("dask").config.set(scheduler="threads", num_workers=threads)

    def is_there(self):
        return self.package is not None and self.dask is not None

    def version(self):
        return module("dask").__version__

    def configure(self):
        super().configure()
        module("numcodecs.blosc").set_nthreads(1)  # each of its tasks has a thread

    def total(self, handle):
        self.configure()
        return float(self.dask.from_zarr(handle).sum().compute())

    def normalised(self, handle, path, chunks):
        self.configure()
        values = self.dask.from_zarr(handle)
        made = (values - values.mean()) / values.std()
        target = self.create(path, values.shape, values.dtype, chunks)
        made.astype(values.dtype).store(target, lock=False)

    read = gather = updater = make_many = find = None  # as Zarr


STORES = {"TensorStore": TensorStore, "zarr": Zarr, "zarrs": Zarrs, "Blosc2": Blosc2, "h5py": H5py, "TileDB": TileDB,
          "dask": Dask}


def number(text):
    """The number that a text such as "1,000 names" begins with."""
    return int(re.match(r"[\d,]+", text)[0].replace(",", ""))
