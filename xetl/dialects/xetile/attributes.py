"""Attributes of XeTile: how data is split among subgroups, and cache hints.

Source: XeTile RFC, "Workgroup Level XeTile extension" and "load_gather"; the text
form is that of the last released dialect (docs/xetile.md, section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from xetl.language.distribution import Layout, problem_with

from ..attributes import (
    Field,
    IntList,
    StructAttr,
    WordAttr,
    int_list,
    int_tuple,
    list_field,
    parse_struct,
)
from ..base import check


def _pair_of(*names: str) -> Mapping[str, Field]:
    return {name: list_field(None) for name in names}


class _PairOfPairs(StructAttr):
    """Two lists of two positive integers."""

    @property
    def lists(self) -> list[tuple[int, ...]]:
        """Both lists, the layout first."""
        return [int_tuple(cast(IntList, part)) for part in self.parameters]

    def verify(self) -> None:
        """Check that there are two positive numbers in each list."""
        for name, values in zip(self.FIELDS, self.lists):
            numbers = list(values)
            check(
                len(numbers) == 2,
                f"`{name}` must have two entries, one a dimension, found {numbers}",
            )
            check(
                all(number > 0 for number in numbers),
                f"entries of `{name}` must be positive, found {numbers}",
            )


@irdl_attr_definition
class WgMapAttr(_PairOfPairs):
    """``#xetile.wg_map``: the subgroups of a workgroup, and the data each one takes.

    Source: XeTile RFC, "Workgroup Level XeTile extension".
    """

    name = "xetile.wg_map"
    FIELDS: ClassVar[Mapping[str, Field]] = _pair_of("sg_layout", "sg_data")

    layout: IntList = param_def()
    data: IntList = param_def()

    def __init__(self, sg_layout: Sequence[int], sg_data: Sequence[int]) -> None:
        super().__init__(int_list(sg_layout), int_list(sg_data))

    @property
    def sg_layout(self) -> tuple[int, ...]:
        """Subgroups along rows and columns."""
        return int_tuple(self.layout)

    @property
    def sg_data(self) -> tuple[int, ...]:
        """Rows and columns of the part one subgroup takes at a time."""
        return int_tuple(self.data)

    def problem_with(self, shape: Sequence[int]) -> str | None:
        """Why this map cannot distribute ``shape``; None if it can.

        Other ranks than two are only hinted at.
        """
        if len(shape) != 2:
            return None
        problem = problem_with(shape, Layout(self.sg_layout, self.sg_data))
        return problem and f"wg_map: {problem}"


@irdl_attr_definition
class SgMapAttr(_PairOfPairs):
    """``#xetile.sg_map``: the work items of a subgroup, and the data each one takes.

    Source: first XeTile RFC.
    """

    name = "xetile.sg_map"
    FIELDS: ClassVar[Mapping[str, Field]] = _pair_of("wi_layout", "wi_data")

    layout: IntList = param_def()
    data: IntList = param_def()

    def __init__(self, wi_layout: Sequence[int], wi_data: Sequence[int]) -> None:
        super().__init__(int_list(wi_layout), int_list(wi_data))

    @property
    def wi_layout(self) -> tuple[int, ...]:
        """Work items along rows and columns."""
        return int_tuple(self.layout)

    @property
    def wi_data(self) -> tuple[int, ...]:
        """Rows and columns of the part one work item takes at a time."""
        return int_tuple(self.data)


def _parse_wg_map(parser: AttrParser) -> Attribute:
    position = parser.pos
    found = parser.parse_optional_attribute()
    return nested_map(parser, position, found, WgMapAttr)


def parse_sg_map(parser: AttrParser) -> Attribute:
    """Parse an sg_map, with or without its ``#xetile.sg_map`` prefix."""
    position = parser.pos
    found = parser.parse_optional_attribute()
    return nested_map(parser, position, found, SgMapAttr)


def nested_map(
    parser: AttrParser,
    position: int,
    found: Attribute | None,
    expected: type[_PairOfPairs],
) -> Attribute:
    """The map that was ``found`` at a position, or the one without prefix there."""
    if found is None:
        return expected.new(expected.parse_parameters(parser))
    if isinstance(found, XeMapAttr):
        found = found.wg if expected is WgMapAttr else found.sg
    if not isinstance(found, expected):
        parser.raise_error(f"expected #{expected.name}<...>, found {found}", position)
    return found


@irdl_attr_definition
class XeMapAttr(ParametrizedAttribute):
    """``#xetile.xe_map``: a wg_map and an sg_map together.  Source: first RFC."""

    name = "xetile.xe_map"

    wg: WgMapAttr | NoneAttr = param_def()
    sg: SgMapAttr | NoneAttr = param_def()

    def __init__(
        self, wg: WgMapAttr | None = None, sg: SgMapAttr | None = None
    ) -> None:
        super().__init__(wg or NoneAttr(), sg or NoneAttr())

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<wg = ..., sg = ...>``."""
        found = parse_struct(parser, {"wg": _parse_wg_map, "sg": parse_sg_map})
        return [found.get("wg", NoneAttr()), found.get("sg", NoneAttr())]

    def print_parameters(self, printer: Printer) -> None:
        """Print ``<wg = ..., sg = ...>``."""
        with printer.in_angle_brackets():
            first = True
            for name, part in (("wg", self.wg), ("sg", self.sg)):
                if not isinstance(part, NoneAttr):
                    printer.print_string(f"{name} = " if first else f", {name} = ")
                    printer.print_attribute(part)
                    first = False


CACHE_HINTS = (
    *("cached", "uncached", "streaming"),
    *("read_invalidate", "write_back", "write_through"),
)


@irdl_attr_definition
class CacheHintAttr(WordAttr):
    """``#xetile.cache_hint<cached>``: what one cache level should do.

    Source: the released XeTile dialect; a hint never changes a value.
    """

    name = "xetile.cache_hint"
    WORDS: ClassVar[tuple[str, ...]] = CACHE_HINTS
    PROBLEM: ClassVar[str] = "`{word}` is no cache hint"
    IS_IN_BRACKETS: ClassVar[bool] = True

    text: StringAttr = param_def()

    def __init__(self, word: str) -> None:
        super().__init__(word)
