"""Plans of products for several machines, and their text."""

import dataclasses
import re
from io import StringIO

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from xetl import load_mlir, xetile
from xetl.errors import IRError, LaunchError
from xetl.runtime.text_kernel import TextKernel
from xetl.xetile import constexpr
from xetl_cpu.dialect import XSMM, PlanAttr
from xetl_cpu.machine import FAMILIES, LINE, PAGE, Cache, Costs, Machine
from xetl_cpu.microkernels.blocking import Blocking, choose_blocking
from xetl_cpu.targets import TARGETS, Target, find_target

KB, MB = 1 << 10, 1 << 20
STRANGE = Machine(
    "strange",
    Cache(16 * KB, 4),
    Cache(512 * KB, 8),
    Cache(0, 1),
    Costs(1, 1, 1, 9, 9, 8),
)
MACHINES = {
    "zen4": ("avx512_bf16", FAMILIES["zen4"]),
    "zen5": ("avx512_bf16", FAMILIES["zen5"]),
    "sapphire_rapids": ("amx", FAMILIES["sapphire_rapids"]),
    "skylake": ("avx512", FAMILIES["skylake"]),
    "avx2": ("avx2", FAMILIES["avx2"]),
    "strange": ("avx2", STRANGE),
}
TILES = [(5, 256), (32, 32), (64, 64), (128, 256), (256, 16), (256, 256), (512, 512)]
DTYPES = ["f32", "bf16", "f16", "f64", "i8"]


def described(name: str) -> Target:
    target, machine = MACHINES[name]
    return dataclasses.replace(find_target(target), machine=machine)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MACHINES)
