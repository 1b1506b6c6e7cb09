"""Run emitted functions, on arrays that end where memory ends."""

import ctypes
import mmap
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as binding
import numpy as np
from llvmlite import ir

from xetl_cpu.targets import Target, target_machine

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_kept: list[Any] = []


def new_module() -> Any:
    module = ir.Module("test")
    module.triple = binding.get_process_triple()
    return module


def emit_object(target: Target, module: Any) -> bytes:
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    return target_machine(target).emit_object(parsed)


def compile_functions(
    target: Target, emitters: Sequence[Callable[[Any], Any]]
) -> list[Callable[..., None]]:
    """Compile into one module; pointers and integers become ctypes arguments."""
    module = new_module()
    functions = [emit(module) for emit in emitters]
    for function in functions:
        function.linkage = ""
    data = emit_object(target, module)
    engine = binding.create_mcjit_compiler(
        binding.parse_assembly(""), target_machine(target)
    )
    engine.add_object_file(binding.ObjectFileRef.from_data(data))
    engine.finalize_object()
    _kept.append(engine)
    return [_callable(engine, function) for function in functions]


def _callable(engine: Any, function: Any) -> Callable[..., None]:
    def ctype(argument: Any) -> Any:
        if isinstance(argument.type, ir.PointerType):
            return ctypes.c_void_p
        return ctypes.c_int64

    prototype = ctypes.CFUNCTYPE(None, *map(ctype, function.args))
    raw = prototype(engine.get_function_address(function.name))

    def call(*arguments: Any) -> None:
        raw(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments))

    return call


def fenced(values: np.ndarray, *, at_end: bool = True) -> np.ndarray:
    """A C-order copy whose last (or first) byte touches a page nobody may access."""
    size = max(values.nbytes, 1)
    pages = -(-size // _PAGE)
    region = mmap.mmap(-1, (pages + 2) * _PAGE)
    raw = np.frombuffer(region, np.uint8)
    base = raw.ctypes.data
    for page in (0, pages + 1):
        address = ctypes.c_void_p(base + page * _PAGE)
        assert _libc.mprotect(address, ctypes.c_size_t(_PAGE), 0) == 0
    first = (pages + 1) * _PAGE - values.nbytes if at_end else _PAGE
    inside = raw[first : first + values.nbytes]
    copy = inside.view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def undefined_symbols(data: bytes) -> list[str]:
    """Names of the symbols of an ELF64 object that it does not define itself."""
    table = int.from_bytes(data[40:48], "little")
    entry, count = np.frombuffer(data[58:62], "<u2").tolist()
    sections = np.frombuffer(data, "<u1")[table : table + entry * count]
    headers = sections.reshape(count, entry).view("<u4").tolist()
    names: list[str] = []
    for header in headers:
        if header[1] != 2:  # SHT_SYMTAB
            continue
        start, size, text = header[6], header[8], headers[header[10]][6]
        # The first symbol is always empty.
        for at in range(start + 24, start + size, 24):
            if data[at + 6 : at + 8] == b"\0\0":
                name = text + int.from_bytes(data[at : at + 4], "little")
                names.append(data[name : data.index(b"\0", name)].decode())
    return names
