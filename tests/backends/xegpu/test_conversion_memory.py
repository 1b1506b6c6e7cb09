"""Tiles become messages: what is read, what is written, and nothing else."""

from typing import Any

import numpy as np
import pytest
from converting import (
    array,
    converted,
    count,
    function,
    load,
    run,
    store,
    tile,
    tile_type,
    vector,
)
from xdsl.ir import Operation

from xetl import xetile
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith
from xetl.errors import IRError
from xetl_xegpu.dialect import LoadOp, StoreOp

DTYPES = {"f32": "f4", "i8": "i1", "i16": "i2", "i64": "i8", "f16": "f2", "f64": "f8"}
SHAPES = [(8, 16), (1, 64), (32, 32), (7, 33), (13, 5), (20, 1), (1, 1), (3, 17)]


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).integers(-9, 10, shape)
    return drawn.astype(DTYPES[dtype])


def moved(shape: Any, dtype: str, at: str, size: Any, how: str = "") -> str:
    """Load a tile of X and store it to Y at the same place."""
    arguments = f"{array('X', size, dtype)}, {array('Y', size, dtype)}"
    return function(
        arguments,
        tile("X", at, shape, dtype, size),
        tile("Y", at, shape, dtype, size),
        load("X", shape, dtype, how),
        store("%vX", "Y", shape, dtype),
    )


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_tile_is_moved_and_nothing_beside_it(
    shape: tuple[int, int], dtype: str, blocks: bool
) -> None:
    x = numbers((40, 64), dtype)
    y = np.full_like(x, 77)
    run(moved(shape, dtype, "4, 4", x.shape), x, y, blocks=blocks)
    wanted = np.full_like(x, 77)
    rows, columns = slice(4, 4 + shape[0]), slice(4, 4 + shape[1])
    wanted[rows, columns] = x[rows, columns]
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("place", [(-4, -8), (36, 56), (0, 60), (50, 0)], ids=str)
@pytest.mark.parametrize("shape", [(8, 16), (5, 20), (8, 1)], ids=str)
def test_padding_outside_of_the_matrix(
    shape: tuple[int, int], place: tuple[int, int], blocks: bool
) -> None:
    x = numbers((40, 64), "f32")
    y = np.zeros(shape, np.float32)
    kernel = function(
        f"{array('X', x.shape, 'f32')}, {array('Y', y.shape, 'f32')}",
        f"%r = arith.constant {place[0]} : index\n",
        f"%c = arith.constant {place[1]} : index\n",
        tile("X", "%r, %c", shape, "f32", x.shape),
        tile("Y", "0, 0", shape, "f32", shape),
        load("X", shape, "f32", "{padding = 5.0 : f32}"),
        store("%vX", "Y", shape, "f32"),
    )
    run(kernel, x, y, blocks=blocks)
    wide = np.full((140, 164), 5, np.float32)
    wide[50:90, 50:114] = x
    top, left = place[0] + 50, place[1] + 50
    wanted = wide[top : top + shape[0], left : left + shape[1]]
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize(
    ("dtype", "padding", "written"),
    [("f16", -np.inf, "0xFC00 : f16"), ("i16", -7, "-7 : i16"), ("i8", 3, "3 : i8")],
)
def test_paddings_of_other_types(
    dtype: str, padding: float, written: str, blocks: bool
) -> None:
    """Bits of a padding are added to zeros that were loaded: rows, columns, corners."""
    x, y = numbers((12, 64), dtype), numbers((16, 48), dtype)
    kernel = function(
        f"{array('X', x.shape, dtype)}, {array('Y', y.shape, dtype)}",
        tile("X", "5, 32", y.shape, dtype, x.shape),
        tile("Y", "0, 0", y.shape, dtype, y.shape),
        load("X", y.shape, dtype, f"{{padding = {written}}}"),
        store("%vX", "Y", y.shape, dtype),
    )
    run(kernel, x, y, blocks=blocks)
    wanted = np.full_like(y, padding)
    wanted[:7, :32] = x[5:, 32:]
    np.testing.assert_array_equal(y, wanted)


def test_neighbouring_blocks_come_in_one_message() -> None:
    """32 rows of 64 bytes; of bytes 16 columns are a message."""
    for dtype, expected in (("f32", 2), ("i16", 1), ("i8", 2)):
        module = converted(moved((32, 32), dtype, "0, 0", (64, 64)))
        assert count(module, "xegpu.load_nd") == expected
        assert count(module, "xegpu.store_nd") == 8
        assert count(module, "xegpu.load") == 0


