"""materialize-grid: the programs of a launch become the iterations of a parallel loop.

Why first: with the grid as a loop, "once per launch" is "before the loop", and "this
offset is a program's number times a constant" is something a pass can prove.

Before: ``gpu.func @k(args) kernel { %x = gpu.block_id x ... }``
After:  ``func.func @k(args, %gx, %gy, %gz) { scf.parallel (%x, %y, %z) {...} }``

Left alone: functions that are not kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IndexType, ModuleOp, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import is_memref
from xetl.dialects.kernel_attributes import STORED
from xetl.dialects.upstream import arith, func, gpu, scf
from xetl.ir.builder import Pass, move_to_end
from xetl_cpu.lowering.tiles import may_write, written_root

_AXES = ("x", "y", "z")


class MaterializeGridPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite every kernel of the module in place."""
        for container in [o for o in op.body.block.ops if isinstance(o, gpu.ModuleOp)]:
            for kernel in [
                o for o in container.body.block.ops if isinstance(o, gpu.FuncOp)
            ]:
                kernel.detach()
                Rewriter.insert_op(_as_function(kernel), InsertPoint.before(container))
            Rewriter.erase_op(container)


def _as_function(kernel: gpu.FuncOp) -> func.FuncOp:
    """The function that runs all programs of a launch."""
    old = kernel.body.block
    inputs = [arg.type for arg in old.args]
    index = IndexType()
    block = Block(arg_types=[*inputs, index, index, index])
    for arg, new in zip(old.args, block.args):
        new.name_hint = arg.name_hint
        arg.replace_all_uses_with(new)
    grid = block.args[len(inputs) :]
    for axis, size in zip(_AXES, grid):
        size.name_hint = f"grid_{axis}"
    body = Block(arg_types=[index, index, index])
    for axis, number in zip(_AXES, body.args):
        number.name_hint = f"program_{axis}"
    move_to_end(old.ops, body)
    _replace_ids(body, grid)
    last = body.last_op
    assert isinstance(last, gpu.ReturnOp)
    Rewriter.replace_op(last, scf.ReduceOp())
    zero, one = arith.ConstantOp.index(0), arith.ConstantOp.index(1)
    loop = scf.ParallelOp([zero.result] * 3, list(grid), [one.result] * 3, Region(body))
    block.add_ops([zero, one, loop, func.ReturnOp()])
    function = func.FuncOp(
        kernel.sym_name.data,
        FunctionType.from_lists([*inputs, index, index, index], []),
        Region(block),
    )
    function.attributes.update(
        {k: v for k, v in kernel.attributes.items() if k.startswith("xetile.")}
    )
    function.location = kernel.location
    function.attributes[STORED] = DenseArrayBase.from_list(i64, _stored(function))
    return function


def _stored(function: func.FuncOp) -> list[int]:
    """Indices of the array arguments that some program may write."""
    roots = [written_root(op) for op in function.walk() if may_write(op)]
    return [
        arg.index
        for arg in function.body.block.args
        if is_memref(arg.type) and any(root is None or root is arg for root in roots)
    ]


def _replace_ids(body: Block, grid: Sequence[SSAValue]) -> None:
    """Block ids are the loop's counters, grid sizes the function's arguments."""
    for op in list(body.walk()):
        source = _source(op, body, grid)
        if source is not None:
            Rewriter.replace_op(op, [], [source])


def _source(op: Operation, body: Block, grid: Sequence[SSAValue]) -> SSAValue | None:
    if isinstance(op, gpu.BlockIdOp):
        return body.args[op.axis]
    if isinstance(op, gpu.GridDimOp):
        return grid[op.axis]
    return None
