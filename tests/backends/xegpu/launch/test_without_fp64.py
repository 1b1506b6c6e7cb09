"""Devices without fp64: numbers are f32, and arrays of f64 are refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, grid_of, scale

import xetl
from xetl import xetile
from xetl.errors import LaunchError
from xetl.settings import config
from xetl.xetile import f32, f64

TARGET = "opencl_fp32"
DOUBLES = "Capability Float64"


@pytest.fixture(autouse=True)
def device(pretend: Any) -> Iterator[None]:
    """The device of all launches has no fp64."""
    pretend(target=TARGET, lacks=frozenset({"f64"}))
    config.target = None
    yield
    del config.target


@xetile.kernel
def numbers(A, C, D, x, n):
    """All that makes numbers: of the launch, constants, loops, reductions, elements."""
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
    total = x / 3.0
    for i in range(n):
        total = total * 0.5 + i / 7
    while total > 10.0:
        total = total - 1.0
    total = total + A[1, 2] + xetile.tanh(x) + min(x, 2.5)
    row = a.sum(1)
    result = (a * total + row[:, None]).to(C.dtype)
    xetile.store_tile(result, xetile.init_tile(C, [0, 0], (16, 16)))
    half = xetile.full((1, 16), x, D.dtype)
    xetile.store_tile(half, xetile.init_tile(D, [0, 0], (1, 16)))


def test_numbers_are_computed_in_f32() -> None:
    a, c = counting((16, 16)) / 100, aligned((16, 16))
    d = aligned((1, 16), np.float16)
    numbers[1](a, c, d, 1.7, 3)
    one = np.float32
    total = one(1.7) / one(3)
    for i in range(3):
        total = total * one(0.5) + one(i) / one(7)
    total = total + a[1, 2] + np.tanh(one(1.7)) + one(1.7)
    np.testing.assert_allclose(c, a * total + a.sum(1)[:, None], rtol=1e-5)
    assert np.all(d == np.float16(1.7))
    # Other numbers, by the shortcut.
    numbers[1](a, c, d, 2.25, 0)
    total = one(0.75) + a[1, 2] + np.tanh(one(2.25)) + one(2.25)
    np.testing.assert_allclose(c, a * total + a.sum(1)[:, None], rtol=1e-5)


TYPES = "f32[M,N] f32[M,N] f16[M,N] f32 i64"


def test_the_code_has_no_f64() -> None:
    shown = {"backend": "xegpu"}
    assert DOUBLES not in numbers.ir("spirv", TYPES, target=TARGET, **shown)
    for target in ("opencl", "pvc", "bmg"):
        assert DOUBLES in numbers.ir("spirv", TYPES, target=target, **shown)
    report = str(numbers.explain(TYPES, target=TARGET, **shown))
    assert f"numbers are f32, not f64: `{TARGET}` has no fp64" in report


@xetile.kernel
def printing(A, x):
    xetile.device_print("{} {} {}", x, A[0, 0], xetile.program_id(0))
    xetile.device_print("{}", xetile.load_tile(xetile.init_tile(A, [0, 0], (2, 8))))
    xetile.device_assert(x < 2.0, "too large")


SPECIAL = [0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1.1e-38, 3.4028235e38]


@pytest.mark.optimised  # the driver forms no subgroups of it otherwise
def test_prints_and_assertions(capfd: pytest.CaptureFixture[str]) -> None:
    a = aligned((2, 8))
    a[0], a[1] = SPECIAL, np.negative(SPECIAL)
    printing[1](a, 1.5)
    assert capfd.readouterr().out == f"1.5 {float(a[0, 0])} 0\n{a}\n"
    with pytest.raises(LaunchError, match="too large"):
        printing[1](a, 2.5)
    text = printing.ir("spirv", "f32[M,N] f32", backend="xegpu", target=TARGET)
    assert DOUBLES not in text


def test_numbers_that_f32_has_no_room_for() -> None:
    a, c = counting((16, 16)) + 1, aligned((16, 16))
    scale[grid_of(a)](a, c, 1e300)
    assert np.all(np.isinf(c))
    enormous[1](a, c)
    assert np.all(np.isinf(c))


@xetile.kernel
def enormous(A, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
    xetile.store_tile(a * 1e300, xetile.init_tile(C, [0, 0], (16, 16)))


@xetile.kernel
def through_f64(A, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
    xetile.store_tile(
        (a.to(f64) * a.to(f64) + 1.0).to(f32), xetile.init_tile(C, [0, 0], (16, 16))
    )


def test_f64_of_the_user_is_refused_by_name() -> None:
    a, c = counting((16, 16)), aligned((16, 16))
    wide = a.astype(np.float64)
    with pytest.raises(LaunchError, match="`A` is an array of f64") as caught:
        scale[1](wide, wide.copy())
    assert caught.value.code == "X0831"
    assert "numpy.float32" in (caught.value.help or "")
    with pytest.raises(LaunchError, match="makes a value of f64") as caught:
        through_f64[1](a, c)
    assert caught.value.code == "X0831"
    assert "a.to(f64)" in (caught.value.source_line or "")
    assert not c.any()


TEXT = """
gpu.func @k(%A: memref<8x16xf32>, %s: f32) kernel {
  %a = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
  %v = xetile.load_tile %a : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  %t = vector.broadcast %s : f32 to vector<8x16xf32>
  %w = arith.mulf %v, %t : vector<8x16xf32>
  xetile.store_tile %w, %a : vector<8x16xf32>, !xetile.tile<8x16xf32>
  gpu.return
}
"""


def test_a_number_of_a_text() -> None:
    a = counting((8, 16))
    before = a.copy()
    xetl.load_mlir(TEXT)["k"][1](a, 0.1)
    assert np.array_equal(a, before * np.float32(0.1))


def test_code_of_either_kind_runs_on_the_other(pretend: Any) -> None:
    pretend(target="opencl", lacks=frozenset())
    config.target = TARGET
    a, c = counting((16, 16)), aligned((16, 16))
    scale[1](a, c, 0.1)
    assert np.array_equal(c, a * np.float32(0.1))
