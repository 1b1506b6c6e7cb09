"""``#xetile.layout``: a map of any rank, down to lanes, with a choice of how ids count.

``#xetile.wg_map`` says the same of the plain case; `layout_of` and `attribute_of` go
between either and what the passes reckon with (`xetl.language.distribution`).
Source: the RFC on layouts that reach down to lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser

from xetl.language.distribution import Layout, problem_in, problem_with, row_major

from ..attributes import Field, IntList, StructAttr, int_list, int_tuple, list_field
from ..base import check
from .attributes import WgMapAttr, XeMapAttr, nested_map


@irdl_attr_definition
class LayoutAttr(StructAttr):
    """``#xetile.layout``: how subgroups, instructions and lanes split a tile."""

    name = "xetile.layout"
    FIELDS: ClassVar[Mapping[str, Field]] = {
        **{name: list_field(None) for name in ("sg_layout", "sg_data")},
        **{name: list_field() for name in ("inst_data", "lane_layout", "lane_data")},
        "order": list_field(),
    }
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        "wi_layout": "lane_layout",
        "wi_data": "lane_data",
    }

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
    def defaults(cls, given: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """The order is row-major."""
        rank = len(cast(IntList, given["sg_layout"]))
        return {**super().defaults(given), "order": int_list(row_major(rank))}

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