def test_blocks_fit_the_caches_they_are_meant_for(
    name: str, dtype: str, tile: tuple[int, int]
) -> None:
    target = described(name)
    plan = choose_blocking(target, dtype, *tile)
    l1, l2 = target.machine.l1.size, target.machine.l2.size
    size, (rows, columns) = plan.compute_bytes, tile
    assert plan.mc % plan.mr == 0
    of_a = min(plan.mc, rows)
    if of_a * plan.run * size > l2 // 4:
        # A strip more, which would be the last block's only one.
        of_a -= plan.mr
        assert 0 < rows % of_a <= plan.mr
        assert -(-rows // plan.mc) < -(-rows // of_a)
    assert of_a * plan.run * size <= l2 // 4
    assert plan.nr * plan.kc * size <= (l1 * 2 // 3 if plan.uses_tiles else l2 // 4)
    packed = max(rows, columns) * plan.chunk * size
    if packed > max(l2 // 4, max(tile) * 128 * plan.k_pack * size):
        # Of half as many steps the prologue and the update of C were too much.
        costs, sums = target.machine.costs, plan.mr * plan.vectors
        work = sums * min(costs.fma, costs.dot) * plan.chunk // plan.k_pack // 2
        assert costs.prologue + sums > 0.04 * work
        assert packed <= l2 // 2
    for k in (plan.chunk, plan.run, plan.kc):
        assert k % plan.k_step == k % plan.k_pack == 0
    assert plan.all_at_once * size * of_a <= l2 // 2


@pytest.mark.parametrize("name", MACHINES)
def test_register_tiles_fit_the_registers(name: str) -> None:
    target = described(name)
    plan = choose_blocking(target, "f32", 256, 256)
    used = plan.mr * plan.vectors + plan.vectors + 1
    assert used <= target.vector_registers
    # So many sums that latency is hidden.
    costs = target.machine.costs
    assert plan.mr * plan.vectors * costs.fma >= min(costs.latency, 8)


@pytest.mark.parametrize("name", MACHINES)
def test_the_end_of_a_loop_is_a_small_part(name: str) -> None:
    target = described(name)
    costs = target.machine.costs
    for tile in ((64, 64), (128, 128), (256, 256)):
        plan = choose_blocking(target, "f32", *tile)
        arithmetic = costs.fma * plan.mr * plan.vectors
        assert costs.loop / plan.unroll <= 0.05 * arithmetic
        assert plan.unroll == 1 or costs.loop > 0


def test_short_steps_do_not_ask_for_a_line_again_and_again() -> None:
    plan = choose_blocking(described("avx2"), "f32", 256, 256)
    assert (plan.mr, plan.nr, plan.unroll, plan.chunk) == (6, 16, 4, 256)


def test_what_silicon_showed() -> None:
    """24 sums on Sapphire Rapids, 1,024 bytes of k with tiles, no dot product."""
    rapids = described("sapphire_rapids")
    for tile in ((64, 64), (128, 128), (256, 256)):
        plan = choose_blocking(rapids, "f32", *tile)
        assert (plan.mr * plan.vectors, plan.asks_ahead, plan.unroll) == (24, True, 4)
        assert -(-tile[0] // plan.mc) == max(1, tile[0] // 128)
    assert choose_blocking(rapids, "bf16", 256, 256).kc == 512
    assert choose_blocking(rapids, "i8", 256, 256).kc == 1024
    machine = FAMILIES["sapphire_rapids"]
    without = dataclasses.replace(find_target("avx512_bf16"), machine=machine)
    assert choose_blocking(without, "bf16", 64, 64).arithmetic.instruction == "fma"
    called = dataclasses.replace(without, calls="libxsmm")
    assert choose_blocking(called, "bf16", 64, 64).arithmetic.instruction == "dpbf16"


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_blocks_of_c_stay_in_the_second_cache(dtype: str) -> None:
    """Sums of a task, A's block and B's part of what AMX multiplies, all of them."""
    rapids = described("sapphire_rapids")
    plan = choose_blocking(rapids, dtype, 256, 256)
    sums = plan.rows_padded * plan.ldc * plan.arithmetic.accumulator_bytes
    a = plan.mc * plan.run * plan.compute_bytes
    b = plan.panel_elements(plan.chunk) * plan.panels * plan.compute_bytes
    assert sums + a + b <= rapids.machine.l2.size


@pytest.mark.parametrize("dtype", DTYPES)
def test_copied_rows_are_an_odd_number_of_lines_apart(dtype: str) -> None:
    for target in TARGETS.values():
        plan = choose_blocking(target, dtype, 64, 64)
        for k in (1, 17, 256, 500, 512, 4096):
            row = plan.copied_row(k)
            lines, rest = divmod(row * plan.compute_bytes, LINE)
            assert (lines % 2, rest) == (1, 0)
            assert row >= k


@pytest.mark.parametrize("tile", [(16, 512), (16, 1024), (24, 4096), (32, 2048)])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("name", MACHINES)
def test_rows_of_c_do_not_share_sets_where_b_is_streamed(
    name: str, dtype: str, tile: tuple[int, int]
) -> None:
    target = described(name)
    plan = choose_blocking(target, dtype, *tile)
    if not plan.is_low:
        return
    l1, size = target.machine.l1, plan.arithmetic.accumulator_bytes
    starts = np.arange(plan.block_m) * plan.ldc * size // LINE
    _, rows_of_set = np.unique(
        starts % (l1.size // l1.ways // LINE), return_counts=True
    )
    assert rows_of_set.max() <= l1.ways // 2


def text_of(plan: Blocking) -> str:
    stream = StringIO()
    Printer(stream).print_attribute(PlanAttr(plan))
    return stream.getvalue()


def parsed(text: str) -> PlanAttr:
    context = Context()
    context.load_dialect(XSMM)
    attribute = Parser(context, text).parse_attribute()
    assert isinstance(attribute, PlanAttr)
    return attribute


@pytest.mark.parametrize("target", ["avx2", "amx", "avx512_bf16+recording"])
@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_what_is_printed_is_read_back(target: str, dtype: str) -> None:
    signs = (dtype == "i8", False)
    plan = choose_blocking(find_target(target), dtype, 100, 72, signs)
    assert parsed(text_of(plan)).data == plan


def test_a_plan_says_what_is_missing_or_unknown() -> None:
    with pytest.raises(ParseError, match="a plan needs instruction"):
        parsed("#xsmm.plan<dtype = f32>")
    with pytest.raises(ParseError, match="a plan has no `colour`"):
        parsed("#xsmm.plan<colour = 3>")


@xetile.kernel
def gemm(A, B, C, BM: constexpr, BN: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), C.dtype)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize(
    ("dtype", "sum_", "size"), [("bf16", "f32", 2), ("i8", "i32", 1)]
)
def test_few_rows_take_whole_pages_of_b(dtype: str, sum_: str, size: int) -> None:
    """AMX waits for memory, which gives pages faster than pieces of them."""
    signature = f"{dtype}[M,K] {dtype}[K,N] {sum_}[M,N]"
    text = gemm.ir("xsmm", signature, BM=16, BN=64, target="amx")
    assert f"block_n = {PAGE // size}>" in text
    (chunk,) = set(re.findall(r"chunk = (\d+)", text))
    part = int(chunk) * PAGE  # bytes of B that a program packs at once
    assert part <= described("sapphire_rapids").machine.l2.size // 4


@pytest.mark.parametrize(("rows", "of_task"), [(16, 16), (32, 256), (64, 256)])
def test_programs_of_few_rows_grow_unless_they_are_one_tile(
    rows: int, of_task: int
) -> None:
    """With AMX; two tiles of rows are a strip, as of any more rows."""
    signature = "bf16[M,K] bf16[K,N] f32[M,N]"
    text = gemm.ir("xsmm", signature, BM=rows, BN=64, target="amx")
    assert f"block_m = {of_task}," in text


def test_the_ir_of_a_kernel_shows_the_plan() -> None:
    arrays = [np.zeros((512, 512), np.float32) for _ in range(3)]
    text = gemm.ir("xsmm", *arrays, BM=256, BN=256, target="avx2")
    plan = choose_blocking(find_target("avx2"), "f32", 256, 256)
    assert f"plan = {text_of(plan)}" in text


NAMES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stage", ["xsmm", "loops"])
def test_the_ir_of_a_kernel_runs_as_it_was_printed(stage: str, name: str) -> None:
    rng, total = np.random.default_rng(0), np.int32 if name == "i8" else np.float32
    a, b = (rng.integers(-9, 9, (150, 150)).astype(NAMES[name]) for _ in range(2))
    c, found = (np.zeros((150, 150), total) for _ in range(2))
    gemm[3, 3](a, b, c, BM=64, BN=64)
    text = gemm.ir(stage, a, b, c, BM=64, BN=64)
    load_mlir(text)["gemm"][3, 3](a, b, found)
    assert np.array_equal(found, c)
    assert np.array_equal(c, a.astype(total) @ b.astype(total))


def planned(change: dict[str, int]) -> TextKernel:
    """The kernel with other numbers in its plan."""
    arrays = [np.zeros((64, 64), np.float32) for _ in range(2)]
    text = gemm.ir("xsmm", *arrays, np.zeros((64, 64), np.float32), BM=64, BN=64)
    for key, value in change.items():
        text = re.sub(rf"\b{key} = \d+", f"{key} = {value}", text)
    return load_mlir(text)["gemm"]


def test_a_plan_may_be_changed_in_the_text() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((200, 200)).astype(np.float32) for _ in range(2))
    c = np.zeros((200, 200), np.float32)
    kernel = planned({"mr": 3, "mc": 9, "chunk": 32, "run": 32, "kc": 32})
    kernel[4, 4](a, b, c)
    assert np.allclose(c, a @ b, atol=1e-4)
    assert re.search(r"gemm_\w+_fma_f32_3x\d+_m9u", kernel.ir("llvm"))


def test_what_a_text_that_was_lowered_cannot_do() -> None:
    a, c = (np.ones((64, 64), np.float32) for _ in range(2))
    with pytest.raises(IRError, match="nr = 5 is no multiple of"):
        planned({"nr": 5})[1, 1](a, a.copy(), c)
    with pytest.raises(
        IRError, match=r"nr = 128, but panels are packed for \d+ columns"
    ):
        planned({"nr": 128})[1, 1](a, a.copy(), c)
    with pytest.raises(IRError, match="kc = 0 is no multiple of 1"):
        planned({"kc": 0})[1, 1](a, a.copy(), c)
    kernel = planned({})
    with pytest.raises(IRError, match="backend `reference` cannot go on"):
        kernel[1, 1](a, a.copy(), c, backend="reference")
    with pytest.raises(LaunchError, match="lowered for arrays of which others are"):
        kernel[1, 1](a, a, c)
    with pytest.raises(LaunchError, match="lowered further than `xetile`"):
        kernel.ir("xetile")


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", ["materialize-grid", "fuse-row-loops"])
def test_a_text_between_stages(name: str, backend: str) -> None:
    """Nothing says which passes are to follow: it was printed after one of them."""
    x, y = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32)
    kernel = load_mlir(double.ir(name, x, y))["double"]
    with pytest.raises(IRError, match="go on only from a stage") as caught:
        kernel[1](x, y, backend=backend)
    assert (caught.value.code, caught.value.line) == ("X0705", 2)
    assert not y.any()


@xetile.kernel
def double(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
    xetile.store_tile(x * 2, xetile.init_tile(Y, [0, 0], (8, 16)))
