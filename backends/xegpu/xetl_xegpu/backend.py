"""The ``xegpu`` backend, as the core sees it.

Passes, LLVM and dpctl are imported when they are needed: code from the disk cache is
launched without the first two, and ``ir`` works where there is no device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xetl.backend import (
    Argument,
    Artifact,
    BackendBase,
    Expected,
    Place,
    QueuedExecutable,
    installed,
)
from xetl.devices import DEVICES, find_device
from xetl.errors import LaunchError
from xetl.findings import Finding, TestDevice
from xetl.imports import import_whole
from xetl.language.signature import Signature
from xetl.settings import config

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

    from xetl.findings import Export

_PACKAGE = "xetl_xegpu"

_WITHOUT_DEVICE = "pvc"
"""The target of ``ir`` and the like where there is nothing to launch on."""


class XegpuBackend(BackendBase):
    """Compiles kernels to SPIR-V, and runs them through dpctl."""

    name = "xegpu"
    targets: Sequence[str] = tuple(DEVICES)
    stages: Sequence[str] = ("llvm", "spirv", "asm")
    slow_stages: Sequence[str] = ("asm",)
    exports = True

    def default_target(self) -> str:
        """That of the device that a launch would take; any where there is none."""
        try:
            return _launch("places").place_of(_launch("devices").default_queue()).target
        except LaunchError:
            return _WITHOUT_DEVICE

    def cache_key(self, target: str) -> str:
        """LLVM makes the SPIR-V, and a setting; the driver's own code is not kept."""
        settings = f"prefetch={config.prefetch} {config.dpas}"
        return f"{target} llvm={installed('llvmlite')} {settings}"

    def slm_limit(self, target: str) -> int:
        """Bytes of shared memory that a workgroup may have."""
        return find_device(target).shared_bytes

    def place(
        self, queue: object, names: Sequence[str], args: Sequence[Argument]
    ) -> Place:
        """The queue of a launch: given, or of its arrays, or ours.

        Raises:
            LaunchError: there is no device, or an array is in another one's memory.
        """
        return _launch("places").find_place(queue, names, args)

    def cores(self) -> tuple[str, int] | None:
        """Of the first device; a LaunchError if there is none."""
        device = _launch("places").place_of(_launch("devices").default_queue()).device
        return device.target, device.cores

    def passes(self, target: str) -> list[ModulePass]:
        """From the ``xetile`` stage to ``lanes``."""
        return _pipeline().passes(target)

    def stage_after(self, name: str) -> str | None:
        """The stage that begins after a pass, if one does."""
        return _pipeline().STAGE_AFTER.get(name)

    def doctor(self) -> Sequence[Finding]:
        """For `xetl doctor`: devices, drivers, the offline compiler."""
        return import_whole(f"{_PACKAGE}.doctor").examine()

    def test_devices(self) -> Sequence[TestDevice]:
        """The devices that SYCL finds."""
        return import_whole(f"{_PACKAGE}.doctor").test_devices()

    def opt_passes(self) -> dict[str, type[ModulePass]]:
        """The passes by name, for ``xetl-opt``."""
        return _pipeline().opt_passes()

    def opt_dialects(self) -> Sequence[Dialect]:
        """``xegpu``, ``xegpu_x`` and ``simt``."""
        return _pipeline().DIALECTS

    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """SPIR-V of a module at stage ``lanes``, and what a launch must know."""
        return _pipeline().build(module, target)

    def text(
        self, module: ModuleOp, signature: Signature, target: str, stage: str
    ) -> str:
        """``llvm``, ``spirv`` or ``asm`` of a module at stage ``lanes``."""
        return _pipeline().text(module, target, stage)

    def export(
        self, module: ModuleOp, signature: Signature, target: str, name: str
    ) -> Export:
        """SPIR-V files of a module at stage ``lanes``, for other programs."""
        exporting = import_whole(f"{_PACKAGE}.export")
        return exporting.export(module, signature, target, name)

    def measure(self, artifact: Artifact) -> Mapping[str, object]:
        """What Intel's offline compiler says of the code, where there is one."""
        isa = import_whole(f"{_PACKAGE}.offline.isa")
        return isa.measure(artifact)

    def expect(
        self,
        artifact: Artifact,
        grid: tuple[int, int, int] | None,
        args: Sequence[Argument] | None,
    ) -> Sequence[Expected]:
        """By a roofline, on each product of the target; nothing if it is emulated."""
        return import_whole(f"{_PACKAGE}.roofline.model").expected(artifact, grid, args)

    def peak(self, target: str, dtype: str) -> tuple[float, float] | None:
        """What Intel says of the first product of the target."""
        return import_whole(f"{_PACKAGE}.roofline.model").peak(target, dtype)

    def load(self, artifact: Artifact, signature: Signature) -> QueuedExecutable:
        """Make a program launchable; drivers build it when they first see it."""
        return _launch("executable").XegpuExecutable(artifact, signature)


def _pipeline() -> Any:
    return import_whole(f"{_PACKAGE}.pipeline")


def _launch(name: str) -> Any:
    return import_whole(f"{_PACKAGE}.launch.{name}")


BACKEND = XegpuBackend()
