"""Ten kernels of different kinds, what each is launched with, and what NumPy gives.

Sums are of small integers, so that every order gives the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from xetl import xetile
from xetl.xetile import constexpr, i32


@xetile.kernel
def add(A, B, C, BM: constexpr = 8, BN: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (BM, BN)))
    b = xetile.load_tile(xetile.init_tile(B, [m, n], (BM, BN)))
    xetile.store_tile(a + b, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 32, BN: constexpr = 32, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), C.dtype)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        acc = xetile.tile_mma(
            a, xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN))), acc
        )
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def total(A, C, BM: constexpr = 8, N: constexpr = 64):
    m = xetile.program_id(0) * BM
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, N)))
    high = xetile.tile_reduce("max", a, [1])
    xetile.store_tile(
        xetile.tile_reduce("add", a, [1]) + high, xetile.init_tile(C, [m, 0], (BM, 1))
    )


@xetile.kernel
def transpose(A, C, BM: constexpr = 16, BN: constexpr = 24):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (BM, BN)))
    xetile.store_tile(
        xetile.tile_transpose(a, [1, 0]), xetile.init_tile(C, [n, m], (BN, BM))
    )


@xetile.kernel
def gather(W, P, C, N: constexpr = 16):
    at = xetile.load_tile(xetile.init_tile(P, [xetile.program_id(0) * N], (N,)))
    xetile.store_tile(
        xetile.load_gather(xetile.init_tile(W, at)),
        xetile.init_tile(C, [xetile.program_id(0) * N], (N,)),
    )


@xetile.kernel
def count(P, C, N: constexpr = 16):
    at = xetile.load_tile(
        xetile.init_tile(P, [xetile.program_id(0) * N], (N,)), padding=-1
    )
    xetile.atomic_rmw_tile("add", xetile.full((N,), 1, i32), xetile.init_tile(C, at))


@xetile.kernel
def running(A, C, BM: constexpr = 4, N: constexpr = 64):
    m = xetile.program_id(0) * BM
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, N)))
    xetile.store_tile(xetile.cumsum(a, 1), xetile.init_tile(C, [m, 0], (BM, N)))


@xetile.kernel
def largest(A, C, BM: constexpr = 4, N: constexpr = 64):
    m = xetile.program_id(0) * BM
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, N)), padding=-99)
    found = xetile.argmax(a, 1)
    xetile.store_tile(found[:, None], xetile.init_tile(C, [m, 0], (BM, 1)))


@xetile.kernel
def halves(A, C, BM: constexpr = 8, BN: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (BM, BN)))
    xetile.store_tile(a // 2 + a % 3, xetile.init_tile(C, [m, n], (BM, BN)))


class Case(NamedTuple):
    """A launch.

    Attributes:
        kernel: what is launched.
        signature: as `xetl compile` takes it.
        grid: how many programs.
        arrays: by the name of the parameter, the result last.
        expected: what the result holds afterwards.
    """

    kernel: Any
    signature: str
    grid: tuple[int, int]
    arrays: Mapping[str, np.ndarray]
    expected: np.ndarray


def _numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def _product(dtype: Any, to: Any, name: str) -> Case:
    a, b = _numbers((37, 45), dtype), _numbers((45, 53), dtype, 1)
    arrays = {"A": a, "B": b, "C": np.zeros((37, 53), to)}
    kinds = f"{name}[M,K] {name}[K,N] {np.dtype(to).kind}32[M,N]"
    return Case(gemm, kinds, (2, 2), arrays, a.astype(to) @ b.astype(to))


def _counted() -> Case:
    at = np.abs(_numbers((45,), np.int32))
    expected = np.bincount(at, minlength=7).astype(np.int32)
    arrays = {"P": at, "C": np.zeros(7, np.int32)}
    return Case(count, "i32[N] i32[M]", (3, 1), arrays, expected)


def _of_rows(
    kernel: Any, kind: str, dtype: Any, expected: Callable[[Any], Any]
) -> Case:
    a = _numbers((13, 51), dtype)
    wanted = expected(a)
    arrays = {"A": a, "C": np.zeros_like(wanted)}
    name = {"f": "f", "i": "i"}[wanted.dtype.kind] + str(wanted.dtype.itemsize * 8)
    grid = (4, 1) if kernel is not transpose else (1, 3)
    return Case(kernel, f"{kind}[M,N] {name}[P,Q]", grid, arrays, wanted)


def cases() -> dict[str, Case]:
    """Fresh arrays for each kernel."""
    a, b = _numbers((19, 45), np.float32), _numbers((19, 45), np.float32, 1)
    w, at = np.arange(100, dtype=np.float32), np.abs(_numbers((45,), np.int32)) * 9
    return {
        "add": Case(
            add,
            "f32[M,N] f32[M,N] f32[M,N]",
            (3, 2),
            {"A": a, "B": b, "C": np.zeros_like(a)},
            a + b,
        ),
        "gemm_f32": _product(np.float32, np.float32, "f32"),
        "gemm_i8": _product(np.int8, np.int32, "i8"),
        "sum": _of_rows(
            total,
            "f32",
            np.float32,
            lambda x: x.sum(1, keepdims=True) + x.max(1, keepdims=True),
        ),
        "transpose": _of_rows(transpose, "f32", np.float32, lambda x: x.T.copy()),
        "gather": Case(
            gather,
            "f32[M] i32[N] f32[N]",
            (3, 1),
            {"W": w, "P": at, "C": np.zeros(45, np.float32)},
            w[at],
        ),
        "atomics": _counted(),
        "cumsum": _of_rows(running, "f32", np.float32, lambda x: np.cumsum(x, 1)),
        "argmax": _of_rows(
            largest,
            "f32",
            np.float32,
            lambda x: x.argmax(1, keepdims=True).astype(np.int32),
        ),
        "division": Case(
            halves,
            "i32[M,N] i32[M,N]",
            (2, 2),
            {"A": (i := _numbers((13, 51), np.int32)), "C": np.zeros_like(i)},
            i // 2 + i % 3,
        ),
    }


def launch(case: Case, **options: Any) -> None:
    """Run a case and compare; with ``BM=`` and ``BN=`` in the grid they ask for."""
    (*_, result) = case.arrays.values()
    grid = case.grid
    if "BM" in options:
        rows, columns = result.shape
        grid = -(-rows // options["BM"]), -(-columns // options["BN"])
    case.kernel[grid](*case.arrays.values(), **options)
    if not np.array_equal(result, case.expected):
        raise AssertionError(f"`{case.kernel.fn.__name__}` gave a wrong number")
