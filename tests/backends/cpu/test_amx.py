"""Kernels on AMX tiles, by the emulator of tests/native: numbers and configurations."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import laid_out

from tests.native.amx_traps import tile_instructions, trapping
from xetl import load_mlir, xetile
from xetl.errors import LaunchError
from xetl.ops import prepack
from xetl.xetile import constexpr
from xetl_cpu.build import assemble, assembly
from xetl_cpu.launch.threads import thread_layer
from xetl_cpu.targets import find_target

BF16 = ml_dtypes.bfloat16
TILES = {"BM": 64, "BN": 64, "BK": 32}


pytestmark = pytest.mark.usefixtures("amx_target")


@xetile.kernel
def gemm(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), C.dtype)
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def run(amx: Any, a: Any, b: Any, dtype: Any, width: int = 64) -> Any:
    """A @ B; what ran is in ``amx``. Nobody holds tiles when it is over."""
    c = np.zeros((a.shape[0], b.shape[1]), dtype)
    with amx.counting():
        grid = -(-c.shape[0] // 64), -(-c.shape[1] // width)
        gemm[grid](a, b, c, **{**TILES, "BN": width})
    assert amx.errors() == []
    assert amx.configured_threads() == 0
    return c


def assert_configured_once_a_thread(amx: Any) -> None:
    """Each thread's range configures once; TBB may run two ranges on one thread."""
    assert 0 < amx.total()["ldtilecfg"] <= thread_layer().num_threads()
    for thread in amx.threads():
        assert thread["ldtilecfg"] == thread["tilerelease"]


def bytes_or_small(rng: Any, dtype: Any, *shape: int) -> Any:
    low, high = {np.int8: (-128, 128), np.uint8: (0, 256)}.get(dtype, (-4, 5))
    return rng.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("layouts", [("rows", "rows"), ("columns", "neither")])
@pytest.mark.parametrize(
    ("left", "right", "to", "instruction"),
    [
        (BF16, BF16, np.float32, "tdpbf16ps"),
        (np.int8, np.int8, np.int32, "tdpbssd"),
        (np.int8, np.uint8, np.int32, "tdpbsud"),
        (np.uint8, np.int8, np.int32, "tdpbusd"),
        (np.uint8, np.uint8, np.int32, "tdpbuud"),
    ],
)
@pytest.mark.parametrize("shape", [(128, 128, 128), (100, 77, 33), (1, 200, 549)])
def test_products(amx, left, right, to, instruction, shape, layouts):
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = bytes_or_small(rng, left, m, k), bytes_or_small(rng, right, k, n)
    out = run(amx, laid_out(a, layouts[0]), laid_out(b, layouts[1]), to)
    assert np.array_equal(out, (a.astype("f8") @ b.astype("f8")).astype(to))
    assert amx.total()[instruction] > 0
    assert_configured_once_a_thread(amx)


@pytest.mark.slow
def test_seed_003_configures_once_a_thread(amx):
    """1024 cubed in bf16: the seed's tasks configure 64 times, libxsmm 2048 times."""
    rng = np.random.default_rng(0)
    a, b = (bytes_or_small(rng, BF16, 1024, 1024) for _ in range(2))
    out = run(amx, a, b, np.float32)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert_configured_once_a_thread(amx)
    assert amx.total()["tdpbf16ps"] == 1024**3 // (16 * 16 * 32)


BLOCKS = """
!a = memref<4x32x32xbf16>
!b = memref<4x16x32x2xbf16>
!c = memref<32x32xbf16>
func.func @entry(%a: !a, %b: !b, %c: !c) {
  %n = arith.constant 4 : i64
  %k = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 32, 1024, 1024]
    flags = (vnni_b, no_reset_tileconfig, no_setup_tileconfig) data_type = bf16
  xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %n) : (i64, !a, !b, !c, i64) -> ()
  return
}
"""


