"""The CPU backend of xetl: BRGEMM micro-kernels and vectorised loops, by LLVM.

The compiler is imported at first use: a launch from the disk cache loads neither xDSL
nor LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xetl import __version__
from xetl.backend import Artifact, BackendBase, Executable, RecordedCall, installed
from xetl.errors import LaunchError, LibraryWarning
from xetl.imports import import_whole
from xetl.language.signature import Signature
from xetl.runtime.call_site import warn_at_caller
from xetl.settings import config
from xetl_cpu.image import Image
from xetl_cpu.launch.executable import CpuExecutable
from xetl_cpu.targets import (
    INLINE,
    TARGETS,
    find_target,
    host_fingerprint,
    host_machine,
    processor_model,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class CpuBackend(BackendBase):
    """Native code for the processor, through LLVM; see backends/cpu/README.md."""

    name = "cpu"
    package = "xetl_cpu"
    targets: Sequence[str] = ("host", *TARGETS)
    stages: Sequence[str] = ("xsmm", "loops", "llvm", "asm")
    exports = True

    def variant(self, target: str) -> str:
        """Return the target, calling the library of `config.xsmm` if it is usable.

        If the library is not usable, warn and return the target itself: products are
        then compiled inline.
        """
        if config.xsmm == INLINE:
            return target
        try:
            _library(config.xsmm)
        except _libraries().UnusableLibraryError as reason:
            text = f"{config.xsmm} serves no products, xetl's own code does: {reason}"
            warn_at_caller(text, LibraryWarning)
            return target
        return f"{target}+{config.xsmm}"

    def cache_key(self, target: str) -> str:
        """Return a key of versions, target, library and processor."""
        machine = find_target(target)
        calls = machine.calls
        library = "" if calls == INLINE else _library(calls).identity
        # Two processes on one processor may differ: Linux permits tiles per process.
        tiles = f"tiles={machine.has_amx or machine.calls_configure}"
        parts = (
            __version__,
            installed("llvmlite"),
            target,
            tiles,
            library,
            host_fingerprint(),
        )
        return " ".join(("cpu", *parts))

    def machine_name(self, target: str) -> str:
        """Return the target, the processor's model and the threads of a launch."""
        found = self.part("launch.threads").allowed_threads()
        return f"{target}, {processor_model()}, {found.count} threads"

    def peak(self, target: str, dtype: str) -> tuple[float, float]:
        """See `xetl.backend.BackendBase.peak`; measuring the peak takes a second."""
        return self.part("peak").measure_peak(dtype)

    def tune_machine(self) -> Sequence[str]:
        """Measure the costs of instructions: register tiles are chosen by these."""
        tuning = self.part("measured_costs")
        return tuning.tune(host_machine(), processor_model())

    def vectors(self, target: str) -> tuple[int, int]:
        """See `xetl.backend.BackendBase.vectors`."""
        machine = find_target(target)
        return machine.vector_registers, machine.lanes("f32")

    def products(self, target: str, dtype: str) -> tuple[str, int]:
        """See `xetl.backend.BackendBase.products`."""
        found = find_target(target)
        rows = 32 if dtype == "bf16" and found.has_amx else 0
        return "f32" if found.widens(dtype) else dtype, rows

    def private_cache(self, target: str) -> int:
        """See `xetl.backend.BackendBase.private_cache`."""
        return find_target(target).machine.l2.size

    def replay(self, call: RecordedCall) -> Callable[..., Any] | None:
        """See `xetl.backend.BackendBase.replay`."""
        return self.part("launch.replay").make_replay(call)

    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """Compile a module at the ``loops`` stage to machine code."""
        return self.part("pipeline").build(module, signature, target)

    def load(self, artifact: Artifact, signature: Signature) -> Executable:
        """Map the machine code; a LaunchError if this processor cannot run it."""
        target = find_target(artifact.meta["target"])
        if not target.runs_here and not target.runs_emulated:
            problem = f"this processor cannot run code for target `{target.name}`"
            help_ = "launch for `host`; `ir`, `explain` and `stats` take any target"
            raise LaunchError(problem, "X0811", help_)
        if target.calls == INLINE:
            image = Image.from_bytes(artifact.payload)
            return CpuExecutable(image, artifact.meta, signature)
        library = _library(target.calls)
        for numbers in artifact.meta["dispatches"]:
            if not library.has_kernel(numbers):
                problem = f"{target.calls} had a kernel for {numbers}, and has none now"
                help_ = "set XETL_XSMM=inline, or XETL_CACHE=0 to compile anew"
                raise LaunchError(problem, "X0814", help_)
        return CpuExecutable(
            Image.from_bytes(artifact.payload),
            artifact.meta,
            signature,
            library.addresses,
            is_sequential=library.is_sequential,
        )


def _libraries() -> Any:
    return import_whole("xetl_cpu.library.serve")


def _library(name: str) -> Any:
    """Return the library that kernels call, after `validate_library` has tested it."""
    return _libraries().find_library(name)


BACKEND = CpuBackend()


__all__ = ["BACKEND"]
