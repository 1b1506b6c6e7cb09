"""The ``cpu`` backend, as the core sees it.

Compiling is imported when first needed: a launch from the disk cache loads neither
xDSL nor LLVM.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from xetl import __version__
from xetl.backend import Artifact, Executable
from xetl.errors import LaunchError
from xetl.language.signature import Signature
from xetl_cpu.executable import CpuExecutable
from xetl_cpu.image import Image
from xetl_cpu.targets import TARGETS, find_target, host_fingerprint

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

_PIPELINE = "xetl_cpu.pipeline"


class CpuBackend:
    """Native code for the processor, through LLVM; see backends/cpu/README.md."""

    name = "cpu"
    targets: Sequence[str] = ("host", *TARGETS)
    stages: Sequence[str] = ("xsmm", "loops", "llvm", "asm")
    cacheable = True

    def default_target(self) -> str:
        """The machine we are on."""
        return "host"

    def cache_key(self, target: str) -> str:
        """Versions of what makes the code, and the processor."""
        return f"cpu {__version__} {_llvm()} {target} {host_fingerprint()}"

    def passes(self, target: str) -> list[ModulePass]:
        """The lowering to loops."""
        return _pipeline().passes(target)

    def stage_after(self, name: str) -> str | None:
        """The stage that begins after a pass, if one does."""
        return _pipeline().STAGE_AFTER.get(name)

    def opt_passes(self) -> dict[str, type[ModulePass]]:
        """The passes by name, for ``xetl-opt``."""
        return _pipeline().opt_passes()

    def opt_dialects(self) -> Sequence[Dialect]:
        """``xsmm``, ``cpu`` and, for texts such as seed 003's, xDSL's ``linalg``."""
        # Only here: importing it takes as long as a small compilation.
        linalg = importlib.import_module("xdsl.dialects.linalg")
        return (*_pipeline().DIALECTS, linalg.Linalg)

    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """Machine code of a module at the ``loops`` stage."""
        return _pipeline().build(module, signature, target)

    def text(
        self, module: ModuleOp, signature: Signature, target: str, stage: str
    ) -> str:
        """``llvm`` or ``asm`` of a module at the ``loops`` stage."""
        return _pipeline().text(module, target, stage)

    def load(self, artifact: Artifact, signature: Signature) -> Executable:
        """Map the machine code.

        Raises:
            LaunchError: this processor cannot run it.
        """
        target = find_target(artifact.meta["target"])
        if not target.runs_here and not target.runs_emulated:
            raise LaunchError(
                f"this processor cannot run code for target `{target.name}`",
                code="X0811",
                help="launch for `host`; `ir`, `explain` and `stats` take any target",
            )
        image = Image.from_bytes(artifact.payload)
        return CpuExecutable(image, artifact.meta, signature)


@cache
def _llvm() -> str:
    """Which installation of llvmlite makes the code.

    Its version would say it as well, but takes 5 ms to find out.
    """
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return "none"
    return str(os.stat(spec.origin).st_mtime_ns)


def _pipeline() -> Any:
    return importlib.import_module(_PIPELINE)


BACKEND = CpuBackend()
