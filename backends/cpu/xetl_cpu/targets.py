"""The processors we generate code for, and their features.

No function loads llvmlite before ``target_machine`` is called: a disk-cache hit needs
``find_target`` and ``host_fingerprint`` only.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.records import record
from xetl_cpu.machine import FAMILIES, Machine, find_family, read_machine
from xetl_cpu.measured_costs import read_costs

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
"""Linux: asm/unistd_64.h, asm/prctl.h, arch/x86/include/asm/fpu/types.h."""

_SIGACTION_BYTES = 256
"""More than the size of ``struct sigaction``; its first word is the handler."""


@cache
def tiles_are_permitted() -> bool:
    """Ask Linux, once a process, for permission to use the 8 KiB of tile state.

    Without permission the first tile instruction faults, on any processor.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    request = (_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
    return libc.syscall(*map(ctypes.c_long, request)) == 0


def tiles_are_emulated() -> bool:
    """Whether a handler for SIGILL is installed, which can emulate AMX instructions.

    This check runs no AMX instruction.
    """
    libc = ctypes.CDLL(None)
    action = ctypes.create_string_buffer(_SIGACTION_BYTES)
    if libc.sigaction(int(signal.SIGILL), None, action):
        return False
    handler = int.from_bytes(action.raw[:8], "little")
    return handler not in (int(signal.SIG_DFL), int(signal.SIG_IGN))


INLINE = "inline"
"""The value of `Target.calls` if products are compiled into kernels, without calls."""

_AVX2 = frozenset({"avx", "avx2", "fma", "f16c", "bmi2"})
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
_AVX512_BF16 = _AVX512 | {"avx512bf16", "avx512vnni"}

_NARROW_BITS = {"i1": 8, "i8": 8, "u8": 8, "i16": 16, "f16": 16, "bf16": 16}
_WIDE_BITS = {"i32": 32, "f32": 32, "i64": 64, "f64": 64}


class UnknownTargetError(LaunchError, ValueError):
    """There is no target of this name, or none fits this machine."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="X0811")


@record(frozen=True)
class Target:
    """A processor family.

    Attributes:
        name: the name that users give.
        cpu: LLVM's name of the processor; empty for ``host``: ``target_machine`` fills
            it in.
        features: LLVM's features; empty for ``host``, too.
        requires: the features that generated code may use, by LLVM's names.
        vector_bytes: the width of one vector register.
        vector_registers: the number of vector registers.
        has_masks: whether masks on loads and stores are free (AVX-512).
        machine: its caches and costs of instructions.
        has_bf16_dot: whether it has dot products of pairs of bf16.
        has_vnni: whether it has dot products of quads of bytes.
        has_amx: whether it has AMX tiles.
        calls: the library that computes products, or ``inline`` (`library/`).
        calls_configure: whether tiles are configured around calls of the library.
    """

    name: str
    cpu: str
    features: str
    requires: frozenset[str]
    vector_bytes: int
    vector_registers: int
    has_masks: bool
    machine: Machine
    has_bf16_dot: bool = False
    has_vnni: bool = False
    has_amx: bool = False
    calls: str = INLINE
    calls_configure: bool = False

    def lanes(self, dtype: str) -> int:
        """How many elements of ``dtype`` one vector register holds.

        >>> find_target("avx2").lanes("f32")
        8
        """
        return self.vector_bytes * 8 // (_NARROW_BITS | _WIDE_BITS)[dtype]

    def widens(self, dtype: str) -> bool:
        """Whether products of 16-bit floats are computed in f32.

        This holds for f16, and for bf16 where a dot product of pairs is no faster: on
        Intel's server cores it takes four times as long as a multiply-add. Libraries
        get bf16.
        """
        costs = self.machine.costs
        is_fast = costs.dot < 2 * costs.fma or self.calls != INLINE
        has_bf16 = self.has_amx or (self.has_bf16_dot and is_fast)
        return dtype == "f16" or (dtype == "bf16" and not has_bf16)

    @property
    def loads_one_by_one(self) -> bool:
        """Whether a gather is compiled to one load for each element.

        [measured] Zen 4, 16 f32: 0.7 ns each, and 1.6 by the gather instruction.
        """
        return self.name == "host" and self.machine.family == "zen4"

    @property
    def halves_vectors(self) -> bool:
        """Whether to use half of each register: that takes half the time."""
        return self.vector_bytes == 64 and self.machine.costs.fma > 0.75

    @property
    def runs_here(self) -> bool:
        """Whether this machine can execute code that is compiled for the target."""
        return self.requires <= host_features() and not (
            self.has_amx and not tiles_are_permitted()
        )

    @property
    def runs_emulated(self) -> bool:
        """Whether only AMX is missing here, and a handler of SIGILL may emulate it."""
        rest = {name for name in self.requires if not name.startswith("amx")}
        return self.has_amx and rest <= host_features() and tiles_are_emulated()


TARGETS = {
    "avx2": Target("avx2", "x86-64-v3", "", _AVX2, 32, 16, False, FAMILIES["avx2"]),
    "avx512": Target(
        "avx512", "x86-64-v4", "", _AVX512, 64, 32, True, FAMILIES["skylake"]
    ),
    "avx512_bf16": Target(
        "avx512_bf16",
        "x86-64-v4",
        "+avx512vnni,+avx512bf16",
        _AVX512_BF16,
        64,
        32,
        has_masks=True,
        machine=FAMILIES["zen5"],
        has_bf16_dot=True,
        has_vnni=True,
    ),
    # Not "sapphirerapids": fewer machines have its half precision arithmetic.
    "amx": Target(
        "amx",
        "x86-64-v4",
        "+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8",
        _AVX512_BF16 | {"amxtile", "amxbf16", "amxint8"},
        64,
        32,
        has_masks=True,
        machine=FAMILIES["sapphire_rapids"],
        has_bf16_dot=True,
        has_vnni=True,
        has_amx=True,
    ),
}
"""The fixed targets by name; ``find_target`` makes ``host``."""


def find_target(name: str) -> Target:
    """Return the target of this name; ``host`` is the best that this machine can run.

    ``avx2+libxsmm`` is ``avx2``, with products as calls of libxsmm.

    Raises:
        UnknownTargetError: the name is unknown, or ``host`` lacks AVX2.
    """
    name, _, calls = name.partition("+")
    if calls:
        # The target with calls of a library, which decides about tiles itself.
        target = find_target(name)
        return replace(
            target,
            features=",".join(f for f in target.features.split(",") if "amx" not in f),
            requires=frozenset(f for f in target.requires if "amx" not in f),
            has_amx=False,
            calls=calls,
            calls_configure=target.has_amx and _serves_tiles(calls),
        )
    if name == "host":
        return _host_target()
    if name not in TARGETS:
        known = ", ".join(["host", *TARGETS])
        raise UnknownTargetError(f"no target `{name}`; there are {known}")
    return TARGETS[name]


def _serves_tiles(calls: str) -> bool:
    # Imported late: the library imports xDSL.
    library = import_whole("xetl_cpu.library.serve")
    return library.find_library(calls).serves_tiles


@cache
def _host_target() -> Target:
    for family in reversed(TARGETS.values()):
        if family.runs_here:
            machine = host_machine()
            return replace(family, name="host", cpu="", features="", machine=machine)
    raise UnknownTargetError("this machine has no AVX2 and FMA: no target fits it")


@cache
def host_machine() -> Machine:
    """Return the description of the machine that this process runs on."""
    machine = read_machine(find_family(_cpuinfo(), host_features()))
    costs = read_costs(processor_model(), machine.costs)
    return replace(machine, costs=costs)


@cache
def host_features() -> frozenset[str]:
    """Return the features of this machine by LLVM's names (on Linux a superset)."""
    flags = _cpuinfo().get("flags", "").split()
    if flags:
        # Linux writes avx512_bf16 where LLVM writes avx512bf16.
        return frozenset(flag.replace("_", "") for flag in flags)
    found: dict[str, bool] = _binding().get_host_cpu_features()
    there = [name for name, is_there in found.items() if is_there]
    return frozenset(name.replace("-", "") for name in there)


@cache
def host_fingerprint() -> str:
    """Return a short text that differs if the code for ``host`` may differ."""
    text = "\n".join(_cpuinfo_identity()) or platform.processor()
    text += host_machine().facts()
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@cache
def _cpuinfo() -> dict[str, str]:
    """Return the first processor's entries of /proc/cpuinfo; {} without that file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    first = text.split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def processor_model() -> str:
    """Return the model name that the processor reports."""
    return _cpuinfo().get("model name") or platform.processor() or "unknown"


def _cpuinfo_identity() -> list[str]:
    # LLVM picks the cpu name from family and model, the features from the flags.
    keys = ("vendor_id", "cpu family", "model", "flags")
    return [entry for key in keys if (entry := _cpuinfo().get(key))]


@cache
def target_machine(target: Target) -> Any:
    """Return the llvmlite ``TargetMachine``: position-independent, small code model.

    Codegen level 2 is enough (measured: levels 1 to 3 give the same loops, level 0 has
    a third of the speed).
    """
    binding = _binding()
    cpu, features = target.cpu, target.features
    if target.name == "host":
        cpu = binding.get_host_cpu_name()
        features = binding.get_host_cpu_features().flatten()
        if target.loads_one_by_one:
            features += ",+prefer-no-gather"
    triple = binding.get_process_triple()
    return binding.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small"
    )


@cache
def _binding() -> Any:
    """Return ``llvmlite.binding``, set up for x86. Loading it takes 40 ms."""
    binding = import_whole("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    # A fork waits until no thread is inside LLVM: its locks would stay held in the
    # child.
    lock: Any = binding.ffi.lib._lock
    os.register_at_fork(
        before=lock.__enter__,
        after_in_parent=lock.__exit__,
        after_in_child=lock.__exit__,
    )
    return binding
