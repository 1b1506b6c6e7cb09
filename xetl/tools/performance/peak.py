"""What limits every kernel of a machine, and where a kernel is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """As `BackendBase.peak` says.

    Attributes:
        gflops: billions of operations a second, of which a multiply-add has two.
        gbytes: billions of bytes a second, read or written.
    """

    gflops: float
    gbytes: float

    def limit(self, flops: float, moved: float) -> float:
        """Billions of operations a second, where ``moved`` bytes go with ``flops``."""
        return min(self.gflops, self.gbytes * flops / max(moved, 1.0))
