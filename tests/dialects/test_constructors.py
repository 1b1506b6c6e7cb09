"""What constructors infer, and where locations come from."""

import pytest
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IndexType,
    IntAttr,
    MemRefType,
    StringAttr,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
)
from xdsl.ir import Block, Region

from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.verify import LocatedVerifyException, verify
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    TileAttr,
    TileMmaOp,
    TilePackOp,
    TileReduceOp,
    TileType,
    WgMapAttr,
    XeTile,
)

HERE = FileLineColLoc(StringAttr("k.py"), IntAttr(3), IntAttr(7))


def values(*types):
    return Block(arg_types=types).args


@pytest.mark.parametrize(
    ("element", "accumulator"),
    [(f16, f32), (bf16, f32), (f32, f32), (f64, f64), (i8, i32)],
)
def test_mma_accumulates_in_the_wide_type(element, accumulator) -> None:
    a, b = values(VectorType(element, [8, 4]), VectorType(element, [4, 16]))
    op = TileMmaOp(a, b)
    op.verify()
    assert op.result.type == VectorType(accumulator, [8, 16])


def test_mma_takes_the_type_of_its_addend() -> None:
    a, b, c = values(*[VectorType(f16, [8, 8])] * 3)
    assert TileMmaOp(a, b, c).result.type == c.type
    assert TileMmaOp(a, b, acc_type=f16).result.type == c.type


def test_blocked_mma() -> None:
    a, b = values(VectorType(f16, [8, 4, 8, 8]), VectorType(f16, [4, 8, 8, 16]))
    op = TileMmaOp(a, b)
    op.verify()
    assert op.result.type == VectorType(f32, [8, 8, 8, 16])


def test_load_gives_one_vector_a_length_and_blocks_of_rank_4() -> None:
    (m,) = values(MemRefType(f16, [64, 64]))
    several = TileType((32, 16), f16, TileAttr(array_length=2))
    load = LoadTileOp(InitTileOp(m, [0, 0], several))
    assert len(load.results) == 2
    blocked = TileType((64, 32), f16, TileAttr(inner_blocks=(16, 16)))
    load = LoadTileOp(InitTileOp(m, [0, 0], blocked))
    load.verify()
    assert load.result.type == VectorType(f16, [4, 2, 16, 16])


def test_reduce_pack_and_maps() -> None:
    (v,) = values(VectorType(f32, [64, 32]))
    assert TileReduceOp(v, "addf", [1]).result.type == VectorType(f32, [64, 1])
    assert TilePackOp(v, [16, 16]).result.type == VectorType(f32, [4, 2, 16, 16])
    wg_map = WgMapAttr((8, 4), (32, 64))
    assert (wg_map.sg_layout, wg_map.sg_data) == ((8, 4), (32, 64))
    op = TileReduceOp(v, "add", [1], attributes={"map": wg_map}, location=HERE)
    assert op.wg_map == wg_map
    assert op.location == HERE


def test_constants_and_comparisons() -> None:
    assert str(arith.ConstantOp.index(5).value) == "5 : index"
    assert str(arith.ConstantOp.of(255, i8).value) == "-1 : i8"
    one = arith.ConstantOp.of(1, VectorType(i1, [4]))
    assert "dense<true>" in str(one)
    (v,) = values(VectorType(f32, [2, 3]))
    assert arith.CmpfOp("olt", v, v).result.type == VectorType(i1, [2, 3])


def test_extract_of_all_and_of_some_dimensions() -> None:
    v, i = values(VectorType(f32, [4, 8]), IndexType())
    assert vector.ExtractOp(v, [i, 0]).result.type == f32
    assert vector.ExtractOp(v, [3]).result.type == VectorType(f32, [8])


def test_parsed_operations_know_their_line_and_column() -> None:
    text = "func.func @f(%a: i32) {\n  %ab = arith.addi %a,\n    %a : i32\n  return\n}"
    module = parse_module(text, "file.mlir")
    lines = {
        op.name: (op.location.line.data, op.location.column.data)
        for op in module.walk()
        if isinstance(op.location, FileLineColLoc)
    }
    # The name of the operation, as in MLIR, not its results.
    assert lines["arith.addi"] == (2, 9)
    assert lines["func.return"] == (4, 3)


def test_a_location_in_the_text_wins() -> None:
    module = parse_module('func.func private @f() loc("a.py":9:1)')
    (op,) = module.ops
    assert op.location == FileLineColLoc(StringAttr("a.py"), IntAttr(9), IntAttr(1))


def test_verify_names_the_operation_and_its_place() -> None:
    module = parse_module(
        "func.func @f(%a: vector<4xf32>) {\n"
        "  %b = vector.extract %a[4] : f32 from vector<4xf32>\n  return\n}",
        "bad.mlir",
    )
    with pytest.raises(
        LocatedVerifyException, match=r"bad\.mlir:2:8: `vector\.extract"
    ):
        verify(module)


def test_every_class_is_named_after_its_operation() -> None:
    context = make_context()
    for op in context.loaded_ops:
        if op.__module__.startswith("xetl"):
            parts = op.name.partition(".")[2].replace(".", "_").split("_")
            expected = "".join(part.capitalize() for part in parts) + "Op"
            assert op.__name__ == expected
    assert len(list(XeTile.operations)) == 21


def test_loops_infer_their_results() -> None:
    (i, f) = values(IndexType(), f32)
    block = Block(arg_types=[IndexType(), f32])
    block.add_op(scf.YieldOp(block.args[1]))
    loop = scf.ForOp(i, i, i, [f], Region(block), location=HERE)
    loop.verify()
    assert [r.type for r in loop.results] == [f32]
