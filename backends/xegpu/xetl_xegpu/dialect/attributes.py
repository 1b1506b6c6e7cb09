"""Attributes of XeGPU: words, how data is split, what a descriptor describes.

Source: MLIR 22, `xegpu` dialect; the text is what `mlir-opt` 22 prints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, opt_prop_def, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from xetl.dialects.base import check
from xetl.dialects.kinds_of_types import is_integer_attr
from xetl.dialects.operation import XetlOp
from xetl.dialects.upstream.xegpu import MemorySpaceAttr
from xetl.dialects.words import WordAttr
from xetl.dialects.xetile.attributes import (
    CACHE_HINTS,
    IntList,
    build_at,
    int_list,
    int_tuple,
    parse_int_list,
    parse_struct,
)

Fields: TypeAlias = dict[str, Callable[[AttrParser], Attribute]]


@irdl_attr_definition
class CacheHintAttr(WordAttr):
    """``#xegpu.cache_hint<cached>``: what one level of cache should do."""

    name = "xegpu.cache_hint"
    WORDS: ClassVar[tuple[str, ...]] = CACHE_HINTS
    IS_IN_BRACKETS: ClassVar[bool] = True

    text: StringAttr = param_def()

    def __init__(self, word: str) -> None:
        super().__init__(word)


class _ListsAttr(ParametrizedAttribute):
    """Lists of integers by name, each of them optional."""

    NAMES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *lists: Sequence[int] | None) -> None:
        super().__init__(*(_NONE if x is None else int_list(x) for x in lists))

    @property
    def lists(self) -> dict[str, tuple[int, ...]]:
        """The lists that are given."""
        pairs = zip(self.NAMES, self.parameters)
        given = {name: cast(IntList, value) for name, value in pairs if value != _NONE}
        return {name: int_tuple(value) for name, value in given.items()}

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<name = [1, 2], ...>`` with the lists in any order."""
        position = parser.pos
        found = parse_struct(parser, {name: parse_int_list for name in cls.NAMES})
        parameters = [found.get(name, _NONE) for name in cls.NAMES]
        build_at(parser, position, lambda: cls.new(parameters))
        return parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print ``<name = [1, 2], ...>``."""
        parts = [f"{name} = {list(values)}" for name, values in self.lists.items()]
        printer.print_string(f"<{', '.join(parts)}>")


_NONE = NoneAttr()


@irdl_attr_definition
class LayoutAttr(_ListsAttr):
    """``#xegpu.layout``: how subgroups, instructions and lanes split a value.

    ``LayoutAttr(sg_layout=(8, 4), sg_data=(32, 32))``: all lists have one number a
    dimension; ``order`` names the dimensions, the one along which ids count first.
    """

    name = "xegpu.layout"
    NAMES: ClassVar[tuple[str, ...]] = (
        *("sg_layout", "sg_data", "inst_data"),
        *("lane_layout", "lane_data", "order"),
    )

    sg_layout: IntList | NoneAttr = param_def()
    sg_data: IntList | NoneAttr = param_def()
    inst_data: IntList | NoneAttr = param_def()
    lane_layout: IntList | NoneAttr = param_def()
    lane_data: IntList | NoneAttr = param_def()
    order: IntList | NoneAttr = param_def()

    def __init__(
        self,
        *,
        sg_layout: Sequence[int] | None = None,
        sg_data: Sequence[int] | None = None,
        inst_data: Sequence[int] | None = None,
        lane_layout: Sequence[int] | None = None,
        lane_data: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            *(sg_layout, sg_data, inst_data, lane_layout, lane_data, order)
        )

    def verify(self) -> None:
        """Check that something is split, and all lists are as long."""
        lists = self.lists
        check(
            not lists.keys().isdisjoint(("sg_layout", "inst_data", "lane_layout")),
            "a layout has one of sg_layout, inst_data, lane_layout",
        )
        lengths = {len(values) for values in lists.values()}
        check(len(lengths) == 1, "all lists of a layout have the same length")
        for data, layout in (("sg_data", "sg_layout"), ("lane_data", "lane_layout")):
            check(data not in lists or layout in lists, f"{data} needs {layout}")


@irdl_attr_definition
class SliceAttr(ParametrizedAttribute):
    """``#xegpu.slice<#layout, dims = [1]>``: a layout without these dimensions.

    It is that of what a reduction along ``dims`` gives, or a broadcast takes.
    """

    name = "xegpu.slice"

    parent: Attribute = param_def()
    dims: IntList = param_def()

    def __init__(self, parent: LayoutAttr | SliceAttr, dims: Sequence[int]) -> None:
        super().__init__(parent, int_list(dims))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<#xegpu.layout<...>, dims = [1]>``."""
        position = parser.pos
        with parser.in_angle_brackets():
            parent = parser.parse_attribute()
            parser.parse_punctuation(",")
            parser.parse_keyword("dims")
            parser.parse_punctuation("=")
            parameters = [parent, parse_int_list(parser)]
        build_at(parser, position, lambda: cls.new(parameters))
        return parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print ``<#xegpu.layout<...>, dims = [1]>``."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.parent)
            printer.print_string(f", dims = {list(int_tuple(self.dims))}")

    def verify(self) -> None:
        """Check that there is a layout to take dimensions from."""
        check(
            isinstance(self.parent, LayoutAttr | SliceAttr),
            f"a slice is taken of a layout, found {self.parent}",
        )


