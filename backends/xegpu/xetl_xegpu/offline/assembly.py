"""The machine code of a module as text: what ``ir("asm")`` shows."""

from __future__ import annotations

from xetl.errors import LaunchError

from . import isa
from .ocloc import DEVICES, KernelFacts, compile_spirv


def assembly_text(spirv: bytes, target: str, *, large_registers: bool = False) -> str:
    """The disassembly of all kernels, each below what the compiler says of it.

    Args:
        spirv: a module that calls Intel's builtins.
        target: ``pvc`` or ``bmg``.
        large_registers: 256 registers a thread instead of 128.

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
    counts = isa.count(text)
    return (
        f"// {name}: {counts.instructions} instructions, {facts.registers} registers, "
        f"{facts.spill_bytes} bytes spilled; {counts.dpas} dpas, "
        f"{counts.block_loads} block loads, {counts.prefetches} prefetches, "
        f"{counts.block_stores} block stores"
    )
