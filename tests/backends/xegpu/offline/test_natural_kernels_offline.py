"""Kernels as users of Triton write them, without maps, keep everything in registers.

What they have in common: more values live at once than one product, or one row.
"""

from typing import Any

import pytest

from tests.backends.xegpu.launch.test_rows_of_halves import weights
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import compiler, xetile
from xetl.backend import Artifact
from xetl.runtime.kernel import Kernel
from xetl.settings import config
from xetl.xetile import constexpr, f32
from xetl_xegpu.limits import REST
from xetl_xegpu.offline.isa import IsaCounts, assembly_text, count, loops

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)


def both(kernel: Kernel, types: str, target: str, **constants: int) -> list[str]:
    """The assembly of the kernel with block messages, and of that for any memory."""
    text = kernel.ir("asm", types, backend="xegpu", target=target, **constants)
    return text.split("\n// ")


def spills(assembly: str) -> bool:
    return " 0 bytes spilled" not in assembly.splitlines()[0]


def fast(kernel: Kernel, types: str, target: str, **constants: int) -> str:
    """The assembly of the kernel with block messages, which spills nothing."""
    found, *_ = both(kernel, types, target, **constants)
    assert not spills(found)
    return found


def step(assembly: str) -> IsaCounts:
    """The largest loop."""
    return max(loops(assembly), key=lambda each: each.instructions)


@xetile.kernel
def stencil(X, Y, BM: constexpr, BN: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    here = xetile.load_tile(xetile.init_tile(X, [m, n], (BM, BN)))
    above = xetile.load_tile(xetile.init_tile(X, [m - 1, n], (BM, BN)))
    below = xetile.load_tile(xetile.init_tile(X, [m + 1, n], (BM, BN)))
    left = xetile.load_tile(xetile.init_tile(X, [m, n - 1], (BM, BN)))
    right = xetile.load_tile(xetile.init_tile(X, [m, n + 1], (BM, BN)))
    y = above + below + left + right - 4.0 * here
    xetile.store_tile(y, xetile.init_tile(Y, [m, n], (BM, BN)))


@pytest.mark.parametrize(("target", "most"), [("pvc", 208), ("bmg", 148)])
def test_a_stencil(target: str, most: int) -> None:
    """Five tiles at once: in one subgroup 6,144 bytes are spilled."""
    types = "f32[M,N] f32[M,N]"
    assert count(fast(stencil, types, target, BM=16, BN=64)).instructions <= most


@xetile.kernel
def adamw(P, G, M, V, lr, b1, b2, eps, decay, c1, c2, BLOCK: constexpr):
    first = xetile.program_id(0) * BLOCK
    p = xetile.load_tile(xetile.init_tile(P, [first], (BLOCK,)))
    g = xetile.load_tile(xetile.init_tile(G, [first], (BLOCK,))).to(f32)
    m = xetile.load_tile(xetile.init_tile(M, [first], (BLOCK,)))
    v = xetile.load_tile(xetile.init_tile(V, [first], (BLOCK,)))
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g * g
    p = p * (1 - lr * decay) - lr * (m / c1) / (xetile.sqrt(v / c2) + eps)
    xetile.store_tile(p, xetile.init_tile(P, [first], (BLOCK,)))
    xetile.store_tile(m, xetile.init_tile(M, [first], (BLOCK,)))
    xetile.store_tile(v, xetile.init_tile(V, [first], (BLOCK,)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "most"), [("pvc", (1453, 2737)), ("bmg", (1421, 2401))]
)
def test_adamw(target: str, most: tuple[int, int]) -> None:
    """Four arrays at once, of which three are written.

    A kernel of one subgroup spilled 4,608 bytes; that for any memory 7,360.
    """
    types = "f32[N] bf16[N] f32[N] f32[N]" + " f64" * 7
    found = both(adamw, types, target, BLOCK=1024)
    assert not any(map(spills, found))
    counts = [count(each) for each in found]
    assert (counts[0].block_loads, counts[0].block_stores) == (4, 6)
    assert all(each.instructions <= n for each, n in zip(counts, most))


@xetile.kernel
def norm_derivative(DY, X, W, MEAN, RSTD, DX, DW, n, ROWS: constexpr, BLOCK: constexpr):
    first = xetile.program_id(0) * ROWS
    w = xetile.load_tile(xetile.init_tile(W, [0], (BLOCK,)))
    dw = xetile.zeros((BLOCK,), f32)
    for row in range(first, xetile.minimum(first + ROWS, X.shape[0])):
        x = xetile.load_tile(xetile.init_tile(X, [row, 0], (BLOCK,)))
        dy = xetile.load_tile(xetile.init_tile(DY, [row, 0], (BLOCK,)))
        x, scaled = (x - MEAN[row]) * RSTD[row], w * dy
        dx = scaled - x * ((x * scaled).sum(0) / n) - scaled.sum(0) / n
        xetile.store_tile(dx * RSTD[row], xetile.init_tile(DX, [row, 0], (BLOCK,)))
        dw += dy * x
    xetile.store_tile(dw, xetile.init_tile(DW, [xetile.program_id(0), 0], (BLOCK,)))


@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_the_derivative_of_layer_norm(target: str) -> None:
    """Sums of columns beside rows; with those of the bias 15,744 bytes before."""
    matrix = "f32[M,N]"
    types = f"{matrix} {matrix} f32[N] f32[M] f32[M] {matrix} {matrix} i64"
    fast(norm_derivative, types, target, ROWS=4, BLOCK=1024)


@xetile.kernel
def gated(X, W1, W2, Y, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    gate, up = xetile.zeros((BM, BN), f32), xetile.zeros((BM, BN), f32)
    for k in range(0, X.shape[1], BK):
        x = xetile.load_tile(xetile.init_tile(X, [m, k], (BM, BK)))
        gate += x @ xetile.load_tile(xetile.init_tile(W1, [k, n], (BK, BN)))
        up += x @ xetile.load_tile(xetile.init_tile(W2, [k, n], (BK, BN)))
    y = gate * xetile.sigmoid(gate) * up
    xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, [m, n], (BM, BN)))


