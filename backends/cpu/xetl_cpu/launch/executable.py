"""A loaded kernel: fills the slots of the CPU ABI and calls the machine code.

The ABI is section 4 of ``docs/design/0001-seams.md``.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from xetl.backend import Argument, ArrayView, Executable
from xetl.errors import InternalError
from xetl.imports import import_whole
from xetl.language.signature import ArrayParam, ConstParam, Signature
from xetl.runtime.log import read_records, show
from xetl.settings import config
from xetl_cpu.image import Image, load_image
from xetl_cpu.launch import fastcall
from xetl_cpu.launch.prepacked import fast_prepacked, prepacked_argument, run_prepacked
from xetl_cpu.launch.profile import tell_perf, tell_vtune
from xetl_cpu.launch.slots import (
    FIRST_ARGUMENT,
    GRID,
    PARALLEL_FOR,
    THREADS,
    WORKSPACE,
    WORKSPACE_BYTES,
)
from xetl_cpu.launch.threads import SERIAL, ThreadLayer, on_layer_lost, thread_layer
from xetl_cpu.launch.workspace import Workspace, borrowed_workspace

KERNEL = "xetl_kernel"

_Native = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""A call through this type lets other Python threads run meanwhile."""


class CpuExecutable(Executable):
    """Machine code in memory, and how to call it."""

    def __init__(
        self,
        image: Image,
        meta: Mapping[str, Any],
        signature: Signature,
        library: Mapping[str, int] | None = None,
        *,
        is_sequential: bool = False,
    ) -> None:
        """Map the code.

        Args:
            image: what was compiled.
            meta: facts about it.
            signature: what it takes.
            library: addresses of functions it may call besides those of C.
            is_sequential: whether it must run on one thread.
        """
        self._loaded = load_image(image, library)
        name = f"xetl:{meta.get('kernel')}:{meta.get('target')}"
        tell_vtune(name, self._loaded.address, len(image.code))
        if config.perf:
            tell_perf(name, self._loaded.address, len(image.code))
        self._is_sequential = is_sequential
        self._native = _Native(self._loaded[KERNEL])
        self.meta = meta
        self.signature = signature
        self._packed: int | None = meta.get("packed")
        self._slots = FIRST_ARGUMENT + sum(map(_slots_of, signature.params))

    @property
    def fast(self) -> Callable[..., int] | None:
        """See `xetl.backend.Executable`."""
        return self._fast

    @cached_property
    def _fast(self) -> Callable[..., int] | None:
        """None for a kernel whose log must be read."""
        if self.meta.get("log") or self._is_sequential:
            return None
        return fastcall.make_fast(
            self._loaded[KERNEL], self.signature, self.meta["stored"], self._loaded
        )

    @property
    def is_fast_at_hand(self) -> bool:
        """See `xetl.backend.Executable`."""
        return fastcall.is_entry_at_hand()

    @property
    def address(self) -> int:
        """Of ``xetl_kernel``."""
        return self._loaded[KERNEL]

    @property
    def fast_prepacked(self) -> Callable[..., int] | None:
        """As `fast`, for calls in which the operand that is packed is a `Prepacked`."""
        if self.fast is None or self._packed is None:
            return None
        params = self.signature.params
        runtime = [i for i, p in enumerate(params) if not isinstance(p, ConstParam)]
        return fast_prepacked(self.fast, runtime[self._packed], self)

    def numba_call(
        self, name: str, grid: tuple[int, int, int] | Callable[[Any], Any]
    ) -> Callable[..., None]:
        """See `xetl.backend.Executable`."""
        if self.meta.get("log"):
            return super().numba_call(name, grid)
        make: Any = import_whole("xetl_cpu.launch.numba_call").numba_call
        code = self._loaded[KERNEL]
        return make(name, code, self.signature, self.meta["stored"], grid, self._loaded)

    def launch(self, grid: tuple[int, int, int], args: Sequence[Argument]) -> None:
        """Run the kernel on ``args`` (constants left out) and wait for it."""
        layer = SERIAL if self._is_sequential else thread_layer()
        operand = prepacked_argument(args, self._packed)
        with borrowed_workspace() as workspace, layer.team() as threads:
            slots = self._filled_slots(layer, threads, workspace, grid, args)
            run = partial(self._run, slots, workspace)
            _running.append(slots)
            try:
                if not self._is_sequential:
                    _publish(layer)
                if operand is None:
                    result = run()
                else:
                    result = run_prepacked(operand, self, slots, run)
            finally:
                _running.remove(slots)
            log = self.meta.get("log")
            records = read_records(workspace.address, log) if log else []
        if result != 0:
            raise InternalError(f"a kernel ended with {result}")
        show(records)

    def _filled_slots(
        self,
        layer: ThreadLayer,
        threads: int,
        workspace: Workspace,
        grid: tuple[int, int, int],
        args: Sequence[Argument],
    ) -> Any:
        words = [
            layer.parallel_for if threads > 1 else 0,
            threads,
            workspace.address,
            workspace.size,
            *grid,
            *[0] * (FIRST_ARGUMENT - GRID - len(grid)),
        ]
        for arg in args:
            words.extend(words_of(arg))
        if len(words) != self._slots:
            raise InternalError(
                f"a kernel with {self._slots} slots was given {len(words)}"
            )
        return (ctypes.c_int64 * len(words))(*words)

    def _run(self, slots: Any, workspace: Workspace) -> int:
        """Call the code; once more with a larger workspace, if it asks for one."""
        result = self._native(slots)
        if result > 0:
            workspace.reserve(result)
            slots[WORKSPACE] = workspace.address
            slots[WORKSPACE_BYTES] = workspace.size
            result = self._native(slots)
        return result


def _publish(layer: ThreadLayer) -> None:
    """Tell native entries of the threads, if no fork has taken them away meanwhile."""
    fastcall.publish(layer)
    now = thread_layer()
    if now is not layer:
        fastcall.publish(now)
        _run_alone(now)


def _run_alone(_: ThreadLayer) -> None:
    """In the child of a fork that a signal handler made during a launch."""
    for slots in _running:
        slots[PARALLEL_FOR], slots[THREADS] = 0, 1


_running: list[Any] = []
on_layer_lost(_run_alone)


def _slots_of(param: object) -> int:
    if isinstance(param, ConstParam):
        return 0
    return 1 + 2 * param.rank if isinstance(param, ArrayParam) else 1


def words_of(arg: Argument) -> tuple[int, ...]:
    """The slots of an argument."""
    if isinstance(arg, ArrayView):
        return (arg.address, *arg.shape, *arg.strides)
    if isinstance(arg, float):
        return struct.unpack("<q", struct.pack("<d", arg))
    return (int(arg),)
