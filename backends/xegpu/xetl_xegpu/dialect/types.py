"""Types of XeGPU: descriptors of memory.

Source: MLIR 22, `xegpu` dialect. `!xegpu.nbarrier` is defined in the core, because
XeTile text may hold it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, IntegerType, NoneAttr, VectorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition, param_def

from xetl.dialects.attributes import ABSENT, ShapedType, int_list
from xetl.dialects.base import check
from xetl.dialects.memref_layout import row_major

from . import attributes


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

    encoding: attributes.BlockTdescAttr | attributes.ScatterTdescAttr | NoneAttr = (
        param_def()
    )
    layout: attributes.LayoutAttr | attributes.SliceAttr | NoneAttr = param_def()

    def __init__(
        self,
        shape: Sequence[int],
        element_type: Attribute,
        encoding: attributes.BlockTdescAttr | attributes.ScatterTdescAttr | None = None,
    ) -> None:
        plain = encoding is None or encoding == attributes.BlockTdescAttr()
        kept = NoneAttr() if plain else encoding
        super().__init__(int_list(shape), element_type, kept, NoneAttr())

    @property
    def scattered(self) -> bool:
        """Whether the descriptor has a list of offsets."""
        return isinstance(self.encoding, attributes.ScatterTdescAttr)

    @property
    def array_length(self) -> int:
        """How many blocks lie side by side; 1 if scattered."""
        block = self.encoding
        return block.length.data if isinstance(block, attributes.BlockTdescAttr) else 1

    @property
    def chunk_size(self) -> int:
        """Elements at each offset; 1 for a block."""
        scattered = self.encoding
        is_scattered = isinstance(scattered, attributes.ScatterTdescAttr)
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
        kinds = attributes.BlockTdescAttr | attributes.ScatterTdescAttr
        encodings = [each for each in given if isinstance(each, kinds)]
        layouts = [each for each in given if not isinstance(each, kinds)]
        found = [*encodings, ABSENT][0], [*layouts, ABSENT][0]
        return (ABSENT, found[1]) if found[0] == attributes.BlockTdescAttr() else found

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

    mem_layout: attributes.MemLayoutAttr | NoneAttr = param_def()

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
