"""``#xetile.layout``: a map of any rank, down to lanes, with a choice of how ids count.

``#xetile.wg_map`` says the same of the plain case; `layout_of` and `attribute_of` go
between either and what the passes reckon with (`xetl.language.distribution`).
Source: the RFC on layouts that reach down to lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from xetl.language.distribution import Layout, problem_in, problem_with, row_major

from ..base import check
from .attributes import (
    IntList,
    WgMapAttr,
    XeMapAttr,
    build_at,
    int_list,
    int_tuple,
    nested_map,
    parse_int_list,
    parse_struct,
    print_int_list,
)

_NAMES = (
    *("sg_layout", "sg_data", "inst_data"),
    *("lane_layout", "lane_data", "order"),
)
_OTHER_NAMES = {"wi_layout": "lane_layout", "wi_data": "lane_data"}


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """``#xetile.layout``: how subgroups, instructions and lanes split a tile."""

    name = "xetile.layout"

    subgroups: IntList = param_def()
    data: IntList = param_def()
    instruction: IntList | NoneAttr = param_def()
    lanes: IntList | NoneAttr = param_def()
    lane: IntList | NoneAttr = param_def()
    order_list: IntList = param_def()

    def __init__(self, layout: Layout) -> None:
        super().__init__(
            int_list(layout.sg_layout),
            int_list(layout.sg_data),
            _optional_list(layout.inst_data),
            _optional_list(layout.lane_layout),
            _optional_list(layout.lane_data),
            int_list(layout.order),
        )

    @property
    def layout(self) -> Layout:
        """The same as plain numbers."""
        return Layout(
            int_tuple(self.subgroups),
            int_tuple(self.data),
            _optional_tuple(self.instruction),
            _optional_tuple(self.lanes),
            _optional_tuple(self.lane),
            int_tuple(self.order_list),
        )

    @property
    def lists(self) -> list[tuple[int, ...]]:
        """What a wg_map has, too: the layout, then the data."""
        return [self.sg_layout, self.sg_data]

    @property
    def sg_layout(self) -> tuple[int, ...]:
        """Subgroups along each dimension."""
        return int_tuple(self.subgroups)

    @property
    def sg_data(self) -> tuple[int, ...]:
        """The part one subgroup takes at a time."""
        return int_tuple(self.data)

    def problem_with(self, shape: Sequence[int]) -> str | None:
        """Why this layout cannot distribute ``shape``; None if it can.

        As with a wg_map, ranks that are neither two nor its own are only hinted at.
        """
        layout = self.layout
        if len(shape) not in (2, layout.rank):
            return None
        problem = problem_with(shape, layout)
        return problem and f"layout: {problem}"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<sg_layout = [a, b], ...>`` with the fields in any order."""
        position = parser.pos
        names = (*_NAMES, *_OTHER_NAMES)
        found = parse_struct(parser, {name: parse_int_list for name in names})
        for other, name in _OTHER_NAMES.items():
            if other in found and name in found:
                parser.raise_error(f"`{other}` and `{name}` are the same", position)
            if other in found:
                found[name] = found[other]
        for name in ("sg_layout", "sg_data"):
            if name not in found:
                parser.raise_error(f"{cls.name} needs `{name}`", position)
        if "order" not in found:
            rank = len(cast(IntList, found["sg_layout"]))
            found["order"] = int_list(row_major(rank))
        parameters = [found.get(name, NoneAttr()) for name in _NAMES]
        build_at(parser, position, lambda: cls.new(parameters))
        return parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print ``<sg_layout = [a, b], ...>``; an order only where it is not usual."""
        layout = self.layout
        with printer.in_angle_brackets():
            print_int_list(printer, "sg_layout", layout.sg_layout)
            for name in _NAMES[1:]:
                values = getattr(layout, name)
                usual = name == "order" and values == row_major(layout.rank)
                if values is not None and not usual:
                    printer.print_string(", ")
                    print_int_list(printer, name, values)

    def verify(self) -> None:
        """Check the lists against each other."""
        problem = problem_in(self.layout)
        check(problem is None, problem or "")


WorkgroupMap: TypeAlias = WgMapAttr | LayoutAttr
"""What a `wg_map` may be, wherever one is written."""


def layout_of(attribute: WorkgroupMap | XeMapAttr) -> Layout:
    """What a map says; an xe_map must have a part for the workgroup."""
    if isinstance(attribute, LayoutAttr):
        return attribute.layout
    if isinstance(attribute, WgMapAttr):
        return Layout(attribute.sg_layout, attribute.sg_data)
    assert isinstance(attribute.wg, WgMapAttr), "a map without a workgroup's part"
    layout = Layout(attribute.wg.sg_layout, attribute.wg.sg_data)
    if isinstance(attribute.sg, NoneAttr):
        return layout
    lanes = attribute.sg
    return Layout(
        layout.sg_layout,
        layout.sg_data,
        lane_layout=lanes.wi_layout,
        lane_data=lanes.wi_data,
    )


def attribute_of(layout: Layout) -> WorkgroupMap:
    """A map that says ``layout``: a wg_map where that is enough."""
    plain = Layout(layout.sg_layout, layout.sg_data)
    if layout.rank == 2 and layout == plain:
        return WgMapAttr(layout.sg_layout, layout.sg_data)
    return LayoutAttr(layout)


def wg_map_of(op: Operation, name: str = "map") -> WorkgroupMap | None:
    """The workgroup map that an operation of any dialect carries as ``name``."""
    found = op.attributes.get(name)
    if isinstance(found, XeMapAttr):
        found = found.wg
    return found if isinstance(found, WgMapAttr | LayoutAttr) else None


def parse_map(parser: AttrParser) -> Attribute:
    """Parse a `WorkgroupMap`; a wg_map may leave out its ``#xetile.wg_map``."""
    position = parser.pos
    found = parser.parse_optional_attribute()
    if isinstance(found, LayoutAttr):
        return found
    return nested_map(parser, position, found, WgMapAttr)


def _optional_list(values: Sequence[int] | None) -> IntList | NoneAttr:
    return NoneAttr() if values is None else int_list(values)


def _optional_tuple(values: IntList | NoneAttr) -> tuple[int, ...] | None:
    return None if isinstance(values, NoneAttr) else int_tuple(values)
