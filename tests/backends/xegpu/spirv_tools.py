"""What SPIRV-Tools say of our modules: the validator, and where the tools are."""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path

from xetl.errors import LaunchError
from xetl_xegpu.emit.spirv_words import HEADER, instructions
from xetl_xegpu.offline import ocloc

_DECORATE = 71
_HINT_DECORATIONS = (6442, 6443)
"""Of loads and of stores; operands: level, word."""


def with_one_hint_each(module: bytes) -> bytes:
    """A module whose pointers say what they ask of one cache only.

    spirv-val 2026.4 takes a second `CacheControl...INTEL` for a repetition; its
    extension allows one for each level.
    """
    kept, hinted = [module[: 4 * HEADER]], set[tuple[int, int]]()
    for opcode, operands in instructions(module):
        if opcode == _DECORATE and operands[1] in _HINT_DECORATIONS:
            key = operands[0], operands[1]
            if key in hinted:
                continue
            hinted.add(key)
        head = (len(operands) + 1) << 16 | opcode
        kept.append(struct.pack(f"<{len(operands) + 1}I", head, *operands))
    return b"".join(kept)


def find_spirv_tool(name: str) -> Path | None:
    """``spirv-val`` or ``spirv-as``: beside the compiler, of PATH, set up, or None."""
    compiler = ocloc.find_ocloc()
    if compiler is not None and os.access(compiler.parent / name, os.X_OK):
        return compiler.parent / name
    return ocloc.find_tool(name)


def validate(spirv: bytes) -> str | None:
    """What spirv-val finds wrong with a module; None: nothing.

    Raises:
        LaunchError: there is no spirv-val.
    """
    tool = find_spirv_tool("spirv-val")
    if tool is None:
        ocloc.need_ocloc()
        help_ = "it comes with SPIRV-Tools: apt-get install spirv-tools"
        raise LaunchError("the validator `spirv-val` is not installed", "X0840", help_)
    with tempfile.TemporaryDirectory(prefix="xetl-spirv-val-") as name:
        folder = Path(name)
        (folder / "kernel.spv").write_bytes(_checkable(spirv))
        done = ocloc.run([tool, "kernel.spv"], folder)
    return done.stdout.strip() if done.returncode else None


def assembled(text: str, version: str) -> bytes:
    """What `spirv-as` makes of a text.

    Args:
        version: of SPIR-V, such as ``1.4``.

    Raises:
        AssertionError: it is no text of a module.
    """
    tool = find_spirv_tool("spirv-as")
    assert tool is not None
    with tempfile.TemporaryDirectory(prefix="xetl-spirv-as-") as name:
        folder = Path(name)
        (folder / "kernel.spvasm").write_text(text)
        options = ["--preserve-numeric-ids", "--target-env", f"spv{version}"]
        done = ocloc.run([tool, *options, "kernel.spvasm", "-o", "kernel.spv"], folder)
        assert done.returncode == 0, done.stdout
        return (folder / "kernel.spv").read_bytes()


def says_the_same(text: str, module: bytes) -> bool:
    """Whether a text is that of a module."""
    return _shapes(assembled(text, f"{module[6]}.{module[5]}")) == _shapes(module)


def _shapes(module: bytes) -> list[tuple[int, int]]:
    """Code and length of each instruction: LLVM may number two emissions otherwise."""
    return sorted((opcode, len(operands)) for opcode, operands in instructions(module))


def _checkable(spirv: bytes) -> bytes:
    """What the validator understands of a module; of what is none, all."""
    try:
        return with_one_hint_each(spirv)
    except ValueError:
        return spirv
