"""What stands in the disassembly of a kernel, counted.

An instruction is a line such as ``(W)  mov (16|M0)  r3.0<1>:ud ...``; a message names
itself in the comment behind it, ``load_block2d.ugm.d16.a64``.  Source: texts of ocloc
26.27 for pvc and bmg.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_INSTRUCTION = re.compile(r"^\s*(?:\([^)]*\)\s+)?([a-z][\w.]*)")
"""An optional predicate, then the name: ``(W)``, ``(f0.0)``, ``(~f1.0.any16h)``."""

_END = "end of thread"
_TARGET = re.compile(r"\|M\d+\)\s+(\w+)")
"""Where a message puts what it brings: behind the lanes it is for, ``(1|M0)``."""


@dataclass(frozen=True, slots=True)
class IsaCounts:
    """How often a kernel does what.

    Attributes:
        instructions: all there are up to the last end of a thread.
        calls: of functions: 0 in every kernel of ours.
        dpas: products on the matrix unit.
        block_loads: 2-D block messages that load, of all kinds.
        block_stores: 2-D block messages that store.
        prefetches: 2-D block messages that load to nowhere.
        names: how often each instruction occurs; `send` with what it sends.
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
    ends = [i for i, line in enumerate(lines) if _END in line]
    # What stands behind fills the last page: nobody gets there.
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
    """What a message does: ``load_block2d``; a load to nowhere is a prefetch."""
    said = line.partition("//")[2].partition(";")[2].strip().partition(".")[0]
    target = _TARGET.search(line)
    if target is not None and target[1] == "null" and said.startswith("load"):
        return said.replace("load", "prefetch")
    return said or "unknown"
