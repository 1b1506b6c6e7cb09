"""Attributes and types of XeGPU: hints, layouts, descriptors of memory.

Source: MLIR 22, `xegpu` dialect; the text is what `mlir-opt` 22 prints. `nbarrier` is
defined in the core, because XeTile text may hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import AnyFloat, IntAttr, IntegerType, NoneAttr, VectorType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, opt_prop_def, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from xetl.dialects.attributes import (
    ABSENT,
    Field,
    IntList,
    ShapedType,
    StructAttr,
    WordAttr,
    build_at,
    int_field,
    int_list,
    int_tuple,
    list_field,
    parse_int_list,
)
from xetl.dialects.base import check
from xetl.dialects.operation import XetlOp
from xetl.dialects.upstream.xegpu import MemorySpaceAttr
from xetl.dialects.xetile.attributes import CACHE_HINTS
from xetl.language.strides import row_major


@irdl_attr_definition(init=False)
class CacheHintAttr(WordAttr):
    """``#xegpu.cache_hint<cached>``: what one level of cache should do."""

    name = "xegpu.cache_hint"
    WORDS: ClassVar[tuple[str, ...]] = CACHE_HINTS
    IS_IN_BRACKETS: ClassVar[bool] = True


class _ListsAttr(StructAttr):
    """Lists of integers by name, each of them optional."""

    def __init__(self, **lists: Sequence[int] | None) -> None:
        given = [lists.pop(name, None) for name in self.FIELDS]
        if lists:
            raise TypeError(f"{self.name} has no {', '.join(lists)}")
        super().__init__(*(_NONE if x is None else int_list(x) for x in given))

    @property
    def lists(self) -> dict[str, tuple[int, ...]]:
        """The lists that are present, by name."""
        pairs = zip(self.FIELDS, self.parameters)
        given = {name: cast(IntList, value) for name, value in pairs if value != _NONE}
        return {name: int_tuple(value) for name, value in given.items()}


_NONE = NoneAttr()


def _lists(*names: str) -> Mapping[str, Field]:
    return {name: list_field() for name in names}


@irdl_attr_definition(init=False)
class LayoutAttr(_ListsAttr):
    """``#xegpu.layout``: how subgroups, instructions and lanes split a value.

    ``LayoutAttr(sg_layout=(8, 4), sg_data=(32, 32))``: all lists have one number for
    each dimension. ``order`` lists the dimensions, that of consecutive ids first.
    """

    name = "xegpu.layout"
    FIELDS: ClassVar[Mapping[str, Field]] = _lists(
        *("sg_layout", "sg_data", "inst_data"), *("lane_layout", "lane_data", "order")
    )

    sg_layout: IntList | NoneAttr = param_def()
    sg_data: IntList | NoneAttr = param_def()
    inst_data: IntList | NoneAttr = param_def()
    lane_layout: IntList | NoneAttr = param_def()
    lane_data: IntList | NoneAttr = param_def()
    order: IntList | NoneAttr = param_def()

    def verify(self) -> None:
        lists = self.lists
        splits = not lists.keys().isdisjoint(("sg_layout", "inst_data", "lane_layout"))
        check(splits, "a layout has one of sg_layout, inst_data, lane_layout")
        lengths = {len(values) for values in lists.values()}
        check(len(lengths) == 1, "all lists of a layout have the same length")
        for data, layout in (("sg_data", "sg_layout"), ("lane_data", "lane_layout")):
            check(data not in lists or layout in lists, f"{data} needs {layout}")


@irdl_attr_definition
class SliceAttr(ParametrizedAttribute):
    """``#xegpu.slice<#layout, dims = [1]>``: a layout without these dimensions.

    It is the layout of the result of a reduction along ``dims``, or of the operand of a
    broadcast.
    """

    name = "xegpu.slice"

    parent: Attribute = param_def()
    dims: IntList = param_def()

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
        with printer.in_angle_brackets():
            printer.print_attribute(self.parent)
            printer.print_string(f", dims = {list(int_tuple(self.dims))}")

    def verify(self) -> None:
        fits = isinstance(self.parent, LayoutAttr | SliceAttr)
        check(fits, "a slice is taken of a layout, found {}", self.parent)


@irdl_attr_definition(init=False)
class MemLayoutAttr(_ListsAttr):
    """``#xegpu.mem_layout``: strides in elements; the shape of contiguous blocks."""

    name = "xegpu.mem_layout"
    FIELDS: ClassVar[Mapping[str, Field]] = _lists("block", "stride")

    block: IntList | NoneAttr = param_def()
    stride: IntList | NoneAttr = param_def()

    def verify(self) -> None:
        check(bool(self.lists), "a mem_layout has `block` or `stride`")


def _show_word(printer: Printer, value: Attribute) -> None:
    printer.print_string(cast(WordAttr, value).word)


_SPACE = Field(MemorySpaceAttr.parse_word, _show_word, MemorySpaceAttr("global"))


@irdl_attr_definition
class BlockTdescAttr(StructAttr):
    """``#xegpu.block_tdesc_attr``: ``array_length`` blocks side by side."""

    name = "xegpu.block_tdesc_attr"
    FIELDS: ClassVar[Mapping[str, Field]] = {
        "memory_space": _SPACE,
        "array_length": int_field("{} : i64", 1),
        "boundary_check": int_field("false", 1),
    }

    space: MemorySpaceAttr = param_def()
    length: IntAttr = param_def()
    bounds: IntAttr = param_def()

    def __init__(self, *, array_length: int = 1) -> None:
        super().__init__(MemorySpaceAttr("global"), IntAttr(array_length), IntAttr(1))


