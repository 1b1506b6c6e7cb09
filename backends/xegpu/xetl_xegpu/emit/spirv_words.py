"""The words of a SPIR-V module.

This file imports nothing of the compiler, because launches read modules, too.

Sources: SPIR-V specification 1.6, "Binary Form" and "Instructions".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAGIC = 0x07230203
HEADER = 5
"""Words before the first instruction; the fourth is larger than every result id."""


class Instruction(NamedTuple):
    """An instruction: its opcode, and the words after the first one."""

    opcode: int
    operands: Sequence[int]


# Operations with a result id but no result type. Most of the others have both.
_ONLY_RESULT = frozenset(
    {
        *(7, 11, 73, 248),  # OpString, OpExtInstImport, OpDecorationGroup, OpLabel
        *range(19, 40),  # OpType...
        322,  # OpTypePipeStorage
        327,  # OpTypeNamedBarrier
    }
)
_NO_RESULT = frozenset(
    {
        *(0, 2, 3, 4, 5, 6, 8, 10, 14, 15, 16, 17),  # sources, names, head of a module
        *(56, 62, 63, 64),  # OpFunctionEnd, OpStore, OpCopyMemory, OpCopyMemorySized
        *(71, 72, 74, 75),  # OpDecorate, OpMemberDecorate, groups of them
        *(99, 218, 219, 220, 221),  # OpImageWrite, vertices and primitives
        *(224, 225, 228),  # barriers, OpAtomicStore
        *(246, 247, 249, 250, 251, 252, 253, 254, 255),  # merges, branches, returns
        *(256, 257, 260, 297, 298, 301, 302, 303, 317, 318, 319),
        *(328, 329, 330, 331, 332, 5632, 6085),
        *(6142, 6143),  # halves of barriers
    }
)


def instructions(module: bytes) -> Iterator[Instruction]:
    """Yield the instructions of a module.

    Raises:
        ValueError: the bytes are no module, or an instruction is longer than the rest.
    """
    if len(module) % 4 or len(module) < 4 * HEADER:
        raise ValueError("it is no sequence of words")
    words = struct.unpack(f"<{len(module) // 4}I", module)
    if words[0] != MAGIC:
        raise ValueError("it does not begin with the magic number")
    at = HEADER
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if count == 0 or at + count > len(words):
            raise ValueError(f"the instruction at word {at} has {count} words")
        yield Instruction(opcode, words[at + 1 : at + count])
        at += count


def text_of(words: Sequence[int]) -> str:
    """Return the string that the words begin with."""
    encoded = struct.pack(f"<{len(words)}I", *words)
    return encoded.partition(b"\0")[0].decode(errors="replace")


def result_of(instruction: Instruction) -> int | None:
    """Return the id of an instruction's result. Return None if it has no result."""
    opcode, operands = instruction
    if opcode in _NO_RESULT:
        return None
    place = 0 if opcode in _ONLY_RESULT else 1
    return operands[place] if place < len(operands) else None


_TYPE_INT, _TYPE_VECTOR, _FUNCTION = 21, 23, 54
_ARITHMETIC = frozenset(
    {
        12,  # OpExtInst
        *range(126, 153),  # OpSNegate to OpSMulExtended
        *range(170, 180),  # OpIEqual to OpSLessThanEqual
        *range(194, 206),  # OpShiftRightLogical to OpBitCount
    }
)


def computes_in_short_integers(module: bytes) -> bool:
    """Return whether a module has arithmetic or comparisons of 8- or 16-bit integers.

    Loads, stores, selections and conversions of them do not count.
    """
    types: set[int] = set()
    values: set[int] = set()
    for opcode, operands in instructions(module):
        if opcode == _FUNCTION and not types:
            return False
        is_short = opcode == _TYPE_INT and operands[1] in (8, 16)
        if is_short or (opcode == _TYPE_VECTOR and operands[1] in types):
            types.add(operands[0])
        elif len(operands) > 1 and operands[0] in types:
            values.add(operands[1])
        if opcode in _ARITHMETIC and not values.isdisjoint(operands[1:]):
            return True
    return False
