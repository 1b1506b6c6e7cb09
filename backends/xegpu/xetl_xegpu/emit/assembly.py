"""Calls that become inline assembly, for operations that OpenCL C has no function for.

Products need all lower halves, and all upper halves, of 32-bit words that a message has
transposed. Intel's compiler moves the halves of one word with an instruction of 16
lanes. An instruction of 32 lanes moves those of two words, one after the other.
[measured] ocloc 26.27, a GEMM of bf16 with A transposed: see docs/gpu.md, "Bars".

LLVM's SPIR-V backend has no inline assembly with vectors. So kernels call an undefined
function, and this module replaces its declaration by the assembly, with the same id.

Sources: SPV_INTEL_inline_assembly; Intel Graphics Compiler, documentation/visa.
"""

from __future__ import annotations

import re
import struct

from xdsl.dialects.builtin import i32

from xetl.codegen import vector as core
from xetl.codegen.emitter import EmitTable
from xetl.codegen.types import I32, Value
from xetl.dialects.base import element_type, ints_of, shape_of
from xetl.dialects.upstream import vector
from xetl_xegpu import simt
from xetl_xegpu.emit.builtins import combined_rows, halves_of_words
from xetl_xegpu.emit.emitter import KernelEmitter, together
from xetl_xegpu.emit.llvm_spirv import TRIPLE
from xetl_xegpu.emit.spirv_words import Instruction, instructions, text_of
from xetl_xegpu.emit.workgroup import reduced

_WORDS = 8
"""Words of a lane; each is a register of 16 lanes."""


def _shuffle(em: KernelEmitter, op: vector.ShuffleOp) -> object:
    """Emit the choice of one half of eight words as assembly, all else by the core."""
    words, order = op.operands[0].owner, ints_of(op.mask)
    are_halves = (
        isinstance(words, vector.BitcastOp)
        and element_type(words.source.type) == i32
        and shape_of(words.source.type) == (_WORDS,)
        and order == tuple(range(order[0], 2 * _WORDS, 2))
    )
    if em.device.emulated or not are_halves:
        return core.TABLE[vector.ShuffleOp](em, op)
    assert isinstance(words, vector.BitcastOp)
    return em.call(halves_of_words(order[0]), [em.get(words.source)])


def _reduce_rows(em: KernelEmitter, op: simt.ReduceRowsOp) -> Value:
    """Emit the reduction of eight rows as assembly; emulated, one row after the other.

    Intel's compiler takes 64 instructions, and 7 more until lane l has row l.
    """
    b, kind, value = em.builder, op.kind.data, em.get(op.value)
    rows = [b.extract_element(value, I32(row)) for row in range(_WORDS)]
    if not em.device.emulated:
        pairs = [together(b, [rows[n], rows[n + 1]]) for n in range(0, _WORDS, 2)]
        return em.call(combined_rows(simt.KINDS_OF_ROWS[kind]), pairs)
    first, *others = (reduced(em, kind, row) for row in rows)
    lane = b.and_(em.lane(), I32(_WORDS - 1))
    for number, each in enumerate(others, 1):
        first = b.select(b.icmp_signed("==", lane, I32(number)), each, first)
    return first


TABLE: EmitTable = {vector.ShuffleOp: _shuffle, simt.ReduceRowsOp: _reduce_rows}


