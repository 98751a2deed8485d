"""Replays chains of views with NumPy and compares shape, strides, offset and elements.

The directory holds chains.txt: for each chain `chain NAME`, its steps, each with "yes" or "no" for
whether Shale could make it a view (`reshape` is a copy, whose storage the next steps view), then
`shape`, `strides`, `offset` (all in elements) of the result. NAME.storage.npy holds the first flat
storage, NAME.npy the resulting elements.
"""
import sys

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view


def without_copy(array, shape):
    """The array under another shape, or None if NumPy would have to copy."""
    view = array.view()
    try:
        view.shape = shape
    except AttributeError:
        return None
    return view


def step(array, storage, operation, n):
    if operation == "narrow":
        axis, start, length = n
        return array[(slice(None),) * (axis % array.ndim) + (slice(start, start + length),)]
    if operation == "select":
        axis, at = n
        return array[(slice(None),) * (axis % array.ndim) + (at,) + (Ellipsis,)]
    if operation == "slice":
        axis, has_start, start, has_stop, stop, stride = n
        which = slice(start if has_start else None, stop if has_stop else None, stride)
        return array[(slice(None),) * (axis % array.ndim) + (which,)]
    if operation == "transpose":
        return np.swapaxes(array, *n)
    if operation == "permute_dims":
        return np.transpose(array, n)
    if operation == "moveaxis":
        return np.moveaxis(array, *n)
    if operation == "squeeze_all":
        return np.squeeze(array)
    if operation == "squeeze":
        return np.squeeze(array, tuple(n))
    if operation == "unsqueeze":
        return np.expand_dims(array, n[0])
    if operation == "expand":
        lead = len(n) - array.ndim
        shape = [array.shape[i - lead] if extent == -1 else extent for i, extent in enumerate(n)]
        return np.broadcast_to(array, shape)
    if operation == "unfold":
        axis, size, stride = n
        windows = sliding_window_view(array, size, axis)
        return windows[(slice(None),) * (axis % array.ndim) + (slice(None, None, stride),)]
    if operation == "index":
        entries = []
        for kind, number, stride in zip(n[::3], n[1::3], n[2::3]):
            entries.append([number, slice(number, None, stride), None, Ellipsis][kind])
        if Ellipsis not in entries:
            entries.append(Ellipsis)  # keeps rank 0 an array
        return array[tuple(entries)]
    if operation == "reshape":
        return np.ascontiguousarray(array).reshape(n)
    if operation == "view":
        return without_copy(array, n)
    if operation == "diagonal":
        return np.diagonal(array, *n)
    if operation == "flip":
        index = [slice(None)] * array.ndim
        for axis in n:
            index[axis] = slice(None, None, -1)
        return array[(*index, Ellipsis)]  # the ellipsis keeps rank 0 an array
    if operation == "as_strided":
        rank = n[0]
        strides = [stride * array.itemsize for stride in n[1 + rank:-1]]
        return as_strided(storage[n[-1]:], n[1:1 + rank], strides)
    raise ValueError(operation)


def compare(name, array, storage, result, directory):
    elements = np.load(f"{directory}/{name}.npy")
    assert elements.dtype == array.dtype, (elements.dtype, array.dtype)
    assert array.shape == tuple(result["shape"]), (array.shape, result["shape"])
    assert elements.shape == array.shape
    assert elements.tobytes() == array.tobytes(), (elements, array)
    if array.size == 0:
        return
    offset = array.__array_interface__["data"][0] - storage.__array_interface__["data"][0]
    assert offset == result["offset"][0] * array.itemsize, (offset, result["offset"])
    for extent, stride, ours in zip(array.shape, array.strides, result["strides"]):
        assert extent == 1 or stride == ours * array.itemsize, (array.strides, result["strides"])


def main(directory):
    chains = steps = refused = copied = 0
    name, history, result = None, [], {}
    for line in open(f"{directory}/chains.txt"):
        word, *rest = line.split()
        if word == "chain":
            name, history, result = rest[0], [], {}
            storage = array = np.load(f"{directory}/{name}.storage.npy")
            continue
        try:
            if word in ("shape", "strides", "offset"):
                result[word] = [int(number) for number in rest]
            elif word == "end":
                compare(name, array, storage, result, directory)
                chains += 1
            else:
                history.append(line.strip())
                after = step(array, storage, word, [int(number) for number in rest[1:]])
                steps += 1
                if word == "reshape":
                    storage = after.reshape(-1)
                    copied += 1
                assert (after is not None) == (rest[0] == "yes"), "view or copy"
                if after is None:
                    refused += 1
                else:
                    array = after
        except Exception:
            print(name, *history, sep="\n  ")
            raise
    # The test wrote this many; fewer would mean that the file was cut.
    expected = int(open(f"{directory}/count.txt").read())
    assert chains == expected, (chains, expected)
    assert refused > 0 and copied > 0 and steps > 3 * chains, (refused, copied, steps)


main(sys.argv[1])
