"""A loaded kernel: fills the slots of the CPU ABI and calls the machine code.

The ABI is section 4 of ``docs/design/0001-seams.md``.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from xetl.backend import Argument, ArrayView
from xetl.errors import InternalError
from xetl.language.signature import ArrayParam, ConstParam, Signature
from xetl_cpu import fastcall
from xetl_cpu.image import Image, load_image
from xetl_cpu.log import read_records, show
from xetl_cpu.threads import SERIAL, thread_layer
from xetl_cpu.workspace import thread_workspace

KERNEL = "xetl_kernel"
_WORKSPACE, _WORKSPACE_BYTES = 2, 3

_Native = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""A call through this type lets other Python threads run meanwhile."""


class CpuExecutable:
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
        self._is_sequential = is_sequential
        self._native = _Native(self._loaded[KERNEL])
        self._fast: Callable[..., int] | None = None
        # A kernel with a log takes the road on which the log is read.
        is_plain = not meta.get("log") and not is_sequential
        if fastcall.ENTRY in image.entries and is_plain:
            self._fast = fastcall.make_fast(
                self._loaded[KERNEL],
                self._loaded[fastcall.ENTRY],
                signature,
                meta["stored"],
                keep=self._loaded,
            )
        self.meta = meta
        self.signature = signature
        self._slots = fastcall.FIRST_SLOT + sum(map(_slots_of, signature.params))

    @property
    def fast(self) -> Callable[..., int] | None:
        """See `xetl.backend.Executable`."""
        return self._fast

    def launch(self, grid: tuple[int, int, int], args: Sequence[Argument]) -> None:
        """Run the kernel on ``args`` (constants left out) and wait for it."""
        layer = SERIAL if self._is_sequential else thread_layer()
        if not self._is_sequential:
            fastcall.publish(layer)
        threads = layer.num_threads()
        workspace = thread_workspace()
        words = [
            layer.parallel_for if threads > 1 else 0,
            threads,
            workspace.address,
            workspace.size,
            *grid,
        ]
        for arg in args:
            words.extend(_words(arg))
        if len(words) != self._slots:
            raise InternalError(
                f"a kernel with {self._slots} slots was given {len(words)}"
            )
        slots = (ctypes.c_int64 * len(words))(*words)
        with layer.lock or nullcontext():
            needed = self._native(slots)
            if needed > 0:
                workspace.reserve(needed)
                slots[_WORKSPACE] = workspace.address
                slots[_WORKSPACE_BYTES] = workspace.size
                needed = self._native(slots)
            log = self.meta.get("log")
            records = read_records(workspace.address, log) if log else []
        if needed != 0:
            raise InternalError(f"a kernel ended with {needed}")
        show(records)


def _slots_of(param: object) -> int:
    if isinstance(param, ConstParam):
        return 0
    return 1 + 2 * param.rank if isinstance(param, ArrayParam) else 1


def _words(arg: Argument) -> tuple[int, ...]:
    if isinstance(arg, ArrayView):
        return (arg.address, *arg.shape, *arg.strides)
    if isinstance(arg, float):
        return struct.unpack("<q", struct.pack("<d", arg))
    return (int(arg),)