def _halves(first: int) -> str:
    """Return the assembly: $0 is the result of 4 registers, $1 has 8, as halves."""
    moves = [
        f"mov (M1_NM, 32) X({n},0)<1> W({2 * n},{first})<2;1,0>"
        for n in range(_WORDS // 2)
    ]
    declared = [
        f".decl {name} v_type=G type=uw num_elts={count * 16} alias=<${operand}, 0>"
        for name, count, operand in (("X", _WORDS, 0), ("W", 2 * _WORDS, 1))
    ]
    return "\n".join(["{", *declared, *moves, "}"])


_ROWS = [*((f"A{n}", 32) for n in range(_WORDS // 2)), ("B", 64), ("C", 32), ("D", 16)]
"""Pairs of rows, which are halved three times."""


def _rows(name: str) -> str:
    """Return the assembly: $1 to $4 are pairs of rows, whose halves are combined.

    As one operand, all rows would be adjacent; but then Intel's compiler makes vectors
    of all that led to them, and spills.
    """
    declared = [f".decl {each} v_type=G type=f num_elts={size}" for each, size in _ROWS]
    declared.append(".decl E v_type=G type=f num_elts=16")
    for n, operand in ((0, 1), (1, 2), (2, 3), (3, 4), (-1, 0)):
        declared[n] += f" alias=<${operand}, 0>"
    code: list[str] = []
    for target, source, row, region, step in (
        *((f"B({n},0)", f"A{n}", 0, "<16;8,1>", 8) for n in range(_WORDS // 2)),
        *((f"C({n},0)", "B", 2 * n, "<8;4,1>", 4) for n in range(2)),
        *(("D(0,0)", "C", 0, "<4;2,1>", 2), ("E(0,0)", "D", 0, "<0;8,2>", 1)),
    ):
        sides = " ".join(f"{source}({row},{at}){region}" for at in (0, step))
        code.append(f"{name} (M1_NM, 16) {target}<1> {sides}")
    return "\n".join(["{", *declared, *code, "}"])


CODES = {
    **{halves_of_words(first).symbol: _halves(first) for first in (0, 1)},
    **{combined_rows(n).symbol: _rows(n) for n in simt.KINDS_OF_ROWS.values()},
}
"""The assembly of each function that becomes some."""


def _constraints(code: str) -> str:
    """Return the constraints of a result and of the operands that code names."""
    return "=rw" + ",rw" * (len(set(re.findall(r"\$\d", code))) - 1)


_NEEDS = "SPV_INTEL_inline_assembly"

_NAME, _EXTENSION, _CAPABILITY, _DECORATE = 5, 10, 17, 71
_FUNCTION, _FUNCTION_END, _CALL = 54, 56, 57
_ASM_CAPABILITY, _ASM_TARGET, _ASM, _ASM_CALL = 5606, 5609, 5610, 5611


def in_module(module: bytes) -> bytes:
    """Return a module of SPIR-V with the declarations replaced by the assembly."""
    found = list(instructions(module))
    named = [each.operands for each in found if each.opcode == _NAME]
    texts = {number: text_of(words) for number, *words in named}
    codes = {number: CODES[name] for number, name in texts.items() if name in CODES}
    if not codes:
        return module
    (target,) = struct.unpack_from("<I", module, 12)
    made = [Instruction(_ASM_TARGET, [target, *_words(TRIPLE)])]
    kept: list[Instruction] = []
    gone, is_inside = set(codes), False
    for opcode, operands in found:
        if opcode == _FUNCTION and operands[1] in codes:
            is_inside = True
            result, number, _, type_ = operands
            code = [*_words(codes[number]), *_words(_constraints(codes[number]))]
            made.append(Instruction(_ASM, [result, number, type_, target, *code]))
        elif is_inside:
            is_inside = opcode != _FUNCTION_END
            gone |= set(operands[1:])  # of a parameter
        elif opcode == _CALL and operands[2] in codes:
            kept.append(Instruction(_ASM_CALL, operands))
        else:
            kept.append(Instruction(opcode, operands))
    about = (_NAME, _DECORATE)
    kept = [x for x in kept if x.opcode not in about or x.operands[0] not in gone]
    start = next(n for n, x in enumerate(kept) if x.opcode == _FUNCTION)
    kept[start:start] = made
    start = next(n for n, x in enumerate(kept) if x.opcode != _CAPABILITY)
    kept[start:start] = [
        Instruction(_CAPABILITY, [_ASM_CAPABILITY]),
        Instruction(_EXTENSION, _words(_NEEDS)),
    ]
    head = module[:12] + struct.pack("<2I", target + 1, 0)
    sizes = [len(each.operands) + 1 for each in kept]
    return head + b"".join(
        struct.pack(f"<{size}I", size << 16 | each.opcode, *each.operands)
        for size, each in zip(sizes, kept)
    )


def _words(text: str) -> list[int]:
    """Return a string as operands: its bytes, and 1 to 4 zeros."""
    data = text.encode()
    data += b"\0" * (4 - len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


_DECLARED = r"^\s*{} = OpFunction (%\d+) None (%\d+)\n(?:.*\n)*?\s*OpFunctionEnd\n"


def in_text(text: str) -> str:
    """Return the text of a module with the declarations replaced by the assembly."""
    named = re.findall(r'OpName (%\d+) "(\w+)"', text)
    codes = {number: CODES[name] for number, name in named if name in CODES}
    if not codes:
        return text
    last = max(int(number) for number in re.findall(r"%(\d+)", text))
    made = [f'%{last + 1} = OpAsmTargetINTEL "{TRIPLE}"']
    for number, code in codes.items():
        declared = re.search(_DECLARED.format(number), text, re.MULTILINE)
        assert declared is not None
        types = f"{declared[1]} {declared[2]} %{last + 1}"
        made.append(f'{number} = OpAsmINTEL {types} "{code}" "{_constraints(code)}"')
        text = text.replace(declared[0], "")
        for gone in re.findall(r"(%\d+) = OpFunction", declared[0]):
            about = rf"^\s*Op(Name|Decorate) {gone} .*\n"
            text = re.sub(about, "", text, flags=re.MULTILINE)
        called = rf"OpFunctionCall (%\d+) {number}\b"
        text = re.sub(called, rf"OpAsmCallINTEL \1 {number}", text)
    needs = ["OpCapability AsmINTEL", f'OpExtension "{_NEEDS}"']
    text = _before(r"(?!\s*OpCapability)", needs, text)
    return _before(r"\s*%\d+ = OpFunction ", made, text)


def _before(line: str, lines: list[str], text: str) -> str:
    """Return the text with lines inserted before the first match of ``line``."""
    found = re.search(f"^{line}", text, re.MULTILINE)
    assert found is not None
    new = "".join(f"\t{each}\n" for each in lines)
    return text[: found.start()] + new + text[found.start() :]
