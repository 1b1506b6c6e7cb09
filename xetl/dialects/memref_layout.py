"""Strides and memory spaces of memref types.  Source: MLIR, builtin memref."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.ir import Attribute

from .base import dims_of_map, is_integer_attr

ENDLESS = 1 << 62
"""The extent of an array of unknown length; its accesses have masks."""


_NAMED_SPACES = {
    **{("gpu.address_space", name): 0 for name in ("global", "private")},
    **{("spirv.storage_class", name): 0 for name in ("CrossWorkgroup", "Function")},
    ("gpu.address_space", "workgroup"): 3,
    ("spirv.storage_class", "Workgroup"): 3,
}
"""The numbers of named memory spaces. Private memory has the number of global memory:
only its owner knows the address."""


def memory_space_of(type_: builtin.MemRefType[Attribute]) -> int | None:
    """Return the number of the memory space: 0 if the type has none.

    Return None if the space is not a number and its name is unknown.
    """
    space = type_.memory_space
    if isinstance(space, builtin.NoneAttr):
        return 0
    if isinstance(space, builtin.UnregisteredAttr):
        return _NAMED_SPACES.get((space.attr_name.data, space.value.data))
    return space.value.data if is_integer_attr(space) else None


def strides_of(type_: builtin.MemRefType[Attribute]) -> list[int | None] | None:
    """Return the strides in elements, with None for each unknown stride.

    Return None if the layout has no strides.
    """
    layout, shape = type_.layout, type_.get_shape()
    rank = len(shape)
    if isinstance(layout, builtin.StridedLayoutAttr):
        return [
            None if isinstance(s, builtin.NoneAttr) else s.data for s in layout.strides
        ]
    order = list(range(rank))
    if isinstance(layout, builtin.AffineMapAttr):
        dims = list(dims_of_map(layout))
        if len(layout.data.results) != rank or sorted(dims) != order:
            return None
        order = dims
    strides: list[int | None] = [None] * rank
    step: int | None = 1
    for dim in reversed(order):
        strides[dim] = step
        extent = shape[dim]
        step = (
            None if step is None or extent == builtin.DYNAMIC_INDEX else step * extent
        )
    return strides


def has_static_layout(type_: builtin.MemRefType[Attribute]) -> bool:
    """Whether the type gives all extents and strides."""
    strides = strides_of(type_)
    known = strides is not None and None not in strides
    return known and builtin.DYNAMIC_INDEX not in type_.get_shape()
