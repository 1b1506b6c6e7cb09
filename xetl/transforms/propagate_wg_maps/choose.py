"""Choose maps where the user gave none, by a cost model.

*Unit*: one cycle of an engine of the device (`xetl.devices`, `Speed`). Reading a byte
costs its time in the first cache. A byte through shared memory is written, waited for
and read, and costs four times as much.

*A product* C(m, n) of which a subgroup owns (p, q) costs p * q * k on the matrix unit,
with p and q rounded up to the unit's block (8 rows, 16 columns), and (p + q) * k
elements read. Its sums and one step of A and B must fit the registers (256 of 64
bytes). Values that do not fit are spilled: the cost grows with the excess. So a
subgroup gets 32x64 of 16-bit operands if the tile is large enough; a small tile gets
fewer subgroups. An operation after the product may need whole rows (a sum along them, a
second product). Split rows then cost p * q sums through shared memory. The values
computed from the rows, and the sums of the second product, need registers as well, so
there are more subgroups.

*Other values* are read and written row by row, at least 64 bytes each. One of them may
take a quarter of the registers. What lives at once must fit, too: if no rows are
reduced, in the small register file, with which twice as many threads run. A reduced
dimension stays in one subgroup if the other dimension is large enough for all
subgroups; a scanned dimension always does.

*The number of subgroups*, if no map states it, is the power of two with the least cost
of all subgroups together, up to the number a core has room for: as few subgroups as the
registers allow.

Source: docs/xetile.md, section 8 of the reference (registers, matrix unit, blocks); the
numbers are those of `xetl.devices`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, partial
from math import prod

from xdsl.dialects.builtin import FloatTF32Type, IntegerType

from xetl.devices import LOAD_BYTES, ROW_BYTES, Device
from xetl.dialects.base import element_type
from xetl.dialects.xetile import TileMmaOp
from xetl.language.distribution import Layout, spreads
from xetl.records import record
from xetl.transforms.propagate_wg_maps.map_attributes import same_owners, with_data

_READS = 4
"""The cost of a byte through shared memory, in bytes read."""
_BARRIER = 16.0
_SHARERS = 4
"""Values that share the registers if whole rows of a product are needed: its sums, two
values computed from them, and the sums of a second product."""
_FOR_ADDRESSES = 16
"""Registers of a thread that hold no values."""
_OF_A_ROW = 4
"""Instructions for 64 bytes of a row that is loaded by its number: the place of the
message, the message, and two moves to where the product reads them."""
_STEP = 32
"""Columns of A and rows of B that are in registers at a time."""

Shape = tuple[int, int]


@record(frozen=True)
class Product:
    """A product that needs a map.

    Attributes:
        depth: columns of A.
        together: dimensions of C along which a later operation needs all elements.
        left: the map that A has already, or None.
        right: the map that B has already, or None.
        on_matrix_unit: whether the matrix unit computes it; otherwise lanes do.
        beside: columns of all second products, whose left sides are computed from C.
        others: bytes of the values that live through it and are no sums of a second
            product, nor ``kept``.
        kept: bytes of what B is computed from, if a loop carries it. Then a subgroup
            holds all rows of its columns, and so of B.
        is_gathered: whether rows of A are loaded by their numbers. Then each row has an
            address in a register, and is loaded to registers that are no operand yet.
    """

    shape: Shape
    depth: int
    bits: int
    together: frozenset[int] = frozenset()
    left: Layout | None = None
    right: Layout | None = None
    on_matrix_unit: bool = True
    beside: int = 0
    others: int = 0
    kept: int = 0
    is_gathered: bool = False


def choose_product_map(
    product: Product, subgroups: int | None, device: Device
) -> Layout:
    """Return the cheapest map of C. ``subgroups`` may be None: it is chosen as well."""
    cost = partial(product_cost, product, device=device)
    if subgroups is None:  # enough registers for the product and for its users
        sharers = _SHARERS if product.together else 1
        roomy = partial(product_cost, product, device=device, sharers=sharers)
        subgroups = _cheapest(product.shape, None, roomy, device).subgroups
    best = cheapest_map(product.shape, subgroups, cost)
    if product.left is None and product.right is None:
        return best
    return min([best, *_from_sides(product)], key=cost)


def _from_sides(product: Product) -> Iterator[Layout]:
    """Yield maps of C that fit the maps of A and B."""
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
    shape: Shape,
    bits: int,
    subgroups: int | None,
    device: Device,
    together: Collection[int],
    lines: Collection[int] = (),
    live: int = 0,
) -> Layout:
    """Return the cheapest map of a value that is read, written, reduced and scanned.

    Args:
        together: dimensions along which the value is reduced.
        lines: dimensions along which a subgroup must have all elements, in one part.
        live: bytes of the values that are live at once, in all subgroups.
    """

    def fitted(layout: Layout) -> Layout:
        return with_data(layout, sorted(lines), [shape[dim] for dim in sorted(lines)])

    def cost(layout: Layout) -> float:
        return _value_cost(shape, bits, together, fitted(layout), device, live)

    return fitted(_cheapest(shape, subgroups, cost, device))


def _cheapest(
    shape: Shape, subgroups: int | None, cost: Callable[[Layout], float], device: Device
) -> Layout:
    if subgroups is not None:
        return cheapest_map(shape, subgroups, cost)
    counts = [1 << n for n in range(device.most_subgroups.bit_length())]
    found = [layout for n in counts for layout in _candidates(shape, n)]
    return min(found, key=lambda layout: layout.subgroups * cost(layout))


def cheapest_map(
    shape: Shape, subgroups: int, cost: Callable[[Layout], float | tuple[int, int]]
) -> Layout:
    """Return the map for ``subgroups`` subgroups with the least ``cost``."""
    return min(_candidates(shape, subgroups), key=cost)


def _candidates(shape: Shape, subgroups: int) -> Iterator[Layout]:
    """Yield a map for each arrangement of the subgroups, one column first."""
    for columns in range(1, subgroups + 1):
        if subgroups % columns == 0:
            counts = (subgroups // columns, columns)
            rows, width = map(_largest_part, shape, counts)
            yield Layout(counts, (rows, width))


@lru_cache(maxsize=1024)
def _largest_part(extent: int, count: int) -> int:
    """Return the largest part size for which a subgroup owns the fewest elements."""
    sizes = [n for n in range(1, extent + 1) if spreads(extent, count, n)]
    return min(sizes, key=lambda size: (_owned(extent, count, size), -size))


def _owned(extent: int, count: int, size: int) -> int:
    return size * max(1, extent // size // count)


def owned_shape(shape: Shape, layout: Layout) -> Shape:
    """Return the rows and columns that one subgroup owns, in all its parts."""
    rows, columns = map(_owned, shape, layout.sg_layout, layout.sg_data)
    return rows, columns


def product_cost(
    product: Product, layout: Layout, device: Device, sharers: int = 1
) -> float:
    """Return the cost for a subgroup; ``sharers`` values like C share registers."""
    rows, columns = owned_shape(product.shape, layout)
    bits, size, depth = product.bits, product.bits / 8, product.depth
    unit, read = device.matrix, 1 / device.speed.cache_bytes
    sums = round_up(rows, unit.rows[-1]) * round_up(columns, unit.columns)
    cost = product_cycles(
        device, rows, columns, depth, bits, on_matrix_unit=product.on_matrix_unit
    )
    cost += read * (rows + columns) * depth * size
    used = sums * max(4, size) + (rows + columns) * min(depth, _STEP) * size
    if product.beside and product.on_matrix_unit:
        # C as sums and again as the left side of the second product, A, and two
        # messages of B.
        used = sums * (4 + size) + rows * (product.beside * 4 + depth * size)
        used += min(columns * min(depth, _STEP) * size, 2 * LOAD_BYTES)
        sharers = 1
    if product.is_gathered:
        cost += _OF_A_ROW * rows * max(1, depth * size // ROW_BYTES)
        used += rows * (device.register_bytes + min(depth, _STEP) * size)
    if product.kept:
        used += columns * (product.kept / product.shape[1] + depth * size)
    used += product.others * rows * columns / prod(product.shape)
    cost *= _spilled(used, _register_bytes(device) // sharers)
    for dim, owned in ((0, rows), (1, columns)):
        if dim in product.together and owned < product.shape[dim]:
            cost += _BARRIER + _READS * read * sums * 4
    a = with_data(layout, [1], [depth])
    b = with_data(layout, [0], [depth])
    shapes = (product.shape[0], depth), (depth, product.shape[1])
    for shape, side, wanted in zip(shapes, (product.left, product.right), (a, b)):
        if side and not same_owners(shape, wanted, side):
            cost += exchange_cost(shape, bits, wanted, device)
    return cost


def exchange_cost(shape: Shape, bits: int, layout: Layout, device: Device) -> float:
    """Return the cost for one subgroup of giving a value another map."""
    rows, columns = owned_shape(shape, layout)
    written = rows * columns * max(1, bits // 8)
    return _BARRIER + _READS * written / device.speed.cache_bytes


def _value_cost(
    shape: Shape,
    bits: int,
    together: Collection[int],
    layout: Layout,
    device: Device,
    live: int,
) -> float:
    rows, columns = owned_shape(shape, layout)
    size, read = max(1, bits // 8), 1 / device.speed.cache_bytes
    cost = read * rows * round_up(columns * size, ROW_BYTES)
    owned = rows * columns * size
    cost *= _spilled(_SHARERS * owned, _register_bytes(device))
    file = device.registers[1 if together else 0] - _FOR_ADDRESSES
    used = live * owned / (prod(shape) * size)
    cost *= _spilled(used, file * device.register_bytes)
    for dim, owned, other in ((0, rows, columns), (1, columns, rows)):
        if dim in together and owned < shape[dim]:
            exchanged = other * layout.sg_layout[dim] * size
            cost += _BARRIER + _READS * read * exchanged
    return cost


def _register_bytes(device: Device) -> int:
    return device.registers[1] * device.register_bytes


def _spilled(used: float, budget: int) -> float:
    """Return the factor by which spilled registers raise a cost; 1 if all fits."""
    return 1 + 4 * max(0.0, used / budget - 1)


def round_up(number: int, step: int) -> int:
    """Round a number up to a multiple of ``step``."""
    return -(-number // step) * step


def product_cycles(
    device: Device,
    rows: int,
    columns: int,
    depth: int,
    bits: int,
    *,
    on_matrix_unit: bool,
) -> float:
    """Return the least cycles of ``C(rows, columns) += A(rows, depth) @ B``.

    Elements of A and B have ``bits`` bits in memory. Lanes compute what is not
    ``on_matrix_unit``.
    """
    unit = device.matrix
    sums = round_up(rows, unit.rows[-1]) * round_up(columns, unit.columns)
    if not on_matrix_unit:
        return sums * depth / device.speed.vector_products
    of_a_row = unit.columns * unit.depth_bits // max(bits, 8)
    return sums * depth * device.speed.row_cycles / of_a_row


def goes_to_matrix_unit(op: TileMmaOp, device: Device) -> bool:
    """Whether the matrix unit can multiply the types of a product."""
    element = element_type(op.a.type)
    if op.precision is not None or isinstance(element, FloatTF32Type):
        return True
    if isinstance(element, IntegerType):
        return element.bitwidth == 8
    return str(element) in device.matrix.results