@irdl_attr_definition
class MemLayoutAttr(_ListsAttr):
    """``#xegpu.mem_layout``: strides in elements, and blocks that lie together."""

    name = "xegpu.mem_layout"
    NAMES: ClassVar[tuple[str, ...]] = ("block", "stride")

    block: IntList | NoneAttr = param_def()
    stride: IntList | NoneAttr = param_def()

    def __init__(
        self,
        *,
        block: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> None:
        super().__init__(block, stride)

    def verify(self) -> None:
        """Check that something is said."""
        check(bool(self.lists), "a mem_layout has `block` or `stride`")


class _TdescAttr(ParametrizedAttribute):
    """What a descriptor says beside shape and element type; defaults are left out."""

    FIELDS: ClassVar[Fields] = {}

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<name = value, ...>`` with the names in any order."""
        found = parse_struct(parser, cls.FIELDS)
        pairs = zip(cls.FIELDS, cls().parameters)
        return [found.get(name, default) for name, default in pairs]

    def print_parameters(self, printer: Printer) -> None:
        """Print ``<name = value, ...>``, what differs from the default."""
        named = zip(self.FIELDS, self.parameters, type(self)().parameters)
        shown = [f"{n} = {_field_text(n, v)}" for n, v, usual in named if v != usual]
        printer.print_string(f"<{', '.join(shown)}>")


def _field_text(name: str, value: Attribute) -> str:
    if isinstance(value, MemorySpaceAttr):
        return value.word
    number = cast(IntAttr, value).data
    if name == "boundary_check":
        return "true" if number else "false"
    return f"{number} : i64"


def _parse_number(parser: AttrParser) -> Attribute:
    """Parse ``2``, ``2 : i64`` or ``false``."""
    position = parser.pos
    found = parser.parse_attribute()
    if not is_integer_attr(found):
        parser.raise_error("expected an integer", position)
    return IntAttr(abs(found.value.data))


@irdl_attr_definition
class BlockTdescAttr(_TdescAttr):
    """``#xegpu.block_tdesc_attr``: ``array_length`` blocks side by side."""

    name = "xegpu.block_tdesc_attr"
    FIELDS: ClassVar[Fields] = {
        "memory_space": MemorySpaceAttr.parse_word,
        "array_length": _parse_number,
        "boundary_check": _parse_number,
    }

    space: MemorySpaceAttr = param_def()
    length: IntAttr = param_def()
    bounds: IntAttr = param_def()

    def __init__(
        self,
        *,
        array_length: int = 1,
        memory_space: str = "global",
        boundary_check: bool = True,
    ) -> None:
        super().__init__(
            MemorySpaceAttr(memory_space),
            IntAttr(array_length),
            IntAttr(int(boundary_check)),
        )


@irdl_attr_definition
class ScatterTdescAttr(_TdescAttr):
    """``#xegpu.scatter_tdesc_attr``: ``chunk_size`` elements at each offset."""

    name = "xegpu.scatter_tdesc_attr"
    FIELDS: ClassVar[Fields] = {
        "memory_space": MemorySpaceAttr.parse_word,
        "chunk_size": _parse_number,
    }

    space: MemorySpaceAttr = param_def()
    chunk: IntAttr = param_def()

    def __init__(self, *, chunk_size: int = 1, memory_space: str = "global") -> None:
        super().__init__(MemorySpaceAttr(memory_space), IntAttr(chunk_size))


READ_HINTS = ("cached", "uncached", "streaming", "read_invalidate")
WRITE_HINTS = ("cached", "uncached", "streaming", "write_back", "write_through")
_LEVELS = ("l1_hint", "l2_hint", "l3_hint")


class CachedOp(XetlOp, makers=dict.fromkeys(_LEVELS, CacheHintAttr)):
    """An access through the caches; a constructor takes hints as words."""

    l1_hint = opt_prop_def(Attribute)
    l2_hint = opt_prop_def(Attribute)
    l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(LayoutAttr | SliceAttr)

    def check_hints(self, allowed: Sequence[str]) -> None:
        """Check that hints are words, and make sense for reading or for writing."""
        for name in _LEVELS:
            hint = self.properties.get(name)
            fits = isinstance(hint, CacheHintAttr) and hint.word in allowed
            known = ", ".join(allowed)
            check(hint is None or fits, f"{name} is one of {known}, found {hint}")
