"""Maps of operands are those that the documents derive from the map of a result."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tests.seeds.examples import HERE
from xetl.dialects.text import functions_of, read_module
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TileConvLayoutOp,
    TileMmaOp,
    TileReduceOp,
    TileTransposeOp,
)
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass
from xetl.transforms.propagate_wg_maps.map_attributes import map_of


def mapped(file: str, kernel: str) -> ModuleOp:
    """The kernel of a file, every vector with a map."""
    module = read_module((HERE / f"{file}.mlir").read_text("utf-8"))
    for function in functions_of(module):
        if function.sym_name.data != kernel:
            function.detach()
            function.erase()
    PropagateWgMapsPass().apply(Context(), module)
    module.verify()
    return module


def found(module: ModuleOp, kind: type[Operation]) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, kind)]


def data(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """sg_layout and sg_data of a value's map."""
    layout = map_of(value)
    assert layout is not None
    return layout.sg_layout, layout.sg_data


DERIVED = [
    ("workgroup_operations", "reduce", TileReduceOp, [((32, 1), (8, 128))]),
    ("workgroup_operations", "broadcast", TileBroadcastOp, [((16, 1), (16, 1))]),
    ("workgroup_operations", "transpose", TileTransposeOp, [((8, 4), (64, 32))]),
]
OF_PRODUCTS = [((8, 4), (32, 32)), ((8, 4), (32, 64)), ((8, 4), (32, 64))]
OF_TALL_PRODUCTS = [((8, 4), (64, 32)), ((8, 4), (32, 64)), ((8, 4), (64, 64))]
DERIVED += [
    ("workgroup_operations", "mma", TileMmaOp, OF_PRODUCTS),
    ("layouts", "dpas", TileMmaOp, OF_PRODUCTS),
    ("appendix_2_1", "test_gemm", TileMmaOp, OF_PRODUCTS),
    ("appendix_2_2", "test_gemm", TileMmaOp, OF_PRODUCTS),
    ("appendix_2_2", "test_gemm", TileTransposeOp, [((4, 8), (64, 32))]),
    ("appendix_2_2", "test_gemm", TileBroadcastOp, [((8, 4), (1, 64))]),
    ("appendix_2_2", "test_gemm", TileReduceOp, [((32, 1), (8, 256))]),
    ("appendix_2_4", "test_gemm", TileMmaOp, [((8, 8), (32, 32))] * 3),
    ("appendix_2_5", "test_gemm", TileMmaOp, OF_TALL_PRODUCTS),
]


@pytest.mark.parametrize(("file", "kernel", "kind", "maps"), DERIVED)
def test_operands_have_the_maps_of_the_document(
    file: str, kernel: str, kind: type[Operation], maps: list[Any]
) -> None:
    (op,) = found(mapped(file, kernel), kind)
    assert [data(operand) for operand in op.operands] == maps


@pytest.mark.parametrize(
    ("file", "kernel", "changes"),
    [
        ("workgroup_operations", "mma", 0),
        ("workgroup_operations", "reduce", 0),
        ("workgroup_operations", "broadcast", 0),
        ("workgroup_operations", "transpose", 0),
        ("workgroup_operations", "conv_layout", 1),
        ("workgroup_operations", "conv_layout_of_stated_source", 1),
        ("appendix_2_1", "test_gemm", 0),
        ("appendix_2_2", "test_gemm", 1),
        ("appendix_2_3", "across_subgroups", 0),
        ("appendix_2_3", "in_registers", 0),
        ("appendix_2_4", "test_gemm", 0),
        ("appendix_2_5", "test_gemm", 0),
    ],
)
def test_layouts_change_where_the_document_changes_them(
    file: str, kernel: str, changes: int
) -> None:
    """Stated maps agree with derived ones: nothing more is moved.

    The first mapping of 2.3 needs no shuffle either: the document counts ids along the
    rows on both sides of the transpose, here they count down the columns on one.
    """
    assert len(found(mapped(file, kernel), TileConvLayoutOp)) == changes


def test_conv_layout_takes_the_map_of_its_producer() -> None:
    for kernel in ("conv_layout", "conv_layout_of_stated_source"):
        (op,) = found(mapped("workgroup_operations", kernel), TileConvLayoutOp)
        assert data(op.source) == ((8, 4), (32, 64))
        assert data(op.result) == ((32, 1), (8, 256))
