"""What the machine code looks like, where speed depends on it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from launching import BF16

from tests.example_kernels import softmax
from xetl import xetile
from xetl.ops.convolution.kernels import direct, turned
from xetl.xetile import constexpr, f32, f64
from xetl_cpu import BACKEND
from xetl_cpu.microkernels.blocking import choose_blocking
from xetl_cpu.targets import find_target

FIXED = [name for name in BACKEND.targets if name != "host"]


@xetile.kernel
def gemm(A, B, C, BM: constexpr = 256, BN: constexpr = 256, ACC: constexpr = f32):
    BK: constexpr = 32
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), ACC)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def scaled(X, Y, Z, B: constexpr = 1024):
    i = xetile.program_id(0) * B
    x = xetile.load_tile(xetile.init_tile(X, [i], (B,)))
    y = xetile.load_tile(xetile.init_tile(Y, [i], (B,)))
    xetile.store_tile(x * 2.0 + y, xetile.init_tile(Z, [i], (B,)))


def inner_loops(assembly: str) -> list[list[str]]:
    """Runs of instructions from a label to the last jump back to it, none inside."""
    lines = [line.strip() for line in assembly.splitlines()]
    place = {
        m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\.L\w+):", line))
    }
    loops: list[list[str]] = []
    for end, line in enumerate(lines):
        jump = re.match(r"j\w+\s+(\.L\w+)", line)
        start = place.get(jump[1], end) if jump else end
        body = [x for x in lines[start + 1 : end] if x and x[0] not in "#."]
        if start < end and not any(x.startswith("j") for x in body):
            loops.append(body)
    return loops


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_inner_loop_of_a_gemm_is_fused_and_spills_nothing(dtype: str) -> None:
    array = np.zeros((256, 256), f"float{dtype[1:]}")
    acc = {"f32": f32, "f64": f64}[dtype]
    text = gemm.ir("asm", array, array, array, target="avx512", ACC=acc)
    loops = inner_loops(text)
    fma = [loop for loop in loops if sum("vfmadd" in x for x in loop) >= 8]
    for loop in fma:
        assert all("%zmm" in x for x in loop if "vfmadd" in x)
        # %rbp with an index is a row of A; a frame has an offset and none.
        moves = [x for x in loop if not x.startswith("prefetch")]
        spills = [x for x in moves if re.search(r"\(%rsp|\d\(%rbp\)", x)]
        assert not spills, "\n".join(loop)
        # Only the last row of a B in place is loaded with masks.
        assert not any("{z}" in x for x in loop)
    (loop,) = fma
    # A step of 6 x 64: 24 FMAs, 4 loads of B, 6 elements of A, 3 lines that are asked
    # for (2 side by side) and a row of B, and what advances: the index and its end, B,
    # two places.
    plan = choose_blocking(find_target("avx512"), dtype, 256, 256)
    products = plan.mr * plan.vectors
    most = products + 2 * plan.vectors + plan.mr + 3 + 5
    assert len(loop) <= most, "\n".join(loop)


def test_a_body_of_several_steps_loads_b_once() -> None:
    """The distance of B's rows is unknown here: loads came early, and were spilled."""
    array = np.zeros((256, 256), np.float32)
    loops = inner_loops(gemm.ir("asm", array, array, array, target="amx"))
    plan = choose_blocking(find_target("amx"), "f32", 256, 256)
    fmas = plan.unroll * plan.mr * plan.vectors
    (loop,) = (x for x in loops if sum("vfmadd" in line for line in x) == fmas)
    moves = [line for line in loop if line.startswith("vmov")]
    assert plan.unroll > 1
    assert len(moves) == plan.unroll * plan.vectors, "\n".join(loop)


def test_bf16_dot_products() -> None:
    bf16 = np.zeros((256, 256), np.float32).astype(BF16)
    c = np.zeros((256, 256), np.float32)
    loops = inner_loops(gemm.ir("asm", bf16, bf16, c, target="avx512_bf16"))
    assert any(sum("vdpbf16ps" in x for x in loop) >= 8 for loop in loops)
    assert "vdpbf16ps" not in gemm.ir("asm", bf16, bf16, c, target="avx512")


@pytest.mark.parametrize(("target", "register"), [("avx512", "%zmm"), ("avx2", "%ymm")])
def test_the_main_loop_of_elementwise_kernels_has_no_masks(
    target: str, register: str
) -> None:
    x = np.zeros(4096, np.float32)
    loops = inner_loops(scaled.ir("asm", x, x, x, target=target))
    main = [
        loop
        for loop in loops
        if any("vfmadd" in x for x in loop)
        and not any("mask" in x for x in loop)
        and not any("{%k" in x for x in loop)
    ]
    past_caches = [any("vmovnt" in x for x in loop) for loop in main]
    assert sorted(past_caches) == [False, True]
    for loop in main:
        assert all(register in x for x in loop if "vfmadd" in x)
        assert len(loop) <= 8, "\n".join(loop)


