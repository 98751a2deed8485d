"""The peers of the suite `engine`: NumPy, PyTorch, numexpr, Blosc2 and SciPy, each called as its users call it.

Usage: engine_peers.py THREADS ELEMENTS

Requests and answers are those of serve.py, and names of works those of engine_bench.cpp. All peers use the same arrays,
and THREADS threads for large work.
"""

import sys
import warnings

from serve import module, seconds_of, serve

warnings.filterwarnings("ignore")
THREADS, ELEMENTS = int(sys.argv[1]), int(sys.argv[2])
COLUMNS = 8192

np, torch, numexpr, blosc2 = (module(name) for name in ("numpy", "torch", "numexpr", "blosc2"))
scipy, ndimage = module("scipy.fft"), module("scipy.ndimage")


class Arrays:
    """The operands, as in engine_bench.cpp."""

    def __init__(self):
        rows = ELEMENTS // COLUMNS
        self.a = (np.arange(ELEMENTS, dtype=np.float32) % 1000 * np.float32(0.001)).reshape(rows, COLUMNS)
        self.b, self.c = self.a.copy(), self.a.copy()
        self.out = np.zeros((rows, COLUMNS), np.float32)
        self.row = self.a[:1]
        self.bytes = (self.a * 100).astype(np.int8)
        self.none = np.zeros((rows, COLUMNS), bool)
        self.half = np.arange(ELEMENTS).reshape(rows, COLUMNS) * 2654435761 % 1024 < 512
        cube, side = round(ELEMENTS ** (1 / 3)), int(ELEMENTS ** 0.5)
        self.box, self.box_out = (x.reshape(-1)[:cube ** 3].reshape(cube, cube, cube) for x in (self.a, self.out))
        self.square, self.square_out = (x.reshape(-1)[:side ** 2].reshape(side, side) for x in (self.a, self.out))
        self.quarter = np.zeros((rows // 2, COLUMNS // 2), np.float32)
        self.a2, self.b2 = self.a[::2, ::2], self.b[::2, ::2]
        self.narrow = self.a.reshape(-1, 1024)
        self.rows = np.arange(self.narrow.shape[0]) * 2654435761 % self.narrow.shape[0]
        self.narrow_out = self.out.reshape(-1, 1024)
        self.flat = self.a.reshape(-1)
        self.singles = np.arange(ELEMENTS // 16) * 2654435761 % ELEMENTS
        self.random = np.random.default_rng(1).standard_normal(ELEMENTS // 4, dtype=np.float32)
        # The operands of windows are as large as those of Shale, with numbers of another generator.
        self.windowed = np.random.default_rng(2).standard_normal((side, side), dtype=np.float32)
        self.corner = self.windowed[:1024, :1024].copy()
        self.part = self.windowed[:2048, :2048].copy()
        self.kernel_3, self.kernel_15, self.kernel_257 = (self.windowed[:k, :k].copy() for k in (3, 15, 257))
        self.few, self.few_b, self.few_out = (np.full(8, x, np.float32) for x in (1.5, 2.5, 0))
        self.some, self.some_b, self.some_out = (np.full(16384, x, np.float32) for x in (1.5, 2.5, 0))


BYTES_OF = {"float64": 8, "int32": 4, "float16": 2, "bfloat16": 2, "complex64": 8}


def works_of_other_dtypes(library, dtypes, full, add, fill, copy):
    """Works on arrays of other dtypes, in as many bytes. Only the arrays of the last dtype are kept."""
    kept = {}

    def arrays(name):
        if name not in kept:
            kept.clear()
            count = ELEMENTS * 4 // BYTES_OF[name]
            kept[name] = [full(count, value, getattr(library, name)) for value in (1, 2, 0)]
        return kept[name]

    works = {}
    for name in dtypes:
        def work(call, name=name):
            return lambda: call(*arrays(name))

        works[f"fill, {name}"] = work(lambda a, b, out: fill(out, 3))
        works[f"copy, {name}"] = work(lambda a, b, out: copy(out, a))
        works[f"a + b, {name}"] = work(lambda a, b, out: add(a, b, out=out))
        works[f"sum, {name}"] = work(lambda a, b, out: a.sum())
        if name != "int32":
            works[f"exp, {name}"] = work(lambda a, b, out: library.exp(a, out=out))
    return works


def numpy_works(x):
    def fused_by_hand():
        np.subtract(np.sqrt(x.a * x.a + x.b * x.b), x.c * x.a, out=x.out)

    def multiply_add():
        np.multiply(x.a, x.b, out=x.out)
        np.add(x.out, x.c, out=x.out)

    random = np.random.default_rng(1)
    works = {
        "fill": lambda: x.out.fill(3),
        "copy": lambda: np.copyto(x.out, x.a),
        "a + b": lambda: np.add(x.a, x.b, out=x.out),
        "a * b + c": multiply_add,
        "a + row": lambda: np.add(x.a, x.row, out=x.out),
        "int8 -> float32": lambda: np.copyto(x.out, x.bytes),
        "sqrt(a*a + b*b) - c*d": fused_by_hand,
        "a + b, new tensor": lambda: x.a + x.b,
        "sum": lambda: x.a.sum(),
        "mean, axis 0": lambda: x.a.mean(0),
        "mean, axis 1": lambda: x.a.mean(1),
        "min": lambda: x.a.min(),
        "max": lambda: x.a.max(),
        "any": lambda: x.none.any(),
        "count_nonzero": lambda: np.count_nonzero(x.a),
        "var, axis 0": lambda: x.a.var(0),
        "var, axis 1": lambda: x.a.var(1),
        "stddev": lambda: x.a.std(),
        "transposed copy": lambda: np.copyto(x.square_out, x.square.T),
        "permute (2, 0, 1)": lambda: np.copyto(x.box_out, x.box.transpose(2, 0, 1)),
        "a[::2, ::2] + b[::2, ::2]": lambda: np.add(x.a2, x.b2, out=x.quarter),
        "argmin": lambda: x.a.argmin(),
        "argmax": lambda: x.a.argmax(),
        "cumulative_sum": lambda: np.cumsum(x.flat, out=x.out.reshape(-1)),
        "masked_select, half": lambda: x.a[x.half],
        "nonzero, half": lambda: np.flatnonzero(x.half),
        "take, rows of 4 KiB": lambda: np.take(x.narrow, x.rows, axis=0, out=x.narrow_out, mode="clip"),
        "take, single elements": lambda: np.take(x.flat, x.singles),
        "uniform": lambda: random.random(dtype=np.float32, out=x.out),
        "normal": lambda: random.standard_normal(dtype=np.float32, out=x.out),
        "sort": lambda: np.sort(x.random),
        "argsort": lambda: np.argsort(x.random, stable=True),
        "topk 100": lambda: np.sort(np.partition(x.random, -100)[-100:]),
        "median": lambda: np.median(x.random),
        "histogram, 256 bins": lambda: np.histogram(x.random, 256, (-4, 4)),
        "8 elements: copy": lambda: np.copyto(x.few_out, x.few),
        "8 elements: fill": lambda: x.few_out.fill(3),
        "8 elements: a + b, built anew": lambda: np.add(x.few, x.few_b, out=x.few_out),
        "8 elements: sum": lambda: x.few.sum(),
        "16 Ki elements: a + b": lambda: np.add(x.some, x.some_b, out=x.some_out),
        "16 Ki elements: copy": lambda: np.copyto(x.some_out, x.some),
        "16 Ki elements: fill": lambda: x.some_out.fill(3),
        "16 Ki elements: sum": lambda: x.some.sum(),
    }
    for name in ("exp", "log", "sqrt", "sin", "cos", "tanh"):
        works[name] = lambda function=getattr(np, name): function(x.a, out=x.out)
    works.update(works_of_other_dtypes(np, [name for name in BYTES_OF if hasattr(np, name)], np.full, np.add,
                                       np.ndarray.fill, np.copyto))
    return works


def torch_works(arrays):
    torch.set_num_threads(THREADS)

    class Tensors:
        pass

    x = Tensors()
    for name, value in vars(arrays).items():
        setattr(x, name, torch.from_numpy(value))

    def multiply_add():
        torch.addcmul(x.c, x.a, x.b, out=x.out)

    def fused_by_hand():
        torch.sub(torch.sqrt(x.a * x.a + x.b * x.b), x.c * x.a, out=x.out)

    works = {
        "fill": lambda: x.out.fill_(3),
        "copy": lambda: x.out.copy_(x.a),
        "a + b": lambda: torch.add(x.a, x.b, out=x.out),
        "a * b + c": multiply_add,
        "a + row": lambda: torch.add(x.a, x.row, out=x.out),
        "int8 -> float32": lambda: x.out.copy_(x.bytes),
        "sqrt(a*a + b*b) - c*d": fused_by_hand,
        "a + b, new tensor": lambda: x.a + x.b,
        "sum": lambda: x.a.sum(),
        "mean, axis 0": lambda: x.a.mean(0),
        "mean, axis 1": lambda: x.a.mean(1),
        "min": lambda: x.a.min(),
        "max": lambda: x.a.max(),
        "any": lambda: x.none.any(),
        "count_nonzero": lambda: torch.count_nonzero(x.a),
        "var, axis 0": lambda: x.a.var(0, correction=0),
        "var, axis 1": lambda: x.a.var(1, correction=0),
        "stddev": lambda: x.a.std(correction=0),
        "transposed copy": lambda: x.square_out.copy_(x.square.T),
        "permute (2, 0, 1)": lambda: x.box_out.copy_(x.box.permute(2, 0, 1)),
        "a[::2, ::2] + b[::2, ::2]": lambda: torch.add(x.a2, x.b2, out=x.quarter),
        "argmin": lambda: x.a.argmin(),
        "argmax": lambda: x.a.argmax(),
        "cumulative_sum": lambda: torch.cumsum(x.flat, 0, out=x.out.view(-1)),
        "masked_select, half": lambda: torch.masked_select(x.a, x.half),
        "nonzero, half": lambda: torch.nonzero(x.half.view(-1)),
        "take, rows of 4 KiB": lambda: torch.index_select(x.narrow, 0, x.rows, out=x.narrow_out),
        "take, single elements": lambda: torch.take(x.flat, x.singles),
        "uniform": lambda: x.out.uniform_(),
        "normal": lambda: x.out.normal_(),
        "sort": lambda: torch.sort(x.random),
        "argsort": lambda: torch.argsort(x.random, stable=True),
        "topk 100": lambda: torch.topk(x.random, 100),
        "median": lambda: torch.median(x.random),
        "histogram, 256 bins": lambda: torch.histc(x.random, 256, -4, 4),
        "8 elements: copy": lambda: x.few_out.copy_(x.few),
        "8 elements: fill": lambda: x.few_out.fill_(3),
        "8 elements: a + b, built anew": lambda: torch.add(x.few, x.few_b, out=x.few_out),
        "8 elements: sum": lambda: x.few.sum(),
        "16 Ki elements: a + b": lambda: torch.add(x.some, x.some_b, out=x.some_out),
        "16 Ki elements: copy": lambda: x.some_out.copy_(x.some),
        "16 Ki elements: fill": lambda: x.some_out.fill_(3),
        "16 Ki elements: sum": lambda: x.some.sum(),
    }
    def correlated(values, kernel):
        return torch.nn.functional.conv2d(values[None, None], kernel[None, None])

    works["correlate, 3 x 3"] = lambda: correlated(x.windowed, x.kernel_3)
    works["correlate, 15 x 15"] = lambda: correlated(x.corner, x.kernel_15)
    works["rolling_mean of 30"] = lambda: torch.nn.functional.avg_pool1d(x.windowed, 30, 1)
    for name in ("exp", "log", "sqrt", "sin", "cos", "tanh"):
        works[name] = lambda function=getattr(torch, name): function(x.a, out=x.out)
    works.update(works_of_other_dtypes(torch, BYTES_OF,
                                       lambda count, value, dtype: torch.full((count,), value, dtype=dtype), torch.add,
                                       torch.Tensor.fill_, torch.Tensor.copy_))
    return works


def scipy_works(x):
    shape = [x.part.shape[0] + 256, x.part.shape[1] + 256]
    fast = [scipy.next_fast_len(extent, real=True) for extent in shape]

    def convolve_by_fft():
        """As scipy.signal.fftconvolve, with threads."""
        product = (scipy.rfftn(x.part, fast, workers=THREADS) * scipy.rfftn(x.kernel_257, fast, workers=THREADS))
        return scipy.irfftn(product, fast, workers=THREADS)[:shape[0], :shape[1]]

    return {
        "correlate, 3 x 3": lambda: ndimage.correlate(x.windowed, x.kernel_3, mode="constant"),
        "correlate, 15 x 15": lambda: ndimage.correlate(x.corner, x.kernel_15, mode="constant"),
        "convolve by FFT, 257 x 257": convolve_by_fft,
        "rolling_mean of 30": lambda: ndimage.uniform_filter1d(x.windowed, 30, axis=1),
    }


EXPRESSIONS = {
    "a + b": "a + b",
    "a * b + c": "a * b + c",
    "sqrt(a*a + b*b) - c*d": "sqrt(a * a + b * b) - c * a",
}


def numexpr_works(x):
    numexpr.set_num_threads(THREADS)
    operands = {"a": x.a, "b": x.b, "c": x.c, "row": x.row, "a2": x.a2, "b2": x.b2}
    texts = {**EXPRESSIONS, "a + row": "a + row"}
    texts.update({name: f"{name}(a)" for name in ("exp", "log", "sqrt", "sin", "cos", "tanh")})
    works = {work: lambda text=text: numexpr.evaluate(text, operands, out=x.out) for work, text in texts.items()}
    works["a[::2, ::2] + b[::2, ::2]"] = lambda: numexpr.evaluate("a2 + b2", operands, out=x.quarter)
    works["sum"] = lambda: numexpr.evaluate("sum(a)", operands)
    return works


def blosc2_works(x):
    """Lazy expressions over NumPy's arrays. Their results are stored without compression, as all others are."""
    blosc2.set_nthreads(THREADS)
    operands = {"a": x.a, "b": x.b, "c": x.c}
    options = {"cparams": blosc2.CParams(clevel=0)}
    texts = {**EXPRESSIONS, "exp": "exp(a)", "sin": "sin(a)"}
    return {work: lambda text=text: blosc2.lazyexpr(text, operands).compute(**options)
            for work, text in texts.items()}


def main():
    arrays = Arrays()
    makers = {"NumPy": (np, numpy_works), "PyTorch": (torch, torch_works), "numexpr": (numexpr, numexpr_works),
              "Blosc2": (blosc2, blosc2_works), "SciPy": (scipy and ndimage, scipy_works)}
    works = {name: make(arrays) for name, (library, make) in makers.items() if library}

    def answer(peer, work):
        call = works[peer].get(work)
        return seconds_of(call, series=" elements: " in work) if call else None

    serve(works, answer)


main()
