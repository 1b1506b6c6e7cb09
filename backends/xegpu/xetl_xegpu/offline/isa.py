"""Counts of instructions in the disassembly of a kernel.

An instruction is a line such as ``(W)  mov (16|M0)  r3.0<1>:ud ...``. The comment after
a message has its name, ``load_block2d.ugm.d16.a64``. Source: texts of ocloc 26.27 for
pvc and bmg.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xetl.backend import Artifact
from xetl.devices import find_device
from xetl.errors import LaunchError
from xetl_xegpu.launch.facts import facts_of
from xetl_xegpu.offline.ocloc import DEVICES, KernelFacts, compile_spirv, find_ocloc

_INSTRUCTION = re.compile(r"^\s*(?:\([^)]*\)\s+)?([a-z][\w.]*)")
"""An optional predicate, then the name: ``(W)``, ``(f0.0)``, ``(~f1.0.any16h)``."""

_TARGET = re.compile(r"\|M\d+\)\s+(\w+)")
"""The destination of a message follows its lanes, ``(1|M0)``."""


@dataclass(frozen=True, slots=True)
class IsaCounts:
    """The numbers of instructions of a kernel.

    Attributes:
        instructions: all instructions up to the last end of a thread.
        calls: calls of functions: 0 in all our kernels.
        dpas: products on the matrix unit.
        block_loads: 2-D block messages that load, of all kinds.
        block_stores: 2-D block messages that store.
        prefetches: 2-D block messages that load without a destination.
        names: the number of each instruction; of `send` for each message.
    """

    instructions: int
    calls: int
    dpas: int
    block_loads: int
    block_stores: int
    prefetches: int
    names: Counter[str]


def count(assembly: str) -> IsaCounts:
    """Count the instructions of one kernel."""
    lines = assembly.splitlines()
    ends = [i for i, line in enumerate(lines) if "end of thread" in line]
    # The lines after the last end are padding.
    lines = lines[: ends[-1] + 1] if ends else lines
    named = [(found[1], line) for line in lines if (found := _INSTRUCTION.match(line))]
    messages = [_message(line) for name, line in named if name.startswith("send")]
    names = Counter(name.partition(".")[0] for name, _ in named)
    return IsaCounts(
        instructions=len(named),
        calls=names["call"] + names["calla"],
        dpas=names["dpas"] + names["dpasw"],
        block_loads=messages.count("load_block2d"),
        block_stores=messages.count("store_block2d"),
        prefetches=messages.count("prefetch_block2d"),
        names=Counter({n: c for n, c in names.items() if not n.startswith("send")})
        + Counter(f"send {message}" for message in messages),
    )


def _message(line: str) -> str:
    """Return the name of a message; a load without a destination is a prefetch."""
    said = line.partition("//")[2].rpartition(";")[2].strip().partition(".")[0]
    target = _TARGET.search(line)
    if target is not None and target[1] == "null" and said.startswith("load"):
        return said.replace("load", "prefetch")
    return said or "unknown"


def assembly_text(spirv: bytes, target: str, *, large_registers: bool = False) -> str:
    """Return the disassembly of all kernels, each after a line with its counts.

    Args:
        spirv: a module that calls Intel's builtins.
        target: a key of `DEVICES`.
        large_registers: give each thread 256 registers instead of 128.

    Raises:
        LaunchError: there is no offline compiler, or none for the target.
    """
    if target not in DEVICES:
        raise LaunchError(
            f"the driver makes the machine code of target `{target}`, nobody shows it",
            code="X0812",
            help=f"ask for a GPU: target={' or '.join(map(repr, DEVICES))}",
        )
    found = compile_spirv(spirv, target, large_registers=large_registers)
    parts = [
        f"{_headline(name, facts, found.assembly[name])}\n{found.assembly[name]}"
        for name, facts in found.kernels.items()
    ]
    return "\n".join(parts)


def _headline(name: str, facts: KernelFacts, text: str) -> str:
    counts = count(text)
    return (
        f"// {name}: {counts.instructions} instructions, {facts.registers} registers, "
        f"{facts.spill_bytes} bytes spilled; {counts.dpas} dpas, "
        f"{counts.block_loads} block loads, {counts.prefetches} prefetches, "
        f"{counts.block_stores} block stores"
    )


def measure(artifact: Artifact) -> Mapping[str, object]:
    """Return what the compiler reports about the kernel for aligned arrays.

    The keys are ``spill_bytes`` (of a thread), ``instructions`` (of the code) and
    ``subgroups`` (of a workgroup). Return {} if there is no compiler for the target.
    """
    facts = facts_of(artifact.meta)
    if facts.target not in DEVICES or find_ocloc() is None:
        return {}
    fast = facts.kernels[0]
    spirv = artifact.payload[fast.spirv]
    compiled = compile_spirv(spirv, facts.target, large_registers=facts.is_large)
    return {
        "spill_bytes": compiled.kernels[fast.name].spill_bytes,
        "instructions": count(compiled.assembly[fast.name]).instructions,
        "subgroups": facts.lanes // find_device(facts.target).subgroup_size,
    }


_JUMP = re.compile(r"\b(?:jmpi|while|goto|brd)\b.*?\b(L\d+)\b")
_LABEL = re.compile(r"^(L\d+):")


def loops(assembly: str) -> list[IsaCounts]:
    """The innermost loops of one kernel, in order: from a label to the jump back."""
    lines = assembly.splitlines()
    labels: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        if label is not None:
            labels[label[1]] = number
        jump = _JUMP.search(line)
        if jump is not None and jump[1] in labels:
            start = labels[jump[1]]
            if not any(start <= first for first, _ in found):
                found.append((start, number + 1))
    return [count("\n".join(lines[start:end])) for start, end in found]