@pytest.mark.parametrize(("target", "most"), [("pvc", 59), ("bmg", 50)])
def test_two_products_side_by_side(target: str, most: int) -> None:
    """The sums of both are in registers: 437 instructions a step of 64 dpas before."""
    types = "bf16[M,K] bf16[K,N] bf16[K,N] f32[M,N]"
    found = step(fast(gated, types, target, BM=128, BN=128, BK=32))
    assert found.dpas == 32
    assert found.instructions <= most


@xetile.kernel
def keys_derivative(
    Q, K, V, DO, LSE, DELTA, DK, DV, scale, BM: constexpr, BN: constexpr, D: constexpr
):
    n = xetile.program_id(0) * BN
    k = xetile.load_tile(xetile.init_tile(K, [n, 0], (BN, D)))
    v = xetile.load_tile(xetile.init_tile(V, [n, 0], (BN, D)))
    dk, dv = xetile.zeros((BN, D), f32), xetile.zeros((BN, D), f32)
    for m in range(0, Q.shape[0], BM):
        q = xetile.load_tile(xetile.init_tile(Q, [m, 0], (BM, D)))
        do = xetile.load_tile(xetile.init_tile(DO, [m, 0], (BM, D)))
        lse = xetile.load_tile(xetile.init_tile(LSE, [m], (BM,)))
        delta = xetile.load_tile(xetile.init_tile(DELTA, [m], (BM,)))
        p = xetile.exp((k @ q.T) * scale - lse[None, :])
        dv += p.to(Q.dtype) @ do
        ds = p * (v @ do.T - delta[None, :]) * scale
        dk += ds.to(Q.dtype) @ q
    xetile.store_tile(dk, xetile.init_tile(DK, [n, 0], (BN, D)))
    xetile.store_tile(dv, xetile.init_tile(DV, [n, 0], (BN, D)))


