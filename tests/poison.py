"""Workspaces that hold nonsense: kernels fail that count on what they did not write."""

from __future__ import annotations

import ctypes

from xetl_cpu.launch import workspace
from xetl_cpu.launch.workspace import Workspace, borrowed_workspace

POISON = bytes(7 * [0x7F] + [0x3F]) * (1 << 19)
"""What a workspace begins with: as indices these are far outside, and in 62 bits."""


class Poisoned(Workspace):
    """A workspace with nonsense in it."""

    def reserve(self, size: int) -> None:
        before = self.address
        super().reserve(size)
        if self.address != before:
            fill(self)


def fill(memory: Workspace) -> None:
    """Write nonsense over the first 4 MB."""
    if memory.address:
        ctypes.memmove(memory.address, POISON, min(memory.size, len(POISON)))


def poison_workspaces() -> None:
    """Do so with that of the calling thread, and all that come later."""
    workspace.Workspace = Poisoned
    with borrowed_workspace() as memory:
        fill(memory)
