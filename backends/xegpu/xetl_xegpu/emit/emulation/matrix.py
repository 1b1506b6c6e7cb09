"""Products of blocks: each lane has a column of B and C, and asks others for A.

Products of 16-bit floats are exact in f32; sums run in f32, in the order of k.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xetl.codegen.arith import round_to_bf16
from xetl.codegen.llvm import ll
from xetl.codegen.types import F32, HALF, I8, I16, I32
from xetl_xegpu.emit.builtins import Product
from xetl_xegpu.emit.emulation.body import Body, together

_TF32 = 0xFFFFE000
"""What tf32 keeps of an f32."""
_HIGH = 0xFFFF0000


def define(body: Body) -> None:
    """Write the product."""
    assert body.builtin.product is not None
    numbers = _Numbers(body, body.builtin.product)
    b, product = body.builder, numbers.product
    sums = [numbers.start(m) for m in range(product.rows)]
    for k in range(product.depth):
        right = numbers.right(k)
        for m, total in enumerate(sums):
            left = numbers.left(m, k)
            if product.acc == "i32":
                sums[m] = b.add(total, b.mul(left, right))
            else:
                sums[m] = b.fadd(total, b.fmul(left, right))
    b.ret(numbers.result(sums))


@dataclass
class _Numbers:
    """The operands of a product as numbers to compute with."""

    body: Body
    product: Product
    asked: dict[tuple[int, int], Any] = field(default_factory=dict[Any, Any])

    def left(self, m: int, k: int) -> Any:
        """A[m, k]; see `xetl_xegpu.simt.DpasOp` for the lane that holds it."""
        if self.product.a == "tf32":
            item, lane, shift = m // 2, m % 2 * 8 + k, 0
            return self._number(self._asked(item, lane), shift, "tf32")
        pairs = 16 // self.product.bits
        lane, part = divmod(k, pairs)
        shift = m % 2 * 16 + part * self.product.bits
        return self._number(self._asked(m // 2, lane), shift, self.product.a)

    def _asked(self, dword: int, lane: int) -> Any:
        """A dword of A as a lane has it, asked for once."""
        if (dword, lane) not in self.asked:
            mine = _dword(self.body.builder, self.body.arguments[0], dword)
            self.asked[dword, lane] = self.body.broadcast(mine, lane)
        return self.asked[dword, lane]

    def right(self, k: int) -> Any:
        """B[k] of this lane's column."""
        dword, part = divmod(k, 32 // self.product.bits)
        mine = _dword(self.body.builder, self.body.arguments[1], dword)
        return self._number(mine, part * self.product.bits, self.product.b)

    def _number(self, dword: Any, shift: int, type_: str) -> Any:
        """The bits of a dword from ``shift`` on, as f32 or i32."""
        b = self.body.builder
        if type_ == "tf32":
            return b.bitcast(b.and_(dword, I32(_TF32)), F32)
        if type_ == "bf16":
            high = b.and_(dword, I32(_HIGH)) if shift else b.shl(dword, I32(16))
            return b.bitcast(high, F32)
        low = b.lshr(dword, I32(shift)) if shift else dword
        if type_ == "f16":
            return b.fpext(b.bitcast(b.trunc(low, I16), HALF), F32)
        extend = b.sext if type_ == "i8" else b.zext
        return extend(b.trunc(low, I8), I32)

    def start(self, m: int) -> Any:
        """C[m], to add to."""
        b, c = self.body.builder, self.body.arguments[2]
        value = c if self.product.rows == 1 else b.extract_element(c, I32(m))
        if self.product.acc == "bf16":
            return b.bitcast(b.shl(b.zext(value, I32), I32(16)), F32)
        return b.fpext(value, F32) if self.product.acc == "f16" else value

    def result(self, sums: list[Any]) -> Any:
        """The sums, rounded once, as the function gives them."""
        b = self.body.builder
        if self.product.acc == "f16":
            sums = [b.fptrunc(total, HALF) for total in sums]
        elif self.product.acc == "bf16":
            sums = [round_to_bf16(b, total) for total in sums]
        return together(b, sums)


def _dword(b: Any, items: Any, number: int) -> Any:
    """32 bits of an operand: of a vector or a number, of 16 or 32 bits an item."""
    count = getattr(items.type, "count", 1)
    element = getattr(items.type, "element", items.type)
    if element == I16 and count == 1:
        return b.zext(items, I32)
    dwords = count // 2 if element == I16 else count
    if dwords == 1:
        return items if items.type == I32 else b.bitcast(items, I32)
    if element != I32:
        items = b.bitcast(items, ll.VectorType(I32, dwords))
    return b.extract_element(items, I32(number))
