"""Tiles become transfers of MLIR's `vector` dialect.

*What*: a tile becomes the numbers that say where it starts, also through loops; loads
and stores become transfers, products contractions, reductions, transposes and
broadcasts their counterparts, gathers and scatters masked ones.
*Why*: hardware without matrix instructions, and any compiler that knows `vector`, can
take it from there (XeTile RFC, "tile_mma": it "can be lowered to vector.contract").
*Left alone*, with a remark: tiles that may start before their matrix does or lie at an
address, atomics, scans, products of a precision; functions at workgroup level.

before: %t = xetile.init_tile %m[%i, %j] : memref<64x64xf32> -> tile<8x16xf32>
        %v = xetile.load_tile %t
after:  %v = vector.transfer_read %m[%i, %j], %zero : memref<64x64xf32>
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.kernel_attributes import LEVEL, WORKGROUP
from xetl.dialects.upstream import func, gpu
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TileMmaOp,
    TilePackOp,
    TileReduceOp,
    TileTransposeOp,
    TileUnpackOp,
)
from xetl.ir.builder import Builder
from xetl.transforms.convert_xetile_to_vector import computing, descriptors
from xetl.transforms.convert_xetile_to_vector.accesses import replace_access
from xetl.transforms.convert_xetile_to_vector.descriptors import (
    Descriptors,
    replace_tiles,
)
from xetl.transforms.remarks import remark
from xetl.transforms.unblock_values import UnblockValuesPass

_RULES: dict[type[Operation], Callable[[Any, Builder], SSAValue]] = {
    TileMmaOp: computing.multiply,
    TileTransposeOp: computing.transpose,
    TileBroadcastOp: computing.broadcast,
    TileReduceOp: computing.reduce,
    TilePackOp: computing.pack,
    TileUnpackOp: computing.unpack,
}


class ConvertXetileToVectorPass(ModulePass):
    """See the module docstring."""

    name = "convert-xetile-to-vector"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        UnblockValuesPass().apply(ctx, op)
        functions = [o for o in op.walk() if isinstance(o, func.FuncOp | gpu.FuncOp)]
        for function in functions:
            if function.attributes.get(LEVEL) != StringAttr(WORKGROUP):
                _convert(function)


def _convert(function: Operation) -> None:
    for op in list(function.walk()):
        rule = _RULES.get(type(op))
        if rule is None or _stays(op, computing.problem_with(op)):
            continue
        assert op.parent is not None
        new = rule(op, Builder.before(op))
        new.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(new)
        op.detach()
        op.erase()
    tiles = Descriptors(_replaceable(function))
    for region in function.regions:
        for block in region.blocks:
            replace_tiles(block, tiles, replace_access)


def _replaceable(function: Operation) -> dict[SSAValue, descriptors.Family]:
    """The tiles that transfers can say, with their descriptors."""
    ops = [op for region in function.regions for op in region.walk()]
    found: dict[SSAValue, descriptors.Family] = {}
    for family in descriptors.families(ops):
        maker = next((op for op in family.made_by() if op is not None), function)
        if not _stays(maker, descriptors.problem_with(family)):
            found |= dict.fromkeys(family.members, family)
    return found


def _stays(op: Operation, problem: str | None) -> bool:
    if problem is not None:
        remark(op, "vector", f"stays as it is: {problem}")
    return problem is not None
