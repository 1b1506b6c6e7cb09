"""Shuffles and reductions over lanes on opencl:cpu against NumPy."""

from __future__ import annotations

from functools import cache, reduce

import numpy as np
import pytest

from tests.backends.xegpu.emit.elementwise import (
    DTYPES,
    Elementwise,
    Form,
    assert_same,
    edges,
)
from xetl.dialects.reduction_kinds import FLOAT_KINDS, INTEGER_KINDS
from xetl_reference.combining import combine

COUNT = 256


def kinds_of(type_: str) -> tuple[str, ...]:
    return FLOAT_KINDS if "f" in type_ else INTEGER_KINDS


def reduced(kind: str, type_: str) -> Form:
    return (f'simt.reduce "{kind}" %0 : {{0}}', (type_,), type_)


def shuffled(type_: str) -> Form:
    return ("simt.shuffle %0, %1 : {0}", (type_, "i32"), type_)


@cache
def program(type_: str) -> Elementwise:
    forms = [reduced(kind, type_) for kind in kinds_of(type_)]
    return Elementwise([*forms, shuffled(type_)])


def numbers(type_: str, kind: str) -> np.ndarray:
    """Numbers whose sums and products are exact, or all there are."""
    rng = np.random.default_rng(4)
    dtype = DTYPES[type_]
    if kind == "add" and "f" in type_:
        return rng.integers(-5, 6, COUNT).astype(dtype)
    if kind == "mul" and "f" in type_:
        return rng.choice([0.5, 1.0, -1.0, 2.0], COUNT).astype(dtype)
    return edges(dtype, COUNT, 6)


@pytest.mark.parametrize("type_", list(DTYPES))
def test_reductions_of_all_kinds(type_: str):
    dtype = np.dtype(DTYPES[type_])
    for kind in kinds_of(type_):
        given = numbers(type_, kind)
        rows = given.reshape(-1, 16)
        with np.errstate(all="ignore"):
            expected = reduce(combine(kind, dtype), rows.T)
        found = program(type_)(reduced(kind, type_), given)
        assert_same(found.reshape(-1, 16), np.repeat(expected[:, None], 16, 1), kind)


@pytest.mark.parametrize("type_", list(DTYPES))
def test_shuffles_ask_any_lane(type_: str):
    given = edges(DTYPES[type_], COUNT, 2)
    lanes = np.random.default_rng(3).integers(-16, 32, COUNT).astype(np.int32)
    rows = given.reshape(-1, 16)
    expected = np.take_along_axis(rows, lanes.reshape(-1, 16) % 16, axis=1)
    found = program(type_)(shuffled(type_), given, lanes)
    assert found.tobytes() == expected.tobytes()


def test_vectors_go_element_by_element():
    form = reduced("add", "f32")
    given = np.arange(64, dtype=np.float32)
    found = Elementwise([form], 4)(form, given)
    expected = given.reshape(16, 4).sum(0)
    np.testing.assert_array_equal(found.reshape(16, 4), np.tile(expected, (16, 1)))


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_narrow_sums_run_in_f32(type_: str):
    """1 + 15 numbers too small to be seen each on its own."""
    small = 2.0**-12 if type_ == "f16" else 2.0**-9
    given = np.full(COUNT, small, DTYPES[type_])
    given[::16] = 1
    expected = np.asarray(1 + 15 * small).astype(DTYPES[type_])
    found = program(type_)(reduced("add", type_), given)
    assert (found == expected).all()
