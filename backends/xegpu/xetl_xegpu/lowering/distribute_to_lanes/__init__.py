"""Rewrite the code of a subgroup as the code of one of its lanes.

*What*: a fragment becomes the part of it that a lane holds, operations of XeGPU become
those of `simt`, and a kernel of subgroups becomes one of lanes.
*Why*: SPIR-V is the code of one lane; 16 lanes run one instruction.
*How*: one walk in source order, with a rule for each operation. The type of a value
alone determines the part that a lane holds (`state.py`), so producers and users always
agree. Shuffles are only needed for operations across lanes: column reductions,
transposes, the broadcast of a column, operands of a dpas that were computed and not
loaded.

before: %v = xegpu.load_nd %t[%y, %x] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
        %e = math.exp %v : vector<8x16xf32>
after:  %p = simt.block_load %base, %width, %height, %pitch, %x, %y
                 {bits = 32, rows = 8, columns = 16} : vector<8xi32>
        %v = arith.bitcast %p : vector<8xi32> to vector<8xf32>
        %e = math.exp %v : vector<8xf32>

*Refused*, with the line: values without a distribution over the lanes, descriptors that
loops carry, named barriers of some subgroups if they are emulated.
Source: docs/design/0005-xegpu.md, "Fragments" and "Stage `lanes`".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from xetl.devices import Device, find_device
from xetl.dialects.base import Index, ints_of, is_integer_attr, is_memref, memref_type
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.memref_layout import memory_space_of, strides_of
from xetl.dialects.upstream import arith, gpu, memref, scf, vector
from xetl.dialects.upstream import xegpu as hints
from xetl.ir.builder import Pass
from xetl.ir.conversion import convert_for, convert_if, convert_while
from xetl.transforms.diagnostics import refusal
from xetl_xegpu import dialect as xegpu
from xetl_xegpu import simt
from xetl_xegpu.dialect.stage import SUBGROUP_SIZE

from . import accesses, arithmetic, memrefs, named_barriers, shuffles
from .state import LANES, Lanes, Memory

_Rule = Callable[[Lanes, Any], object]


def _number(make: Callable[[Any], Operation]) -> _Rule:
    """Return the rule of an id or a size: the operation of `simt`, cast to index."""

    def hold(lanes: Lanes, op: Operation) -> None:
        number = lanes.insert(make(op))
        lanes.hold(
            op.results[0], lanes.insert(arith.IndexCastOp(number, builtin.IndexType()))
        )

    return hold


def _held(find: Callable[[Lanes, Any], Sequence[SSAValue] | None]) -> _Rule:
    """Return the rule of an operation whose result has the pieces that are found."""

    def hold(lanes: Lanes, op: Operation) -> None:
        pieces = find(lanes, op)
        if pieces is None:
            raise lanes.refuse_value(op.results[0])
        if pieces:
            lanes.hold(op.results[0], *pieces)

    return hold


def _plain(make: type[Operation]) -> _Rule:
    """Return the rule of an operation without operands, the same for all lanes."""
    return lambda lanes, _: lanes.add(make())


def fence(lanes: Lanes, op: xegpu.FenceOp) -> None:
    """Lower a fence with its scope and its memory."""
    scope = "device" if op.fence_scope.word == "gpu" else op.fence_scope.word
    memory = "local" if op.memory_kind.word == "slm" else "global"
    lanes.add(simt.FenceOp(scope=scope, memory=memory))


def nothing(lanes: Lanes, op: Operation) -> None:
    """Drop a hint or a declaration, or a terminator that `xetl.ir.conversion` adds."""


# Texts ------------------------------------------------------------------------------


def record(lanes: Lanes, op: xegpu.PrintOp | xegpu.AssertOp) -> None:
    """Lower a record to the pieces of a lane; a condition is the same in all lanes."""
    values = [piece for value in op.arguments for piece in lanes.pieces(value)]
    if isinstance(op, xegpu.PrintOp):
        lanes.add(simt.PrintOp(values, properties=op.properties))
        return
    condition = lanes.one(op.condition)
    lanes.add(simt.AssertOp(condition, values, properties=op.properties))


@dataclass(frozen=True)
class DistributeToLanesPass(Pass):
    device: str = "pvc"

    def rewrite(self, op: builtin.ModuleOp) -> None:
        device = find_device(self.device)
        for module in [o for o in op.ops if isinstance(o, gpu.ModuleOp)]:
            for kernel in module.body.block.ops:
                if isinstance(kernel, gpu.FuncOp) and kernel.is_kernel:
                    made = _lower_kernel(kernel, device)
                    op.body.block.insert_op_before(made, module)
            Rewriter.erase_op(module, safe_erase=False)


def _lower_block(lanes: Lanes, block: Block) -> None:
    """Lower the operations of a block in order."""
    for op in block.ops:
        lanes.location, rule = op.location, _RULES.get(type(op))
        if rule is None and op.name.startswith(("arith.", "math.")):
            rule = arithmetic.compute_apart
        if rule is None:
            help_ = "docs/design/0005-xegpu.md lists what may stand at stage `xegpu`"
            raise refusal(op, f"`{op.name}` has no form for lanes", help_)
        rule(lanes, op)


_CONTROL_FLOW: dict[type[Operation], _Rule] = {
    scf.ForOp: convert_for,
    scf.IfOp: convert_if,
    scf.WhileOp: convert_while,
    scf.YieldOp: nothing,
    scf.ConditionOp: nothing,
}
_VALUES: dict[type[Operation], _Rule] = {
    arith.ConstantOp: arithmetic.constant,
    arith.SelectOp: arithmetic.select,
    arith.ExtfOp: arithmetic.cast_float,
    arith.TruncfOp: arithmetic.cast_float,
    arith.BitcastOp: arithmetic.bitcast,
    vector.ExtractOp: _held(shuffles.extract),
    vector.InsertOp: _held(shuffles.insert),
    vector.ExtractStridedSliceOp: _held(shuffles.extract_slice),
    vector.InsertStridedSliceOp: _held(shuffles.insert_slice),
    vector.BroadcastOp: _held(shuffles.broadcast),
    vector.ShapeCastOp: _held(shuffles.shape_cast),
    vector.FromElementsOp: _held(shuffles.from_elements),
    vector.ShuffleOp: _held(shuffles.shuffle),
    vector.BitcastOp: _held(shuffles.bitcast),
    vector.StepOp: _held(shuffles.step),
    vector.TransposeOp: _held(shuffles.transpose),
    vector.MultiReductionOp: arithmetic.multi_reduction,
    xegpu.DpasOp: arithmetic.dpas,
    vector.ContractOp: arithmetic.contract,
}
_MEMORY: dict[type[Operation], _Rule] = {
    memref.AllocOp: memrefs.allocate,
    memref.ExtractStridedMetadataOp: memrefs.metadata,
    memref.ViewOp: memrefs.view,
    memref.ExtractAlignedPointerAsIndexOp: memrefs.pointer,
    xegpu.CreateNdTdescOp: accesses.create_nd_tdesc,
    xegpu.LoadNdOp: accesses.load_nd,
    xegpu.StoreNdOp: accesses.store_nd,
    xegpu.PrefetchNdOp: accesses.prefetch_nd,
    xegpu.CreateTdescOp: accesses.create_tdesc,
    xegpu.LoadOp: accesses.load,
    xegpu.StoreOp: accesses.store,
    xegpu.PrefetchOp: nothing,  # only prefetches of blocks pay
    xegpu.AtomicRmwOp: accesses.atomic,
    xegpu.CreateMemDescOp: accesses.create_mem_desc,
    xegpu.LoadMatrixOp: accesses.load_matrix,
    xegpu.StoreMatrixOp: accesses.store_matrix,
}
_PROGRAM: dict[type[Operation], _Rule] = {
    gpu.BlockIdOp: _number(lambda op: simt.GroupIdOp(dimension=op.dimension.word)),
    gpu.GridDimOp: _number(lambda op: simt.NumGroupsOp(dimension=op.dimension.word)),
    gpu.SubgroupIdOp: _number(lambda _: simt.SubgroupIdOp()),
    gpu.BarrierOp: _plain(simt.BarrierOp),
    gpu.ReturnOp: _plain(simt.ReturnOp),
    hints.AllocNbarrierOp: nothing,
    hints.InitNbarrierOp: named_barriers.init,
    hints.NbarrierArriveOp: named_barriers.arrive,
    hints.NbarrierWaitOp: named_barriers.wait,
    xegpu.FenceOp: fence,
    xegpu.PrintOp: record,
    xegpu.AssertOp: record,
}
_RULES = {**_CONTROL_FLOW, **_VALUES, **_MEMORY, **_PROGRAM}


def _lower_kernel(kernel: gpu.FuncOp, device: Device) -> simt.FuncOp:
    """Return the kernel as the code of one lane."""
    subgroups = subgroups_of(kernel)
    entry = Block()
    lanes = Lanes(entry, kernel, subgroups, device, _lower_block)
    for argument in kernel.body.block.args:
        _argument(lanes, argument)
    entry.insert_arg(builtin.i64, len(entry.args))  # the status words
    lanes.convert(kernel.body.block)
    lanes.finish()
    made = simt.FuncOp(
        regions=[Region(entry)],
        sym_name=kernel.sym_name.data,
        work_group=(subgroups * LANES, 1, 1),
        subgroup_size=LANES,
        slm_bytes=lanes.local_bytes,
        location=kernel.location,
    )
    said = (gpu.KERNEL, SUBGROUP_SIZE)
    made.attributes |= {k: v for k, v in kernel.attributes.items() if k not in said}
    return made


def subgroups_of(kernel: gpu.FuncOp) -> int:
    """Return how many subgroups a workgroup has."""
    size = kernel.attributes.get(SUBGROUP_SIZE)
    lanes = size.value.data if is_integer_attr(size) else LANES
    x, *others = ints_of(kernel.known_block_size) or (1,)
    if lanes != LANES or prod(others) != 1 or x % lanes:
        raise refusal(
            kernel,
            "a workgroup is whole subgroups of 16 lanes along x",
            "say `known_block_size = array<i32: n, 1, 1>`, n a multiple of 16",
        )
    return x // LANES


def _argument(lanes: Lanes, argument: SSAValue) -> None:
    """Lower an argument: a number stays, an array becomes several numbers.

    These are its address, its dynamic sizes and its dynamic strides. The address is
    that of element 0, whatever offset the type has.
    """
    if not is_memref(argument.type):
        lanes.hold(argument, _next(lanes, argument.type))
        return
    type_ = memref_type(argument)
    layout, strides = type_.layout, strides_of(type_)
    if memory_space_of(type_) == SHARED or strides is None:
        problem = f"the host cannot pass an argument of type {type_}"
        raise refusal(lanes.source, problem, "take global memory that has strides")
    address, index = _next(lanes, builtin.i64), builtin.IndexType()
    sizes: list[Index] = [
        _next(lanes, index) if size == builtin.DYNAMIC_INDEX else size
        for size in type_.get_shape()
    ]
    if isinstance(layout, builtin.StridedLayoutAttr):
        steps = [_next(lanes, index) if s is None else s for s in strides]
    else:
        steps = lanes.row_major(sizes)
    element = type_.element_type
    lanes.memories[argument] = Memory(address, tuple(sizes), tuple(steps), element)


def _next(lanes: Lanes, type_: Attribute) -> SSAValue:
    """Add an argument to the lane's function and return it as ``type_``.

    Integers are passed with 64 bits.
    """
    is_integer = isinstance(type_, builtin.IndexType | builtin.IntegerType)
    passed = builtin.i64 if is_integer else type_
    new = lanes.entry.insert_arg(passed, len(lanes.entry.args))
    if passed == type_:
        return new
    if isinstance(type_, builtin.IndexType):
        return lanes.insert(arith.IndexCastOp(new, type_))
    return lanes.insert(arith.TrunciOp(new, type_))
