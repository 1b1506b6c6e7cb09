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
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    ModuleOp,
    StringAttr,
    VectorType,
    f32,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import (
    element_type,
    ints_of,
    operations_in,
    vector_type,
    with_element,
)
from xetl.dialects.kernel_attributes import LEVEL, WORKGROUP
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import identity_of, sums_run_in
from xetl.dialects.upstream import arith, func, gpu, memref, vector
from xetl.ir.builder import Builder, Pass
from xetl.transforms.convert_xetile_to_vector import descriptors
from xetl.transforms.convert_xetile_to_vector.descriptors import (
    Descriptors,
    Parts,
    replace_tiles,
)
from xetl.transforms.diagnostics import remark
from xetl.transforms.unblock_values import UnblockValuesPass

# Accesses -----------------------------------------------------------------------------


AnyAccess = (
    xetile.LoadTileOp
    | xetile.StoreTileOp
    | xetile.PrefetchTileOp
    | xetile.LoadGatherOp
    | xetile.StoreScatterOp
)


def replace_access(op: Operation, tiles: Descriptors, build: Builder) -> bool:
    """Replace an access of a tile; False if ``op`` is none, or of a tile that stays.

    The caller erases ``op``. A prefetch changes nothing and gets no successor.
    """
    if not isinstance(op, AnyAccess) or not tiles.knows(op.tile):
        return False
    base, start = tiles.base(op.tile), tiles.starts[op.tile]
    if isinstance(op, xetile.LoadTileOp):
        _give(op.result, _read(op, base, start, build))
    elif isinstance(op, xetile.StoreTileOp):
        build.add(vector.TransferWriteOp(op.value, base, start))
    elif isinstance(op, xetile.LoadGatherOp):
        _give(op.result, _gather(op, base, start[0], build))
    elif isinstance(op, xetile.StoreScatterOp):
        _scatter(op, base, start[0], build)
    return True


def _give(old: SSAValue, new: SSAValue) -> None:
    new.name_hint = old.name_hint
    old.replace_all_uses_with(new)


def _read(
    op: xetile.LoadTileOp, base: SSAValue, start: Parts, build: Builder
) -> SSAValue:
    type_ = op.result.type
    padding = _padding(op.padding, element_type(type_), build)
    return build.insert(vector.TransferReadOp(base, start, padding, type_))


def _padding(padding: Attribute | None, type_: Attribute, build: Builder) -> SSAValue:
    number = 0 if padding is None else splat_value(padding)
    assert number is not None
    return build.constant(number, type_)


# Scattered tiles --------------------------------------------------------------------


def _gather(
    op: xetile.LoadGatherOp, base: SSAValue, indices: SSAValue, build: Builder
) -> SSAValue:
    row = _row(vector_type(op.result))
    at, mask = _flat(build, indices), _inside(build, base, indices, op.mask)
    other = _padding(op.padding, row, build)
    zero = build.index(0)
    found = vector.GatherOp(base, [zero], at, mask, other)
    gathered = build.insert(found)
    return build.insert(vector.ShapeCastOp(gathered, op.result.type))


def _scatter(
    op: xetile.StoreScatterOp, base: SSAValue, indices: SSAValue, build: Builder
) -> None:
    at, mask = _flat(build, indices), _inside(build, base, indices, op.mask)
    value = _flat(build, op.value)
    build.add(vector.ScatterOp(base, [build.index(0)], at, mask, value))


def _row(type_: VectorType[Attribute]) -> VectorType[Attribute]:
    """All elements in a row: only such vectors are scattered."""
    return VectorType(type_.element_type, [prod(type_.get_shape())])


def _flat(build: Builder, value: SSAValue) -> SSAValue:
    type_ = vector_type(value)
    return build.insert(vector.ShapeCastOp(value, _row(type_)))


def _inside(
    build: Builder, base: SSAValue, indices: SSAValue, mask: SSAValue
) -> SSAValue:
    """The mask, less what lies outside of the base: there is nothing to access."""
    shape = vector_type(indices).get_shape()
    type_ = VectorType(IndexType(), shape)
    size = build.insert(memref.DimOp(base, build.index(0)))
    limit = build.insert(vector.BroadcastOp(size, type_))
    # As a number without sign, one below 0 is larger than all sizes.
    below = build.insert(arith.CmpiOp("ult", indices, limit))
    assert vector_type(mask) == VectorType(i1, shape)
    return _flat(build, build.insert(arith.AndiOp(below, mask)))


# Values -------------------------------------------------------------------------------


_MAPS = ((0, 2), (2, 1), (0, 1))
_ITERATORS = ("parallel", "parallel", "reduction")


def problem_with(op: Operation) -> str | None:
    """Why `vector` cannot say what ``op`` does; None if it can."""
    if isinstance(op, xetile.TileMmaOp) and vector_type(op.a).get_num_dims() != 2:
        return "its operands are looked at in blocks"
    if isinstance(op, xetile.TileMmaOp) and op.precision is not None:
        return f"`vector.contract` has no precision `{op.precision.data}`"
    if isinstance(op, xetile.TileReduceOp) and op.reduction_size is not None:
        return None if len(op.dims) == 1 else "it reduces groups in two dimensions"
    return None