@pytest.mark.parametrize(("target", "most"), [("pvc", 443), ("bmg", 406)])
def test_the_derivative_of_attention(target: str, most: int) -> None:
    """Q and DO are loaded twice, once transposed: lanes transpose nothing.

    A step of 64 dpas took 4,780 instructions on pvc, and 11,328 bytes were spilled.
    """
    types = " ".join([*["bf16[S,64]"] * 4, *["f32[S]"] * 2, *["f32[S,64]"] * 2, "f64"])
    found = step(fast(keys_derivative, types, target, BM=32, BN=64, D=64))
    assert found.dpas == 32
    assert found.instructions <= most


@xetile.kernel
def linear_attention(Q, K, V, Y, BM: constexpr, D: constexpr):
    state = xetile.zeros((D, D), f32)
    rows, columns = xetile.arange(BM)[:, None], xetile.arange(BM)[None, :]
    for m in range(0, Q.shape[0], BM):
        q = xetile.load_tile(xetile.init_tile(Q, [m, 0], (BM, D)))
        k = xetile.load_tile(xetile.init_tile(K, [m, 0], (BM, D)))
        v = xetile.load_tile(xetile.init_tile(V, [m, 0], (BM, D)))
        p = xetile.where(rows >= columns, q @ k.T, 0.0)
        o = q @ state.to(Q.dtype) + p.to(Q.dtype) @ v
        xetile.store_tile(o.to(Y.dtype), xetile.init_tile(Y, [m, 0], (BM, D)))
        state += k.T @ v


@pytest.mark.parametrize(("target", "most"), [("pvc", 607), ("bmg", 550)])
def test_linear_attention(target: str, most: int) -> None:
    """A subgroup has whole columns of the state, which is B of a product as well.

    With columns twice as wide 448 bytes were spilled on pvc.
    """
    types = " ".join(["bf16[S,64]"] * 4)
    found = step(fast(linear_attention, types, target, BM=32, D=64))
    assert found.dpas == 72
    assert found.instructions <= most


@xetile.kernel
def add(X, Y, Z, BLOCK: constexpr):
    first = xetile.program_id(0) * BLOCK
    x = xetile.load_tile(xetile.init_tile(X, [first], (BLOCK,)))
    y = xetile.load_tile(xetile.init_tile(Y, [first], (BLOCK,)))
    xetile.store_tile(x + y, xetile.init_tile(Z, [first], (BLOCK,)))


@pytest.mark.parametrize(("target", "most"), [("pvc", (82, 1393)), ("bmg", (74, 1105))])
def test_arrays_of_one_dimension(target: str, most: tuple[int, int]) -> None:
    """A message moves 32 rows of 64 bytes. With one for each: 460; by lanes 1,884."""
    found = both(add, "f32[N] f32[N] f32[N]", target, BLOCK=1024)
    assert not any(map(spills, found))
    counts = [count(each) for each in found]
    assert (counts[0].block_loads, counts[0].block_stores) == (2, 4)
    assert all(each.instructions <= n for each, n in zip(counts, most))


