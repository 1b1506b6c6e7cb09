"""Where subgroups meet, and in which order they see what others wrote.

None of these may stand where lanes of a subgroup have gone different ways; a barrier of
the workgroup not where its subgroups have.
"""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr
from xdsl.irdl import opt_prop_def, prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from xetl.dialects.base import check
from xetl.dialects.operation import XetlOp
from xetl_xegpu.simt.memory_ops import SPACES

SCOPES = ("workgroup", "device")
"""Who sees what was written."""


class _OrderingOp(XetlOp):
    """No access may move over it."""

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


class _PlainOp(_OrderingOp):
    """One that says all by its name."""

    assembly_format = "attr-dict"


class BarrierOp(_PlainOp, name="simt.barrier"):
    """All lanes of the workgroup meet; what they wrote before is seen by all after."""


class BarrierArriveOp(_PlainOp, name="simt.barrier_arrive"):
    """The first half of a barrier: what this subgroup wrote before may be read.

    `BarrierWaitOp` follows in the same block, with no other arrival between: a
    subgroup has arrived once or not at all.
    """


class BarrierWaitOp(_PlainOp, name="simt.barrier_wait"):
    """The second half: all subgroups have arrived, and what they wrote is seen."""


class NamedBarrierOp(_OrderingOp, name="simt.named_barrier"):
    """Some subgroups of the workgroup meet: those that come to this number.

    Attributes:
        number: which barrier.
        subgroups: how many meet there each time; the same wherever ``number`` is.
    """

    number = prop_def(IntegerAttr[I64])
    subgroups = prop_def(IntegerAttr[I64])
    assembly_format = "$number `of` $subgroups attr-dict"

    def verify_(self) -> None:
        """Check that somebody meets."""
        count = self.subgroups.value.data
        check(count > 0, "{} subgroups do not meet", count)


class FenceOp(_OrderingOp, name="simt.fence"):
    """What this lane wrote before is seen by others before what it writes after.

    ``scope``: by those of the ``workgroup`` or of the ``device``; ``memory``: what was
    written to ``global`` or to ``local`` memory, to both if it is absent.
    """

    scope = prop_def(StringAttr)
    memory = opt_prop_def(StringAttr)
    assembly_format = "$scope attr-dict"

    @property
    def spaces(self) -> tuple[str, ...]:
        """The memory it is about."""
        return SPACES if self.memory is None else (self.memory.data,)

    def verify_(self) -> None:
        """Check that there are such a scope and such memory."""
        scope = self.scope.data
        check(scope in SCOPES, "`scope` is one of {}, found {}", SCOPES, scope)
        for space in self.spaces:
            check(space in SPACES, "`memory` is one of {}, found {}", SPACES, space)
