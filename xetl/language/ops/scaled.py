"""Products of matrices in blocks that share a scale: the formats of OCP MX.

A block is 32 numbers along K. Its scale is a power of two, stored as its exponent.
Source: OCP Microscaling Formats (MX) Specification 1.0; Triton, ``tl.dot_scaled``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.dtypes import bf16, f8e4m3, f8e5m2, f32, i32, u8
from xetl.language.operation import composite, operation
from xetl.language.ops.elementwise import where
from xetl.language.ops.moves import interleave
from xetl.language.ops.vectors import reshape, tile_mma

if TYPE_CHECKING:
    from xetl.language.values import Vector

__all__ = ["dot_scaled"]

SCALED_BLOCK = 32
"""Numbers along K that have one scale."""


@operation
def dot_scaled(
    a: Vector,
    a_scale: Vector | None,
    a_format: str,
    b: Vector,
    b_scale: Vector | None,
    b_format: str,
    c: Vector | None = None,
) -> Vector:
    """Multiply two matrices whose blocks of 32 along K have scales, and add ``c``.

    Args:
        a: (m, k) of the format's dtype, or of u8 that hold its bits; for ``"e2m1"``
            (m, k/2) of u8, two numbers in each, the first one in the low bits.
        a_scale: (m, k/32) of u8, the scale ``2 ** (x - 127)`` as x, 255 for NaN;
            None: no scale.
        a_format: ``"e4m3" "e5m2" "e2m1" "bf16"`` or ``"f16"``.
        b: (k, n), for ``"e2m1"`` (k/2, n); otherwise as ``a``.
        b_scale: (n, k/32): a row for each column of ``b``, as in Triton.
        b_format: as ``a_format``.
        c: (m, n) of f32; zero when absent.

    Returns:
        (m, n) of f32.  The scaled operands are rounded to bf16, which is exact except
        for underflow; to f32 if one of the formats is f16.

    Raises:
        TileShapeError: the shapes above do not agree, or k is no multiple of 32.
        TileTypeError: the dtypes above do not agree.
        NameLookupError: there is no such format.
    """
    ...


@composite
def scaled_product(
    a: Vector,
    a_scale: Vector | None,
    a_format: str,
    b: Vector,
    b_scale: Vector | None,
    b_format: str,
    c: Vector | None = None,
) -> Vector:
    """Compute `dot_scaled`; its operands were checked before."""
    if a_format == "e2m1" and b_format == "e2m1":
        # Any order along K will do: first all numbers in low bits, then all others.
        low = _product_of_e2m1(a, a_scale, b, b_scale, c)
        return _product_of_e2m1(a >> 4, a_scale, b >> 4, b_scale, low)
    wide = f32 if "f16" in (a_format, b_format) else bf16
    left = _scaled(_numbers(a, a_format), a_scale).to(wide)
    right = b
    if b_scale is None and b_format != "e2m1":
        right = _numbers(b, b_format).to(wide)
    else:
        right = _scaled(_numbers(b.T, b_format), b_scale).to(wide).T
    return tile_mma(left, right, c)


@composite
def _product_of_e2m1(
    a: Vector,
    a_scale: Vector | None,
    b: Vector,
    b_scale: Vector | None,
    c: Vector | None,
) -> Vector:
    """A product of codes, one in each element."""
    left = _scaled(_of_e2m1((a & 15).to(i32)), a_scale).to(bf16)
    right = _scaled(_of_e2m1((b.T & 15).to(i32)), b_scale).to(bf16).T
    return tile_mma(left, right, c)


@composite
def _numbers(codes: Vector, format: str) -> Vector:
    """The numbers of rows of codes, in a dtype that holds them."""
    if format == "e2m1":
        return _of_e2m1(interleave(codes & 15, codes >> 4).to(i32))
    if format == "e4m3":
        return codes.to(f8e4m3, bitcast=True)
    if format == "e5m2":
        return codes.to(f8e5m2, bitcast=True)
    return codes


@composite
def _of_e2m1(code: Vector) -> Vector:
    """The f32 of i32 codes: sign, two bits of exponent, one of fraction."""
    magnitude = code & 7
    normal = ((magnitude << 22) + (126 << 23)).to(f32, bitcast=True)
    positive = where(magnitude < 2, magnitude.to(f32) * 0.5, normal)
    return where(code < 8, positive, -positive)


@composite
def _scaled(v: Vector, scale: Vector | None) -> Vector:
    """The rows of ``v``, each block by its scale; in f32 if there is one."""
    if scale is None:
        return v
    exponent = scale.to(u8, bitcast=True).to(i32)
    # The smallest one is subnormal in f32.
    bits = where(exponent > 0, exponent << 23, 1 << 22)
    factor = where(exponent < 255, bits, 0x7FC00000).to(f32, bitcast=True)
    wide = v.to(f32)
    if scale.shape[1] == 1:
        return wide * factor
    blocks = v.shape[0] * scale.shape[1]
    length = v.shape[1] // scale.shape[1]
    product = reshape(wide, (blocks, length)) * reshape(factor, (blocks, 1))
    return reshape(product, v.shape)
