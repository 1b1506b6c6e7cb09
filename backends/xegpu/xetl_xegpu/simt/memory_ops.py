"""Accesses to memory, one element for each lane, with an address and a mask per lane.

``space`` is ``global`` or ``local``. A global address is an i64 as on the host; a local
one is a number of bytes from the start of the kernel's shared local memory
(`LocalBaseOp`). An i1 takes one byte, in which any number but 0 is true; bf16 and f16
take two. A mask that is the constant true costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import I1, I64, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import check, integer_width
from xetl.dialects.operation import Operand, XetlOp
from xetl.dialects.reduction_kinds import kind_attribute, kind_fits, normalize_kind
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.type_rules import like
from xetl.dialects.upstream.elementwise import is_float
from xetl_xegpu.limits import Hints

SPACES = ("global", "local")
"""Names of the memory of the device, and of that of the workgroup."""


class CachedOp(XetlOp):
    """An access with cache hints: for both caches, or none.

    The legal hints depend on the device; see `xetl_xegpu.limits`.
    """

    l1_hint = l3_hint = opt_prop_def(StringAttr)

    def __init__(
        self,
        *given: Operand | Sequence[Attribute],
        hints: Hints | None = None,
        **others: Any,
    ) -> None:
        words: dict[str, Any] = (
            {} if hints is None else {"l1_hint": hints.l1, "l3_hint": hints.l3}
        )
        super().__init__(*given, **others, **words)

    @property
    def hints(self) -> Hints | None:
        """The hints for both caches; None if there are none."""
        if self.l1_hint is None or self.l3_hint is None:
            return None
        return Hints(self.l1_hint.data, self.l3_hint.data)

    def check_hints(self) -> None:
        """Check that there are hints for both caches, or for none."""
        is_pair = (self.l1_hint is None) == (self.l3_hint is None)
        check(is_pair, "`l1_hint` and `l3_hint` are given together")


class AccessOp(XetlOp):
    """Base class of accesses: an address, a mask and a space."""

    address = operand_def(I64)
    mask = operand_def(I1)
    space = opt_prop_def(StringAttr, StringAttr("global"))

    @property
    def is_local(self) -> bool:
        """Whether the access is to the workgroup's memory."""
        return self.space.data == "local"

    @property
    def element(self) -> Attribute:
        """The type of the element that a lane accesses."""
        moved = self.results or self.operands  # what is stored comes first
        return moved[0].type

    def check_access(self, type_: Attribute) -> None:
        """Check that the access is to one element, in one of `SPACES`."""
        space = self.space.data
        check(space in SPACES, "`space` is one of {}, found {}", SPACES, space)
        is_element = is_float(type_) or integer_width(type_) is not None
        check(is_element, "a lane accesses one number, found {}", type_)


class LocalBaseOp(XetlOp, name="simt.local_base", traits=[Pure()]):
    """The address of a byte of the workgroup's shared local memory."""

    offset = prop_def(IntegerAttr[I64])
    result = result_def(I64)
    assembly_format = "$offset attr-dict"


class LoadOp(CachedOp, AccessOp, name="simt.load", traits=[MemoryReadEffect()]):
    """Load an element. If the mask is not set, nothing is read; give ``fill``."""

    fill = operand_def()
    result = result_def(like("fill"))
    assembly_format = "$address `,` $mask `,` $fill attr-dict `:` type($fill)"

    def verify_(self) -> None:
        self.check_access(self.result.type)
        self.check_hints()


class StoreOp(CachedOp, AccessOp, name="simt.store", traits=[MemoryWriteEffect()]):
    """Store an element where the mask is set."""

    value = operand_def()
    assembly_format = "$value `,` $address `,` $mask attr-dict `:` type($value)"

    def verify_(self) -> None:
        self.check_access(self.value.type)
        self.check_hints()


class AtomicOp(
    AccessOp,
    name="simt.atomic",
    makers={"kind": kind_attribute},
    traits=READS_AND_WRITES,
):
    """Combine an element with ``value`` atomically.

    The result is the old element, 0 if the mask is not set. ``kind`` is one of
    `xetl.dialects.reduction_kinds.ATOMIC_KINDS`. Other accesses are not ordered by it.
    With ``expected``, `assign` stores only if memory has the bits of ``expected``.
    """

    value = operand_def()
    expected = opt_operand_def(like("value"))
    kind = prop_def(StringAttr)
    result = result_def(like("value"))
    assembly_format = (
        "$kind $value `,` $address `,` $mask (`if` $expected^)? attr-dict `:` "
        "type($value)"
    )

    def verify_(self) -> None:
        self.check_access(self.value.type)
        kind = self.kind.data
        check(normalize_kind(kind) == kind, "`{}` has another name here", kind)
        fits = kind_fits(kind, self.value.type)
        check(fits, "`{}` does not combine {}", kind, self.value.type)