@xetile.kernel
def of_a_batch(X, Y) -> None:
    """Move one matrix of a batch."""
    x = xetile.load_tile(xetile.init_tile(X[xetile.program_id(0)], [0, 0], (64, 16)))
    xetile.store_tile(x, xetile.init_tile(Y, [0, 0], (64, 16)))


def test_blocks_of_a_matrix_of_a_batch_are_at_constant_distances() -> None:
    """Whether there is such a matrix is asked once: messages share a payload."""
    text = of_a_batch.ir("xegpu", "f32[B,M,N] f32[M,N]", backend="xegpu", target="pvc")
    fast = text.split("_unaligned")[0]
    assert fast.count("xegpu.load_nd") == 2
    assert fast.count("arith.select") == 4  # offset, rows and columns, and the place


def test_columns_that_no_message_can_start_at_are_moved_by_lanes() -> None:
    """Two bytes: messages start at even columns; one byte: at multiples of four."""
    for dtype, column, allowed in (("i16", 2, 1), ("i16", 3, 0), ("i8", 6, 0)):
        module = converted(moved((8, 16), dtype, f"0, {column}", (64, 64)))
        assert count(module, "xegpu.load_nd") == allowed


def test_arrays_that_blocks_move_are_named_for_the_launch() -> None:
    module = converted(moved((8, 16), "f32", "0, 0", (64, 64)))
    assert "xegpu.block_arguments = array<i64: 0, 1>" in str(module)
    module = converted(moved((8, 16), "f64", "0, 0", (64, 64)))
    assert "xegpu.block_arguments = array<i64>" in str(module)


def test_a_static_matrix_that_is_too_narrow_is_moved_by_lanes() -> None:
    module = converted(moved((8, 8), "f32", "0, 0", (64, 8)))
    assert count(module, "xegpu.load_nd") == 0


def test_prefetches_are_as_wide_as_they_may_be() -> None:
    kernel = function(
        array("X", (64, 256), "i8"),
        tile("X", "0, 0", (32, 128), "i8", (64, 256)),
        f"xetile.prefetch_tile %tX : {tile_type((32, 128), 'i8')}\n",
    )
    module = converted(kernel)
    assert count(module, "xegpu.prefetch_nd") == 2
    assert "tensor_desc<32x64xi8>" in str(module)