def test_seed_003_by_its_own_text(amx):
    """Micro-kernels of a text become tiles of the pipeline, which sets these up."""
    rng = np.random.default_rng(0)
    a, b = bytes_or_small(rng, BF16, 4, 32, 32), bytes_or_small(rng, BF16, 4, 32, 32)
    in_pairs = np.ascontiguousarray(b.reshape(4, 16, 2, 32).swapaxes(2, 3))
    c = bytes_or_small(rng, BF16, 32, 32)
    sums = c.astype("f4") + (a.astype("f4") @ b.astype("f4")).sum(0)
    with amx.counting():
        load_mlir(BLOCKS)["entry"][1](a, in_pairs, c)
    assert np.array_equal(c.astype("f4"), sums.astype(BF16).astype("f4"))
    assert amx.errors() == []
    assert amx.total()["tdpbf16ps"] == 4 * 32**3 // (16 * 16 * 32)
    assert_configured_once_a_thread(amx)


def behind_a_line(array: Any, skip: int = 0) -> Any:
    """A copy that begins so many bytes behind the start of a cache line."""
    room = np.zeros(array.nbytes + 128, np.uint8)
    first = -room.ctypes.data % 64 + skip
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("dtype", [BF16, np.int8])
@pytest.mark.parametrize("k", [128, 1000, 1024])
def test_rows_of_a_lie_well_for_the_first_cache(amx, k, dtype):
    """In place only on lines, an odd number apart; they are copied otherwise.

    But for few panels of B: reading A once as it lies costs less than a copy.
    """
    rng, odd = np.random.default_rng(0), 64 // np.dtype(dtype).itemsize
    to = np.int32 if dtype is np.int8 else np.float32
    b = bytes_or_small(rng, dtype, k, 320)
    lines = -(-k // odd) | 1
    room = np.zeros(64 * lines * odd + odd, dtype)
    first = -room.ctypes.data % 64 // room.itemsize
    room = room[first:][: 64 * lines * odd].reshape(64, lines * odd)
    for a in (bytes_or_small(rng, dtype, 64, k), room[:, :k], room[:, 1:k]):
        given = b[: a.shape[1]]
        a[...] = bytes_or_small(rng, dtype, *a.shape)
        expected = (a.astype("f8") @ given.astype("f8")).astype(to)
        assert np.array_equal(run(amx, a, given, to, width=320), expected)
        assert (amx.total()["tileloaddt1"] > 0) == (k > 128)  # Else A stays in L1.
        assert amx.slow_loads() == 0
    if k % odd == 0:
        given = bytes_or_small(rng, dtype, 1024, 256)
        for skip in (0, 16):  # Rows across lines: each line is for two loads.
            a = behind_a_line(bytes_or_small(rng, dtype, 64, 1024), skip)
            expected = (a.astype("f8") @ given.astype("f8")).astype(to)
            assert np.array_equal(run(amx, a, given, to), expected)
            assert (amx.slow_loads() > 0) == (skip == 0)
            assert (amx.total()["tileloaddt1"] > 0) == (skip == 0)


def test_copied_rows_of_a_are_as_near_as_they_may_be():
    """An odd number of lines of what is copied, not of the most that may be."""
    a, b = np.zeros((64, 512), BF16), np.zeros((512, 320), BF16)
    c = np.zeros((64, 320), np.float32)
    tiles = {**TILES, "BN": 320}
    text = gemm.ir("loops", a, b, c, **tiles, target="amx")
    copy = r"memref.reinterpret_cast %\w+ to offset: \[0\], sizes: \[\d+, \d+\], "
    assert (
        len(re.findall(copy + r"strides: \[%\w+, 1\] : memref<\d+x\d+xbf16>", text))
        == 1
    )


def test_loads_and_stores_of_a_product(amx):
    """A step is four loads and four products; C leaves for each 1,024 bytes of k."""
    rng = np.random.default_rng(0)
    a, b = (bytes_or_small(rng, BF16, 256, 1024) for _ in range(2))
    b = b.reshape(1024, 256)
    out = run(amx, behind_a_line(a), b, np.float32)
    assert np.array_equal(out, a.astype("f4") @ b.astype("f4"))
    found, products = amx.total(), 256 * 256 * 1024 // (16 * 16 * 32)
    assert found["tdpbf16ps"] == products
    assert found["tileloaddt1"] == found["tileloadd"] == products // 2
    assert found["tilezero"] == found["tilestored"] == 16 * 16 * 1024 // 512


@pytest.mark.parametrize(("k", "pieces"), [(512, 1), (640, 1), (672, 2), (1312, 3)])
def test_pieces_of_k_are_as_long(amx, k, pieces):
    """None is short: C leaves the tiles behind each. 5/4 of 512 still stay in L1."""
    rng = np.random.default_rng(0)
    a, b = (bytes_or_small(rng, BF16, *shape) for shape in ((256, k), (k, 256)))
    out = run(amx, a, prepack(b), np.float32)
    assert np.array_equal(out, a.astype("f4") @ b.astype("f4"))
    assert amx.total()["tilestored"] == 16 * 16 * pieces


@pytest.mark.parametrize(
    ("k", "cols", "pieces"),
    [
        *((3072, 16, 1), (3072, 32, 1), (3080, 32, 2), (3072, 64, 1), (3080, 128, 2)),
        *((1024, 64, 2), (17000, 32, 17)),  # no longer than B, and more than L2 keeps
    ],
)
def test_few_panels_meet_whole_rows_of_a(amx, k, cols, pieces):
    """C leaves the tiles once, and again for what is left of a step of k."""
    rng, rows = np.random.default_rng(0), 64
    a, b = (bytes_or_small(rng, BF16, *shape) for shape in ((rows, k), (k, cols)))
    out = run(amx, a, prepack(b), np.float32, width=cols)
    assert np.array_equal(out, a.astype("f4") @ b.astype("f4"))
    assert amx.total()["tilestored"] == rows * cols // 256 * pieces
    for some in (a[:20], a[:, :-50]):  # few rows are copied, and A that ends early
        given = prepack(b[: some.shape[1]])
        out = run(amx, some, given, np.float32, width=cols)
        expected = some.astype("f4") @ b[: some.shape[1]].astype("f4")
        assert np.array_equal(out, expected)


def test_two_rows_of_bf16_use_no_tiles_and_no_dot_products(amx):
    rng = np.random.default_rng(0)
    a, b = bytes_or_small(rng, BF16, 2, 128), bytes_or_small(rng, BF16, 128, 64)
    c = np.zeros((2, 64), np.float32)
    text = gemm.ir("asm", a, b, c, BM=2, BN=64, BK=32, target="amx")
    assert "vfmadd" in text
    assert "vdpbf16ps" not in text
    with amx.counting():
        gemm[1, 1](a, b, c, BM=2, BN=64, BK=32)
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))
    assert amx.total()["tdpbf16ps"] == 0


