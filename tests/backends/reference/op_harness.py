"""Run one operation, given as text, on arrays."""

import ml_dtypes
import numpy as np

from tests.run_module import run_module
from xetl.dialects.parser import parse_module

_NAMES = {"bool": "i1", "bfloat16": "bf16"}


def type_name(dtype):
    """The IR's name of a NumPy dtype."""
    name = np.dtype(dtype).name
    return _NAMES.get(name, name.replace("float", "f").replace("int", "i"))


def vector_name(array, element=None):
    """The vector type of an array; the bare element type of a scalar."""
    element = element or type_name(array.dtype)
    if not array.shape:
        return element
    return f"vector<{'x'.join(map(str, array.shape))}x{element}>"


def evaluate(text, *arrays, like=None, shape=None, dtype=None, index=False):
    """The result of one operation.

    Args:
        text: the operation: ``{0}`` is the first operand, ``{t0}`` its type, ``{r}``
            the type of the result.
        arrays: the operands: vectors, or scalars if they have rank 0.
        like: an array of the result's shape and type; by default the first operand.
        shape: the result's shape if it is another one.
        dtype: the result's element type if it is another one.
        index: whether 64-bit integers are ``index``.
    """
    arrays = [np.asarray(array) for array in arrays]
    like = arrays[0] if like is None else like
    result = np.zeros(
        like.shape if shape is None else shape, like.dtype if dtype is None else dtype
    )
    elements = [_element(a, index) for a in [*arrays, result]]
    types = [vector_name(a, e) for a, e in zip([*arrays, result], elements)]
    lines = [
        _load(i, a, t, e) for i, (a, t, e) in enumerate(zip(arrays, types, elements))
    ]
    names = {f"t{i}": t for i, t in enumerate(types[:-1])}
    body = text.format(*(f"%v{i}" for i in range(len(arrays))), r=types[-1], **names)
    everything = [*arrays, result]
    arguments = ", ".join(
        f"%m{i}: {_memref(a, e)}" for i, (a, e) in enumerate(zip(everything, elements))
    )
    module = f"""
    func.func @f({arguments}) {{
      %zero = arith.constant 0 : index
      {chr(10).join(lines)}
      %r = {body}
      {_store(len(arrays), result, types[-1], elements[-1])}
      func.return
    }}"""
    run_module(parse_module(module, "test"), (), everything)
    return result if result.shape else result[()]


def _element(array, index):
    name = type_name(array.dtype)
    return "index" if index and name == "i64" else name


def _memref(array, element):
    return f"memref<{''.join(f'{n}x' for n in array.shape)}{element}>"


def _access(number, array):
    zeros = ", ".join(["%zero"] * array.ndim)
    return f"%m{number}[{zeros}]"


def _load(number, array, type_, element):
    memory = _memref(array, element)
    at = _access(number, array)
    if not array.shape:
        return f"%v{number} = memref.load {at} : {memory}"
    return f"%v{number} = vector.load {at} : {memory}, {type_}"


def _store(number, array, type_, element):
    memory = _memref(array, element)
    at = _access(number, array)
    if not array.shape:
        return f"memref.store %r, {at} : {memory}"
    return f"vector.store %r, {at} : {memory}, {type_}"


FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64]


def some_integers(rng, dtype, count):
    """Random numbers, and all pairs of the awkward ones."""
    info = np.iinfo(dtype)
    awkward = [info.min, info.min + 1, -2, -1, 0, 1, 2, 7, info.max - 1, info.max]
    a, b = (x.ravel() for x in np.meshgrid(awkward, awkward))
    more = rng.integers(info.min, info.max, (2, count), np.int64, endpoint=True)
    return (
        np.concatenate([a, more[0]]).astype(dtype),
        np.concatenate([b, more[1] >> rng.integers(0, 60, count)]).astype(dtype),
    )


def some_floats(rng, dtype, count):
    """Random numbers of all sizes, and all pairs of the awkward ones."""
    awkward = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-7, -60000.0]
    a, b = (x.ravel() for x in np.meshgrid(awkward, awkward))
    more = rng.standard_normal((2, count)) * 2.0 ** rng.integers(-8, 8, (2, count))
    return (
        np.concatenate([a, more[0]]).astype(dtype),
        np.concatenate([b, more[1]]).astype(dtype),
    )
