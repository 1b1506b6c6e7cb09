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
from xetl.devices import DEVICES, RUNS_AS, find_device
from xetl.errors import LaunchError
from xetl.findings import TestDevice
from xetl.language.signature import Signature
from xetl.settings import config
from xetl_xegpu.limits import FIRST

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


_WITHOUT_DEVICE = "pvc"
"""The target of ``ir`` and the like where there is nothing to launch on."""


class XegpuBackend(BackendBase):
    """Compiles kernels to SPIR-V, and runs them through dpctl."""

    name = "xegpu"
    package = "xetl_xegpu"
    targets: Sequence[str] = tuple(DEVICES)
    runs_as: Mapping[str, str] = RUNS_AS
    stages: Sequence[str] = ("llvm", "spirv", "asm")
    slow_stages: Sequence[str] = ("asm",)
    exports = True

    def default_target(self) -> str:
        """That of the device that a launch would take; any where there is none."""
        try:
            return self._own_place().target
        except LaunchError:
            return _WITHOUT_DEVICE

    def first_part(self, target: str) -> str:
        """Without the kernel for arrays that no message moves: few launches need it."""
        return target if "+" in target else target + FIRST

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
        return self.part("launch.places").find_place(queue, names, args)

    def _own_place(self) -> Any:
        """Where launches run that name no queue."""
        queue = self.part("launch.devices").default_queue()
        return self.part("launch.places").place_of(queue)

    def cores(self) -> tuple[str, int] | None:
        """Of the first device; a LaunchError if there is none."""
        device = self._own_place().device
        return device.target, device.cores

    def test_devices(self) -> Sequence[TestDevice]:
        """The devices that SYCL finds."""
        return self.part("doctor").test_devices()

    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """SPIR-V of a module at stage ``lanes``, and what a launch must know."""
        return self.part("pipeline").build(module, target)

    def measure(self, artifact: Artifact) -> Mapping[str, object]:
        """What Intel's offline compiler says of the code, where there is one."""
        isa = self.part("offline.isa")
        return isa.measure(artifact)

    def expect(
        self,
        artifact: Artifact,
        grid: tuple[int, int, int] | None,
        args: Sequence[Argument] | None,
    ) -> Sequence[Expected]:
        """By a roofline, on each product of the target; nothing if it is emulated."""
        return self.part("roofline.model").expected(artifact, grid, args)

    def peak(self, target: str, dtype: str) -> tuple[float, float] | None:
        """What Intel says of the first product of the target."""
        return self.part("roofline.model").peak(target, dtype)

    def load(self, artifact: Artifact, signature: Signature) -> QueuedExecutable:
        """Make a program launchable; drivers build it when they first see it."""
        return self.part("launch.executable").XegpuExecutable(artifact, signature)


BACKEND = XegpuBackend()