def multiply(op: xetile.TileMmaOp, build: Builder) -> SSAValue:
    """A contraction in the type sums run in, rounded once."""
    result = op.result.type
    element = result.element_type
    wide = f32 if isinstance(element, Float16Type | BFloat16Type) else element
    type_ = VectorType(wide, result.shape)
    a, b = _sides(op, wide, build)
    acc = build.constant(0, type_) if op.c is None else build.widened(op.c, wide)
    product = vector.ContractOp(a, b, acc, _MAPS, _ITERATORS)
    return build.narrowed(build.insert(product), element)


def _sides(
    op: xetile.TileMmaOp, wide: Attribute, build: Builder
) -> tuple[SSAValue, SSAValue]:
    """Both sides; integers without sign in the type of the result."""
    flags = op.a_unsigned is not None, op.b_unsigned is not None
    if not any(flags) or vector_type(op.a).element_type == wide:
        return op.a, op.b
    sides: list[SSAValue] = []
    for side, unsigned in zip((op.a, op.b), flags):
        extend = arith.ExtuiOp if unsigned else arith.ExtsiOp
        sides.append(build.insert(extend(side, with_element(side.type, wide))))
    return sides[0], sides[1]


def transpose(op: xetile.TileTransposeOp, build: Builder) -> SSAValue:
    """Rows become columns."""
    return build.insert(vector.TransposeOp(op.source, ints_of(op.permutation)))


def pack(op: xetile.TilePackOp, build: Builder) -> SSAValue:
    """Rows and columns are split in two; the inner halves come last."""
    rows, columns, *block = op.result.type.get_shape()
    split = VectorType(op.result.type.element_type, [rows, block[0], columns, block[1]])
    parts = build.insert(vector.ShapeCastOp(op.source, split))
    return build.insert(vector.TransposeOp(parts, (0, 2, 1, 3)))


def unpack(op: xetile.TileUnpackOp, build: Builder) -> SSAValue:
    """Undo `pack`."""
    parts = build.insert(vector.TransposeOp(op.source, (0, 2, 1, 3)))
    return build.insert(vector.ShapeCastOp(parts, op.result.type))


def broadcast(op: xetile.TileBroadcastOp, build: Builder) -> SSAValue:
    """A dimension of size 1 is repeated."""
    return build.insert(vector.BroadcastOp(op.source, op.result.type))


def reduce(op: xetile.TileReduceOp, build: Builder) -> SSAValue:
    """A reduction from the identity; its dimension comes back with size 1."""
    kind, element = op.kind.data, vector_type(op.source).element_type
    wide = sums_run_in(kind, element)
    value, dims = build.widened(op.source, wide), op.dims
    if op.reduction_size is not None:
        value, dims = _in_groups(op, value, build)
    shape = vector_type(value).get_shape()
    kept = [extent for dim, extent in enumerate(shape) if dim not in dims]
    type_ = VectorType(wide, kept) if kept else wide
    start = build.constant(identity_of(kind, wide), type_)
    found = build.insert(vector.MultiReductionOp(value, start, kind, dims))
    full = VectorType(wide, op.result.type.shape)
    shaped = vector.ShapeCastOp if kept else vector.BroadcastOp
    return build.narrowed(build.insert(shaped(found, full)), element)


def _in_groups(
    op: xetile.TileReduceOp, value: SSAValue, build: Builder
) -> tuple[SSAValue, tuple[int, ...]]:
    """Neighbours that are combined get a dimension of their own."""
    assert op.reduction_size is not None
    size, (dim,) = op.reduction_size.value.data, op.dims
    shape = list(vector_type(value).get_shape())
    shape[dim : dim + 1] = [shape[dim] // size, size]
    type_ = VectorType(vector_type(value).element_type, shape)
    return build.insert(vector.ShapeCastOp(value, type_)), (dim + 1,)


_RULES: dict[type[Operation], Callable[[Any, Builder], SSAValue]] = {
    xetile.TileMmaOp: multiply,
    xetile.TileTransposeOp: transpose,
    xetile.TileBroadcastOp: broadcast,
    xetile.TileReduceOp: reduce,
    xetile.TilePackOp: pack,
    xetile.TileUnpackOp: unpack,
}


class ConvertXetileToVectorPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        UnblockValuesPass().rewrite(op)
        functions = operations_in(op, func.FuncOp, gpu.FuncOp)
        for function in functions:
            if function.attributes.get(LEVEL) != StringAttr(WORKGROUP):
                _convert(function)


def _convert(function: Operation) -> None:
    for op in list(function.walk()):
        rule = _RULES.get(type(op))
        if rule is None or _stays(op, problem_with(op)):
            continue
        assert op.parent is not None
        new = rule(op, Builder.before(op))
        new.name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, [], [new])
    tiles = Descriptors(_replaceable(function))
    for region in function.regions:
        for block in region.blocks:
            replace_tiles(block.ops, tiles, replace_access)
    for op in reversed(tiles.dead):
        Rewriter.erase_op(op, safe_erase=False)


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
