"""Attributes of XeTile: how data is split among subgroups, and cache hints.

Source: XeTile RFC, "Workgroup Level XeTile extension" and "load_gather"; the text
form is that of the last released dialect (docs/xetile.md, section 4).

``#xetile.layout`` is a map of any rank, down to lanes, with a choice of the order of
ids. ``#xetile.wg_map`` is the short form for the plain case. `layout_of` and
`attribute_of` convert both to and from the layouts that the passes use
(`xetl.language.distribution`).
Source: the RFC on layouts that reach down to lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_attr_definition, param_def

from xetl.language.distribution import Layout, problem_in, problem_with, row_major

from ..attributes import (
    Field,
    IntList,
    StructAttr,
    WordAttr,
    int_list,
    int_tuple,
    list_field,
)
from ..base import Ints, check

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


def _pair_of(*names: str) -> Mapping[str, Field]:
    return {name: list_field(None) for name in names}


@dataclass(frozen=True, init=False)
class _PairOfPairs(StructAttr):
    """Two lists of two positive integers: a layout, and the data of each part."""

    layout: IntList = param_def()  # noqa: RUF009 (xDSL makes the field)
    data: IntList = param_def()  # noqa: RUF009 (xDSL makes the field)

    def __init__(self, layout: Sequence[int], data: Sequence[int]) -> None:
        super().__init__(int_list(layout), int_list(data))

    @property
    def lists(self) -> list[tuple[int, ...]]:
        """Both lists, the layout first."""
        return [int_tuple(cast(IntList, part)) for part in self.parameters]

    def verify(self) -> None:
        for name, values in zip(self.FIELDS, self.lists):
            numbers = list(values)
            text = "`{}` must have two entries, one a dimension, found {}"
            check(len(numbers) == 2, text, name, numbers)
            text = "entries of `{}` must be positive, found {}"
            check(all(number > 0 for number in numbers), text, name, numbers)


@irdl_attr_definition(init=False)
class WgMapAttr(_PairOfPairs):
    """``#xetile.wg_map``: the subgroups of a workgroup, and the data each one takes.

    Source: XeTile RFC, "Workgroup Level XeTile extension".
    """

    name = "xetile.wg_map"
    FIELDS: ClassVar[Mapping[str, Field]] = _pair_of("sg_layout", "sg_data")

    sg_layout = Ints("layout", int_tuple)
    """Subgroups along rows and columns."""

    sg_data = Ints("data", int_tuple)
    """Rows and columns of the part one subgroup takes at a time."""

    def problem_with(self, shape: Sequence[int]) -> str | None:
        """Return why this map cannot distribute ``shape``. Return None if it can.

        For other ranks than two a map is only a hint, which is not checked.
        """
        if len(shape) != 2:
            return None
        problem = problem_with(shape, Layout(self.sg_layout, self.sg_data))
        return problem and f"wg_map: {problem}"


@irdl_attr_definition(init=False)
class SgMapAttr(_PairOfPairs):
    """``#xetile.sg_map``: the work items of a subgroup, and the data each one takes.

    Source: first XeTile RFC.
    """

    name = "xetile.sg_map"
    FIELDS: ClassVar[Mapping[str, Field]] = _pair_of("wi_layout", "wi_data")

    wi_layout = Ints("layout", int_tuple)
    """Work items along rows and columns."""

    wi_data = Ints("data", int_tuple)
    """Rows and columns of the part one work item takes at a time."""


def parse_sg_map(parser: AttrParser) -> Attribute:
    """Parse an sg_map, with or without its ``#xetile.sg_map`` prefix."""
    return _parse_nested(parser, SgMapAttr)


def _parse_nested(
    parser: AttrParser, expected: type[_PairOfPairs], *others: type[Attribute]
) -> Attribute:
    """Parse a map with or without its prefix, or one of ``others``."""
    position = parser.pos
    found = parser.parse_optional_attribute()
    if isinstance(found, others):
        return found
    if found is None:
        return expected.new(expected.parse_parameters(parser))
    if isinstance(found, XeMapAttr):
        found = found.wg if expected is WgMapAttr else found.sg
    if not isinstance(found, expected):
        parser.raise_error(f"expected #{expected.name}<...>, found {found}", position)
    return found


def _show_part(printer: Printer, value: Attribute) -> None:
    printer.print_attribute(value)


