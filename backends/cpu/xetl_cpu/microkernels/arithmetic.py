"""How a micro-kernel multiplies: which instruction, on what, into what.

| name     | A and B          | panels | adds up in | per lane and instruction    |
|----------|------------------|--------|------------|-----------------------------|
| `fma`    | f32, f64         | same   | same       | 1 product, fused            |
| `fma`    | f16, bf16        | f32    | f32        | 1 product, fused            |
| `dpbf16` | bf16             | bf16   | f32        | 2 (AVX512-BF16)             |
| `vnni`   | i8, u8           | i8     | i32        | 4 (AVX512-VNNI `vpdpbusd`)  |
| `madd`   | i8, u8           | i16    | i32        | 2 (`vpmaddwd` and an add)   |
| `amx`    | bf16, or i8, u8  | same   | f32, i32   | tiles, see `amx.py`         |

`vpdpbusd` multiplies unsigned bytes by signed ones.  Where both operands are of one
sign, A is moved by 128 (one exclusive or of its broadcast word) and what that adds to
every row, 128 times the sum of B's column, is taken off at the end.
"""

from __future__ import annotations

from typing import Literal

from xetl.records import record
from xetl_cpu.llvm import (
    BF16,
    F32,
    F64,
    I8,
    I16,
    I32,
    Builder,
    Type,
    Value,
    const,
    vector,
)
from xetl_cpu.targets import Target

__all__ = ["DTYPES", "Arithmetic", "choose_arithmetic"]

DTYPES = ("f32", "bf16", "f16", "f64", "i8")
"""Element types there is a block GEMM for."""

Instruction = Literal["fma", "dpbf16", "vnni", "madd", "amx"]
Signs = tuple[bool, bool]
"""Whether A and B are unsigned."""

_BYTES = {"f64": 8, "f32": 4, "i32": 4, "bf16": 2, "i16": 2, "i8": 1}


@record(frozen=True)
class Arithmetic:
    """One row of the table above.

    Attributes:
        compute: element type of packed panels, and of A as it is read.
        accumulator: element type of C in scratch.
        k_pack: consecutive k that lie together, in panels and in a word of A.
        unsigned: of A and B, for bytes.
    """

    instruction: Instruction
    compute: str
    accumulator: str
    k_pack: int
    unsigned: Signs = (False, False)

    @property
    def compute_bytes(self) -> int:
        """Size of an element of A and of a panel."""
        return _BYTES[self.compute]

    @property
    def accumulator_bytes(self) -> int:
        """Size of an element of C."""
        return _BYTES[self.accumulator]

    @property
    def name(self) -> str:
        """Part of the names of the functions made for it."""
        signs = "".join("su"[one] for one in self.unsigned)
        return self.instruction + "_" + self.compute + (signs if self.is_bytes else "")

    @property
    def is_bytes(self) -> bool:
        """Whether A and B are i8 or u8."""
        return self.accumulator == "i32"

    @property
    def moves_a(self) -> bool:
        """Whether A is moved by 128, which the columns of B have to make good."""
        return self.instruction == "vnni" and self.unsigned[0] == self.unsigned[1]

    @property
    def word(self) -> Type:
        """``k_pack`` elements of A; a lane of B holds as many."""
        return {8: F64, 4: F32}[self.compute_bytes] if self.k_pack == 1 else I32

    @property
    def accumulator_type(self) -> Type:
        """LLVM's type of an element of C."""
        return {"f32": F32, "f64": F64, "i32": I32}[self.accumulator]

    def move(self, builder: Builder, words: Value) -> Value:
        """Broadcast words of A as the instruction takes them."""
        if not self.moves_a:
            return words
        # Adding 128 to a byte, or taking it off, is to turn its highest bit over.
        return builder.xor(words, 0x80808080)

    def multiply_add(self, builder: Builder, a: Value, b: Value, total: Value) -> Value:
        """``total + a * b`` in every lane, ``k_pack`` products each."""
        lanes = total.type.count
        if self.instruction == "fma":
            return self.fma(builder, a, b, total)
        if self.instruction == "dpbf16":
            pairs = [builder.bitcast(x, vector(BF16, 2 * lanes)) for x in (a, b)]
            name = f"llvm.x86.avx512bf16.dpbf16ps.{lanes * 32}"
            return builder.intrinsic(name, total.type, [total, *pairs])
        if self.instruction == "madd":
            pairs = [builder.bitcast(x, vector(I16, 2 * lanes)) for x in (a, b)]
            name = "avx2.pmadd.wd" if lanes == 8 else "avx512.pmaddw.d.512"
            product = builder.intrinsic(f"llvm.x86.{name}", total.type, pairs)
            return builder.add(total, product)
        # Which operand's bytes are unsigned now that A may have been moved?
        unsigned, signed = (b, a) if self.unsigned[1] else (a, b)
        return self._dot_bytes(builder, unsigned, signed, total)

    def fma(self, builder: Builder, a: Value, b: Value, total: Value) -> Value:
        """``total + a * b`` in every lane, all of the accumulator's type."""
        name = f"llvm.fma.v{total.type.count}{self.accumulator}"
        return builder.intrinsic(name, total.type, [a, b, total])

    def surplus(self, builder: Builder, b: Value, total: Value) -> Value:
        """``total`` and what moving A adds to the lanes of ``b``; `moves_a` holds."""
        # As bytes: 128 where A was signed, -128 where it was unsigned.
        moved = const(b.type, 0x80808080)
        unsigned, signed = (b, moved) if self.unsigned[1] else (moved, b)
        return self._dot_bytes(builder, unsigned, signed, total)

    @staticmethod
    def _dot_bytes(
        builder: Builder, unsigned: Value, signed: Value, total: Value
    ) -> Value:
        lanes = total.type.count
        quads = [builder.bitcast(x, vector(I8, 4 * lanes)) for x in (unsigned, signed)]
        name = f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"
        return builder.intrinsic(name, total.type, [total, *quads])

    def add(self, builder: Builder, a: Value, b: Value) -> Value:
        """The sum of two accumulators."""
        return builder.add(a, b) if self.is_bytes else builder.fadd(a, b)


def choose_arithmetic(
    target: Target, dtype: str, unsigned: Signs = (False, False)
) -> Arithmetic:
    """The fastest instruction of the target for operands of ``dtype``.

    Raises:
        ValueError: there is no block GEMM for ``dtype``.
    """
    if dtype not in DTYPES:
        raise ValueError(f"no block GEMM for {dtype}; there is one for {DTYPES}")
    if dtype == "f64":
        return Arithmetic("fma", "f64", "f64", 1)
    if dtype == "i8":
        if target.has_amx:
            return Arithmetic("amx", "i8", "i32", 4, unsigned)
        if target.has_vnni:
            return Arithmetic("vnni", "i8", "i32", 4, unsigned)
        return Arithmetic("madd", "i16", "i32", 2, unsigned)
    if dtype == "bf16" and target.has_amx:
        return Arithmetic("amx", "bf16", "f32", 2)
    if dtype == "f32" or target.widens(dtype):
        return Arithmetic("fma", "f32", "f32", 1)
    return Arithmetic("dpbf16", "bf16", "f32", 2)
