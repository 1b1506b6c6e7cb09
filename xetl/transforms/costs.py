"""What a product takes on a device, in cycles of one engine: models of costs ask."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatTF32Type, IntegerType

from xetl.devices import Device
from xetl.dialects.base import element_type
from xetl.dialects.xetile import TileMmaOp


def round_up(number: int, step: int) -> int:
    """The next multiple of ``step``."""
    return -(-number // step) * step


def product_cycles(
    device: Device,
    rows: int,
    columns: int,
    depth: int,
    bits: int,
    *,
    on_matrix_unit: bool = True,
) -> float:
    """What ``C(rows, columns) += A(rows, depth) @ B(depth, columns)`` takes at least.

    Args:
        device: that computes it.
        rows: of C, in one subgroup.
        columns: of C.
        depth: columns of A.
        bits: of an element of A and B, in memory.
        on_matrix_unit: else lanes multiply and add.
    """
    unit = device.matrix
    sums = round_up(rows, unit.rows[-1]) * round_up(columns, unit.columns)
    if not on_matrix_unit:
        return sums * depth / device.speed.vector_products
    of_a_row = unit.columns * unit.depth_bits // max(bits, 8)
    return sums * depth * device.speed.row_cycles / of_a_row


def goes_to_matrix_unit(op: TileMmaOp, device: Device) -> bool:
    """Whether the matrix unit has the types of a product."""
    element = element_type(op.a.type)
    if op.precision is not None or isinstance(element, FloatTF32Type):
        return True
    if isinstance(element, IntegerType):
        return element.bitwidth == 8
    return str(element) in device.matrix.results
