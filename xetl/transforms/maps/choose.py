"""Maps for what the user gave none: a model of what they cost, in plain numbers.

*Unit*: one multiply-add of the matrix unit.  A Xe core of PVC does 256 of 16 bits in a
cycle for a thread and reads 64 bytes from its first cache, so a byte read costs 4; a
byte that goes through shared memory is written, waited for and read: 16.

*A product* C(m, n) of which a subgroup owns (p, q) costs p * q * k, both rounded up to
what the matrix unit takes (8 rows, 16 columns), and (p + q) * k elements read.  Its
sums and a step of A and B must fit the registers (256 of 64 bytes); what does not is
spilled: the cost grows with the excess.  So 16-bit operands end at 32x64 a subgroup
where the tile has them, and at fewer subgroups where it is small.  Rows that something
behind the product needs whole (a sum along them, a second product) cost p * q sums
through shared memory if they are split; what is computed of them, and the sums of the
second product, want registers as well, so there are more subgroups.

*Other values* are read and written row by row, 64 bytes at least; a quarter of the
registers is for one of them.  A reduced dimension stays in one subgroup if the other
one has enough for all.

*The number of subgroups*, where no map says it, is the power of two up to 32 for which
the cost of all subgroups together is least: as few as the registers allow.

Source: docs/xetile.md, section 8 of the reference (registers, matrix unit, blocks).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from xetl.devices import DEVICES
from xetl.language.distribution import Layout, spreads
from xetl.transforms.maps.layouts import same_owners, with_data

MOST_SUBGROUPS = 32
_DEVICE = DEVICES["pvc"]
_REGISTER_BYTES = _DEVICE.registers[1] * _DEVICE.register_bytes
_VALUE_BYTES = _REGISTER_BYTES // 4
_ROW_BYTES = 64
_READ = 4.0
_EXCHANGE = 16.0
_BARRIER = 4096.0
_SHARERS = 4
"""Values that share the registers where a product's rows are needed whole: its sums,
two that are computed of them, and the sums of a second product."""
_STEP = 32
"""Columns of A and rows of B that are in registers at a time."""

Shape = tuple[int, int]


@dataclass(frozen=True)
class Product:
    """A product that needs a map.

    Attributes:
        shape: of C.
        depth: columns of A.
        bits: of an element of A and B.
        together: dimensions of C along which something behind it needs all.
        left: the map that A has already.
        right: the map that B has already.
    """

    shape: Shape
    depth: int
    bits: int
    together: frozenset[int] = frozenset()
    left: Layout | None = None
    right: Layout | None = None


def choose_product_map(product: Product, subgroups: int | None) -> Layout:
    """The cheapest map of C, for that many subgroups if there is a number already."""

    def cost(layout: Layout) -> float:
        return product_cost(product, layout)

    if subgroups is None:
        subgroups = _roomy_number(product)
    best = _cheapest(product.shape, subgroups, cost)
    if product.left is None and product.right is None:
        return best
    return min([best, *_from_sides(product)], key=cost)


def _roomy_number(product: Product) -> int:
    """How many subgroups have registers for the product, and for what follows it."""
    sharers = _SHARERS if product.together else 1
    found = _cheapest(
        product.shape, None, lambda layout: product_cost(product, layout, sharers)
    )
    return found.subgroups


def _from_sides(product: Product) -> Iterator[Layout]:
    """Maps of C that go with those of A and B."""
    left, right = product.left, product.right
    for side in (left, right):
        if side is None:
            continue
        counts = (side.sg_layout[0], side.sg_layout[1])
        rows, columns = map(_largest_part, product.shape, counts)
        if left is not None and left.sg_layout == counts:
            rows = left.sg_data[0]
        if right is not None and right.sg_layout == counts:
            columns = right.sg_data[1]
        yield Layout(counts, (rows, columns), order=side.order)


def choose_value_map(
    shape: Shape, bits: int, subgroups: int | None, together: Collection[int] = ()
) -> Layout:
    """The cheapest map of a value that is only read, written and reduced.

    Args:
        shape: of the value.
        bits: of an element.
        subgroups: how many there are; None: it is to be chosen.
        together: dimensions along which it is reduced.
    """

    def cost(layout: Layout) -> float:
        return _value_cost(shape, bits, together, layout)

    return _cheapest(shape, subgroups, cost)


def _cheapest(
    shape: Shape, subgroups: int | None, cost: Callable[[Layout], float]
) -> Layout:
    if subgroups is not None:
        return min(_candidates(shape, subgroups), key=cost)
    counts = [1 << n for n in range(MOST_SUBGROUPS.bit_length())]
    found = [layout for n in counts for layout in _candidates(shape, n)]
    return min(found, key=lambda layout: layout.subgroups * cost(layout))


def _candidates(shape: Shape, subgroups: int) -> Iterator[Layout]:
    """One map for each arrangement of the subgroups, those in a column first."""
    for columns in range(1, subgroups + 1):
        if subgroups % columns == 0:
            counts = (subgroups // columns, columns)
            rows, width = map(_largest_part, shape, counts)
            yield Layout(counts, (rows, width))


@lru_cache(maxsize=1024)
def _largest_part(extent: int, count: int) -> int:
    """The largest part of which each of ``count`` subgroups owns the least it can."""
    sizes = [n for n in range(1, extent + 1) if spreads(extent, count, n)]
    return min(sizes, key=lambda size: (_owned(extent, count, size), -size))


def _owned(extent: int, count: int, size: int) -> int:
    return size * max(1, extent // size // count)


def owned_shape(shape: Shape, layout: Layout) -> Shape:
    """Rows and columns that one subgroup owns, all its parts together."""
    rows, columns = map(_owned, shape, layout.sg_layout, layout.sg_data)
    return rows, columns


def product_cost(product: Product, layout: Layout, sharers: int = 1) -> float:
    """What one subgroup pays for a product with this map of C.

    Args:
        product: what is computed.
        layout: of C.
        sharers: how many values of its size the registers are for.
    """
    rows, columns = owned_shape(product.shape, layout)
    size, depth = product.bits / 8, product.depth
    unit = _DEVICE.matrix
    sums = _up(rows, unit.rows[-1]) * _up(columns, unit.columns)
    cost = sums * depth + _READ * (rows + columns) * depth * size
    used = sums * 4 + (rows + columns) * min(depth, _STEP) * size
    cost *= _spilled(used, _REGISTER_BYTES // sharers)
    for dim, owned in ((0, rows), (1, columns)):
        if dim in product.together and owned < product.shape[dim]:
            cost += _BARRIER + _EXCHANGE * sums * 4
    a = with_data(layout, [1], [depth])
    b = with_data(layout, [0], [depth])
    if product.left and not same_owners((product.shape[0], depth), a, product.left):
        cost += exchange_cost((product.shape[0], depth), product.bits, a)
    if product.right and not same_owners((depth, product.shape[1]), b, product.right):
        cost += exchange_cost((depth, product.shape[1]), product.bits, b)
    return cost


def exchange_cost(shape: Shape, bits: int, layout: Layout) -> float:
    """What one subgroup pays if a value gets another map."""
    rows, columns = owned_shape(shape, layout)
    return _BARRIER + _EXCHANGE * rows * columns * max(1, bits // 8)


def _value_cost(
    shape: Shape, bits: int, together: Collection[int], layout: Layout
) -> float:
    rows, columns = owned_shape(shape, layout)
    size = max(1, bits // 8)
    cost = _READ * rows * _up(columns * size, _ROW_BYTES)
    cost *= _spilled(rows * columns * size, _VALUE_BYTES)
    for dim, owned, other in ((0, rows, columns), (1, columns, rows)):
        if dim in together and owned < shape[dim]:
            cost += _BARRIER + _EXCHANGE * other * layout.sg_layout[dim] * size
    return cost


def _spilled(used: float, budget: int) -> float:
    """How much dearer it is for what does not fit."""
    return 1 + 4 * max(0.0, used / budget - 1)


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
