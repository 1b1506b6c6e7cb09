"""Objects whose calls native code answers, without Python's ``__call__``.

If a class has the flag "vectorcall", CPython calls its objects by the address that each
object holds (PEP 590); if the address is 0, CPython calls ``__call__`` as usual. The
base class made here has room for the address and for the address of a table for the
native code. A backend that has such code passes it to `use_native`; the layouts of the
tables are below. Without it, or on another interpreter, calls take the usual way.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

_CODE, TABLE, _SIZE = 16, 24, 32
"""Offsets, in bytes, of the addresses of code and table in an object, and its size."""

# The table of a launcher: words of 64 bits, the grid in three of them. The last word
# tells whether calls that torch records are done by the function of a call's record.
L_PROCESS, L_LATEST, L_SLOW, L_GRID, L_RECORDS, LAUNCH_WORDS = 0, 1, 2, 3, 6, 7

# Earlier calls: their number, then a record of each, the latest first.
(
    C_ENTRY,  # the table of the kernel's entry
    C_GIVEN,
    C_STATE,
    C_UNCHANGED,
    C_DONE,
    C_REST,
    C_RESTS,
    C_NAMES,  # the number of keywords, then the bytes object with their records
    C_NAMES_AT,
    C_KEY,  # of the shapes of arrays; 0: any
    C_RECORDED,  # the function for calls that torch records; 0: the Python function
    CALL_WORDS,
) = range(12)

KEY_FACTOR = 0x9E3779B97F4A7C15
"""The factor of a key before the next number is added."""

# The record of a keyword: its name, the index of its value after the positional
# arguments, and the value. The index -1 is an option: it must be the identical value.
N_NAME, N_PLACE, N_VALUE, NAME_WORDS = range(4)

# The table of a plan: after these words `P_COUNT` objects, the grid among them; then
# for each tensor its index among these objects and the address of its elements.
P_PROCESS, P_ENTRY, P_SLOW, P_DONE, P_COUNT, P_TENSORS, P_OBJECTS = range(7)

_OFFSET_AT, _FLAGS_AT, _HAS_VECTORCALL = 56, 168, 1 << 11
_T_SIZE, _T_LONG_LONG, _READ_ONLY, _IS_BASE_TYPE, _MEMBERS = 19, 17, 1, 1 << 10, 72
"""Constants of CPython: offsets in a type, kinds of members, flags and slots."""


class Native(NamedTuple):
    """The native code of a backend that answers calls.

    Attributes:
        code: an object that keeps the memory at the addresses alive.
        launch: address of the code that answers calls of launchers.
        plan: address of the code that answers calls of plans.
        process: address of the data about the process that both need.
        look_around: must be called after launches that Python has answered: a library
            whose arrays the code can read may have been loaded meanwhile.
    """

    code: object
    launch: int
    plan: int
    process: int
    look_around: Callable[[], None]


class _Known:
    native: Native | None = None


def use_native(native: Native) -> None:
    """Let the native code of a backend answer calls from now on."""
    _Known.native = native


def native() -> Native | None:
    """Return the native code that answers calls, or None."""
    return _Known.native


def look_around() -> None:
    """Let native code find libraries that were loaded meanwhile."""
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
    """Make the class ``NativelyCalled``: after its header it has two plain words."""
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


def is_known() -> bool:
    """Whether objects of this interpreter have the layout that native code assumes."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    # Without the global lock, others could change what native code reads.
    return "t" not in sys.abiflags


class _PlainlyCalled:
    """The base class on other interpreters: its objects are called as usual."""

    __slots__ = ("native_code", "native_table")
    native_code: int
    native_table: int


if TYPE_CHECKING:
    NativelyCalled = _PlainlyCalled
else:
    NativelyCalled = _make_base() if is_known() else _PlainlyCalled


def may_be_native(kind: Any) -> None:
    """Set the flag "vectorcall" of a class that is derived from `NativelyCalled`."""
    if NativelyCalled is _PlainlyCalled:
        return
    flags = ctypes.c_uint64.from_address(id(kind) + _FLAGS_AT)
    offset = ctypes.c_int64.from_address(id(kind) + _OFFSET_AT).value
    if flags.value == kind.__flags__ and offset == _CODE:
        flags.value |= _HAS_VECTORCALL


def answer(called: NativelyCalled, code: int, words: Sequence[int]) -> object:
    """Let native code answer the calls of an object.

    Returns:
        The table of ``words``: the caller must keep it as long as the object lives.
    """
    made = (ctypes.c_int64 * len(words))(*words)
    called.native_table, called.native_code = ctypes.addressof(made), code
    return made
