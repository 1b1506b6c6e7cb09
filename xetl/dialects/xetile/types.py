"""The tile type and its encoding.

Source: XeTile RFC, "init_tile" (order, inner_blocks, scatter) and "Workgroup Level
XeTile extension" (wg_map); docs/xetile.md, sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects import builtin
from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition, param_def

from ..attributes import (
    Field,
    IntList,
    ShapedType,
    StructAttr,
    int_field,
    int_list,
    int_tuple,
    list_field,
)
from ..base import check
from ..kernel_attributes import SHARED
from . import attributes

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

GLOBAL = 0


def _show_map(printer: Printer, value: Attribute) -> None:
    if isinstance(value, attributes.WgMapAttr | attributes.SgMapAttr):
        value.print_parameters(printer)
    else:
        printer.print_attribute(value)


class _Encoded:
    """The properties of a tile's encoding, which the type of the tile has as well."""

    def _encoding(self) -> TileAttr:
        """Return the encoding; the attribute and the type override this."""
        raise NotImplementedError

    @property
    def sg_map(self) -> attributes.SgMapAttr | None:
        """How a subgroup's data is split among its work items."""
        found = self._encoding().sg
        return found if isinstance(found, attributes.SgMapAttr) else None

    @property
    def wg_map(self) -> attributes.WorkgroupMap | None:
        """How a workgroup's tile is split among its subgroups."""
        found = self._encoding().wg
        return None if isinstance(found, builtin.NoneAttr) else found

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions, fastest first: (1, 0) is row major."""
        return int_tuple(self._encoding().order_list)

    @property
    def array_length(self) -> int:
        """The number of vectors that a load returns."""
        return self._encoding().length.data

    @property
    def memory_space(self) -> int:
        """0: global memory; 3: memory shared by a workgroup."""
        return self._encoding().space.data

    @property
    def scattered(self) -> bool:
        """Whether each element has its own offset."""
        return bool(self._encoding().scatter.data)

    @property
    def inner_blocks(self) -> tuple[int, ...] | None:
        """Rows and columns of one memory access, None before blocking."""
        return int_tuple(self._encoding().blocks) or None


@irdl_attr_definition
class TileAttr(_Encoded, StructAttr):
    """``#xetile.tile_attr``: all parameters of a tile but shape and element type."""

    name = "xetile.tile_attr"
    FIELDS: ClassVar[Mapping[str, Field]] = {
        "sg_map": Field(attributes.parse_sg_map, _show_map),
        "wg_map": Field(attributes.parse_map, _show_map),
        "order": list_field(int_list((1, 0))),
        "array_length": int_field("{} : i64", 1),
        "memory_space": int_field("{}", GLOBAL),
        "scattered": int_field("true", 0),
        "inner_blocks": list_field(int_list(())),
    }
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {"sg": "sg_map", "wg": "wg_map"}

    sg: attributes.SgMapAttr | builtin.NoneAttr = param_def()
    wg: attributes.WgMapAttr | attributes.LayoutAttr | builtin.NoneAttr = param_def()
    order_list: IntList = param_def()
    length: builtin.IntAttr = param_def()
    space: builtin.IntAttr = param_def()
    scatter: builtin.IntAttr = param_def()
    blocks: IntList = param_def()

    def __init__(
        self,
        *,
        sg_map: attributes.SgMapAttr | None = None,
        wg_map: attributes.WorkgroupMap | None = None,
        order: Sequence[int] = (1, 0),
        array_length: int = 1,
        memory_space: int = GLOBAL,
        scattered: bool = False,
        inner_blocks: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            sg_map or builtin.NoneAttr(),
            wg_map or builtin.NoneAttr(),
            int_list(order),
            builtin.IntAttr(array_length),
            builtin.IntAttr(memory_space),
            builtin.IntAttr(int(scattered)),
            int_list(inner_blocks or ()),
        )

    def _encoding(self) -> TileAttr:
        return self

    def replace(self, **changes: Any) -> TileAttr:
        """Return the encoding with some arguments of the constructor changed."""
        usual = {name: getattr(self, name) for name in self.FIELDS}
        return TileAttr(**(usual | changes))

    def verify(self) -> None:
        problem = "`order` must be [1, 0] or [0, 1], found {}"
        check(self.order in ((0, 1), (1, 0)), problem, list(self.order))
        text = "`array_length` must be 1, 2 or 4, found {}"
        check(self.array_length in (1, 2, 4), text, self.array_length)
        text = "`memory_space` must be 0 (global) or 3 (shared), found {}"
        check(self.memory_space in (GLOBAL, SHARED), text, self.memory_space)
        fits = not self.scattered or self.array_length == 1
        check(fits, "a scattered tile cannot have an `array_length`")
        blocks = int_tuple(self.blocks)
        fits = not blocks or (len(blocks) == 2 and min(blocks) > 0)
        text = "`inner_blocks` must be two positive numbers, found {}"
        check(fits, text, list(blocks))


