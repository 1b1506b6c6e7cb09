"""Objects whose calls native code answers, past Python's own way to ``__call__``.

CPython calls an object whose class has the flag "vectorcall" by the address that the
object itself holds (PEP 590); where that is 0, it calls ``__call__`` as ever. The base
class made here has room for the address and for a table of what the native code needs
to know. A backend that has such code says so with `use_native`; the layouts of tables
are below. Without it, or on another interpreter, `answer` does nothing.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

_CODE, TABLE, _SIZE = 16, 24, 32
"""Bytes to the addresses of code and table, in an object, and to what is behind."""

# A table of a launch: words of 64 bits, the grid in three of them.
# The last one: whether calls that torch is to record go where their records say.
L_PROCESS, L_LATEST, L_SLOW, L_GRID, L_RECORDS, LAUNCH_WORDS = 0, 1, 2, 3, 6, 7

# What is known of earlier calls: how many, then a record of each, the latest first.
(
    C_ENTRY,  # the table of the kernel's entry
    C_GIVEN,
    C_STATE,
    C_UNCHANGED,
    C_DONE,
    C_REST,
    C_RESTS,
    C_NAMES,  # how many, and the object of bytes that has their records
    C_NAMES_AT,
    C_KEY,  # of the shapes of arrays; 0: any
    C_RECORDED,  # what does calls that torch is to record; 0: the Python function
    CALL_WORDS,
) = range(12)

KEY_FACTOR = 0x9E3779B97F4A7C15
"""By which a key is multiplied before the next number is added."""

# Of each keyword: its name, the place of its value behind the arguments by position,
# or -1: an option, which must be the very same value.
N_NAME, N_PLACE, N_VALUE, NAME_WORDS = range(4)

# A table of a plan: then as many objects, the grid among them; then of each tensor its
# place among these and the address of its elements.
P_PROCESS, P_ENTRY, P_SLOW, P_DONE, P_COUNT, P_TENSORS, P_OBJECTS = range(7)

_OFFSET_AT, _FLAGS_AT, _HAS_VECTORCALL = 56, 168, 1 << 11
_T_SIZE, _T_LONG_LONG, _READ_ONLY, _IS_BASE_TYPE, _MEMBERS = 19, 17, 1, 1 << 10, 72
"""Of CPython: places in a type, what it calls kinds of members, flags and slots."""


class Native(NamedTuple):
    """What a backend has.

    Attributes:
        code: keeps what is at the addresses.
        launch: address of the code that answers calls of launchers.
        plan: of plans.
        process: of what both must know of the process.
        look_around: to be called after launches that Python has answered: a library
            whose arrays the code can read may have been loaded.
    """

    code: object
    launch: int
    plan: int
    process: int
    look_around: Callable[[], None]


class _Known:
    native: Native | None = None


def use_native(native: Native) -> None:
    """Let calls be answered by a backend's code from now on."""
    _Known.native = native


def native() -> Native | None:
    """What answers calls, if there is such."""
    return _Known.native


def look_around() -> None:
    """Let native code see libraries that were loaded meanwhile."""
    if _Known.native is not None:
        _Known.native.look_around()


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basic_size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def _make_base() -> Any:
    """``class NativelyCalled``: two words that are no objects, behind the header."""
    members = (_Member * 4)(
        _Member(b"__vectorcalloffset__", _T_SIZE, _CODE, _READ_ONLY, None),
        _Member(b"native_code", _T_LONG_LONG, _CODE, 0, None),
        _Member(b"native_table", _T_LONG_LONG, TABLE, 0, None),
    )
    slots = (_Slot * 2)(_Slot(_MEMBERS, ctypes.addressof(members)))
    name = b"xetl.runtime.native_calls.NativelyCalled"
    spec = _Spec(name, _SIZE, 0, _IS_BASE_TYPE, ctypes.addressof(slots))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(
        ("PyType_FromSpec", ctypes.pythonapi)
    )
    return make(ctypes.addressof(spec))


def _is_known() -> bool:
    """Whether this is an interpreter whose types look as we believe."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    return "t" not in sys.abiflags


class _PlainlyCalled:
    """A class whose objects are called as all others."""

    __slots__ = ("native_code", "native_table")
    native_code: int
    native_table: int


if TYPE_CHECKING:
    NativelyCalled = _PlainlyCalled
else:
    NativelyCalled = _make_base() if _is_known() else _PlainlyCalled


def may_be_native(kind: Any) -> None:
    """Let objects of a class that is derived from `NativelyCalled` be called so."""
    if NativelyCalled is _PlainlyCalled:
        return
    flags = ctypes.c_uint64.from_address(id(kind) + _FLAGS_AT)
    offset = ctypes.c_int64.from_address(id(kind) + _OFFSET_AT).value
    if flags.value == kind.__flags__ and offset == _CODE:
        flags.value |= _HAS_VECTORCALL


def answer(called: NativelyCalled, code: int, words: Sequence[int]) -> object:
    """Let native code answer the calls of an object; its table must live as long."""
    made = (ctypes.c_int64 * len(words))(*words)
    called.native_table, called.native_code = ctypes.addressof(made), code
    return made
