"""What the ways to compute a convolution cost.

Costs are in multiplications of a vector by a number, for each image. [measured] Zen 4,
with vectors of 16 and images of 7 to 224 columns; the ratios of the factors matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xetl.language.ops import cdiv
from xetl.ops.calling.declarations import Operand
from xetl.ops.calling.views import array_of, vectors_of
from xetl.ops.convolution.geometry import Geometry, Pair
from xetl.runtime.executables import choose_target
from xetl.runtime.placement import choose_backend

_ROW, _ELEMENT = 10, 3
"""A vector of a row that is copied, and an element that is gathered."""
_LANES = 9
"""The sum of the lanes of a vector in memory."""
_LEAST_ROWS = 16
"""Products with fewer rows take as long."""
_LEAST_WINDOWS = 96
"""Products of windows with fewer rows take as long: they wait for the gradient."""
_LINE = 64
"""Bytes of a row that a product on tiles of AMX takes at once."""
_WINDOW, _UNALIGNED = 15, 8
"""A row of windows for tiles: copied, if it is no whole lines; read across lines.

[measured] Sapphire Rapids, 8 to 64 channels, images of 14 to 56 columns.
"""
_OF_PAIRS, _OF_TILES = 1.5, 4
"""How much faster products of 16 bits are, and those on tiles of AMX.

They are no faster in copying. [measured] Tiles: Granite Rapids, 3 x 3 taps.
"""


def cost_of_products(x: Operand, parts: Sequence[Geometry], channels: Pair) -> float:
    """Return the cost of products of windows: they have channels in vectors.

    Args:
        x: the image.
        parts: the convolutions; the result consists of theirs.
        channels: channels of ``x`` and of the result.
    """
    (inner, outer), lanes = channels, vectors_of(x)[1]
    terms = sum(prod(g.taps) * prod(g.result) for g in parts)
    copied = max(_vectors(x, g) for g in parts)
    cost = inner * (terms * cdiv(outer, lanes) / _speed(x) + _ROW * copied)
    if is_on_tiles(x):
        step = step_of_k(x)
        each = (g.taps[0] * prod(g.result) for g in parts if inner * g.taps[1] % step)
        cost += _WINDOW * sum(each)
    return cost


def cost_of_sums(x: Operand, parts: Sequence[Geometry], channels: Pair) -> float:
    """Return the cost of sums of rows (see `direct`); as for `cost_of_products`."""
    inner, outer = channels
    each = ((_ROW + outer * prod(g.taps)) * _vectors(x, g) for g in parts)
    return inner * sum(each)


def cost_of_scattering(grad: Operand, size: Pair, g: Geometry, channels: Pair) -> float:
    """Return the cost of a gradient of the input as sums over windows.

    Args:
        grad: the gradient of the result.
        size: rows and columns of the input.
        g: the convolution.
        channels: channels of ``grad`` and of the input.
    """
    inner, outer = channels
    terms = prod(g.taps) * inner * prod(g.result) / vectors_of(grad)[1]
    seen = prod(cdiv(k, s) for k, s in zip(g.taps, g.stride))
    return outer * (terms / _speed(grad) + _ELEMENT * prod(size) * seen)


def cost_of_weight_products(x: Operand, g: Geometry, channels: Pair) -> float:
    """Return the cost of a gradient of the weight as products over pixels.

    ``channels``: of ``x`` and of the result.
    """
    (inner, outer), lanes, (kh, kw) = channels, vectors_of(x)[1], g.taps
    vectors = _vectors(x, g)
    if g.stride == (1, 1):
        rows = kh * max(kw * inner, _LEAST_ROWS)
        copied = kw * inner * g.padded[0] * cdiv(g.result[1], lanes)
    else:
        rows = max(kh * kw * inner, _LEAST_WINDOWS)
        copied = inner * g.padded[0] * cdiv(g.padded[1], lanes)
        copied += kh * kw * inner * vectors
    terms = rows * prod(g.result) * cdiv(outer, lanes)
    seen = kh * prod(g.result) * is_on_tiles(x)
    return terms / _speed(x) + _ROW * (copied + outer * vectors) + _UNALIGNED * seen


def cost_of_weight_sums(x: Operand, g: Geometry, channels: Pair) -> float:
    """Return the cost of `direct_by_weight`; as for `cost_of_weight_products`."""
    (inner, outer), vectors = channels, _vectors(x, g)
    planes = g.stride[1] * g.padded[0] * cdiv(g.result[1], vectors_of(x)[1])
    copied = _ROW * (inner * planes + outer * vectors)
    return copied + inner * outer * prod(g.taps) * (vectors + _LANES)


def _vectors(x: Operand, g: Geometry) -> int:
    """Return the vectors of all rows of a result."""
    rows, columns = g.result
    return rows * cdiv(columns, vectors_of(x)[1])


def multiplies_pairs(x: Operand) -> bool:
    """Return whether products multiply two elements of 16 bits in a lane."""
    return step_of_k(x) > 1


def is_on_tiles(x: Operand) -> bool:
    """Return whether products are computed on tiles of AMX."""
    return step_of_k(x) > 2


def step_of_k(x: Operand) -> int:
    """Return how many elements of k products take at once: one, a pair, a line."""
    backend = choose_backend(values=[array_of(x)])
    name, rows = backend.products(choose_target(backend), x.dtype.name)
    if x.dtype.itemsize != 2 or name != x.dtype.name:
        return 1
    return _LINE // x.dtype.itemsize if rows else 2


def _speed(x: Operand) -> float:
    """Return how much faster products are than those of the dtype of their sums."""
    step = step_of_k(x)
    return 1 if step == 1 else _OF_PAIRS if step == 2 else _OF_TILES
