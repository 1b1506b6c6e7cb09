"""Carrying out a plan: types change, and packs stand where two block sizes meet."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.devices import Block
from xetl.dialects.base import dense_i64, vector_type
from xetl.dialects.kinds_of_types import Vector
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TilePackOp,
    TileReduceOp,
    TileTransposeOp,
    TileUnpackOp,
)
from xetl.dialects.xetile.value_verifiers import packed_shape, transposed_axes
from xetl.transforms.blocks.axes import is_matrix
from xetl.transforms.blocks.forms import Form
from xetl.transforms.blocks.legality import UNBLOCKED
from xetl.transforms.blocks.plan import Definition, Plan
from xetl.transforms.blocks.retile import give_each_access_its_tile, retype_tiles
from xetl.transforms.blocks.slicing import Slice, count_blocks
from xetl.transforms.remarks import remark


def carry_out(plan: Plan) -> None:
    """Change a function as planned."""
    for op, reason in plan.unblocked.items():
        op.attributes[UNBLOCKED] = StringAttr(reason)
        remark(op, "blocks", f"left whole: {reason}")
    give_each_access_its_tile(plan.tiles)
    for op in plan.ops:
        _convert_operands(op, plan)
    for definition in plan.definitions():
        _convert_definition(definition, plan)
    for op in plan.ops:
        _adapt(op, plan.forms[op])
    # Types come last: until then each value has its plain one.
    for definition in plan.definitions():
        _retype(definition.value, definition.block)
    retype_tiles(plan.tiles)


def _convert_operands(op: Operation, plan: Plan) -> None:
    point = InsertPoint.before(op)
    for index, wanted in enumerate(plan.forms[op].operands):
        value = op.operands[index]
        if is_matrix(value.type) and plan.chosen(value) != wanted:
            new = _converted(value, plan.chosen(value), wanted, point, op)
            op.operands[index] = new


def _convert_definition(definition: Definition, plan: Plan) -> None:
    """Bring what is defined to the blocks that its readers share."""
    value, shared = definition.value, plan.chosen(definition.value)
    if shared == definition.block or not value.uses:
        return
    readers = list(value.uses)
    owner = value.owner
    if isinstance(owner, Operation):
        point, at = InsertPoint.after(owner), owner
    else:
        point, at = InsertPoint.at_start(owner), plan.function
    new = _converted(value, definition.block, shared, point, at)
    for use in readers:
        use.operation.operands[use.index] = new


def _converted(
    value: SSAValue,
    have: Block | None,
    want: Block | None,
    point: InsertPoint,
    at: Operation,
) -> SSAValue:
    """The same value in other blocks.

    ``value`` still has the type of a matrix; it gets its blocks in the end.
    """
    flat = vector_type(value)
    ops: list[Operation] = []
    if have is not None:
        properties = {"inner_blocks": dense_i64(have)}
        unpack = TileUnpackOp.create(
            operands=[value], result_types=[flat], properties=properties
        )
        ops.append(unpack)
        value = unpack.result
    if want is not None:
        ops.append(TilePackOp(value, want))
    for op in ops:
        op.location = at.location
    Rewriter.insert_op(ops, point)
    return ops[-1].results[0]


def _retype(value: SSAValue, block: Block | None) -> None:
    if block is None:
        return
    new = _in_blocks(vector_type(value), block)
    Rewriter.replace_value_with_new_type(value, new)


def _in_blocks(flat: Vector, block: Block) -> Vector:
    return VectorType(flat.element_type, packed_shape(flat.get_shape(), block))


def _adapt(op: Operation, form: Form) -> None:
    """Change what an operation says of the shapes it works on."""
    block = form.results[0] if form.results else None
    if block is None:
        return
    if isinstance(op, TileReduceOp):
        op.reduction_dims = _of_blocks(op.dims)
    elif isinstance(op, TileBroadcastOp):
        op.broadcast_dims = _of_blocks(op.dims)
    elif isinstance(op, TileTransposeOp):
        op.permutation = dense_i64(transposed_axes(4))
    elif isinstance(op, Slice):
        count_blocks(op, block)
    elif isinstance(op, arith.ConstantOp):
        number, flat = splat_value(op.value), vector_type(op.result)
        assert number is not None
        shape = packed_shape(flat.get_shape(), block)
        op.properties["value"] = make_splat(
            number, VectorType(flat.element_type, shape)
        )


def _of_blocks(dims: Sequence[int]) -> DenseArrayBase:
    """A dimension of a matrix is one of its blocks, and one inside of them."""
    return dense_i64([*dims, *(dim + 2 for dim in dims)])
