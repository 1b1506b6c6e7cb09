"""Programs that may crash the compiler of a GPU are first built in another process.

The compiler of a driver runs in the user's process, and crashes it on some programs (an
assertion, `malloc(): invalid size`). A program is described by features: options,
extensions, operations, functions, lengths of vectors, size. If the compiler (a version
for a device) has built all features of a program before, the program is built in the
user's process at once. A table of each compiler, an entry of the disk cache, has the
features that it built, and its crashes. If two processes write the table at once, one
update is lost and is made again later.

Sources: SPIR-V specification 1.6, "Instructions", 2.2.1 "Literal" (words of strings).
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from xetl.backend import Artifact
from xetl.runtime.cache import disk_cache
from xetl.settings import config
from xetl_xegpu.emit.spirv_words import Instruction, instructions, text_of
from xetl_xegpu.launch import failures, try_build
from xetl_xegpu.launch.devices import Device, dpctl

PYTHON = sys.executable
"""The program that runs `try_build`."""

_SECONDS = 120
"""The timeout of a build, longer than any kernel takes."""

_EXTENSION, _EXT_INST, _EXECUTION_MODE, _CAPABILITY = 10, 12, 16, 17
_TYPE_VECTOR, _DECORATE = 23, 71
_LINKAGE, _IMPORT = 41, 1
_LEAST_SIZE = 8
"""Programs of less than 256 instructions have no feature for their size."""


def features_of(spirv: bytes, options: str) -> frozenset[str]:
    """Return the features of a program. Larger programs have more."""
    found = {f"option {each}" for each in options.split()}
    program = list(instructions(spirv))
    for each in program:
        found.add(f"operation {each.opcode}")
        found.update(_features(each))
    sizes = range(_LEAST_SIZE, len(program).bit_length())
    return frozenset(found.union(f"{1 << size} instructions" for size in sizes))


def _features(instruction: Instruction) -> Iterator[str]:
    opcode, operands = instruction
    if opcode == _EXTENSION:
        yield text_of(operands)
    elif opcode == _CAPABILITY:
        yield f"capability {operands[0]}"
    elif opcode == _EXT_INST:
        yield f"instruction {operands[3]} of OpenCL"
    elif opcode == _EXECUTION_MODE:
        yield f"execution mode {operands[1]}"
    elif opcode == _TYPE_VECTOR:
        yield f"vectors of {operands[2]}"
    elif opcode == _DECORATE and operands[1] == _LINKAGE and operands[-1] == _IMPORT:
        yield text_of(operands[2:])


@dataclass
class _Table:
    """The features that one compiler has built, and its crashes.

    Attributes:
        key: the key of the entry in the disk cache.
        known: features of programs that it has built.
        deaths: how the compiler crashed, by the hash of the set of features.
    """

    key: str
    known: set[str] = field(default_factory=set[str])
    deaths: dict[str, str] = field(default_factory=dict[str, str])

    def read(self) -> None:
        """Add the entries of other processes."""
        cache = disk_cache()
        entry = None if cache is None else cache.load(self.key)
        if entry is not None:
            self.known.update(entry.meta["known"])
            self.deaths.update(entry.meta["deaths"])

    def write(self) -> None:
        """Merge the table into the disk cache."""
        self.read()
        cache = disk_cache()
        if cache is not None:
            meta = {"known": sorted(self.known), "deaths": self.deaths}
            cache.store(self.key, Artifact(b"", meta))


_tables: dict[str, _Table] = {}


def check(spirv: bytes, kernel: str, device: Device, options: str) -> None:
    """Build a program in another process if it has features new to the compiler.

    Raises:
        LaunchError: the compiler crashed, now or before.
    """
    named = f"`{device.name}` ({device.full_name}, driver {device.driver})"
    compiler = f"{device.full_name}, {device.driver}, {device.is_level_zero}"
    digest = hashlib.sha256(compiler.encode()).hexdigest()
    table = _tables.setdefault(compiler, _Table(f"builds-{digest}"))
    features = features_of(spirv, options)
    if features <= table.known:
        return
    table.read()
    new = features - table.known
    if not new:
        return
    key = hashlib.sha256("\n".join(sorted(features)).encode()).hexdigest()
    if key not in table.deaths:
        end = _how_it_ends(spirv, device, options)
        if end is None:
            return
        if end:
            table.deaths[key] = end
        else:
            table.known |= features
        table.write()
    if key in table.deaths:
        raise failures.compiler_died(named, kernel, table.deaths[key], sorted(new))


def _how_it_ends(spirv: bytes, device: Device, options: str) -> str | None:
    """Build a program in another process.

    Returns:
        How the compiler crashed; "" if it did not; None if the build could not begin.
    """
    # Pass only one entry of `sys.path`: others may hold a user's ``types.py``.
    package = Path(dpctl().__file__).parents[1]
    try:
        done = subprocess.run(
            [PYTHON, "-P", try_build.__file__, device.name, options],
            input=spirv,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(package)},
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end in {_SECONDS} s"
    except OSError as error:
        return _not_begun(str(error))
    said = done.stdout.decode(errors="replace")
    last = " ".join(done.stderr.decode(errors="replace").strip().splitlines()[-1:])
    if try_build.BEGUN not in said:
        return _not_begun(last)
    if try_build.ENDED in said:
        return ""
    code = done.returncode
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"ended its process by {cause}{last and f': {last}'}"


def _not_begun(reason: str) -> None:
    if config.log:
        sys.stderr.write(f"xetl: no process could try a build: {reason}\n")