@irdl_attr_definition
class XeMapAttr(StructAttr):
    """``#xetile.xe_map``: a wg_map and an sg_map together.  Source: first RFC."""

    name = "xetile.xe_map"
    FIELDS: ClassVar[Mapping[str, Field]] = {
        "wg": Field(partial(_parse_nested, expected=WgMapAttr), _show_part),
        "sg": Field(parse_sg_map, _show_part),
    }

    wg: WgMapAttr | NoneAttr = param_def()
    sg: SgMapAttr | NoneAttr = param_def()

    def __init__(
        self, wg: WgMapAttr | None = None, sg: SgMapAttr | None = None
    ) -> None:
        super().__init__(wg or NoneAttr(), sg or NoneAttr())


CACHE_HINTS = (
    *("cached", "uncached", "streaming"),
    *("read_invalidate", "write_back", "write_through"),
)


@irdl_attr_definition(init=False)
class CacheHintAttr(WordAttr):
    """``#xetile.cache_hint<cached>``: a hint for one cache level.

    A hint never changes a value. Source: the released XeTile dialect.
    """

    name = "xetile.cache_hint"
    WORDS: ClassVar[tuple[str, ...]] = CACHE_HINTS
    PROBLEM: ClassVar[str] = "`{word}` is no cache hint"
    IS_IN_BRACKETS: ClassVar[bool] = True


@irdl_attr_definition
class LayoutAttr(StructAttr):
    """``#xetile.layout``: how subgroups, instructions and lanes split a tile."""

    name = "xetile.layout"
    FIELDS: ClassVar[Mapping[str, Field]] = {
        **_pair_of("sg_layout", "sg_data"),
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
        lists = (getattr(layout, name) for name in self.FIELDS)
        super().__init__(*(NoneAttr() if x is None else int_list(x) for x in lists))

    @property
    def layout(self) -> Layout:
        """The layout as plain numbers."""
        lists: Any = (
            None if isinstance(each, NoneAttr) else int_tuple(cast(IntList, each))
            for each in self.parameters
        )
        return Layout(*lists)

    @property
    def lists(self) -> list[tuple[int, ...]]:
        """The two lists that a wg_map has as well: the layout, then the data."""
        return [self.sg_layout, self.sg_data]

    sg_layout = Ints("subgroups", int_tuple)
    """Subgroups along each dimension."""

    sg_data = Ints("data", int_tuple)
    """The part one subgroup takes at a time."""

    def problem_with(self, shape: Sequence[int]) -> str | None:
        """Return why this layout cannot distribute ``shape``. Return None if it can.

        For ranks that are neither two nor its own a layout is only a hint, as a wg_map.
        """
        layout = self.layout
        if len(shape) not in (2, layout.rank):
            return None
        problem = problem_with(shape, layout)
        return problem and f"layout: {problem}"

    @classmethod
    def defaults(cls, given: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """Return the default fields: the order is row-major."""
        rank = len(cast(IntList, given["sg_layout"]))
        return {**super().defaults(given), "order": int_list(row_major(rank))}

    def verify(self) -> None:
        problem = problem_in(self.layout)
        check(problem is None, problem or "")


WorkgroupMap: TypeAlias = WgMapAttr | LayoutAttr
"""The attributes that a `wg_map` may be."""


def layout_of(attribute: WorkgroupMap | XeMapAttr) -> Layout:
    """Return the layout of a map; an xe_map must have a part for the workgroup."""
    if isinstance(attribute, LayoutAttr):
        return attribute.layout
    if isinstance(attribute, WgMapAttr):
        return Layout(attribute.sg_layout, attribute.sg_data)
    assert isinstance(attribute.wg, WgMapAttr), "a map without a workgroup's part"
    layout, lanes = layout_of(attribute.wg), attribute.sg
    if isinstance(lanes, NoneAttr):
        return layout
    return replace(layout, lane_layout=lanes.wi_layout, lane_data=lanes.wi_data)


def attribute_of(layout: Layout) -> WorkgroupMap:
    """Return ``layout`` as an attribute: a wg_map if that is enough."""
    plain = Layout(layout.sg_layout, layout.sg_data)
    if layout.rank == 2 and layout == plain:
        return WgMapAttr(layout.sg_layout, layout.sg_data)
    return LayoutAttr(layout)


def wg_map_of(op: Operation, name: str = "map") -> WorkgroupMap | None:
    """Return the workgroup map in the attribute ``name`` of any operation, or None."""
    return workgroup_map(op.attributes.get(name))


def workgroup_map(found: Attribute | None) -> WorkgroupMap | None:
    """Return a map of a workgroup, or the one in an xe_map; None for others."""
    part = found.wg if isinstance(found, XeMapAttr) else found
    return part if isinstance(part, WgMapAttr | LayoutAttr) else None


def parse_map(parser: AttrParser) -> Attribute:
    """Parse a `WorkgroupMap`; a wg_map may leave out its ``#xetile.wg_map``."""
    return _parse_nested(parser, WgMapAttr, LayoutAttr)
