"""The backend for Intel GPUs: XeGPU, lanes, SPIR-V; see docs/design/0005-xegpu.md.

Passes, LLVM and dpctl are imported when they are first needed. A launch of code from
the disk cache needs neither passes nor LLVM, and ``ir`` needs no device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xetl import backend
from xetl.devices import DEVICES, RUNS_AS, find_device
from xetl.errors import LaunchError
from xetl.findings import TestDevice
from xetl.language.signature import Signature
from xetl.settings import config
from xetl_xegpu.limits import FIRST

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


_WITHOUT_DEVICE = "pvc"
"""The target of ``ir`` and similar calls if no device can launch kernels."""


class XegpuBackend(backend.BackendBase):
    """Compiles kernels to SPIR-V, and runs them through dpctl."""

    name = "xegpu"
    package = "xetl_xegpu"
    targets: Sequence[str] = tuple(DEVICES)
    runs_as: Mapping[str, str] = RUNS_AS
    stages: Sequence[str] = ("llvm", "spirv", "asm")
    slow_stages: Sequence[str] = ("asm",)
    exports = True

    def default_target(self) -> str:
        """Return the target of the default device, or ``pvc`` if there is none."""
        try:
            return self._own_place().target
        except LaunchError:
            return _WITHOUT_DEVICE

    def first_part(self, target: str) -> str:
        """Return the target that compiles only the kernel with block messages.

        The other kernel takes arrays that block messages cannot move. Few launches
        need it, so it is compiled when a launch does.
        """
        return target if "+" in target else target + FIRST

    def cache_key(self, target: str) -> str:
        """Return all that the SPIR-V depends on: target, version of LLVM, settings.

        The machine code of drivers is not cached, so drivers are no part of the key.
        """
        settings = f"prefetch={config.prefetch} {config.dpas}"
        return f"{target} llvm={backend.installed('llvmlite')} {settings}"

    def slm_limit(self, target: str) -> int:
        """Return how many bytes of shared memory a workgroup may have."""
        return find_device(target).shared_bytes

    def place(
        self, queue: object, names: Sequence[str], args: Sequence[backend.Argument]
    ) -> backend.Place:
        """Return the place of a launch: its ``queue``, that of its arrays, or ours.

        Raises:
            LaunchError: there is no device, or an array is in another one's memory.
        """
        return self.part("launch.places").find_place(queue, names, args)

    def _own_place(self) -> Any:
        """Return the place of launches that name no queue."""
        queue = self.part("launch.devices").default_queue()
        return self.part("launch.places").place_of(queue)

    def cores(self) -> tuple[str, int] | None:
        """Return target and number of cores of the default device.

        Raises:
            LaunchError: there is no device.
        """
        device = self._own_place().device
        return device.target, device.cores

    def test_devices(self) -> Sequence[TestDevice]:
        """Return the devices that SYCL finds."""
        return self.part("doctor").test_devices()

    def build(
        self, module: ModuleOp, signature: Signature, target: str
    ) -> backend.Artifact:
        """Return the SPIR-V of a module at stage ``lanes``, and facts for launches."""
        return self.part("pipeline").build(module, target)

    def measure(self, artifact: backend.Artifact) -> Mapping[str, object]:
        """Return what Intel's offline compiler measures, if it is installed."""
        isa = self.part("offline.isa")
        return isa.measure(artifact)

    def expect(
        self,
        artifact: backend.Artifact,
        grid: tuple[int, int, int] | None,
        args: Sequence[backend.Argument] | None,
    ) -> Sequence[backend.Expected]:
        """Return the times by a roofline model, one for each product of the target.

        The result is empty if the target is emulated.
        """
        return self.part("roofline.model").expected(artifact, grid, args)

    def peak(self, target: str, dtype: str) -> tuple[float, float] | None:
        """Return the peak that Intel states for the first product of the target."""
        return self.part("roofline.model").peak(target, dtype)

    def load(
        self, artifact: backend.Artifact, signature: Signature
    ) -> backend.QueuedExecutable:
        """Make a program launchable. A driver builds it at the first launch."""
        return self.part("launch.executable").XegpuExecutable(artifact, signature)


BACKEND = XegpuBackend()


__all__ = ["BACKEND"]
