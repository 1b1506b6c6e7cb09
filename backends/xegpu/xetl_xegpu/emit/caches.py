"""Emission of what a message asks of the caches: decorations of its pointer.

LLVM takes them from the metadata `spirv.Decorations` of the instruction that makes the
pointer. Between a pointer made of a number and a call it puts a cast, behind which
Intel's compiler does not look: a call gets a place counted from null instead (ocloc
26.27). Source of the numbers: SPV_INTEL_cache_controls.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from xetl.codegen.llvm import ll
from xetl.codegen.types import I8, I32
from xetl.errors import InternalError
from xetl_xegpu.caches import Hints, Kind, legal_hints
from xetl_xegpu.emit.emitter import GLOBAL, KernelEmitter

METADATA = "spirv.Decorations"
_DECORATIONS: dict[Kind, int] = {"load": 6442, "store": 6443}
_WORDS: dict[Kind, tuple[str, ...]] = {
    "load": ("uncached", "cached", "streaming", "read_invalidate"),
    "store": ("uncached", "write_through", "write_back", "streaming"),
}
"""Their places are the numbers."""

EXTENSION = "SPV_INTEL_cache_controls"


def pointer_for_call(
    em: KernelEmitter, address: Any, kind: Kind, hints: Hints | None
) -> Any:
    """A pointer to global memory that a builtin is given."""
    if hints is None:
        return em.builder.inttoptr(address, GLOBAL)
    place = em.builder.gep(ll.Constant(GLOBAL, None), [address], source_etype=I8)
    return hinted(em, place, kind, hints)


def hinted(em: KernelEmitter, pointer: Any, kind: Kind, hints: Hints | None) -> Any:
    """The instruction that makes a pointer, and what its accesses ask of the caches.

    Raises:
        InternalError: the device has no such message.
    """
    if hints is None:
        return pointer
    if hints not in legal_hints(em.device.name, kind):
        raise InternalError(f"`{em.device.name}` has no {kind} that is {hints}")
    parts = [
        em.module.add_metadata(
            [I32(_DECORATIONS[kind]), I32(level), I32(_WORDS[kind].index(word))]
        )
        for level, word in enumerate(hints)
    ]
    pointer.set_metadata(METADATA, em.module.add_metadata(parts))
    return pointer


def problem_with_decorations(instruction: Any) -> str | None:
    """What LLVM, or Intel's compiler, would not see of an instruction's decorations.

    LLVM writes any numbers into a module, and ends the process over other operands.
    """
    found = instruction.metadata.get(METADATA)
    if found is None:
        return None
    if instruction.opname not in ("inttoptr", "getelementptr"):
        return f"a `{instruction.opname}` makes no pointer that can be decorated"
    if any(isinstance(each, ll.Constant) for each in instruction.operands[1:]):
        return "LLVM drops a place at a constant distance, and its decorations"
    said = [_numbers(each) for each in found.operands]
    kinds = {numbers[0] for numbers in said if numbers is not None}
    levels = [numbers[1] for numbers in said if numbers is not None]
    if None in said or len(kinds) != 1 or len(set(levels)) != len(levels):
        return "a pointer asks each cache for one thing"
    return None


def _numbers(decoration: Any) -> tuple[int, int] | None:
    """Decoration and level, if they and the word are known ones."""
    values = [getattr(each, "constant", None) for each in decoration.operands]
    for kind, number in _DECORATIONS.items():
        for level, word in product((0, 1), range(len(_WORDS[kind]))):
            if values == [number, level, word]:
                return number, level
    return None
