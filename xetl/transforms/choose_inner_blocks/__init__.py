"""Cut tiles and values into the blocks that one instruction works on.

*What*: give `inner_blocks` to every tile of rank 2 that is loaded, stored or
prefetched, and rank 4 to the operands of products and the values between.
*Why*: a GPU moves and multiplies blocks of a few sizes (`xetl/devices.py`). This pass
chooses all sizes, from the uses backwards, so that data is rearranged as little as
possible: `tile_pack` and `tile_unpack` are added only where two sizes meet.
*Left alone*: scattered tiles; functions at workgroup level; operations that no block
fits, which get the attribute `xetile.unblocked` and a remark.

before: %v = xetile.load_tile %t : tile<32x32xf16> -> vector<32x32xf16>
        %c = xetile.tile_mma %v, ...
after:  %v = xetile.load_tile %t : tile<32x32xf16, inner_blocks = [8, 16]>
                                   -> vector<4x2x8x16xf16>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import Slice, count_blocks, is_matrix
from xetl.devices import DEVICES, Block, Device, find_device
from xetl.dialects import xetile
from xetl.dialects.base import around, dense_i64, operations_in, vector_type
from xetl.dialects.kernel_attributes import LEVEL, WORKGROUP
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith, func, gpu
from xetl.dialects.xetile.verifiers import packed_shape, transposed_axes
from xetl.ir.builder import Builder, Pass
from xetl.transforms.choose_inner_blocks import block_constraints
from xetl.transforms.choose_inner_blocks.plan import (
    Definition,
    Plan,
    TilePlan,
    make_plan,
    types_to_unblock,
)
from xetl.transforms.diagnostics import remark
from xetl.transforms.stages import XETILE
from xetl.transforms.unblock_values import unblock, unblocked_tile


@dataclass(frozen=True)
class ChooseInnerBlocksPass(Pass):
    device: str = "pvc"

    def rewrite(self, op: ModuleOp) -> None:
        device = find_device(self.device)
        for function in operations_in(op, func.FuncOp, gpu.FuncOp):
            if function.attributes.get(LEVEL) != StringAttr(WORKGROUP):
                _choose(function, device)
        op.attributes[DEVICE] = StringAttr(device.name)


def _choose(function: Operation, device: Device) -> None:
    # Blocks of values that the user wrote do not change the result, so this pass may
    # choose others. Blocks of tiles stay if the device can move them.
    dropped = types_to_unblock(function.walk(), device)
    unblock(function, lambda each: unblocked_tile(each) if each in dropped else each)
    copies = [
        _split(op) for op in list(function.walk()) if block_constraints.is_uniform(op)
    ]
    carry_out(make_plan(function, device))
    # Merge the copies that got the same type.
    for group in copies:
        kept: dict[object, Operation] = {}
        for op in group:
            first = kept.setdefault(op.results[0].type, op)
            if first is not op:
                Rewriter.replace_op(op, [], [first.results[0]])


def _split(op: Operation) -> list[Operation]:
    """Give each use of the result an operation of its own."""
    copies = [op]
    for use in list(op.results[0].uses)[1:]:
        new = Builder.after(op).add(op.clone())
        use.operation.operands[use.index] = new.results[0]
        copies.append(new)
    return copies


def carry_out(plan: Plan) -> None:
    """Change a function as planned."""
    for op, reason in plan.unblocked.items():
        op.attributes[UNBLOCKED] = StringAttr(reason)
        remark(op, "blocks", f"left whole: {reason}")
    give_each_access_its_tile(plan.tiles)
    for op in plan.ops:
        for index, wanted in enumerate(plan.forms[op].operands):
            value = op.operands[index]
            if is_matrix(value.type) and plan.chosen(value) != wanted:
                build, have = Builder.before(op), plan.chosen(value)
                op.operands[index] = _converted(build, value, have, wanted)
    for definition in plan.definitions():
        _convert_definition(definition, plan)
    for op in plan.ops:
        _adapt(op, plan.forms[op])
    # Types change last: until then each value has its plain type.
    for definition in plan.definitions():
        if definition.block is not None:
            flat = vector_type(definition.value)
            shape = packed_shape(flat.get_shape(), definition.block)
            new = VectorType(flat.element_type, shape)
            Rewriter.replace_value_with_new_type(definition.value, new)
    for tile, block in plan.tiles.of_tile.items():
        _retype_tile(tile, block)


def _convert_definition(definition: Definition, plan: Plan) -> None:
    """Convert a definition to the blocks that its readers share."""
    value, shared = definition.value, plan.chosen(definition.value)
    if shared == definition.block or not value.uses:
        return
    readers = list(value.uses)
    new = _converted(Builder.after(value), value, definition.block, shared)
    for use in readers:
        use.operation.operands[use.index] = new


def _converted(
    build: Builder, value: SSAValue, have: Block | None, want: Block | None
) -> SSAValue:
    """Return a value, whose type is still that of a matrix, in other blocks."""
    if have is not None:
        properties = {"inner_blocks": dense_i64(have)}
        unpack = xetile.TileUnpackOp.create(
            operands=[value], result_types=[value.type], properties=properties
        )
        value = build.insert(unpack)
    return value if want is None else build.insert(xetile.TilePackOp(value, want))


def _adapt(op: Operation, form: block_constraints.Form) -> None:
    """Change the attributes of an operation that depend on the shapes of its values."""
    block = form.results[0] if form.results else None
    if block is None:
        return
    if isinstance(op, xetile.TileReduceOp):
        op.reduction_dims = _of_blocks(op.dims)
    elif isinstance(op, xetile.TileBroadcastOp):
        op.broadcast_dims = _of_blocks(op.dims)
    elif isinstance(op, xetile.TileTransposeOp):
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
    """Return the two dimensions of a blocked value for each dimension of a matrix."""
    return dense_i64([*dims, *(dim + 2 for dim in dims)])


_Copies = dict[tuple[SSAValue, Block | None], SSAValue]


def give_each_access_its_tile(plan: TilePlan) -> None:
    """Copy the tile for each access with other blocks than the tile has."""
    copies = _Copies()
    for op, block in plan.of_access.items():
        for index, value in enumerate(op.operands):
            if isinstance(value.type, xetile.TileType) and plan.of_tile[value] != block:
                op.operands[index] = _copy(value, block, copies)


def _copy(tile: SSAValue, block: Block | None, copies: _Copies) -> SSAValue:
    """Return a copy of the tile in other blocks; no loop carries the tile."""
    known = copies.get((tile, block))
    if known is not None:
        return known
    op = tile.owner
    assert isinstance(op, xetile.InitTileOp | xetile.UpdateTileOffsetOp)
    new = Builder.after(op).add(op.clone())
    if isinstance(op, xetile.UpdateTileOffsetOp):
        new.operands[0] = _copy(op.tile, block, copies)
    copies[tile, block] = _retype_tile(new.result, block)
    return copies[tile, block]


def _retype_tile(tile: SSAValue, block: Block | None) -> SSAValue:
    old = xetile.tile_type(tile)
    new = old.replace(inner_blocks=block or ())
    return tile if new == old else Rewriter.replace_value_with_new_type(tile, new)


DEVICE = "xetile.device"
"""An attribute of the module: the device that the blocks were chosen for."""
UNBLOCKED = "xetile.unblocked"
"""An attribute of an operation that should work in blocks and does not: the reason."""


def works_in_legal_blocks(op: Operation) -> str | None:
    """Return why an access or a product works in no blocks of the device, or None."""
    if UNBLOCKED in op.attributes:
        return None
    if isinstance(op, xetile.TileMmaOp):
        rank = vector_type(op.a).get_num_dims()
        return None if rank == 4 else "`xetile.tile_mma` works on plain values"
    if not block_constraints.is_block_access(op):
        return None
    type_, device = xetile.tile_type(block_constraints.tile_of(op)), _device_of(op)
    blocks = type_.inner_blocks
    if blocks is None:
        return f"`{op.name}` has a tile without inner_blocks"
    if device is None:
        return f"`{op.name}` has blocks, but the module has no `{DEVICE}`"
    if blocks in block_constraints.legal_blocks(op, device):
        return None
    return f"`{op.name}` has blocks {list(blocks)}, which {device.name} cannot move"


def _device_of(op: Operation) -> Device | None:
    for each in around(op, Operation):
        name = each.attributes.get(DEVICE)
        if isinstance(name, StringAttr):
            return DEVICES.get(name.data)
    return None


BLOCKED = XETILE.with_rule("xetile-blocked", works_in_legal_blocks)
