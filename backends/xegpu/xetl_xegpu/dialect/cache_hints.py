"""What messages ask of the caches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.irdl import opt_prop_def

from xetl.dialects.base import check
from xetl.dialects.operation import XetlOp

from .attributes import CacheHintAttr, LayoutAttr, SliceAttr

READ_HINTS = ("cached", "uncached", "streaming", "read_invalidate")
WRITE_HINTS = ("cached", "uncached", "streaming", "write_back", "write_through")
_LEVELS = ("l1_hint", "l2_hint", "l3_hint")


class CachedOp(XetlOp, makers=dict.fromkeys(_LEVELS, CacheHintAttr)):
    """An access through the caches; a constructor takes hints as words."""

    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(LayoutAttr | SliceAttr)

    def check_hints(self, allowed: Sequence[str]) -> None:
        """Check that hints are words, and make sense for reading or for writing."""
        for name in _LEVELS:
            hint = self.properties.get(name)
            fits = isinstance(hint, CacheHintAttr) and hint.word in allowed
            known = ", ".join(allowed)
            check(hint is None or fits, f"{name} is one of {known}, found {hint}")
