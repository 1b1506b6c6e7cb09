"""The ``xsmm_*`` functions implemented by NumPy; calls are recorded, for tests.

    with recording() as calls:
        gemm[grid](a, b, c)          # with xetl.config.xsmm = "recording"
    assert calls[0].name == "xsmm_brgemm_dispatch"

Kernels then run on one thread, so calls have a fixed order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from xetl.dialects.xsmm import DATA_TYPES, FUNCTIONS, GEMM_FLAGS
from xetl_cpu.library.products import CONFIGURE_TYPE, DISPATCH_TYPE, INVOKE_TYPE
from xetl_cpu.library.serve import RECORDING, Library

__all__ = ["Call", "library", "recording"]

_VNNI_B = GEMM_FLAGS["vnni_a"]
"""In these calls A and B are swapped."""

_F32, _BF16_F32 = DATA_TYPES["f32"], DATA_TYPES["bf16_f32"]


class Call(NamedTuple):
    """One call: the function and its arguments; pointers are addresses."""

    name: str
    arguments: tuple[int, ...]


class _State:
    """The recorded calls, and the kernels by number."""

    calls: list[Call] | None = None
    kernels: tuple[tuple[int, ...], ...] = ()
    failure: Exception | None = None


@contextmanager
def recording() -> Generator[list[Call]]:
    """Record calls in the yielded list; only one `recording` at a time.

    Raises:
        Exception: an error of a call, at the end: it cannot leave native code.
    """
    _State.calls, _State.failure = [], None
    try:
        yield _State.calls
    finally:
        _State.calls = None
    if _State.failure is not None:
        raise _State.failure


@contextmanager
def _paused() -> Generator[None]:
    """Stop recording inside of the ``with`` block."""
    calls, _State.calls = _State.calls, None
    try:
        yield
    finally:
        _State.calls = calls


def library() -> Library:
    """Return the library of these functions, for kernels to call."""
    addresses = {
        name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in zip(FUNCTIONS, _CALLBACKS)
    }
    return Library(RECORDING, addresses, RECORDING, _paused, is_sequential=True)


def _write_down(name: str, arguments: tuple[Any, ...]) -> None:
    if _State.calls is not None:
        # ctypes passes None for a null pointer.
        _State.calls.append(Call(name, tuple(one or 0 for one in arguments)))


def _kernel(numbers: tuple[int, ...]) -> int:
    """Return the number of a kernel, from 1; equal arguments have one kernel."""
    if numbers not in _State.kernels:
        _State.kernels += (numbers,)
    return _State.kernels.index(numbers) + 1


@DISPATCH_TYPE
def _dispatch(*numbers: int) -> int:
    _write_down(FUNCTIONS[0], numbers)
    data_type, flags = numbers[0], numbers[-1]
    wanted = {_F32: 0, _BF16_F32: _VNNI_B}.get(data_type)
    return _kernel(numbers) if flags & _VNNI_B == wanted else 0


@INVOKE_TYPE
def _invoke(*arguments: Any) -> None:
    _write_down(FUNCTIONS[1], arguments)
    try:
        _compute(*(one or 0 for one in arguments))
    except Exception as failure:  # ctypes would only print it
        _State.failure = failure


@DISPATCH_TYPE
def _dispatch_tiles(*numbers: int) -> int:
    _write_down(FUNCTIONS[2], numbers)
    return _kernel(numbers)


@CONFIGURE_TYPE
def _invoke_tiles(*arguments: Any) -> None:
    _write_down(FUNCTIONS[3], arguments)


_CALLBACKS = (_dispatch, _invoke, _dispatch_tiles, _invoke_tiles)


def _compute(data_type: int, kernel: int, *rest: int) -> None:
    """Add the products to C, in the order of the batch, in f32."""
    *places, batch = rest
    numbers = _State.kernels[kernel - 1]
    _, m, n, k, lda, ldb, ldc, stride_a, stride_b, flags = numbers
    size = 4 if data_type == _F32 else 2
    a, b = (places[i] + places[i + 1] * size for i in (0, 2))
    left = _matrices(a, size, (batch, m, k), (stride_a, lda, 1))
    if flags & _VNNI_B:
        shape, strides = (batch, k // 2, n, 2), (stride_b, 2 * ldb, 2, 1)
        pairs = _matrices(b, size, shape, strides)
        right = pairs.transpose(0, 1, 3, 2).reshape(batch, k, n)
    else:
        right = _matrices(b, size, (batch, k, n), (stride_b, ldb, 1))
    c = _memory(places[4] + places[5] * 4, np.float32, (m, n), (ldc, 1))
    if flags & GEMM_FLAGS["beta_0"]:
        c[...] = 0
    with np.errstate(all="ignore"):  # of infinities libxsmm says nothing either
        for one, other in zip(left, right):
            c += one @ other


def _matrices(
    address: int, size: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return elements as f32: bf16 are the upper halves of f32."""
    if size == 4:
        return _memory(address, np.float32, shape, strides)
    halves = _memory(address, np.uint16, shape, strides).astype(np.uint32)
    return (halves << 16).view(np.float32)


def _memory(
    address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Return a view of memory; strides are in elements."""
    if 0 in shape:
        return np.zeros(shape, dtype)
    count = 1 + sum((extent - 1) * step for extent, step in zip(shape, strides))
    size = np.dtype(dtype).itemsize
    memory = (ctypes.c_char * (count * size)).from_address(address)
    flat = np.frombuffer(memoryview(memory), dtype)
    bytes_ = [step * size for step in strides]
    return np.lib.stride_tricks.as_strided(flat, shape, bytes_)
