"""How a micro-kernel multiplies: the instruction, its operands and its accumulators.

| name     | A and B          | panels | adds up in | per lane and instruction    |
|----------|------------------|--------|------------|-----------------------------|
| `fma`    | f32, f64         | same   | same       | 1 product, fused            |
| `fma`    | f16, bf16        | f32    | f32        | 1 product, fused            |
| `dpbf16` | bf16             | bf16   | f32        | 2 (AVX512-BF16)             |
| `vnni`   | i8, u8           | i8     | i32        | 4 (AVX512-VNNI `vpdpbusd`)  |
| `madd`   | i8, u8           | i16    | i32        | 2 (`vpmaddwd` and an add)   |
| `amx`    | bf16, or i8, u8  | same   | f32, i32   | tiles, see `amx.py`         |

`vpdpbusd` multiplies unsigned bytes by signed ones.  If both operands have the same
signedness, B is shifted by 128 (one exclusive or as it is packed). That adds 128 times
the sum of A's row to the row, which is subtracted at the end: a product of A with
zeros, as they are packed. To shift A, in the loop, takes two more instructions a word
(1024 cubed on Zen 5: 1007 GOP/s, now 1074).
"""

from __future__ import annotations

from typing import Literal

from xetl.records import record
from xetl_cpu.llvm import BF16, F32, F64, I8, I16, I32, Builder, Type, Value, vector
from xetl_cpu.targets import Target

__all__ = ["DTYPES", "SHIFT", "Arithmetic", "choose_arithmetic", "shifted"]

DTYPES = ("f32", "bf16", "f16", "f64", "i8")
"""Element types that have a block GEMM."""

Instruction = Literal["fma", "dpbf16", "vnni", "madd", "amx"]
Signs = tuple[bool, bool]
"""Whether A and B are unsigned."""

SHIFT = 0x80808080
"""Four shifted zeros. To add 128 modulo 256, or subtract it, flips the highest bit."""

_BYTES = {"f64": 8, "f32": 4, "i32": 4, "bf16": 2, "i16": 2, "i8": 1}


@record(frozen=True)
class Arithmetic:
    """One row of the table above.

    Attributes:
        compute: element type of packed panels, and of A as it is read.
        accumulator: element type of C in scratch.
        k_pack: consecutive k that are adjacent, in panels and in a word of A.
        unsigned: whether A and B have unsigned bytes.
    """

    instruction: Instruction
    compute: str
    accumulator: str
    k_pack: int
    unsigned: Signs = (False, False)

    @property
    def compute_bytes(self) -> int:
        """The size of an element of A and of a panel."""
        return _BYTES[self.compute]

    @property
    def accumulator_bytes(self) -> int:
        """The size of an element of C."""
        return _BYTES[self.accumulator]

    @property
    def name(self) -> str:
        """A part of the names of functions for it."""
        signs = "".join("su"[one] for one in self.unsigned)
        return self.instruction + "_" + self.compute + (signs if self.is_bytes else "")

    @property
    def is_bytes(self) -> bool:
        """Whether A and B are i8 or u8."""
        return self.accumulator == "i32"

    @property
    def shifts_b(self) -> bool:
        """Whether B is shifted by 128, which sums of A's rows must correct."""
        return self.instruction == "vnni" and self.unsigned[0] == self.unsigned[1]

    @property
    def word(self) -> Type:
        """The type of ``k_pack`` elements of A; a lane of B holds as many."""
        return {8: F64, 4: F32}[self.compute_bytes] if self.k_pack == 1 else I32

    @property
    def accumulator_type(self) -> Type:
        """LLVM's type of an element of C."""
        return {"f32": F32, "f64": F64, "i32": I32}[self.accumulator]

    def multiply_add(self, builder: Builder, a: Value, b: Value, total: Value) -> Value:
        """Return ``total + a * b`` in every lane, ``k_pack`` products each."""
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
        # B may have been shifted: its bytes are unsigned if those of A are not.
        pair = (a, b) if self.unsigned[0] else (b, a)
        quads = [builder.bitcast(x, vector(I8, 4 * lanes)) for x in pair]
        name = f"llvm.x86.avx512.vpdpbusd.{lanes * 32}"
        return builder.intrinsic(name, total.type, [total, *quads])

    def fma(self, builder: Builder, a: Value, b: Value, total: Value) -> Value:
        """Return ``total + a * b`` in every lane, all of the accumulator's type."""
        name = f"llvm.fma.v{total.type.count}{self.accumulator}"
        return builder.intrinsic(name, total.type, [a, b, total])

    def add(self, builder: Builder, a: Value, b: Value) -> Value:
        """Return the sum of two accumulators."""
        return builder.add(a, b) if self.is_bytes else builder.fadd(a, b)

    def totals(self, builder: Builder, sums: list[Value]) -> list[Value]:
        """Return the sums of each vector's lanes, in vectors; the last one repeats."""
        lanes, size = sums[0].type.count, 1 << (len(sums) - 1).bit_length()
        vectors = sums + [sums[-1]] * (size - len(sums))
        for _ in range(lanes.bit_length() - 1):
            if len(vectors) == 1:
                vectors *= 2
            halves = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [self._folded(builder, *pair) for pair in halves]
        return vectors

    def _folded(self, builder: Builder, one: Value, other: Value) -> Value:
        """Return the sums of neighbouring lanes, first those of the first vector."""
        lanes = 2 * one.type.count
        even, odd = (
            builder.shuffle(one, other, range(start, lanes, 2)) for start in (0, 1)
        )
        return self.add(builder, even, odd)


def shifted(builder: Builder, values: Value) -> Value:
    """Return bytes, or words of four, with 128 added to each byte modulo 256."""
    width = getattr(values.type, "element", values.type).width
    return builder.xor(values, SHIFT % (1 << width))


def choose_arithmetic(
    target: Target, dtype: str, unsigned: Signs = (False, False)
) -> Arithmetic:
    """Return the fastest instruction of the target for operands of ``dtype``.

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
