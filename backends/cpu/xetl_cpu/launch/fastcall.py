"""Calls of a kernel with Python objects, without ctypes and without checks in Python.

`xetl_entry` (emitted by `entry.py`) is a function with the signature of CPython's
builtins: it reads grid, arrays and numbers from the objects, checks them against a
table and runs the kernel. This module makes the table and the builtin. The machine code
of the entry is built once and kept in the disk cache, so a process that finds its
kernels there does not load LLVM. The entry relies on memory layouts (of NumPy's arrays,
and of CPython's floats and bytes) that are stable but not promised, so they are tested
at import. If a layout differs, or the entry cannot be built, there is no fast path.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import sys
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from xetl.backend import Artifact
from xetl.errors import InternalError
from xetl.imports import import_whole
from xetl.language.dtypes import DType
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.runtime.cache import disk_cache
from xetl.runtime.fingerprint import stamp
from xetl.runtime.native_calls import Native, is_known, use_native
from xetl.settings import DECIDING, config, environ
from xetl_cpu.image import Image, LoadedImage, load_image
from xetl_cpu.launch import FIRST_ARGUMENT, threads, workspace
from xetl_cpu.launch.tensor_words import (
    address_of,
    dlpack_dtype,
    find_torch,
    new_word,
    new_words,
    word_at,
    word_of,
)

ENTRY, LAUNCH, PLAN = "xetl_entry", "xetl_launch", "xetl_plan"
RUN, REPLAY = "xetl_run", "xetl_replay"
"""The functions that the entry calls, by table: one kernel, or a recorded call."""

# Where things are in CPython's and NumPy's structures, in bytes.
OB_TYPE, NUMBER, OB_SIZE, BYTES_VALUE = 8, 16, 16, 32
TUPLE_ITEMS, LIST_ITEMS = tuple.__basicsize__, 24  # CPython 3.14 put a hash before
DATA, RANK, SHAPE, STRIDES, DESCR, FLAGS = 16, 24, 32, 40, 56, 64
ALIGNED, WRITEABLE = 0x100, 0x400

# The table of a kernel: words of 64 bits, a header and a record for each parameter.
T_RUN, T_PROCESS, T_PARAMS, T_SLOTS, T_KERNEL, HEADER = 0, 1, 2, 3, 4, 10
T_SHORT = 5  # so many programs run with Python's lock held, on this thread alone
R_KIND, R_SLOT, R_WIDTH, R_OBJECT, R_RANK, R_SHIFT, R_UNIT, R_STORED, R_ALIAS = range(9)
R_DLPACK = 9
R_CLASS, R_ARRAY, RECORD = 10, 11, 12
"""For `replay.py`: the class of an array; or the object itself, and the array whose
elements are read instead."""
# The table of `replay.py` has, after the records: words of operands, makers of arrays,
# indices of results, and launches with slots and patches.
T_LAUNCHES, T_GIVEN, T_MADE, T_GIVES, T_SEES_MODES = T_KERNEL, 5, 6, 7, 8
T_CHANGED = 9  # from where on objects may be others, or elsewhere, when arrays are made
L_KERNEL, L_SLOTS, L_PATCHES, LAUNCH_HEADER, PATCH = 0, 1, 2, 3, 3
INT, FLOAT, BOOL, ARRAY, CONST, CONST_INT, CONST_FLOAT, CONST_EQUAL = range(8)
"""Kinds of parameters; constants come last."""
FRESH = 2
"""A value of "stored" besides 1: the array is new, so autograd does not know it."""
_DONE, _REFUSED = 0, 1
_SCALARS = {"i64": INT, "f64": FLOAT, "i1": BOOL}

# Words that all kernels of the process share.
P_POOL, P_ASKED, P_OPENMP, P_USUAL = (new_word() for _ in range(4))
P_LIMIT = new_word()  # 0: no launch has started the threads yet, so none may be fast
P_KEY = new_word(workspace.KEY)
P_SAVE_THREAD = new_word(address_of(ctypes.pythonapi.PyEval_SaveThread))
P_RESTORE_THREAD = new_word(address_of(ctypes.pythonapi.PyEval_RestoreThread))
P_FAST_LAUNCHES = new_word(threads.FAST_LAUNCHES)
P_SLOW_LAUNCHES = new_word(threads.SLOW_LAUNCHES)
P_NDARRAY, P_INT, P_FLOAT = map(word_of, (np.ndarray, int, float))
P_I32, P_I64, P_F32, P_F64 = map(word_of, (np.int32, np.int64, np.float32, np.float64))
P_TRUE, P_FALSE, P_NONE, P_NO_NAMES = map(word_of, (True, False, None, ()))
P_DONE, P_REFUSED = map(word_of, (_DONE, _REFUSED))
P_ENVIRON = new_word(0 if environ is None else id(environ))
VARIABLES = len(DECIDING)
_variables = (ctypes.c_int64 * VARIABLES)(*map(id, DECIDING))
P_VARIABLES = new_word(ctypes.addressof(_variables))
"""The address of the names of variables that decide where a launch runs."""
P_CONFIG, P_ASSIGNED = word_of(vars(config)), word_of(sys.intern("assigned"))
P_DLPACK_DEVICE, P_DLPACK = map(
    word_of, map(sys.intern, ("__dlpack_device__", "__dlpack__"))
)
P_VERSION_NAMES, P_MAX_VERSION = map(word_of, ((sys.intern("max_version"),), (1, 0)))
"""The only keyword argument of ``__dlpack__``, and its value."""
_capsule_name = ctypes.c_char_p(b"dltensor_versioned")
P_CAPSULE_NAME = new_word(address_of(_capsule_name))
process: Any = (ctypes.c_int64 * len(new_words))(*new_words)

MOST_SLOTS = 256
MOST_ELEMENTS = 1 << 15
"""The most elements of all operations in a launch that keeps Python's lock: it takes a
few microseconds at most. To release the lock and take it again takes 40 ns."""
_FEWEST = 16
"""Elements that each program counts for, at least: it has overhead."""
_METH_FASTCALL = 0x80


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def make_fast(
    kernel: int,
    signature: Signature,
    stored: Collection[int],
    keep: object,
    elements: int | None = None,
) -> Callable[..., int] | None:
    """Return a builtin ``(gx, gy, gz, *objects) -> int``, or None if impossible.

    Args:
        signature: the signature that the kernel was compiled for.
        stored: indices of the runtime arguments that it writes.
        keep: an object that must live as long as the builtin.
        elements: see `xetl.compiler`.
    """
    records, slots = _records(signature, stored)
    short = 0 if elements is None else MOST_ELEMENTS // max(_FEWEST, elements)
    if slots > MOST_SLOTS:
        return None
    words = [word for record in records for word in record]
    header = len(records), slots, kernel, short
    return new_builtin(RUN, header, words, (keep, signature))


def new_builtin(
    symbol: str, header: Sequence[int], words: Sequence[int], keep: object
) -> Callable[..., int] | None:
    """Return a builtin that is the native entry with a table, or None if impossible.

    Args:
        symbol: the function that the entry calls.
        header: the table from the number of parameters on.
        words: the table after its header.
        keep: objects that must live as long, such as constants known by address.
    """
    entry = _entry() if _LAYOUTS_HOLD else None
    if entry is None:
        return None
    method = _MethodDef(b"launch", entry[ENTRY], _METH_FASTCALL, None)
    # CPython keeps "self" alive, here the table, and "module", here all other objects.
    known = [entry[symbol], ctypes.addressof(process), *header]
    known += [0] * (HEADER - len(known)) + [*words]
    table = struct.pack(f"<{len(known)}q", *known)
    return _new_builtin(ctypes.addressof(method), table, (keep, entry, method))


@cache
def _entry() -> LoadedImage | None:
    """Return the entry for all kernels of this process; None if it cannot be built."""
    image = _image()
    if image is None:
        return None
    loaded = load_image(image)
    table = ctypes.addressof(process)
    look_around = partial(find_torch, process)
    use_native(Native(loaded, loaded[LAUNCH], loaded[PLAN], table, look_around))
    return loaded


def _image() -> Image | None:
    kept = _kept_entry()
    if kept is not None:
        return Image.from_bytes(kept.payload)
    try:
        # This imports LLVM, which a process with a warm cache does not load.
        image = import_whole("xetl_cpu.launch.entry").build_entry()
    except (ImportError, OSError, RuntimeError, InternalError):
        return None
    disk = disk_cache()
    if disk is not None:
        disk.store(_entry_key(), Artifact(image.to_bytes(), {}))
    return image


def is_entry_at_hand() -> bool:
    """Whether the entry is built already; building it takes LLVM 40 ms."""
    return _entry.cache_info().currsize > 0 or _kept_entry() is not None


def _kept_entry() -> Artifact | None:
    disk = disk_cache()
    return None if disk is None else disk.load(_entry_key())


@cache
def _entry_key() -> str:
    made_for = f"{stamp('xetl_cpu')} {TUPLE_ITEMS}"
    return f"cpu-entry-{hashlib.sha256(made_for.encode()).hexdigest()}"


def publish(layer: threads.ThreadLayer) -> None:
    """Tell the native entries which threads to use, and about torch."""
    find_torch(process)
    if layer.lock is not None:
        return  # one launch at a time: the slow road sees to that
    process[P_POOL] = layer.pool
    process[P_ASKED] = layer.asked
    process[P_OPENMP] = layer.openmp
    process[P_USUAL] = layer.usual
    process[P_LIMIT] = layer.limit


def _records(
    signature: Signature, stored: Collection[int]
) -> tuple[list[list[int]], int]:
    slot, argument = FIRST_ARGUMENT, 0
    records: list[list[int]] = []
    first_of_group: dict[int, int] = {}
    for index, param in enumerate(signature.params):
        record = [0] * RECORD
        record[R_SLOT] = slot
        match param:
            case ConstParam():
                record[R_KIND], record[R_OBJECT] = constant(param.value)
                argument -= 1
            case ScalarParam():
                record[R_KIND] = _SCALARS[param.kind]
                record[R_WIDTH] = 1
            case ArrayParam():
                alias = index
                if param.alias is not None:
                    alias = first_of_group.setdefault(param.alias, index)
                fill_array(record, param.dtype, param.rank, param.unit_dim, alias)
                record[R_STORED] = int(argument in stored)
        slot += record[R_WIDTH]
        argument += 1
        records.append(record)
    return records, slot


def constant(value: object) -> tuple[int, int]:
    """Return how the entry checks a constant: numbers by value, the rest by identity.

    Callers compute numbers anew for each call, for example a width from a shape.
    """
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return CONST_INT, value
    if type(value) is float:
        return CONST_FLOAT, struct.unpack("<q", struct.pack("<d", value))[0]
    return CONST, id(value)


def fill_array(
    record: list[int], dtype: DType, rank: int, unit_dim: int | None, alias: int
) -> None:
    """Write to a record which arrays are accepted; see the layout of records."""
    record[R_KIND] = ARRAY
    record[R_WIDTH] = 1 + 2 * rank
    record[R_OBJECT] = id(dtype.numpy)  # NumPy keeps one for ever
    record[R_RANK] = rank
    record[R_SHIFT] = dtype.itemsize.bit_length() - 1
    record[R_UNIT] = -1 if unit_dim is None else unit_dim
    record[R_ALIAS] = alias
    record[R_DLPACK] = dlpack_dtype(dtype)


def _layouts_hold() -> bool:
    """Whether this interpreter and this NumPy have the layouts that we expect."""
    if not is_known():
        return False
    number, text = 2.5, b"layout"
    if not all(map(_number_layout_holds, (number, *_NUMPYS))):
        return False
    if ctypes.string_at(id(text) + BYTES_VALUE, len(text)) != text:
        return False
    pair, items = (number, text), [text]
    found = word_at(id(pair) + OB_SIZE), word_at(id(pair) + TUPLE_ITEMS + 8)
    if found != (2, id(text)) or word_at(word_at(id(items) + LIST_ITEMS)) != id(text):
        return False
    return all(map(_array_layout_holds, (np.zeros((3, 10), "f4")[1:, ::2], np.ones(7))))


_NUMPYS = np.float64(2.5), np.float32(2.5), np.int64(-2), np.int32(-2)


def _number_layout_holds(number: Any) -> bool:
    held = np.asarray(number).tobytes()
    return ctypes.string_at(id(number) + NUMBER, len(held)) == held


def _array_layout_holds(array: np.ndarray[Any, Any]) -> bool:
    def words(address: int) -> tuple[int, ...]:
        return tuple(word_at(address + 8 * dim) for dim in range(array.ndim))

    def flags() -> int:
        bits = ctypes.c_int32.from_address(id(array) + FLAGS).value
        return bits & (ALIGNED | WRITEABLE)

    base = id(array)
    writeable = flags()
    array.flags.writeable = False
    return (
        word_at(base + OB_TYPE) == id(np.ndarray)
        and word_at(base + DATA) == array.__array_interface__["data"][0]
        and ctypes.c_int32.from_address(base + RANK).value == array.ndim
        and words(word_at(base + SHAPE)) == array.shape
        and words(word_at(base + STRIDES)) == array.strides
        and word_at(base + DESCR) == id(array.dtype)
        and (writeable, flags()) == (ALIGNED | WRITEABLE, ALIGNED)
    )


_New = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
)
_new_builtin = _New(("PyCFunction_NewEx", ctypes.pythonapi))
_LAYOUTS_HOLD = _layouts_hold()
threads.on_layer_lost(publish)
