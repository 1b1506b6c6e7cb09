"""The kernel for arrays that no message moves is compiled when a launch needs it.

If messages are emulated, and its arrays cannot fit them, it is compiled alone.
"""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, grid_of, scale

import xetl
from xetl import compiler, xetile
from xetl.errors import LaunchError
from xetl.settings import config

TEXT = """
!m = memref<20x32xf32, strided<[?, 1]>>
gpu.module @m {
  gpu.func @twice(%a: !m, %c: !m) kernel {
    %t = xetile.init_tile %a[0, 0] : !m -> !xetile.tile<16x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %w = arith.addf %v, %v : vector<16x16xf32>
    %u = xetile.init_tile %c[0, 0] : !m -> !xetile.tile<16x16xf32>
    xetile.store_tile %w, %u : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets that were compiled for."""
    found: list[str] = []
    for name in ("compile_kernel", "compile_module"):
        real = getattr(compiler, name)

        def noted(*args: Any, real: Any = real) -> Any:
            found.append(args[3])
            return real(*args)

        monkeypatch.setattr(compiler, name, noted)
    return found


def odd() -> Any:
    """Rows of 68 bytes."""
    found = counting((20, 17))
    assert found.strides[0] % 16
    return found


def test_no_launch_needs_it_where_messages_do(compiled: list[str]) -> None:
    kernel = xetile.kernel(scale.fn)
    a, c = counting((20, 32)), aligned((20, 32))
    kernel[grid_of(a)](a, c)
    assert np.array_equal(c, 2 * a)
    assert compiled == ["opencl"]


@xetile.kernel(grid=1)
def twice(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0], (64,)))
    xetile.store_tile(x + x, xetile.init_tile(Y, [0], (64,)))


def test_it_is_compiled_once(compiled: list[str]) -> None:
    """Only the code tells that the array is moved as rows of 64 bytes."""
    kernel = xetile.kernel(twice.fn, grid=1)
    a = counting((64,), offset=4)
    for _ in range(3):
        c = aligned(a.shape)
        kernel(a, c)
        assert np.array_equal(c, 2 * a)
    assert compiled == ["opencl", "opencl+any"]


def test_it_is_compiled_alone(compiled: list[str]) -> None:
    kernel = xetile.kernel(scale.fn)
    for a in (odd(), counting((20, 32), offset=16), odd()):
        for factor in (2.0, 4.0):
            c = aligned(a.shape)
            kernel[grid_of(a)](a, c, factor)
            assert np.array_equal(c, factor * a)
    assert compiled == ["opencl+any"]
    a, c = counting((20, 32)), aligned((20, 32))
    kernel[grid_of(a)](a, c)
    assert np.array_equal(c, 2 * a)
    assert compiled == ["opencl+any", "opencl"]


def test_a_log_needs_the_code_that_tells_why(
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    kernel, a = xetile.kernel(scale.fn), odd()
    monkeypatch.setitem(config.assigned, "log", True)
    kernel[grid_of(a)](a, aligned(a.shape))
    assert compiled == ["opencl", "opencl+any"]
    assert "without block messages" in capfd.readouterr().err


def test_it_is_kept_on_the_disk(compiled: list[str], tmp_path: Path) -> None:
    config.cache, config.cache_dir = True, tmp_path
    try:
        a = odd()
        for _ in range(2):
            c = aligned(a.shape)
            xetile.kernel(scale.fn)[grid_of(a)](a, c)
            assert np.array_equal(c, 2 * a)
    finally:
        del config.cache_dir
    assert compiled == ["opencl+any"]


def test_what_was_warmed_up_compiles_nothing(compiled: list[str]) -> None:
    kernel, (text,) = xetile.kernel(scale.fn), xetl.load_mlir(TEXT).values()
    kernel.warmup("f32[M,N] f32[M,N] f64")
    text.warmup()
    a, c = odd(), aligned((20, 17))
    wide, to = counting((20, 33))[:, :32], aligned((20, 33))[:, :32]
    with xetl.no_compile():
        kernel[grid_of(a)](a, c, 2.0)
        text[1](wide, to)
    assert np.array_equal(c, 2 * a)
    assert np.array_equal(to[:16, :16], 2 * wide[:16, :16])
    assert compiled == ["opencl", "opencl+any"] * 2


def test_compiling_may_be_forbidden(compiled: list[str]) -> None:
    kernel = xetile.kernel(scale.fn)
    first, a, c = counting((20, 32)), odd(), aligned((20, 17))
    kernel[grid_of(first)](first, aligned((20, 32)))
    with xetl.no_compile(), pytest.raises(LaunchError, match="X0815"):
        kernel[grid_of(a)](a, c)
    assert not c.any()
    kernel[grid_of(a)](a, c)
    assert np.array_equal(c, 2 * a)


def test_no_array_is_kept_alive() -> None:
    kernel = xetile.kernel(scale.fn)
    a, c = np.ones((20, 17), np.float32), np.ones((20, 17), np.float32)
    seen = weakref.ref(a)
    kernel[grid_of(a)](a, c)
    del a
    gc.collect()
    assert seen() is None
