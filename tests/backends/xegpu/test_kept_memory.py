"""What a lone subgroup stores and loads at known places stays in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl import xetile
from xetl.runtime.kernel import Kernel

N = 16


def load(A, row=0):
    return xetile.load_tile(xetile.init_tile(A, [row, 0], (N, N)))


def store(value, C):
    xetile.store_tile(value, xetile.init_tile(C, [0, 0], value.shape))


load, store = xetile.function(load), xetile.function(store)


@xetile.kernel(grid=1)
def below(A, B, C):
    store(xetile.cat(load(A), load(B), 0), C)


@xetile.kernel(grid=1)
def beside(A, B, C):
    store(xetile.cat(load(A), load(B), 1), C)


@xetile.kernel(grid=1)
def upside_down(A, B, C):
    store(xetile.flip(load(A), 0) + xetile.flip(load(B), 1), C)


@xetile.kernel(grid=1)
def odd_parts(A, B, C):
    """Neither whole fragments nor whole lines."""
    store(xetile.cat(load(A)[:5, :3], load(B)[:5, 2:], 1), C)


@xetile.kernel(grid=1)
def overwritten(A, B, C):
    """The middle is what was stored last."""
    memory = xetile.slm((2 * N, N), xetile.f32)
    xetile.store_tile(load(A), xetile.init_tile(memory, [0, 0], (N, N)))
    xetile.store_tile(load(B), xetile.init_tile(memory, [8, 0], (N, N)))
    xetile.barrier()
    store(xetile.load_tile(xetile.init_tile(memory, [4, 0], (N, N))), C)


@xetile.kernel(grid=1)
def carried(A, B, C):
    total = load(A)
    for _ in range(3):
        total = xetile.flip(total + load(B), 0)
    store(total, C)


@xetile.kernel(grid=1)
def kept_in_turn(A, B, C):
    """Of a turn of a loop the next one loads: that is memory."""
    memory = xetile.slm((N, N), xetile.f32)
    xetile.store_tile(load(A), xetile.init_tile(memory, [0, 0], (N, N)))
    for _ in range(2):
        xetile.barrier()
        found = xetile.load_tile(xetile.init_tile(memory, [0, 0], (N, N)))
        xetile.barrier()
        xetile.store_tile(found + load(B), xetile.init_tile(memory, [0, 0], (N, N)))
    xetile.barrier()
    store(xetile.load_tile(xetile.init_tile(memory, [0, 0], (N, N))), C)


@xetile.kernel(grid=1)
def computed(A, B, C):
    place = xetile.program_id(0)
    memory = xetile.slm((2 * N, N), xetile.f32)
    xetile.store_tile(load(A), xetile.init_tile(memory, [place, 0], (N, N)))
    xetile.barrier()
    found = xetile.load_tile(xetile.init_tile(memory, [place, 0], (N, N)))
    store(found + load(B), C)


@xetile.kernel(grid=1)
def told(A, B, C):
    """Lanes read what others wrote to C: they wait."""
    store(load(A), C)
    turned = xetile.flip(load(B), 0)
    store(turned + load(C).T, C)


def _carried(a: Any, b: Any) -> Any:
    for _ in range(3):
        a = (a + b)[::-1]
    return a


WANTED: dict[Kernel, Callable[[Any, Any], Any]] = {
    below: lambda a, b: np.concatenate([a, b]),
    beside: lambda a, b: np.concatenate([a, b], 1),
    upside_down: lambda a, b: a[::-1] + b[:, ::-1],
    odd_parts: lambda a, b: np.concatenate([a[:5, :3], b[:5, 2:]], 1),
    overwritten: lambda a, b: np.concatenate([a[4:8], b[:12]]),
    carried: _carried,
    kept_in_turn: lambda a, b: a + 2 * b,
    computed: lambda a, b: a + b,
    told: lambda a, b: b[::-1] + a.T,
}
IN_MEMORY = (kept_in_turn, computed)
WAIT = (*IN_MEMORY, told)


@pytest.mark.parametrize("kernel", WANTED, ids=lambda each: each.__name__)
def test_what_is_kept(kernel: Kernel) -> None:
    types = " ".join(["f32[M,N]"] * 3)
    for target in ("pvc", "opencl"):
        text = kernel.ir("xegpu", types, backend="xegpu", target=target)
        assert ("memref.alloc" in text) == (kernel in IN_MEMORY)
        assert ("gpu.barrier" in text) == (kernel in WAIT)


@pytest.mark.parametrize("kernel", WANTED, ids=lambda each: each.__name__)
def test_results(kernel: Kernel) -> None:
    device.require()
    a, b = np.arange(2.0 * N * N, dtype=np.float32).reshape(2, N, N)
    wanted = WANTED[kernel](a, b)
    found = np.zeros(wanted.shape, np.float32)
    kernel(a, b, found, backend="xegpu")
    np.testing.assert_array_equal(found, wanted)


def test_several_subgroups_share_memory() -> None:
    @xetile.kernel(grid=1)
    def shared(A, C):
        many = xetile.wg_map(sg_layout=[4, 1], sg_data=[8, N])
        a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, N), wg_map=many))
        store(xetile.flip(a, 0), C)

    text = shared.ir("xegpu", "f32[M,N] f32[M,N]", backend="xegpu", target="pvc")
    assert "memref.alloc" in text
    assert "gpu.barrier" in text
