"""Machine code that can be kept in a file and mapped anywhere.

LLVM emits a relocatable ELF object. `build_image` puts its sections into one flat block
and resolves every relocation inside it. So the block runs at any address, and loading
it is a copy (`load_image`), without linker and LLVM in the process.

Relocations that cannot be resolved so (absolute addresses, variables, thread-local
storage, undefined symbols) are refused by name. A few C functions, such as ``memset``,
may be imported: calls to them go through a stub and an address that `load_image` fills
in.
"""

from __future__ import annotations

import ctypes
import json
import mmap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import cast

from xetl.errors import InternalError

MAGIC = b"XETLIMG1"
DEFAULT_IMPORTS = frozenset({"memcpy", "memmove", "memset"})


@dataclass(frozen=True, slots=True)
class Image:
    """Position-independent code.

    Attributes:
        code: the block, to be mapped readable and executable.
        entries: offset of each function that may be called.
        imports: for each C function needed, the offset of the 8 bytes for its address.
    """

    code: bytes
    entries: Mapping[str, int]
    imports: Mapping[str, int] = field(default_factory=dict[str, int])

    def to_bytes(self) -> bytes:
        """Serialise the image for `from_bytes`."""
        header = {"entries": dict(self.entries), "imports": dict(self.imports)}
        text = json.dumps(header, sort_keys=True).encode()
        return MAGIC + len(text).to_bytes(4, "little") + text + self.code

    @staticmethod
    def from_bytes(data: bytes) -> Image:
        """Read the output of `to_bytes`."""
        if data[:8] != MAGIC:
            raise InternalError("not an image of machine code: its first bytes differ")
        start = 12 + int.from_bytes(data[8:12], "little")
        header = json.loads(data[12:start])
        return Image(data[start:], header["entries"], header["imports"])


class LoadedImage:
    """An image in memory; it is unmapped when no reference to it is left."""

    def __init__(self, image: Image, library: Mapping[str, int]) -> None:
        size = max(len(image.code), 1)
        self._map = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._map.write(image.code)
        for name, offset in image.imports.items():
            address = library.get(name) or _resolve(name)
            self._map[offset : offset + 8] = address.to_bytes(8, "little")
        self._anchor = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._anchor)
        self.entries = {n: self.address + at for n, at in image.entries.items()}
        _make_executable(self.address, size)

    def __getitem__(self, name: str) -> int:
        """Return the address of the function called ``name``."""
        try:
            return self.entries[name]
        except KeyError:
            raise InternalError(f"the image has no function `{name}`") from None


def load_image(image: Image, library: Mapping[str, int] | None = None) -> LoadedImage:
    """Map ``image``: first writable, then executable, never both.

    ``library``: addresses of functions that are not in the C library.
    """
    return LoadedImage(image, library or {})


def build_image(
    obj: bytes, entries: Collection[str], imports: Collection[str] = DEFAULT_IMPORTS
) -> Image:
    """Lay out a relocatable object for x86-64 (PIC, small code model) as an image.

    Args:
        obj: the result of ``TargetMachine.emit_object``.
        entries: the functions that will be called from outside.
        imports: the C functions that may be called without being defined.

    Raises:
        InternalError: the object needs something an image cannot have; it is named.
    """
    from xetl_cpu.elf import link  # noqa: PLC0415 - a cache hit need not read it

    code, offsets, needed = link(obj, frozenset(imports))
    missing = [name for name in entries if name not in offsets]
    if missing:
        raise InternalError(f"the object does not define {', '.join(missing)}")
    return Image(code, {name: offsets[name] for name in entries}, needed)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _resolve(name: str) -> int:
    """Return the address of a C function of this process, or of the maths library."""
    for library in (None, "libm.so.6", "libmvec.so.1"):
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        return cast("int", ctypes.cast(function, ctypes.c_void_p).value)
    raise InternalError(f"this system has no C function `{name}`")


def _make_executable(address: int, size: int) -> None:
    protection = mmap.PROT_READ | mmap.PROT_EXEC
    where = ctypes.c_void_p(address), ctypes.c_size_t(size)
    if _libc().mprotect(*where, protection) != 0:
        reason = ctypes.get_errno()
        raise InternalError(f"this system does not let code be made (errno {reason})")
