"""The limits of a machine for every kernel: a roofline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peak:
    """The limits of a machine, as `BackendBase.peak` returns them.

    Attributes:
        gflops: billions of operations a second; a multiply-add counts as two.
        gbytes: billions of bytes a second, read or written.
    """

    gflops: float
    gbytes: float

    def limit(self, flops: float, moved: float) -> float:
        """Return the limit for ``flops`` operations that move ``moved`` bytes.

        The unit is billions of operations a second.
        """
        return min(self.gflops, self.gbytes * flops / max(moved, 1.0))
