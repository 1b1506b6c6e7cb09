"""Hints for the caches: those that the device has; of others a remark remains.

They change no value, so a kernel for one device runs on another.
"""

from __future__ import annotations

from xetl.transforms.remarks import remark
from xetl_xegpu.caches import Hints, Kind, completed, legal_hints
from xetl_xegpu.dialect import (
    CacheHintAttr,
    LoadNdOp,
    LoadOp,
    PrefetchNdOp,
    StoreNdOp,
    StoreOp,
)
from xetl_xegpu.lowering.lanes.state import Lanes

_CachedOp = LoadNdOp | StoreNdOp | PrefetchNdOp | LoadOp | StoreOp


def hints_of(lanes: Lanes, op: _CachedOp, kind: Kind) -> Hints | None:
    """What an access asks of the caches; None: what the device does by itself."""
    legal = legal_hints(lanes.device.name, kind)
    if not legal:
        return None
    l1, l2, l3 = (_word(op, level) for level in (1, 2, 3))
    if l2 is not None:
        remark(op, "caches", "`l2_hint` is left out: messages speak of L1 and L3 only")
    if l1 is None and l3 is None:
        return None
    found = completed(kind, l1, l3)
    if found in legal:
        return found
    has = "; ".join(str(pair) for pair in legal)
    name = lanes.device.name
    text = f"hints are left out: `{name}` has no {kind} that is {found}. It has {has}"
    remark(op, "caches", text)
    return None


def _word(op: _CachedOp, level: int) -> str | None:
    hint = op.properties.get(f"l{level}_hint")
    return hint.word if isinstance(hint, CacheHintAttr) else None
