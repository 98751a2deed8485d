"""Random numbers as docs/numerics.md defines them, with NumPy: Philox4x32-10 for whole arrays of counters,
and the distributions in long double. Shares no code with what it tests."""

import numpy as np


def philox(counters, seed):
    """The four words of each block. A row of `counters` is a counter."""
    a, b, c, d = np.asarray(counters, np.uint64).T
    key = [seed & 0xffffffff, seed >> 32]
    low, half = np.uint64(0xffffffff), np.uint64(32)
    for _ in range(10):
        left, right = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b = (right >> half) ^ b ^ np.uint64(key[0]), right & low
        c, d = (left >> half) ^ d ^ np.uint64(key[1]), left & low
        key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
    return np.stack([a, b, c, d], axis=1)


def words(shape, seed, bits):
    """The word of `bits` bits that each element of `shape` has, as Python's integers."""
    width, count = bits // 32, int(np.prod(shape, dtype=int))
    blocks = -(-count * width // 4)
    counters = [(block & 0xffffffff, block >> 32, width, 0) for block in range(blocks)]
    parts = philox(np.array(counters).reshape(-1, 4), seed).reshape(-1, width)[:count]
    return [sum(int(part) << 32 * k for k, part in enumerate(word)) for word in parts]


def of_words(function):
    """A function of words, as one of (shape, …, seed)."""
    def drawn(shape, *parameters, seed, dtype=None, **named):
        dtype = {} if dtype is None else {"dtype": dtype}
        values = function(lambda bits: words(shape, seed, bits), *parameters, **dtype, **named)
        return np.asarray(values).reshape(shape)
    return drawn


def minus_logs(longs):
    return -np.log((np.array([word >> 12 for word in longs], np.longdouble) + 0.5) / 2**52)


def turns(longs):
    return 2 * np.arccos(np.longdouble(-1)) * (np.array([word >> 12 for word in longs], np.longdouble) + 0.5) / 2**52


def uniform(word, low=0, high=1, dtype=np.float64):
    bits = {np.float32: 32, np.float64: 64}[dtype]
    kept = {32: 24, 64: 53}[bits]
    fractions = np.array([part >> (bits - kept) for part in word(bits)], dtype) * dtype(2.0**-kept)
    values = dtype(low) + fractions * dtype(dtype(high) - dtype(low))
    return np.minimum(values, np.nextafter(dtype(high), dtype(low)))


def deviates(word):
    longs = word(64)
    radius, angle = np.sqrt(2 * minus_logs(longs[::2])), turns(longs[1::2])
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()


def integers(word, low, high, dtype=np.int64):
    bits = 64 if high - low < 2**32 else 128
    return np.array([low + (part * (high - low) >> bits) for part in word(bits)], dtype)


def permutation(n, *, seed):
    numbers = list(range(n))
    for place, word in reversed(list(enumerate(words((n,), seed, 64)))):
        other = word * (place + 1) >> 64
        numbers[place], numbers[other] = numbers[other], numbers[place]
    return np.array(numbers, np.int64)


def choice(a, count, replace=True, axis=0, *, seed):
    a = np.arange(a) if np.ndim(a) == 0 else a
    length = a.shape[axis]
    return a.take(of_words(integers)((count,), 0, length, seed=seed) if replace
                  else permutation(length, seed=seed)[:count], axis)


def multinomial(weights, count, replace=True, *, seed):
    if not replace:
        waiting = FUNCTIONS["exponential"](weights.shape, seed=seed) / (weights / weights.max(-1, keepdims=True))
        return np.argsort(waiting, -1, kind="stable")[..., :count]
    sums = np.cumsum(weights.astype(float), axis=-1)
    drawn = of_words(uniform)((*weights.shape[:-1], count), seed=seed)
    rows = [np.searchsorted(row, some * row[-1], side="right")
            for row, some in zip(sums.reshape(-1, sums.shape[-1]), drawn.reshape(-1, count))]
    return np.array(rows).reshape(drawn.shape)


# Normal numbers come in pairs, so their shapes have an even number of elements here.
FUNCTIONS = {
    "uniform": of_words(uniform),
    "normal": of_words(lambda word, mean=0, stddev=1: (mean + stddev * deviates(word)).astype(float)),
    "log_normal": of_words(lambda word, mean=0, stddev=1: np.exp(mean + stddev * deviates(word)).astype(float)),
    "exponential": of_words(lambda word, scale=1: (scale * minus_logs(word(64))).astype(float)),
    "cauchy": of_words(lambda word, median=0, scale=1: (median + scale * np.tan(turns(word(64)))).astype(float)),
    "geometric": of_words(lambda word, probability, dtype=np.int64: (
        np.floor(minus_logs(word(64)) / -np.log1p(np.longdouble(-probability))) + 1).astype(dtype)),
    "bernoulli": of_words(lambda word, probability, dtype=bool: np.array(
        [part < probability * 2**64 for part in word(64)], dtype)),
    "integers": of_words(integers),
    "permutation": permutation, "choice": choice, "multinomial": multinomial,
    "shuffle": lambda a, axis=0, *, seed: a.take(permutation(a.shape[axis], seed=seed), axis),
}
