"""Translation of LLVM IR to SPIR-V, checked: binary modules, and text for `spirv-as`.

* LLVM's SPIR-V backend ends the process on code that it cannot translate, so
  `spirv_limits` checks the code first.
* Wrong modules define an id twice (all 76 of 480 that were wrong after memory had been
  freed). Every module and text is checked. A wrong one is emitted again, the last time
  in another process.
* The memory of an emission cannot be freed. After a number of emissions, all others run
  in other processes.
* Optimisations of LLVM make invalid modules, and gain nothing.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from xetl.errors import InternalError
from xetl.locks import ForkSafeLock
from xetl_xegpu.emit import llvm_spirv
from xetl_xegpu.emit.builtins import EXTENSIONS
from xetl_xegpu.emit.spirv_words import instructions, result_of

_FUNCTION_END = 56


def problem_with(module: bytes) -> str | None:
    """Return what is wrong with a module: a bad id, or no end. None: it is right."""
    seen, last = set[int](), None
    try:
        bound = struct.unpack_from("<I", module, 12)[0] if len(module) >= 16 else 0
        for each in instructions(module):
            found, last = result_of(each), each.opcode
            if found is None:
                continue
            if found in seen:
                return f"id {found} is defined more than once"
            if not 0 < found < bound:
                return f"id {found} is out of bounds ({bound})"
            seen.add(found)
    except ValueError as error:
        return str(error)
    return None if last == _FUNCTION_END else "its last function does not end"


_DEFINITION = re.compile(r"^\s*(%\w+) = ", re.MULTILINE)
_ID = re.compile(r"%\w+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CACHE_CONTROL = re.compile(r"(CacheControl(Load|Store)INTEL \d+) (\d+)")
_CACHE_CONTROLS = {
    "Load": ("Uncached", "Cached", "Streaming", "InvalidateAfterRead", "ConstCached"),
    "Store": ("Uncached", "WriteThrough", "WriteBack", "Streaming"),
}


def problem_with_text(text: str) -> str | None:
    """Return what is wrong with the text of a module, as `problem_with` does."""
    text = _STRING.sub("", text)
    defined = _DEFINITION.findall(text)
    known = set(defined)
    if len(known) < len(defined):
        twice = next(each for each in defined if defined.count(each) > 1)
        return f"{twice} is defined more than once"
    unknown = set(_ID.findall(text)) - known
    if unknown:
        return f"{min(unknown)} is not defined"
    return None if text.rstrip().endswith("OpFunctionEnd") else "its end is not there"


def readable(text: str) -> str:
    """Return the text with names of cache controls, which LLVM prints as numbers."""

    def named(found: re.Match[str]) -> str:
        head, access, number = found.groups()
        return f"{head} {_CACHE_CONTROLS[access][int(number)]}INTEL"

    return _CACHE_CONTROL.sub(named, text)


_LOCK = ForkSafeLock()

_MOST_HERE = 256
"""The most emissions in this process, whose memory is never freed."""

_ATTEMPTS = 4
"""An attempt takes 10 ms in this process, and 100 ms in another, as the last does."""

_EXTENSIONS = ",".join(f"+{name}" for name in EXTENSIONS)


def emit_once(text: str, as_text: bool) -> bytes:
    """Return the unchecked SPIR-V of an LLVM module, emitted in this process."""
    with _LOCK.held():
        try:
            return llvm_spirv.emit(text, _EXTENSIONS, as_text=as_text)
        except RuntimeError as error:
            raise InternalError(f"LLVM does not read a kernel: {error}") from error


def emit_elsewhere(text: str, as_text: bool) -> bytes:
    """Return the same as `emit_once`, emitted in another process."""
    # Pass only one entry of `sys.path`: others may hold a user's ``types.py``.
    package = cast("Any", sys.modules["llvmlite"]).__file__
    environment = {**os.environ, "PYTHONPATH": str(Path(package).parents[1])}
    form = "text" if as_text else "binary"
    done = subprocess.run(
        [sys.executable, "-P", llvm_spirv.__file__, _EXTENSIONS, form],
        input=text.encode(),
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        what = "does not read a kernel" if done.returncode == 1 else "ended its process"
        raise InternalError(f"LLVM {what}: {' '.join(last)}")
    return done.stdout


def to_spirv(text: str) -> bytes:
    """Return the SPIR-V module of a checked LLVM module.

    Raises:
        InternalError: LLVM does not read the text, or makes a wrong module of it.
    """
    return _right(text, False, problem_with)


def to_assembly(text: str) -> str:
    """Return the SPIR-V module as text that `spirv-as` reads.

    Raises:
        InternalError: see `to_spirv`.
    """
    found = _right(text, True, lambda made: problem_with_text(made.decode()))
    return readable(found.decode())


def _right(
    text: str, as_text: bool, problem_with: Callable[[bytes], str | None]
) -> bytes:
    """Return the first emission without a problem."""
    problem = None
    for last in range(_ATTEMPTS - 1, -1, -1):
        # Wrong modules count for the limit, too.
        here = last and len(llvm_spirv.KEPT) < _MOST_HERE
        found = (emit_once if here else emit_elsewhere)(text, as_text)
        problem = problem_with(found)
        if problem is None:
            return found
    raise InternalError(f"LLVM makes a wrong module of SPIR-V: {problem}")