@pytest.mark.parametrize(("target", "most"), [("pvc", 209), ("bmg", 195)])
def test_arrays_of_one_dimension_of_any_size(
    target: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages also move what follows the last row of 64 bytes."""
    made: dict[str, Artifact] = {}
    real = compiler.compile_kernel

    def noted(*args: Any) -> Artifact:
        return made.setdefault(args[3], real(*args))

    monkeypatch.setattr(compiler, "compile_kernel", noted)
    monkeypatch.setitem(config.assigned, "cache", False)
    new, types = xetile.kernel(add.fn), "f32[N] f32[N] f32[N]"
    new.warmup(types, backend="xegpu", target=target, BLOCK=1024)
    found = made[target + REST]
    is_large = found.meta["grf"] > 128
    text = assembly_text(found.payload, target, large_registers=is_large)
    assert not spills(text)
    assert count(text).block_loads == 4
    assert count(text).instructions <= most


@pytest.mark.parametrize(("target", "most"), [("pvc", 960), ("bmg", 940)])
def test_weights_of_four_bits_by_rows(target: str, most: int) -> None:
    """Rows alternate in registers; with transposes of 16 x 16 a step took 6,135."""
    found = step(fast(weights, "bf16[M,K] u8[H,N] f32[M,N]", target))
    assert found.dpas == 16
    assert found.instructions <= most


@xetile.kernel
def experts(X, ROWS, W, Y, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    rows = xetile.load_tile(xetile.init_tile(ROWS, [m], (BM,)))
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, X.shape[1], BK):
        x = X[rows[:, None], k + xetile.arange(BK)]
        acc += x @ xetile.load_tile(xetile.init_tile(W, [k, n], (BK, BN)))
    xetile.store_tile(acc, xetile.init_tile(Y, [m, n], (BM, BN)))


@pytest.mark.parametrize(("target", "most"), [("pvc", 96), ("bmg", 93)])
def test_rows_by_their_numbers(target: str, most: int) -> None:
    """A message for each row, of which a subgroup has few: each has an address.

    By lanes 32 dpas took 1,964 instructions on pvc; with 32 rows 215, and 320 bytes
    were spilled.
    """
    types = "bf16[M,K] i32[R] bf16[K,N] f32[M,N]"
    found = step(fast(experts, types, target, BM=64, BN=128, BK=32))
    assert (found.dpas, found.block_loads) == (16, 18)
    assert found.instructions <= most


@xetile.kernel
def with_bias(X, W, Y, BLOCK: constexpr):
    m = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [m, 0], (1, BLOCK)))
    w = xetile.load_tile(xetile.init_tile(W, [0], (BLOCK,)))
    xetile.store_tile(x + w, xetile.init_tile(Y, [m, 0], (1, BLOCK)))


@pytest.mark.parametrize(("target", "most"), [("pvc", 1746), ("bmg", 1437)])
def test_a_row_of_any_memory(target: str, most: int) -> None:
    """Lanes move lines; blocks of one row by a function: 2,091 and 640 spilled."""
    found = both(with_bias, "f32[M,N] f32[N] f32[M,N]", target, BLOCK=1024)
    assert not any(map(spills, found))
    assert count(found[1]).instructions <= most


@xetile.kernel
def grouped(X, FIRST, W, Y, BM: constexpr, BN: constexpr, BK: constexpr):
    group, n = xetile.program_id(0), xetile.program_id(1) * BN
    first, end = FIRST[group], FIRST[group + 1]
    x, y, w = X[first:end], Y[first:end], W[group]
    for m in range(0, end - first, BM):
        acc = xetile.zeros((BM, BN), f32)
        for k in range(0, X.shape[1], BK):
            a = xetile.load_tile(xetile.init_tile(x, [m, k], (BM, BK)))
            acc += a @ xetile.load_tile(xetile.init_tile(w, [k, n], (BK, BN)))
        xetile.store_tile(acc, xetile.init_tile(y, [m, n], (BM, BN)))


@pytest.mark.parametrize(("target", "most"), [("pvc", 53), ("bmg", 50)])
def test_a_product_for_each_group_of_rows(target: str, most: int) -> None:
    """Messages move the rows of a group: 1,093 instructions a step by lanes on pvc."""
    types = "bf16[M,K] i32[G] bf16[G,K,N] f32[M,N]"
    assembly = fast(grouped, types, target, BM=64, BN=128, BK=32)
    assert count(assembly).block_stores == 16
    assert step(assembly).instructions <= most
