"""The backend `reference`: runs XeTile IR with NumPy.

It defines the meaning of every operation and is the oracle of tests. The interpreter
is imported late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from xetl import __version__
from xetl.backend import Artifact, BackendBase, Executable
from xetl.errors import InternalError
from xetl.imports import import_whole
from xetl.language.signature import Signature

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


TARGET = "interpreter"
_EXECUTABLE = "xetl_reference.executable"


class InMemory(bytes):
    """A payload without bytes: the module, ready to run."""

    executable: Executable

    def __new__(cls, executable: Executable) -> Self:
        """Hold ``executable``."""
        made = super().__new__(cls)
        made.executable = executable
        return made


class ReferenceBackend(BackendBase):
    """Interprets XeTile IR operation by operation, with NumPy."""

    name = "reference"
    targets: Sequence[str] = (TARGET,)
    cacheable = False
    stops_at_breakpoints = True

    def cache_key(self, target: str) -> str:
        """Return version and target; no artifact is kept on disk."""
        return f"reference {__version__} {target}"

    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """Make an executable of the module, which stays in memory."""
        executable = import_whole(_EXECUTABLE).ReferenceExecutable(module)
        return Artifact(InMemory(executable), {"stored": executable.stored})

    def load(self, artifact: Artifact, signature: Signature) -> Executable:
        """Return the executable that `build` made."""
        if not isinstance(artifact.payload, InMemory):
            raise InternalError("kernels of the reference backend cannot be stored")
        return artifact.payload.executable


BACKEND = ReferenceBackend()


__all__ = ["BACKEND"]