def test_a_softmax_of_several_rows_goes_row_by_row() -> None:
    """A row is in the first cache until it is stored: up to 1.5 times as fast."""
    x = np.zeros((64, 1024), np.float32)
    rows = xetile.kernel(softmax)
    text = rows.ir("fuse-row-loops", x, x.copy(), N=1024, BM=16, backend="cpu")
    loops = [line for line in text.splitlines() if line.startswith(6 * " " + "scf.for")]
    assert len(loops) == 1


@xetile.kernel
def transposed(X, Y, R: constexpr, C: constexpr):
    """In a loop: otherwise narrow tiles of programs beside one another become one."""
    i = xetile.program_id(0) * R
    for j in range(0, X.shape[1], C):
        v = xetile.load_tile(xetile.init_tile(X, [i, j], (R, C)))
        xetile.store_tile(v.T, xetile.init_tile(Y, [j, i], (C, R)))


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("tile", [(4, 64), (64, 4), (8, 8), (12, 40)])
def test_narrow_tiles_are_transposed_in_registers(
    target: str, tile: tuple[int, int]
) -> None:
    x, (rows, columns) = np.zeros((64, 64), np.float32), tile
    given = x, x.copy(), rows, columns
    text = transposed.ir("loops", *given, backend="cpu", target=target)
    lanes = 4 if 4 in tile else 8
    blocks = 2  # of loads without a mask, and with
    shuffles = lanes * (lanes.bit_length() - 1)
    # A rest of rows is loaded by strides, with shuffles that take fewer of the second.
    lists = re.findall(r"vector.shuffle .* \[(.*)\]", text)
    second = [sum(int(x) >= lanes for x in each.split(", ")) for each in lists]
    assert second.count(lanes // 2) == blocks * shuffles


@pytest.mark.parametrize("target", FIXED)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_every_target_compiles_here(target: str, dtype: Any) -> None:
    a, c = np.zeros((64, 64), dtype), np.zeros((64, 64), np.float32)
    assert "ret" in gemm.ir("asm", a, a, c, target=target)
    x = np.zeros(64, dtype)
    assert "ret" in scaled.ir("asm", x, x, x, target=target)


@xetile.kernel
def running_sum_of_columns(X, Y, B: constexpr = 128):
    i = xetile.program_id(0) * B
    total = xetile.zeros((1, B), f32)
    for row in range(X.shape[0]):
        total = total + xetile.load_tile(xetile.init_tile(X, [row, i], (1, B)))
        xetile.store_tile(total, xetile.init_tile(Y, [row, i], (1, B)))


def hidden_loops(kernel: Any, *arrays: Any, **constants: Any) -> int:
    """Loops of the program that strength reduction does not look at."""
    text = kernel.ir("llvm", *arrays, target="avx512", **constants)
    bodies = re.findall(r"^for\.body[^:]*:\n((?:  .*\n)+)", text, re.MULTILINE)
    return sum("launder" in body for body in bodies)


def test_only_loops_along_rows_are_hidden_from_strength_reduction() -> None:
    x = np.zeros((8, 1000), np.float32)
    assert hidden_loops(xetile.kernel(softmax), x, x.copy(), N=1024, BM=1)
    # These stand in a loop over rows, whose addresses are sums of strides then.
    assert not hidden_loops(running_sum_of_columns, x, x.copy())


@xetile.kernel
def squashed(X, Y, B: constexpr = 1024):
    i = xetile.program_id(0) * B
    x = xetile.load_tile(xetile.init_tile(X, [i], (B,)))
    xetile.store_tile(xetile.tanh(x), xetile.init_tile(Y, [i], (B,)))


def test_tanh_is_looked_up_where_there_are_lookups() -> None:
    x = np.zeros(4096, np.float32)
    pieces = squashed.ir("asm", x, x.copy(), target="avx512")
    assert "vpermps" in pieces
    assert "vdivps" not in pieces
    assert "vdivps" in squashed.ir("asm", x, x.copy(), target="avx2")


@xetile.kernel
def mapped(X, Y, B: constexpr = 1024, F: constexpr = xetile.exp2):
    i = xetile.program_id(0) * B
    x = xetile.load_tile(xetile.init_tile(X, [i], (B,)))
    xetile.store_tile(F(x), xetile.init_tile(Y, [i], (B,)))


@pytest.mark.parametrize(
    ("function", "most"), [(xetile.exp, 19), (xetile.exp2, 17), (xetile.erf, 24)]
)
def test_functions_of_avx2_are_short(function: Any, most: int) -> None:
    """Rounding is an addition, and powers are made of its bits; erf is looked up."""
    x = np.zeros(4096, np.float32)
    text = mapped.ir("asm", x, x.copy(), F=function, target="avx2")
    loops = [x for x in inner_loops(text) if "mask" not in "".join(x)]
    loops = [x for x in loops if any("vfmadd" in each for each in x)]
    assert loops
    for loop in loops:
        # Constants that have no register are loaded, and added to.
        copies = "vbroadcast", "vpbroadcast", "vmov"
        own = [x for x in loop if x.startswith("v") and not x.startswith(copies)]
        blends = [x for x in own if x.startswith("vblendv")]  # two of Intel's cores
        assert len(own) + len(blends) <= most, "\n".join(loop)
        assert not any(x.startswith(("vround", "vdiv")) for x in own)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_the_largest_number_is_found_without_blends(target: str) -> None:
    x = np.zeros((8, 1024), np.float32)
    text = xetile.kernel(largest).ir("asm", x, x[:, 0].copy(), target=target)
    loops = [x for x in inner_loops(text) if "vmaxps" in "".join(x)]
    main = [x for x in loops if not any("mask" in y or "{%k" in y for y in x)]
    assert main
    for loop in main:
        assert not any("vblendv" in each or "vcmp" in each for each in loop)


def largest(X, Y, N: constexpr = 1024):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)), padding=-xetile.inf)
    Y[row] = v.max(propagate_nan=False)