@irdl_attr_definition(init=False)
class TileType(_Encoded, ShapedType):
    """``!xetile.tile<32x64xf16, #xetile.tile_attr<...>>``: a tile in memory.

    A tile holds no data: it is base, shape, strides, offsets and these parameters. A
    scattered tile may have rank 1. Source: XeTile RFC, "init_tile".
    """

    name = "xetile.tile"

    encoding: TileAttr = param_def()

    def __init__(
        self,
        shape: Sequence[int],
        element_type: Attribute,
        encoding: TileAttr | None = None,
    ) -> None:
        super().__init__(int_list(shape), element_type, encoding or TileAttr())

    def replace(self, shape: Sequence[int] | None = None, **changes: Any) -> TileType:
        """Return the type with another shape and other arguments of the `TileAttr`."""
        encoding = self.encoding.replace(**changes)
        return TileType(self.shape if shape is None else shape, self.element, encoding)

    def _encoding(self) -> TileAttr:
        return self.encoding

    def vector_type(self) -> builtin.VectorType[Attribute]:
        """Return the vector type of one load of the tile; 4-D with inner_blocks."""
        blocks = self.inner_blocks
        if blocks is None:
            return builtin.VectorType(self.element_type, self.shape)
        outer = [extent // block for extent, block in zip(self.shape, blocks)]
        return builtin.VectorType(self.element_type, [*outer, *blocks])

    @classmethod
    def arrange(cls, given: Sequence[Attribute]) -> Sequence[Attribute]:
        """Return the encoding, by default an empty one."""
        return given or [TileAttr()]

    @classmethod
    def parse_other(cls, parser: AttrParser) -> TileAttr:
        """Parse a tile_attr, ``#scatter``, or a map that stands for one."""
        position = parser.pos
        # `#scatter` of the RFC is no alias of the file: it means scattered = true.
        if (
            "#scatter" not in parser.attribute_aliases
            and parser.parse_optional_characters("#scatter")
        ):
            return TileAttr(scattered=True)
        found = parser.parse_attribute()
        if isinstance(found, TileAttr):
            return found
        is_pair = isinstance(found, attributes.XeMapAttr)
        wg, sg = attributes.workgroup_map(found), found.sg if is_pair else found
        if isinstance(sg, attributes.SgMapAttr):
            return TileAttr(wg_map=wg, sg_map=sg)
        if wg is not None or is_pair:
            return TileAttr(wg_map=wg)
        problem = f"expected #xetile.tile_attr<...> or a map, found {found}"
        return parser.raise_error(problem, position)

    def verify(self) -> None:
        shape = self.shape
        if len(shape) == 1:
            check(self.scattered, "a tile of rank 1 must be scattered")
        check(len(shape) in (1, 2), "a tile has rank 2, found shape {}", list(shape))
        text = "a tile has a static shape of positive extents, found {}"
        check(all(extent > 0 for extent in shape), text, list(shape))
        numbers = builtin.IntegerType | builtin.IndexType | builtin.AnyFloat
        text = "elements of a tile are integers, floats or index, found {}"
        check(isinstance(self.element_type, numbers), text, self.element_type)
        blocks = self.inner_blocks
        fits = blocks is None or len(shape) == 2
        fits = fits and not any(n % block for n, block in zip(shape, blocks or ()))
        text = "inner_blocks {} do not divide the shape {}"
        check(fits, text, blocks, list(shape))
        problem = self.wg_map.problem_with(shape) if self.wg_map else None
        check(problem is None, problem or "")


def mask_type(tile: TileType) -> builtin.VectorType[Attribute]:
    """Return the type of a mask: i1 in the shape of the vector of a tile."""
    return builtin.VectorType(builtin.i1, tile.vector_type().shape)
