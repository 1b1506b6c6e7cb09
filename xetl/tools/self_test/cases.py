"""The cases of the self-test: kernels with arguments and tolerances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from xetl.tools.self_test import kernels
from xetl.xetile import f32, f64, i32

_BF16 = np.dtype(ml_dtypes.bfloat16)
_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_E5M2 = np.dtype(ml_dtypes.float8_e5m2)
_SUMS = {"f4": f32, "f8": f64, "i4": i32}
_ROWS, _COLUMNS = 40, 96


@dataclass(frozen=True)
class Case:
    """A kernel and its arguments.

    Attributes:
        name: the topic, then the variant, such as ``block message f16``.
        arrays: makes new arrays for the arguments, with the same numbers each time.
        stored: the index of the argument that gets the result.
        tolerance: the largest difference allowed, relative to the largest element.
        needs: dtypes that the device must have arithmetic for.
        memory: ``host``, or the kind of USM that arrays are copied to.
        launches: the number of launches before the first wait.
        by_address: whether the first array is passed as its address.
    """

    name: str
    kernel: Any
    grid: tuple[int, ...]
    arrays: Callable[[], list[Any]]
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stored: int = -1
    tolerance: float = 0.0
    needs: frozenset[str] = frozenset()
    memory: str = "host"
    launches: int = 1
    by_address: bool = False


def all_cases() -> list[Case]:
    """Return all cases; the features that others rely on come first."""
    return [
        *_blocks(),
        *_products(),
        *_lanes(),
        *_atomics(),
        *_workgroups(),
        *_arithmetic(),
        *_residency(),
    ]


def _numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Return random small integers, which are exact in every dtype."""
    random = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind == "u" else -4
    return random.integers(low, 5, shape).astype(dtype)


def _needs(dtype: Any) -> frozenset[str]:
    return frozenset({"f64"} if np.dtype(dtype) == np.float64 else ())


def _copied(dtype: Any, shape: tuple[int, ...]) -> Callable[[], list[Any]]:
    return lambda: [_numbers(shape, dtype), np.zeros(shape, dtype)]


def _multiplied(
    a: Any, b: Any, c: Any, shape: tuple[int, int] = (32, 64)
) -> Callable[[], list[Any]]:
    def arrays() -> list[Any]:
        factors = _numbers(shape, a), _numbers((64, 64), b, seed=1)
        return [*factors, np.zeros((32, 64), c)]

    return arrays


def _blocks() -> Iterator[Case]:
    whole = {"H": 8, "W": 32}
    for dtype in ("i1", "i2", "f2", _BF16, "f4", "i8", "f8"):
        name = np.dtype(dtype).name
        arrays = _copied(dtype, (_ROWS, _COLUMNS))
        yield Case(f"block message {name}", kernels.copy, (5, 3), arrays, whole)
    edges = _copied("f4", (_ROWS - 3, _COLUMNS - 12))
    yield Case("block message at edges", kernels.copy, (5, 3), edges, whole)
    odd = _copied("f4", (_ROWS, _COLUMNS + 1))
    yield Case("rows of odd pitch", kernels.copy, (5, 4), odd, whole)
    for dtype in ("f2", "f4", "i8"):
        yield Case(
            f"transposed load {np.dtype(dtype).name}",
            kernels.transpose,
            (2, 2),
            lambda dtype=dtype: [_numbers((64, 32), dtype), np.zeros((32, 64), dtype)],
            {"H": 16, "W": 32},
        )
    there = partial(Case, memory="device")
    yield there("slice", kernels.copy, (5, 2), _slice, whole)
    yield there("rows by their numbers", kernels.chosen_rows, (2, 3), _chosen)
    for size, end in ((512, "whole rows"), (500, "a part of a row")):
        name, arrays = f"one dimension, {end} at its end", _copied("f4", (size,))
        yield there(name, kernels.line, (4,), arrays, {"W": 128})


def _slice() -> list[Any]:
    """Return rows with gaps that begin between multiples of 64 bytes; of 60 columns."""
    return [_numbers((_ROWS, 80), "f4")[:, 4:64], np.zeros((_ROWS, 60), "f4")]


def _chosen() -> list[Any]:
    rows = np.random.default_rng(0).integers(0, _ROWS, 32).astype(np.int32)
    return [_numbers((_ROWS, _COLUMNS), "f2"), rows, np.zeros((32, _COLUMNS), "f2")]