def test_other_types_use_no_tiles(amx):
    rng = np.random.default_rng(0)
    for dtype, to in ((np.float32, np.float32), (np.float64, np.float64)):
        a, b = (bytes_or_small(rng, dtype, 64, 64) for _ in range(2))
        assert np.array_equal(run(amx, a, b, to), a @ b)
        assert amx.total() == {}


@xetile.kernel
def gemm_of_some_k(A, B, C, stop, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), C.dtype)
    for k in range(0, stop, BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("stop", [8, 40, 72])
def test_k_that_ends_before_the_matrices_do(amx, stop):
    """What is behind the end is in the same step of the tiles, and must not count."""
    rng = np.random.default_rng(0)
    a, b = bytes_or_small(rng, BF16, 64, 96), bytes_or_small(rng, BF16, 96, 64)
    b[stop:] = np.nan
    c = np.zeros((64, 64), np.float32)
    with amx.counting():
        gemm_of_some_k[1, 1](a, b, c, stop, BM=64, BN=64, BK=8)
    assert np.array_equal(c, a[:, :stop].astype("f4") @ b[:stop].astype("f4"))
    assert amx.total()["tdpbf16ps"] > 0


def test_infinities_stay_where_they_are(amx):
    """Rows of padding beside an infinite column of B are not seen."""
    a, b = np.ones((3, 5), BF16), np.ones((5, 70), BF16)
    b[2, 69] = np.inf
    out = run(amx, a, b, np.float32)
    assert np.array_equal(out[:, :69], np.full((3, 69), 5, np.float32))
    assert np.isposinf(out[:, 69]).all()


def test_without_tiles_and_without_an_emulator_it_is_refused(monkeypatch):
    monkeypatch.setattr("xetl_cpu.targets.tiles_are_emulated", lambda: False)
    monkeypatch.setattr("xetl_cpu.targets.host_features", frozenset)
    a = np.zeros((8, 8), BF16)
    with pytest.raises(LaunchError, match="cannot run code for target `amx`"):
        gemm[1, 1](a, a, np.zeros((8, 8), np.float32), BM=8, BN=8, BK=8)


def test_the_stages_show_one_configuration():
    a = np.zeros((64, 64), BF16)
    given = (a, a, np.zeros((64, 64), np.float32))

    def lines(stage: str, part: str) -> list[str]:
        text = gemm.ir(stage, *given, **TILES, target="amx")
        return [line.strip() for line in text.splitlines() if part in line]

    # As in seed 003: dispatched once, with the sizes of the product's micro-kernel.
    sizes = "[32, 32, 512, 0, 32, 2064, 512, 16384]"
    kernel, *others = sorted(lines("xsmm", ".dispatch"), key=lambda x: "AMX" in x)
    assert f"xsmm.brgemm.dispatch {sizes} flags = (vnni_b, no_reset" in kernel
    assert [f"AMXtileConfig.dispatch {sizes}" in x for x in others] == [True, True]
    name = kernel.split()[0]
    assert f"xsmm.brgemm.tile(kernel = {name})" in lines("xsmm", "brgemm.tile")[0]
    assert len(lines("xsmm", '"xsmm.IntelAMXtileConfig"')) == 2
    assert len(lines("xsmm", '"xsmm.pack"')) == 2
    # A in place or copied, B packed by the program or before it: one block GEMM.
    assert len(lines("loops", '"xsmm.block_gemm"')) == 1
    assert lines("hoist-amx-config", '"xsmm.IntelAMXtileConfig"') != []
    assert lines("asm", "ldtilecfg") != []
    final = lines("canonicalize", "tiles")
    assert [line.startswith('"cpu.thread_tiles"') for line in final] == [True]
    assert len(lines("asm", "ldtilecfg")) == 1


@pytest.mark.parametrize(
    ("rows", "shape", "chunk"), [(64, "256x2048", 512), (16, "16x2048", 128)]
)
def test_tasks_are_as_wide_as_caches_and_pages_allow(rows, shape, chunk):
    """Sums as large as L2; of few rows a page of B's row, and panels in a quarter."""
    a, b = np.zeros((rows, 64), BF16), np.zeros((64, 64), BF16)
    tiles = {**TILES, "BM": rows}
    text = gemm.ir(
        "xsmm", a, b, np.zeros((rows, 64), np.float32), **tiles, target="amx"
    )
    assert f"vector<{shape}xf32>" in text
    assert f"chunk = {chunk}," in text
    m, n = map(int, shape.split("x"))
    l2 = find_target("amx").machine.l2.size
    assert 4 * m * n <= l2
    assert rows > 32 or n * 2 == 4096


@pytest.mark.parametrize(("k", "cols"), [(40, 1100), (600, 513), (1030, 1056)])
def test_what_a_program_packs_stays_in_a_quarter_of_l2(amx, k, cols):
    """Whatever the width of the task that A is copied for."""
    rng, rows = np.random.default_rng(0), 40
    a, b = (bytes_or_small(rng, BF16, *shape) for shape in ((rows, k), (k, cols)))
    expected = a.astype("f4") @ b.astype("f4")
    assert np.array_equal(run(amx, a, b, np.float32), expected)
    c = np.zeros((rows, cols), np.float32)
    text = gemm.ir("loops", a, b, c, **TILES, target="amx")
    copies, packs = (text.count(f'operand = "{name}"') for name in "ab")
    assert (copies, packs) == (1, 3)  # of B: for a launch, for a thread, by a program
    (size,) = re.findall(r"alloca\(\) : memref<(\d+)xbf16>", text)
    assert int(size) * 2 == find_target("amx").machine.l2.size // 4
    chunk = re.search(r"chunk = (\d+),", text)
    assert chunk is not None
    columns = int(size) // int(chunk[1])
    assert re.search(rf"constant {columns} : index\n.*arith.select", text)
    assert text.index('operand = "a"') < text.rindex('operand = "b"')


def test_a_result_as_large_as_l2_goes_past_the_caches():
    a = np.zeros((64, 64), BF16)
    c = np.zeros((64, 64), np.float32)
    text = gemm.ir("llvm", a, a, c, **TILES, target="amx")
    size = find_target("amx").machine.l2.size
    assert len(re.findall(rf"icmp sge i64 %\S+, {size}\b", text)) == 1


@pytest.mark.parametrize(("rows", "packed"), [(300, True), (1024, False), (550, True)])
def test_tall_tiles_are_blocks_of_rows_that_stay_in_l2(amx, rows, packed):
    """As many rows of A are copied at once as a plan says, and the last may be few."""
    rng = np.random.default_rng(0)
    a, b = (bytes_or_small(rng, BF16, *shape) for shape in ((rows, 70), (70, 300)))
    c = np.zeros((rows, 300), np.float32)
    tiles = {"BM": 512, "BN": 256, "BK": 32}
    given = prepack(b) if packed else b
    with amx.counting():
        gemm[-(-rows // 512), 2](a, given, c, **tiles)
    assert amx.errors() == []
    assert np.array_equal(c, (a.astype("f8") @ b.astype("f8")).astype("f4"))
    # The step of rows is that of the plan unless the program packs, else all rows.
    text = gemm.ir("loops", a, b, c, **tiles, target="amx")
    some = r"(%\w+) = arith.constant (\d+) : index\n.*(%\w+) = arith.select "
    some += r"(%\w+), (%\w+), \1 : index\n(?:.*\n){1,4}.*scf.for %\w+ = %\w+ to \5 "
    found = re.search(some, text)
    assert found is not None
    assert int(found[2]) * 1024 * 2 == find_target("amx").machine.l2.size // 4
    assert f"if {found[4]} ->" in text


@xetile.kernel
def low(A, B, C, BM: constexpr, BN: constexpr):
    n = xetile.program_id(0) * BN
    acc = xetile.zeros((BM, BN), xetile.f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [0, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [0, n], (BM, BN)))


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 16])
def test_few_rows_are_multiplied_where_b_is(amx, rows):
    """Up to 4 by FMA; up to 16 on half of A and C: 3 loads for 2 products."""
    rng = np.random.default_rng(rows)
    a, b = (bytes_or_small(rng, BF16, *shape) for shape in ((rows, 256), (256, 256)))
    c = np.zeros((rows, 256), np.float32)
    with amx.counting():
        low[2](a, b, c, BM=rows, BN=128)
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))
    products = 0 if rows <= 4 else 256 // 16 * 256 // 32
    found = amx.total()
    assert found["tdpbf16ps"] == products
    # Rows so few and short stay in L1 beside B's.
    assert (found["tileloadd"], found["tileloaddt1"]) == (products * 3 // 2, 0)
    text = low.ir("asm", a, b, c, BM=rows, BN=128)
    assert "vdpbf16ps" not in text


@pytest.mark.parametrize("dtype", [BF16, np.int8])
def test_an_operand_that_stays_packed(amx, dtype):
    rng = np.random.default_rng(5)
    a, b = bytes_or_small(rng, dtype, 70, 75), bytes_or_small(rng, dtype, 75, 90)
    operand, to = prepack(b), np.int32 if dtype is np.int8 else np.float32
    expected = a.astype(to) @ b.astype(to)
    assert np.array_equal(run(amx, a, operand, to), expected)
    b[:] = 0  # only to see which elements are read
    assert np.array_equal(run(amx, a, operand, to), expected)


def test_every_tile_instruction_of_a_kernel_traps() -> None:
    """So a processor that has AMX counts what the others count."""
    given = [np.zeros((256, 256), BF16)] * 2 + [np.zeros((256, 256), np.float32)]
    text = gemm.ir("llvm", *given, **TILES, target="amx")
    target = find_target("amx")
    with trapping():
        code = assemble(text, target)
    real = assemble(text, target)
    assert len(code) == len(real)
    changed = [i for i, (one, other) in enumerate(zip(code, real)) if one != other]
    assert len(changed) == tile_instructions(assembly(text, target)) > 8
    assert {(code[i], real[i]) for i in changed} == {(0x06, 0xC4)}