def clipped(X, Y, N: constexpr = 256):
    best = xetile.full((1, N), 0, f32)
    for row in range(X.shape[0]):
        v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)))
        best = xetile.where(v > best * 2, v, best)
    xetile.store_tile(best, xetile.init_tile(Y, [0, 0], (1, N)))


def test_what_is_chosen_is_not_stored_by_masks_of_avx() -> None:
    """LLVM stores so what is chosen between new and old elements of the same memory."""
    x = np.zeros((8, 256), np.float32)
    text = xetile.kernel(clipped).ir("asm", x, x[:1].copy(), target="avx2")
    loops = [x for x in inner_loops(text) if any("vcmp" in each for each in x)]
    assert loops
    for loop in loops:
        assert any("vblendvps" in each for each in loop)
        assert not any(re.match(r"vmaskmovps\s+%ymm\d+, ", each) for each in loop)


@pytest.mark.parametrize(("dtype", "lanes"), [("u1", 32), ("u2", 16), ("f4", 8)])
def test_rows_are_copied_in_whole_registers(dtype: str, lanes: int) -> None:
    x = np.zeros((8, 256), dtype)
    text = xetile.kernel(copied).ir("loops", x, x.copy(), target="avx2")
    assert re.findall(r"vector.load .*vector<(\d+)x", text)[0] == str(lanes)


def copied(X, Y, N: constexpr = 256):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, N)))
    xetile.store_tile(v, xetile.init_tile(Y, [row, 0], (1, N)))


def test_sums_behind_a_barrier_have_the_registers_of_the_copy_before_it() -> None:
    """Places of each second element would stay in registers, and the sums in memory."""
    x, weight = np.zeros((3, 64, 64), BF16), np.zeros((1, 1, 32, 27), BF16)
    out = np.zeros((32, 32, 32), BF16)
    how = 1, 1, ((3, 3), (2, 2), (1, 1)), (3, 32), False, False
    tile = f32, 8, 3, 4, 1, 64, 80
    text = direct.ir("asm", x, weight, None, out, *how, *tile, target="avx512")
    lines = text.splitlines()
    sums = [number for number, line in enumerate(lines) if "vfmadd" in line]
    assert len(sums) == 3 * 4 * 4, "rows of the kernel, channels, vectors"
    loop = lines[sums[0] : sums[-1]]
    assert not any("(%rsp" in line for line in loop), "\n".join(loop)


def test_blocks_that_are_transposed_in_nested_loops_keep_no_pointer_to_each_row() -> (
    None
):
    """Strength reduction kept 99 in memory, advanced in each of four loops."""
    x, out = np.zeros((2, 3, 8, 14), np.float32), np.zeros((2, 3, 16, 8), np.float32)
    text = turned.ir("asm", x, out, 0, 0, 8, 16, 16, target="avx512")
    advanced = re.findall(r"^\s+add\w*\s.*, *-?\w*\(%rsp\)", text, re.MULTILINE)
    assert len(advanced) < 20