def _products() -> Iterator[Case]:
    kinds = [
        ("f2", "f2", "f4", None),
        (_BF16, _BF16, "f4", None),
        ("f4", "f4", "f4", "tf32"),
        ("f4", "f4", "f4", None),
        ("i1", "i1", "i4", None),
        ("u1", "i1", "i4", None),
        ("f8", "f8", "f8", None),
        (_E4M3, _E4M3, "f4", None),
        (_E5M2, _E4M3, "f4", None),
    ]
    for a, b, c, precision in kinds:
        names = dict.fromkeys([np.dtype(a).name, np.dtype(b).name])
        name, arrays = f"DPAS {precision or ' by '.join(names)}", _multiplied(a, b, c)
        chosen = {"K": 32, "OF": _SUMS[c], "PRECISION": precision}
        yield Case(name, kernels.product, (2, 2), arrays, chosen, needs=_needs(a))
    for side, shape in (("A", (64, 32)), ("B", (32, 64))):
        arrays = _multiplied(_BF16, _BF16, "f4", shape)
        chosen = {"K": 32, "OF": f32, "TURNED": side}
        name = f"DPAS bfloat16, {side} transposed"
        yield Case(name, kernels.product, (2, 2), arrays, chosen)


def _lanes() -> Iterator[Case]:
    def arrays(dtype: Any) -> list[Any]:
        order = np.random.default_rng(0).permutation(128).astype(np.int32)
        return [_numbers((128,), dtype), order, np.zeros(128, dtype)]

    for dtype in ("i1", "f2", "f4", "i8", "f8"):
        name, made = (
            f"gather and scatter {np.dtype(dtype).name}",
            partial(arrays, dtype),
        )
        yield Case(name, kernels.gather, (4,), made, needs=_needs(dtype))


_KINDS = {
    "i4": ("add", "min", "max", "and", "or", "xor", "mul"),
    "u4": ("add", "min", "max"),
    "i8": ("add", "max"),
    "f4": ("add", "min", "max"),
    "f8": ("add",),
    "f2": ("add",),
    _BF16: ("add",),
}


def _atomics() -> Iterator[Case]:
    def places(size: int, count: int) -> Any:
        return (np.arange(size) % count).astype(np.int32)

    def arrays(dtype: Any) -> list[Any]:
        return [_numbers((128,), dtype), places(128, 48), np.ones(48, dtype)]

    for dtype, kinds in _KINDS.items():
        made, needs = partial(arrays, dtype), _needs(dtype)
        for kind in kinds:
            name, chosen = f"atomic {kind} {np.dtype(dtype).name}", {"KIND": kind}
            yield Case(name, kernels.atomic, (4,), made, chosen, needs=needs)
    swapped = lambda: [_numbers((64,), "i4"), places(64, 2)]
    yield Case("atomic compare and swap", kernels.compare_and_swap, (2,), swapped)


def _workgroups() -> Iterator[Case]:
    row, square = _copied("f4", (32,)), _copied("f4", (32, 32))
    yield Case("shared memory and barriers", kernels.swap_halves, (1,), row)
    name = "reduction over subgroups"
    yield Case(name, kernels.softmax, (2,), square, tolerance=1e-5)
    for kind in ("add", "max", "min"):
        name, chosen = f"rows combined by {kind}", {"KIND": kind}
        yield Case(name, kernels.rows, (5,), _slice, chosen, memory="device")


def _arithmetic() -> Iterator[Case]:
    for dtype, tolerance in (("f4", 1e-5), ("f2", 2e-3), (_BF16, 2e-2), ("f8", 1e-12)):
        yield Case(
            f"functions {np.dtype(dtype).name}",
            kernels.functions,
            (2,),
            _copied(dtype, (16, 32)),
            tolerance=tolerance,
            needs=_needs(dtype),
        )
    for dtype in ("i4", "i8"):
        made = _copied(dtype, (16, 32))
        yield Case(f"integers {np.dtype(dtype).name}", kernels.integers, (2,), made)


def _residency() -> Iterator[Case]:
    arrays, large = _copied("f4", (64, 32)), _copied("f4", (1 << 12, 1 << 10))
    copied = partial(Case, kernel=kernels.copy, constants={"H": 8, "W": 32})
    small = partial(copied, grid=(8, 1), arrays=arrays)
    for kind in ("device", "shared", "host"):
        yield small(f"memory of kind {kind}", memory=kind)
    grid = 1 << 9, 1 << 5
    yield copied("memory of 16 MB", grid=grid, arrays=large, memory="device")
    through = partial(Case, kernel=kernels.through_address, memory="shared")
    yield through("memory by its address", grid=(8,), arrays=arrays, by_address=True)
    yield small("launches in flight", memory="device", launches=64)