# Offsets of their own ---------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 32), (4, 20), (24, 1)], ids=str)
def test_gathers_and_scatters(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    size = shape[0] * shape[1]
    index = rng.permutation(size).reshape(shape).astype(np.int64)
    index.flat[0] = 10**6  # outside of the base: never touched
    keep = rng.integers(0, 2, shape).astype(np.int8)
    x, y = np.arange(size, dtype=np.float32), np.full(size, -1, np.float32)
    scattered = (
        f"!xetile.tile<{shape[0]}x{shape[1]}xf32, #xetile.tile_attr<scattered = true>>"
    )
    indices, mask, data = (vector(shape, t) for t in ("index", "i1", "f32"))
    base = f"memref<{size}xf32>"
    kernel = function(
        f"{array('I', shape, 'i64')}, {array('M', shape, 'i8')}, "
        f"%X: {base}, %Y: {base}",
        tile("I", "0, 0", shape, "i64", shape),
        tile("M", "0, 0", shape, "i8", shape),
        load("I", shape, "i64"),
        load("M", shape, "i8"),
        f"%i = arith.index_cast %vI : {vector(shape, 'i64')} to {indices}\n",
        f"%z = arith.constant dense<0> : {vector(shape, 'i8')}\n",
        f"%m = arith.cmpi ne, %vM, %z : {vector(shape, 'i8')}\n",
        f"%a = xetile.init_tile %X, %i : {base}, {indices} -> {scattered}\n",
        f"%b = xetile.init_tile %Y, %i : {base}, {indices} -> {scattered}\n",
        f"%v = xetile.load_gather %a, %m : {scattered}, {mask} -> {data}\n",
        f"xetile.store_scatter %v, %m, %b : {data}, {mask}, {scattered}\n",
    )
    run(kernel, index, keep, x, y)
    wanted = np.full(size, -1, np.float32)
    chosen = index[(keep != 0) & (index < size)]
    wanted[chosen] = x[chosen]
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_atomics_give_what_was_there_before(dtype: str) -> None:
    x, y = numbers((10, 20), dtype), numbers((16, 32), dtype, 1)
    before, old = x.copy(), np.ones((16, 32), x.dtype)
    shape = (16, 32)
    types = f"{vector(shape, dtype)}, {tile_type(shape, dtype)}"
    kernel = function(
        ", ".join(array(n, a.shape, dtype) for n, a in zip("XYO", (x, y, old))),
        tile("X", "0, 0", shape, dtype, x.shape),
        tile("Y", "0, 0", shape, dtype, y.shape),
        tile("O", "0, 0", shape, dtype, old.shape),
        load("Y", shape, dtype),
        f"%o = xetile.atomic_rmw_tile <add> %vY, %tX : {types} "
        f"-> {vector(shape, dtype)}\n",
        store("%o", "O", shape, dtype),
    )
    run(kernel, x, y, old)
    np.testing.assert_array_equal(x, before + y[:10, :20])
    wanted = np.zeros_like(old)
    wanted[:10, :20] = before
    np.testing.assert_array_equal(old, wanted)


# Maps -------------------------------------------------------------------------------


def mapped(given: str, element: str = "f32") -> str:
    type_ = f"!xetile.tile<8x32x{element}, #xetile.tile_attr<sg_map = <{given}>>>"
    return function(
        array("X", (64, 64), element),
        f"%t = xetile.init_tile %X[0, 0] : memref<64x64x{element}> -> {type_}\n",
        f"%v = xetile.load_tile %t : {type_} -> vector<8x32x{element}>\n",
    )


def test_a_lane_map_that_the_hardware_follows_is_accepted() -> None:
    module = converted(mapped("wi_layout = [1, 16], wi_data = [1, 1]"))
    assert count(module, "xegpu.load_nd") == 2


@pytest.mark.parametrize(("element", "count"), [("f16", 2), ("bf16", 2), ("i8", 4)])
def test_lanes_may_be_those_of_words(element: str, count: int) -> None:
    """Of the same registers; the first RFC's example of a map is one of f16."""
    given = f"wi_layout = [2, 8], wi_data = [1, {count}]"
    converted(mapped(given, element))
    with pytest.raises(IRError, match="no message spreads a tile"):
        converted(mapped(given.replace(f"{count}]", f"{count // 2}]"), element))


def test_another_lane_map_is_refused_by_name() -> None:
    with pytest.raises(IRError, match=r"sg_map<wi_layout = \[2, 8\]") as raised:
        converted(mapped("wi_layout = [2, 8], wi_data = [1, 2]"))
    assert raised.value.code == "X0705"


# Shared memory ----------------------------------------------------------------------

SHARED = "#xetile.tile_attr<memory_space = 3>"


def through_shared_memory(row: str) -> str:
    """X to shared memory, and from a row of it on to Y."""
    t = f"!xetile.tile<8x32xf32, {SHARED}>"
    m = "memref<16x32xf32, 3>"
    return function(
        f"{array('X', (8, 32), 'f32')}, {array('Y', (8, 32), 'f32')}, %n: i64",
        tile("X", "0, 0", (8, 32), "f32", (8, 32)),
        tile("Y", "0, 0", (8, 32), "f32", (8, 32)),
        load("X", (8, 32), "f32"),
        f"%m = memref.alloc() : {m}\n",
        "%i = arith.index_cast %n : i64 to index\n",
        "%two = arith.constant 2 : index\n",
        "%eight = arith.constant 8 : index\n",
        "%rest = arith.remui %i, %two : index\n",
        "%half = arith.muli %rest, %eight : index\n",
        f"%a = xetile.init_tile %m[{row}, 0] : {m} -> {t}\n",
        f"xetile.store_tile %vX, %a : vector<8x32xf32>, {t}\n",
        f"%v = xetile.load_tile %a : {t} -> vector<8x32xf32>\n",
        store("%v", "Y", (8, 32), "f32"),
    )


def is_unmasked(op: Operation) -> bool:
    """Whether all lanes access memory, whatever is computed."""
    mask = op.operands[-1].owner
    return isinstance(mask, arith.ConstantOp) and splat_value(mask.value) == 1


@pytest.mark.parametrize(("row", "known"), [("%half", True), ("%i", False)])
def test_shared_memory_needs_no_mask_where_bounds_are_known(
    row: str, known: bool
) -> None:
    kernel = through_shared_memory(row)
    module = converted(kernel)
    accesses = [op for op in module.walk() if isinstance(op, LoadOp | StoreOp)]
    assert len(accesses) == 2 * 8 * 2
    assert {is_unmasked(op) for op in accesses} == {known}
    x, y = numbers((8, 32), "f32"), np.zeros((8, 32), np.float32)
    run(kernel, x, y, 5)
    np.testing.assert_array_equal(y, x)


def test_what_lies_outside_of_shared_memory_is_masked_off() -> None:
    x, y = numbers((8, 32), "f32"), np.ones((8, 32), np.float32)
    run(through_shared_memory("%i"), x, y, 12)
    np.testing.assert_array_equal(y[:4], x[:4])
    np.testing.assert_array_equal(y[4:], 0)
