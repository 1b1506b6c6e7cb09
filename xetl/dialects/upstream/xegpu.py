"""The few `xegpu` operations that XeTile modules from text contain.

Subgroups of a workgroup wait for each other at named barriers.  A fence orders accesses
to a memory, for the threads of a scope.  A compile hint does nothing at run time.  All
other operations of `xegpu` belong to its backend.  Source: MLIR 22, `xegpu` dialect.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl import ir
from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.irdl import irdl_attr_definition, operand_def, prop_def, result_def

from ..attributes import WordAttr
from ..operation import XetlOp, operations_of
from ..traits import READS_AND_WRITES


@irdl_attr_definition(init=False)
class MemorySpaceAttr(WordAttr, ir.SpacedOpaqueSyntaxAttribute):
    """``#xegpu<memory_space slm>``: global memory, or shared memory of a workgroup."""

    name = "xegpu.memory_space"
    WORDS: ClassVar[tuple[str, ...]] = ("global", "slm")


@irdl_attr_definition(init=False)
class FenceScopeAttr(WordAttr, ir.SpacedOpaqueSyntaxAttribute):
    """``#xegpu<fence_scope gpu>``: which threads see the writes before a fence.

    ``system``, our addition, means the host and other devices, too.
    """

    name = "xegpu.fence_scope"
    WORDS: ClassVar[tuple[str, ...]] = ("workgroup", "gpu", "system")


@irdl_attr_definition
class NbarrierType(ir.ParametrizedAttribute, ir.TypeAttribute):
    """``!xegpu.nbarrier``."""

    name = "xegpu.nbarrier"


class _EffectOp(XetlOp, traits=READS_AND_WRITES):
    """An operation that does not access memory, but must not be removed or moved."""


class AllocNbarrierOp(_EffectOp, name="xegpu.alloc_nbarrier"):
    """Declare how many named barriers the kernel uses."""

    nbarrier_num = prop_def(IntegerAttr[I64])

    assembly_format = "$nbarrier_num attr-dict"


class InitNbarrierOp(_EffectOp, name="xegpu.init_nbarrier"):
    """Make a named barrier for a number of subgroups."""

    nbarrier_id = participant_thread_num = operand_def()
    result = result_def(NbarrierType)

    assembly_format = (
        "$nbarrier_id `,` $participant_thread_num attr-dict `:` type($nbarrier_id) "
        "`,` type($participant_thread_num) `->` type($result)"
    )


class _AtNbarrierOp(_EffectOp):
    """``op %barrier : type``: what this subgroup does at a named barrier."""

    nbarrier = operand_def(NbarrierType)

    assembly_format = "$nbarrier attr-dict `:` type($nbarrier)"


class NbarrierArriveOp(_AtNbarrierOp, name="xegpu.nbarrier_arrive"):
    """Say that this subgroup has arrived."""


class NbarrierWaitOp(_AtNbarrierOp, name="xegpu.nbarrier_wait"):
    """Wait until all participants have arrived."""


class CompileHintOp(_EffectOp, name="xegpu.compile_hint"):
    """Keep a compiler from moving code; it does nothing at run time."""

    assembly_format = "attr-dict"


class FenceOp(XetlOp, name="xegpu.fence", traits=READS_AND_WRITES):
    """Order memory accesses: writes before it are seen before those after it."""

    memory_kind = prop_def(MemorySpaceAttr)
    fence_scope = prop_def(FenceScopeAttr)

    assembly_format = (
        "`memory_kind` `=` $memory_kind `,` `fence_scope` `=` $fence_scope attr-dict"
    )


XeGPUHints = ir.Dialect(
    "xegpu", operations_of(__name__), [NbarrierType, MemorySpaceAttr, FenceScopeAttr]
)
