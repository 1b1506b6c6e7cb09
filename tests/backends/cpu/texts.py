"""Run kernels that are text on ``cpu`` and on ``reference``."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

import xetl

DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
}


def copied(arguments):
    """Arguments of a launch of their own; arrays keep the order of their elements."""
    return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in arguments]


def run_both(text, *arguments, grid=1, subgroups=None, kernel="k"):
    """The arguments after a launch on ``cpu``, which did what ``reference`` did.

    Integers and booleans are equal; floats are what so many bits can say.
    """
    library = xetl.load_mlir(text)
    results = []
    for backend in ("reference", "cpu"):
        own = copied(arguments)
        where = library[kernel][grid]
        if subgroups is not None:
            where = library[kernel][grid, subgroups]
        where(*own, backend=backend)
        results.append(own)
    for expected, found in zip(*results):
        if isinstance(expected, np.ndarray):
            assert_close(found, expected)
    return results[1]


def assert_close(found, expected):
    """Equal but for the last bits of floats."""
    if found.dtype.kind in "iub":
        assert np.array_equal(found, expected)
        return
    bits = ml_dtypes.finfo(found.dtype).nmant
    tolerance = 2.0 ** (3 - min(bits, 20))
    np.testing.assert_allclose(
        found.astype(np.float64),
        np.asarray(expected, np.float64),
        rtol=tolerance,
        atol=tolerance,
    )


def shape_of(type_):
    """The shape in the name of a vector or memref type."""
    return tuple(int(extent) for extent in re.findall(r"(\d+)x", type_))


def dtype_of(type_):
    """The dtype in the name of a vector or memref type."""
    return DTYPES[re.search(r"(bf16|[fi]\d+|index)>$", type_)[1]]


def on_vectors(body, sources, result):
    """A kernel that loads %0, %1, ..., runs ``body`` and stores %r.

    Args:
        body: lines of text.
        sources: types of the vectors to load.
        result: the type of %r.
    """
    types = [*sources, result]
    memories = [type_.replace("vector", "memref") for type_ in types]
    places = [", ".join(["%zero"] * len(shape_of(type_))) for type_ in types]
    arguments = [f"%m{i}: {memory}" for i, memory in enumerate(memories)]
    loads = [
        f"%{i} = vector.load %m{i}[{place}] : {memory}, {type_}"
        for i, (place, memory, type_) in enumerate(zip(places, memories, sources))
    ]
    last = f"%m{len(sources)}[{places[-1]}] : {memories[-1]}, {result}"
    return "\n".join(
        [
            f"func.func @k({', '.join(arguments)}) {{",
            "%zero = arith.constant 0 : index",
            *loads,
            body,
            f"vector.store %r, {last}",
            "return",
            "}",
        ]
    )


def some(rng, shape, dtype):
    """Small numbers of a dtype: whole ones, so that sums are exact."""
    if dtype == np.bool_:
        return rng.random(shape) > 0.5
    return rng.integers(-4, 5, shape).astype(dtype)


def apply(body, sources, result, seed=0):
    """What ``body`` makes of random vectors: (the vectors, the result on ``cpu``)."""
    rng = np.random.default_rng(seed)
    given = [some(rng, shape_of(type_), dtype_of(type_)) for type_ in sources]
    out = np.zeros(shape_of(result), dtype_of(result))
    ran = run_both(on_vectors(body, sources, result), *given, out)
    return given, ran[-1]
