"""check-blocks: each block message first checks what hardware asks of its surface.

*What*: an assertion before each `simt.block_load`, `block_store` and `block_prefetch`.
*Why*: an emulated message takes any surface; a GPU would hang or return garbage. With
`XETL_STRICT` a wrong one is an error with the kernel, the line and the numbers.
*Left alone*: blocks that lanes move, which take any surface.
Source: the surface rules of SPV_INTEL_2d_block_io as `xetl_xegpu.limits` has them.

before: %v = simt.block_load %base, %width, %height, %pitch, %x, %y
after:  simt.assert %legal "a block message ..." %base, %width, %height, %pitch, %x, %y
        %v = simt.block_load %base, %width, %height, %pitch, %x, %y
"""

from __future__ import annotations

from functools import reduce

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.upstream import arith
from xetl.dialects.walk import operations_in
from xetl.ir.builder import Builder
from xetl_xegpu import simt
from xetl_xegpu.limits import (
    BASE_ALIGNMENT,
    LEAST_PITCH,
    LEAST_WIDTH,
    LIMIT,
    PITCH_STEP,
    WIDTH_STEP,
)
from xetl_xegpu.simt.block_ops import BlockOp

_TEXT = (
    "no GPU takes this block message ({shape}): base {{}}, width {{}} and pitch {{}} "
    "bytes, {{}} rows, at column {{}} and row {{}}"
)
_MOST = 1 << 31


class CheckBlocksPass(ModulePass):
    """See the module docstring."""

    name = "check-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        for block in operations_in(op, BlockOp):
            if block.by_lanes is None:
                _check(block)


def _check(block: BlockOp) -> None:
    b = Builder.before(block)
    base, width, height, pitch, x, y = map(SSAValue.get, block.surface[:-1])
    bytes_ = block.shape.bits // 8

    def multiple(value: SSAValue, step: int) -> SSAValue:
        rest = b.insert(arith.AndiOp(value, b.constant(step - 1, i64)))
        return b.insert(arith.CmpiOp("eq", rest, b.constant(0, i64)))

    def at_least(value: SSAValue, least: SSAValue | int) -> SSAValue:
        least = b.constant(least, i64) if isinstance(least, int) else least
        return b.insert(arith.CmpiOp("sge", value, least))

    def at_most(value: SSAValue, most: int) -> SSAValue:
        return b.insert(arith.CmpiOp("sle", value, b.constant(most, i64)))

    column = b.insert(arith.MuliOp(x, b.constant(bytes_, i64)))
    holds = [
        multiple(base, BASE_ALIGNMENT),
        multiple(width, max(WIDTH_STEP, bytes_)),
        multiple(pitch, PITCH_STEP),
        multiple(column, WIDTH_STEP),
        at_least(width, LEAST_WIDTH),
        at_least(height, 1),
        at_least(pitch, LEAST_PITCH),
        at_least(pitch, width),
        *(at_most(each, LIMIT) for each in (width, height, pitch)),
        *(at_least(each, -_MOST) for each in (x, y)),
        *(at_most(each, _MOST - 1) for each in (x, y)),
    ]
    legal = reduce(lambda one, other: b.insert(arith.AndiOp(one, other)), holds)
    values = [base, width, pitch, height, x, y]
    template = _TEXT.format(shape=block.shape)
    b.add(simt.AssertOp(legal, values, template=template, shapes=[()] * len(values)))
