"""The kernels of the self-test. Each tests one feature of a device."""

from __future__ import annotations

from typing import Any

from xetl import xetile
from xetl.xetile import constexpr, f32, i32

BESIDE = xetile.wg_map(sg_layout=[1, 2], sg_data=[8, 32])
TWO_SUBGROUPS = xetile.wg_map(sg_layout=[2, 1], sg_data=[8, 32])


@xetile.kernel
def copy(X: Any, Y: Any, H: constexpr, W: constexpr) -> None:
    """Blocks are prefetched, loaded and stored; at edges they are padded and cut."""
    m, n = xetile.program_id(0) * H, xetile.program_id(1) * W
    tile = xetile.init_tile(X, [m, n], (H, W))
    xetile.prefetch_tile(xetile.update_tile_offset(tile, [H, 0]))
    v = xetile.load_tile(tile)
    xetile.store_tile(v, xetile.init_tile(Y, [m, n], (H, W)))


@xetile.kernel
def transpose(X: Any, Y: Any, H: constexpr, W: constexpr) -> None:
    """A block is loaded with rows and columns swapped."""
    m, n = xetile.program_id(0) * H, xetile.program_id(1) * W
    v = xetile.load_tile(xetile.init_tile(X.T, [m, n], (H, W)))
    xetile.store_tile(v, xetile.init_tile(Y, [m, n], (H, W)))


@xetile.kernel
def product(
    A: Any,
    B: Any,
    C: Any,
    K: constexpr,
    OF: constexpr,
    PRECISION: constexpr = None,
    TURNED: constexpr = "",
) -> None:
    """Matrices are multiplied, by DPAS if the device has it. TURNED: transpose it."""
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    left, right = A.T if TURNED == "A" else A, B.T if TURNED == "B" else B
    a = xetile.init_tile(left, [m, 0], (16, K))
    b = xetile.init_tile(right, [0, n], (K, 32))
    c = xetile.zeros((16, 32), OF)
    for _ in range(0, left.shape[1], K):
        c = xetile.tile_mma(
            xetile.load_tile(a), xetile.load_tile(b), c, precision=PRECISION
        )
        a = xetile.update_tile_offset(a, [0, K])
        b = xetile.update_tile_offset(b, [K, 0])
    xetile.store_tile(c, xetile.init_tile(C, [m, n], (16, 32)))


@xetile.kernel
def gather(X: Any, I: Any, Y: Any) -> None:  # noqa: E741 - indices
    """Lanes load elements at given indices, and store them there."""
    i = xetile.load_tile(xetile.init_tile(I, [xetile.program_id(0) * 32], (32,)))
    v = xetile.load_gather(xetile.init_tile(X, [i]))
    xetile.store_scatter(v + v, None, xetile.init_tile(Y, [i]))


@xetile.kernel
def atomic(X: Any, I: Any, Y: Any, KIND: constexpr) -> None:  # noqa: E741 - indices
    """Lanes of several programs change the same elements."""
    at = xetile.program_id(0) * 32
    i = xetile.load_tile(xetile.init_tile(I, [at], (32,)))
    v = xetile.load_tile(xetile.init_tile(X, [at], (32,)))
    xetile.atomic_rmw_tile(KIND, v, xetile.init_tile(Y, [i]))


@xetile.kernel
def compare_and_swap(X: Any, Y: Any) -> None:
    """Each element is replaced if it is 1; then its old value is added."""
    tile = xetile.init_tile(Y, [xetile.program_id(0) * 32], (32,))
    v = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * 32], (32,)))
    old = xetile.atomic_cas(tile, xetile.full((32,), 1, i32), v)
    xetile.atomic_rmw_tile("add", old, tile)