@irdl_attr_definition
class ScatterTdescAttr(StructAttr):
    """``#xegpu.scatter_tdesc_attr``: ``chunk_size`` elements at each offset."""

    name = "xegpu.scatter_tdesc_attr"
    FIELDS: ClassVar[Mapping[str, Field]] = {
        "memory_space": _SPACE,
        "chunk_size": int_field("{} : i64", 1),
    }

    space: MemorySpaceAttr = param_def()
    chunk: IntAttr = param_def()

    def __init__(self, *, memory_space: str = "global") -> None:
        super().__init__(MemorySpaceAttr(memory_space), IntAttr(1))


READ_HINTS = ("cached", "uncached", "streaming", "read_invalidate")
WRITE_HINTS = ("cached", "uncached", "streaming", "write_back", "write_through")
_LEVELS = ("l1_hint", "l2_hint", "l3_hint")


class CachedOp(XetlOp, makers=dict.fromkeys(_LEVELS, CacheHintAttr)):
    """An access through the caches; a constructor takes hints as words."""

    l1_hint = l2_hint = l3_hint = opt_prop_def(Attribute)
    layout = opt_prop_def(LayoutAttr | SliceAttr)

    def check_hints(self, allowed: Sequence[str]) -> None:
        """Check that each hint is one of the ``allowed`` words for this access."""
        for name in _LEVELS:
            hint = self.properties.get(name)
            fits = isinstance(hint, CacheHintAttr) and hint.word in allowed
            known = ", ".join(allowed)
            check(hint is None or fits, f"{name} is one of {known}, found {hint}")


def _check_shaped(shape: Sequence[int], element: Attribute) -> None:
    text = "a descriptor has a static shape of positive extents, found {}"
    check(len(shape) > 0 and min(shape) > 0, text, list(shape))
    fits = isinstance(element, IntegerType | AnyFloat)
    check(fits, "elements of a descriptor are integers or floats, found {}", element)


@irdl_attr_definition(init=False)
class TensorDescType(ShapedType):
    """``!xegpu.tensor_desc<8x16xf16, encoding, layout>``: a block, or scattered places.

    The shape is that of the block, or (offsets, elements at each offset). The default
    encoding of a block is not stored.
    """

    name = "xegpu.tensor_desc"

    encoding: BlockTdescAttr | ScatterTdescAttr | NoneAttr = param_def()
    layout: LayoutAttr | SliceAttr | NoneAttr = param_def()

    def __init__(
        self,
        shape: Sequence[int],
        element_type: Attribute,
        encoding: BlockTdescAttr | ScatterTdescAttr | None = None,
    ) -> None:
        plain = encoding is None or encoding == BlockTdescAttr()
        kept = NoneAttr() if plain else encoding
        super().__init__(int_list(shape), element_type, kept, NoneAttr())

    @property
    def scattered(self) -> bool:
        """Whether the descriptor has a list of offsets."""
        return isinstance(self.encoding, ScatterTdescAttr)

    @property
    def array_length(self) -> int:
        """How many blocks lie side by side; 1 if scattered."""
        block = self.encoding
        return block.length.data if isinstance(block, BlockTdescAttr) else 1

    @property
    def chunk_size(self) -> int:
        """Elements at each offset; 1 for a block."""
        scattered = self.encoding
        is_scattered = isinstance(scattered, ScatterTdescAttr)
        return scattered.chunk.data if is_scattered else 1

    @property
    def memory_space(self) -> str:
        """``global`` or ``slm``."""
        encoding = self.encoding
        return "global" if isinstance(encoding, NoneAttr) else encoding.space.word

    def vector_type(self) -> VectorType[Attribute]:
        """Return the type of a plain load; rank 3 if ``array_length`` > 1."""
        count = () if self.array_length == 1 else (self.array_length,)
        return VectorType(self.element_type, [*count, *self.shape])

    @classmethod
    def arrange(cls, given: Sequence[Attribute]) -> Sequence[Attribute]:
        """Sort parameters, given in any order, into (encoding, layout)."""
        kinds = BlockTdescAttr | ScatterTdescAttr
        encodings = [each for each in given if isinstance(each, kinds)]
        layouts = [each for each in given if not isinstance(each, kinds)]
        found = [*encodings, ABSENT][0], [*layouts, ABSENT][0]
        return (ABSENT, found[1]) if found[0] == BlockTdescAttr() else found

    def verify(self) -> None:
        _check_shaped(self.shape, self.element)
        if self.scattered:
            chunk = () if self.chunk_size == 1 else (self.chunk_size,)
            fits = self.shape[1:] == chunk
            check(fits, f"{list(self.shape)} does not end in the chunk size")
        elif self.memory_space == "slm":
            check(len(self.shape) == 1, "a block in slm has rank 1")


@irdl_attr_definition(init=False)
class MemDescType(ShapedType):
    """``!xegpu.mem_desc<32x64xf16, #xegpu.mem_layout<...>>``: a matrix in slm."""

    name = "xegpu.mem_desc"

    mem_layout: MemLayoutAttr | NoneAttr = param_def()

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements; row-major if the layout has none."""
        given = self._lists().get("stride")
        return row_major(self.shape) if given is None else given

    @property
    def block(self) -> tuple[int, ...] | None:
        """The shape of contiguous blocks; None if there are none."""
        return self._lists().get("block")

    def _lists(self) -> dict[str, tuple[int, ...]]:
        return {} if isinstance(self.mem_layout, NoneAttr) else self.mem_layout.lists

    def verify(self) -> None:
        _check_shaped(self.shape, self.element)
        for name, values in self._lists().items():
            fits, said = len(values) == len(self.shape), list(values)
            check(fits, "`{}` has one number a dimension, found {}", name, said)
