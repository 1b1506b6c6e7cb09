"""AMX instructions that trap on every processor, so that the emulator counts them all.

A processor that has AMX runs its instructions, and nothing is counted. Here the first
byte of each, C4, is replaced by 06, which no processor takes in 64-bit mode; the
emulator reads one as the other.  So both kinds of machine run, and count, the same.

Source: Intel SDM, volume 2: "Opcode Map" (06 is invalid in 64-bit mode), and encodings
VEX.128.0F38.W0 49, 4B, 5C, 5E.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from llvmlite import binding

_ENCODED = re.compile(
    rb"\xc4(?=[\x02\x22\x42\x62\x82\xa2\xc2\xe2]"
    rb"[\x00-\x03\x08-\x0b\x10-\x13\x18-\x1b\x20-\x23\x28-\x2b\x30-\x33\x38-\x3b"
    rb"\x40-\x43\x48-\x4b\x50-\x53\x58-\x5b\x60-\x63\x68-\x6b\x70-\x73\x78-\x7b]"
    rb"[\x49\x4b\x5c\x5e])"
)
_WRITTEN = re.compile(r"^\s*(?:ldtilecfg|sttilecfg|tile\w+|tdp\w+)\b", re.MULTILINE)


def tile_instructions(assembly: str) -> int:
    """How many AMX instructions there are in a text of the assembler."""
    return len(_WRITTEN.findall(assembly))


def trapping_object(code: bytes, assembly: str) -> bytes:
    """An object file with traps in place of AMX instructions.

    Args:
        code: the object file.
        assembly: the same code as text, which says how many there are: other bytes may
            look like one.
    """
    found, count = _ENCODED.subn(b"\x06", code)
    assert count == tile_instructions(assembly), "what looks like AMX is not"
    return found


@contextmanager
def trapping() -> Iterator[None]:
    """Inside, all code that LLVM emits traps."""
    machine: Any = binding.TargetMachine
    real = machine.emit_object

    def emit_object(self: Any, module: Any) -> bytes:
        code = real(self, module)
        if not _ENCODED.search(code):
            return code
        return trapping_object(code, self.emit_assembly(module))

    with mock.patch.object(machine, "emit_object", emit_object):
        yield
