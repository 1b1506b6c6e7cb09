"""The generic form of the released dialect's operations, as ours have it.

Kinds are MLIR's enumerations there (`#vector.kind<add>`, `0 : i64` for an atomic
`addf`), dimensions of a broadcast have another name, and a scattered store has its
mask last.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from ..combining import CombiningKindAttr, normalize_kind
from ..kinds_of_types import is_integer_attr
from .access_ops import StoreScatterOp
from .syntax import MAP_SPELLINGS
from .types import TileType

# In the order MLIR had when that dialect was released.
_ATOMIC_KINDS = (
    *("addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins"),
    *("minu", "mulf", "muli", "ori", "andi", "maxnumf", "minnumf", "xori"),
)
_PROPERTIES = {"broadcast_dim": "broadcast_dims", "reduction_dim": "reduction_dims"}


def settle(op: Operation) -> None:
    """Rewrite an operation of our dialect that was read in generic form, in place."""
    for old, new in _PROPERTIES.items():
        for found in (op.properties, op.attributes):
            if old in found:
                op.properties[new] = found.pop(old)
    for old, new in MAP_SPELLINGS.items():
        for found in (op.properties, op.attributes):
            if old in found:
                op.attributes[new] = found.pop(old)
    if "kind" in op.properties:
        op.properties["kind"] = _kind(op.properties["kind"])
    if isinstance(op, StoreScatterOp) and isinstance(op.operands[1].type, TileType):
        value, tile, mask = op.operands
        op.operands = (value, mask, tile)


def _kind(given: Attribute) -> Attribute:
    if isinstance(given, CombiningKindAttr):
        return StringAttr(given.kind)
    if is_integer_attr(given) and 0 <= given.value.data < len(_ATOMIC_KINDS):
        return StringAttr(normalize_kind(_ATOMIC_KINDS[given.value.data]))
    return given
