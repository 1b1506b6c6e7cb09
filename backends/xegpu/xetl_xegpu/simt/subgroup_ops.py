"""What the lanes of a subgroup tell one another.

All lanes take part: none of these may stand where they have gone different ways.
Vectors are worked on element by element.
"""

from __future__ import annotations

from xdsl.dialects.builtin import I32, StringAttr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from xetl.dialects.base import check, element_type
from xetl.dialects.combining import KINDS, kind_fits
from xetl.dialects.operation import XetlOp
from xetl.dialects.type_rules import like


class ShuffleOp(XetlOp, name="simt.shuffle"):
    """``value`` as the lane ``lane`` has it; each lane may ask for another one.

    ``lane`` modulo 16 counts.
    """

    value = operand_def()
    lane = operand_def(I32)
    result = result_def(like("value"))
    traits = traits_def(Pure())
    assembly_format = "$value `,` $lane attr-dict `:` type($value)"


class _CombiningOp(XetlOp):
    """Values of all lanes combined; f16 and bf16 are summed in f32, rounded once."""

    value = operand_def()
    kind = prop_def(StringAttr)
    result = result_def(like("value"))
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Check that there is such an operation on the type."""
        kind, element = self.kind.data, element_type(self.value.type)
        check(kind in KINDS, "`{}` is no kind, one of {}", kind, KINDS)
        check(kind_fits(kind, element), "`{}` does not combine {}", kind, element)


class ReduceOp(_CombiningOp, name="simt.reduce"):
    """The values of all 16 lanes combined; the same in every lane."""

    assembly_format = "$kind $value attr-dict `:` type($value)"


class ScanOp(_CombiningOp, name="simt.scan"):
    """The values of the lanes up to this one combined, its own included."""

    assembly_format = "$kind $value attr-dict `:` type($value)"
