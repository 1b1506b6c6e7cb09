"""All arrays of NumPy between pages that nobody may touch.

``XETL_TESTS_FENCED=1 pytest ...``: whatever reads or writes a byte outside of an array
ends the process, so that pytest names the test.  Three of four arrays end where the
page behind them begins, and so begin at any address; the others begin behind a page.
New memory holds no zeros.

NumPy asks the functions of a *handler* for memory (its C API, "Memory management").
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any

WANTED = os.environ.get("XETL_TESTS_FENCED") == "1"

_PAGE, _BEGINS_AT_A_PAGE = mmap.PAGESIZE, 4
_FILLED = 1 << 20
"""Bytes of new memory that are written, at most."""

_SET_HANDLER = 304
"""Of ``PyDataMem_SetHandler`` in the table of NumPy's C API."""

_SIZE, _ADDRESS = ctypes.c_size_t, ctypes.c_void_p
_MALLOC = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _SIZE)
_CALLOC = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _SIZE, _SIZE)
_REALLOC = ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _ADDRESS, _SIZE)
_FREE = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, _SIZE)

_libc = ctypes.CDLL(None)
_libc.mmap.restype = _ADDRESS
_libc.mmap.argtypes = [_ADDRESS, _SIZE, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [_ADDRESS, _SIZE]
_libc.mprotect.argtypes = [_ADDRESS, _SIZE, ctypes.c_int]
_libc.free.argtypes = [_ADDRESS]

_known: dict[int, tuple[int, int, int]] = {}
"""By address what was mapped, how many bytes of it, and how many the array has."""

_numbers = count()


def _malloc(_: object, size: int) -> int | None:
    inside = -(-max(size, 1) // _PAGE) * _PAGE
    length = inside + 2 * _PAGE
    mapped = _libc.mmap(None, length, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if mapped == _ADDRESS(-1).value:
        return None
    first = mapped + _PAGE
    _libc.mprotect(first, inside, mmap.PROT_READ | mmap.PROT_WRITE)
    if inside <= _FILLED:
        ctypes.memset(first, 0xA5, inside)
    at_end = next(_numbers) % _BEGINS_AT_A_PAGE
    address = first + inside - max(size, 1) if at_end else first
    _known[address] = mapped, length, size
    return address


def _calloc(_: object, number: int, size: int) -> int | None:
    address = _malloc(None, number * size)
    if address is not None:
        ctypes.memset(address, 0, number * size)
    return address


def _realloc(_: object, old: int | None, size: int) -> int | None:
    address = _malloc(None, size)
    if old is not None and address is not None:
        ctypes.memmove(address, old, min(_known[old][2], size))
        _free(None, old, 0)
    return address


def _free(_: object, address: int | None, size: int) -> None:
    if address in _known:
        mapped, length, _ = _known.pop(address)
        _libc.munmap(mapped, length)
    elif address is not None:  # of an array that is older than the handler
        _libc.free(address)


class _Handler(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", _ADDRESS),
        ("malloc", _MALLOC),
        ("calloc", _CALLOC),
        ("realloc", _REALLOC),
        ("free", _FREE),
    )


_handler = _Handler(
    b"fenced",
    1,
    None,
    _MALLOC(_malloc),
    _CALLOC(_calloc),
    _REALLOC(_realloc),
    _FREE(_free),
)


def fence_if_wanted() -> None:
    """Do so in this process from now on, in all of its threads."""
    if not WANTED:
        return
    set_handler = _setter()
    set_handler()
    run = threading.Thread.run

    def run_fenced(self: threading.Thread) -> None:
        set_handler()  # a thread begins with NumPy's own
        run(self)

    threading.Thread.run = run_fenced


def _setter() -> Callable[[], object]:
    """What gives NumPy the handler, for the calling thread."""
    new, pointer = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
    new.restype, new.argtypes = ctypes.py_object, [_ADDRESS, ctypes.c_char_p, _ADDRESS]
    pointer.restype, pointer.argtypes = _ADDRESS, [ctypes.py_object, ctypes.c_char_p]
    internals: Any = import_module("numpy._core._multiarray_umath")
    table = ctypes.cast(pointer(internals._ARRAY_API, None), ctypes.POINTER(_ADDRESS))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    name = b"mem_handler"
    capsule = new(ctypes.addressof(_handler), name, None)
    call = prototype(table[_SET_HANDLER])
    _kept.append(name)  # a capsule keeps the pointer alone
    return lambda: call(capsule)


_kept: list[bytes] = []