@xetile.kernel(subgroups=[2, 1])
def swap_halves(X: Any, Y: Any) -> None:
    """Subgroups exchange data in shared memory, with barriers in a loop."""
    me = xetile.subgroup_id()
    shared = xetile.slm((32,), f32)
    v = xetile.load_tile(xetile.init_tile(X, [me * 16], (16,)))
    for _ in range(3):
        xetile.store_tile(v, xetile.init_tile(shared, [me * 16], (16,)))
        xetile.barrier()
        v = v + xetile.load_tile(xetile.init_tile(shared, [(1 - me) * 16], (16,)))
        xetile.barrier()
    xetile.store_tile(v, xetile.init_tile(Y, [me * 16], (16,)))


@xetile.kernel
def softmax(X: Any, Y: Any, WG: constexpr = TWO_SUBGROUPS) -> None:
    """Exponentials, and reductions over lanes and over subgroups."""
    m = xetile.program_id(0) * 16
    x = xetile.load_tile(xetile.init_tile(X, [m, 0], (16, 32), wg_map=WG))
    e = xetile.exp(x - x.max(1, keepdims=True))
    e = e / e.sum(1, keepdims=True)
    columns = e.sum(0, keepdims=True)  # over the rows of both subgroups
    xetile.store_tile(e + columns, xetile.init_tile(Y, [m, 0], (16, 32), wg_map=WG))


@xetile.kernel
def rows(X: Any, Y: Any, KIND: constexpr, WG: constexpr = BESIDE) -> None:
    """Eight rows are combined at once, over lanes and over subgroups; X has padding."""
    outside = 0.0 if KIND == "add" else -xetile.inf if KIND == "max" else xetile.inf
    at = [xetile.program_id(0) * 8, 0]
    x = xetile.load_tile(xetile.init_tile(X, at, (8, 64), wg_map=WG), padding=outside)
    if KIND == "add":
        found = x.sum(1, keepdims=True)
    elif KIND == "max":
        found = x.max(1, keepdims=True, propagate_nan=False)
    else:
        found = x.min(1, keepdims=True, propagate_nan=False)
    xetile.store_tile(x + found, xetile.init_tile(Y, at, (8, 64), wg_map=WG))


@xetile.kernel
def chosen_rows(X: Any, I: Any, Y: Any) -> None:  # noqa: E741 - indices
    """A message for each row, whose number is loaded."""
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 32
    i = xetile.load_tile(xetile.init_tile(I, [m], (16,)))
    v = X[i[:, None], n + xetile.arange(32)]
    xetile.store_tile(v, xetile.init_tile(Y, [m, n], (16, 32)))


@xetile.kernel
def line(X: Any, Y: Any, W: constexpr) -> None:
    """A part of an array of one dimension."""
    at = [xetile.program_id(0) * W]
    v = xetile.load_tile(xetile.init_tile(X, at, (W,)))
    xetile.store_tile(v + v, xetile.init_tile(Y, at, (W,)))


@xetile.kernel
def functions(X: Any, Y: Any) -> None:
    """Mathematical functions."""
    at = [xetile.program_id(0) * 8, 0]
    x = xetile.load_tile(xetile.init_tile(X, at, (8, 32)))
    y = xetile.sin(x) + xetile.tanh(x) + xetile.erf(x) + xetile.log(x * x + 1.0)
    y = y + xetile.rsqrt(x * x + 1.0) + xetile.exp2(x) + xetile.floor(x)
    xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, at, (8, 32)))


@xetile.kernel
def integers(X: Any, Y: Any) -> None:
    """Division, remainder and shifts of integers."""
    at = [xetile.program_id(0) * 8, 0]
    x = xetile.load_tile(xetile.init_tile(X, at, (8, 32)))
    y = x // 7 + x % 5 + (x << 2) + (x >> 1) + xetile.minimum(x, -x)
    xetile.store_tile(y, xetile.init_tile(Y, at, (8, 32)))


@xetile.kernel
def through_address(address: int, Y: Any) -> None:
    """An address is passed as an integer, not as a pointer."""
    at = [xetile.program_id(0) * 8, 0]
    x = xetile.init_tile(
        address, at, (8, 32), dtype=f32, base_shape=[64, 32], base_strides=[32, 1]
    )
    xetile.store_tile(xetile.load_tile(x) * 2.0, xetile.init_tile(Y, at, (8, 32)))
