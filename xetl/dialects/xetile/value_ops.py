"""Operations on tile values, which are vectors of rank 2 (4 when blocked).

The attribute `map` holds the map of the result, `source_map` that of the source.
Source: XeTile RFC; semantics in docs/xetile.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, SSAValue
from xdsl.traits import RecursiveMemoryEffect

from ...devices import PRODUCTS_OF_CODES
from ..base import Ints, Value, check, ints_of, type_of, vector_type
from ..operation import Common, PureOp, XetlOp
from ..reduction_kinds import kind_attribute, kind_fits
from ..traits import Reduces, Repeats, Scans, Transposes
from ..type_rules import Function, like, like_all
from ..upstream.elementwise import is_float
from . import verifiers as verify
from .attributes import LayoutAttr, WgMapAttr, WorkgroupMap, wg_map_of

_TO_RESULT = (
    "custom<Maps>() attr-dict `:` "
    "custom<OptionalConversion>(type(operands), type(results))"
)
_MAP = irdl.BaseAttr(WgMapAttr) | irdl.BaseAttr(LayoutAttr)


def _result(*rule: str | Function) -> Any:
    """Infer the type of a result from the source; ``verify_`` says what is wrong."""
    return irdl.result_def(
        like("source", *rule, base=builtin.VectorType, is_binding=False)
    )


class ValueOp(PureOp):
    """An operation from one vector to another, with maps."""

    MAPS = ("source_map", "map")

    source = irdl.operand_def(builtin.VectorType)
    result = irdl.result_def(builtin.VectorType)

    @property
    def wg_map(self) -> WorkgroupMap | None:
        """How the result is split among subgroups."""
        return wg_map_of(self)

    @property
    def source_map(self) -> WorkgroupMap | None:
        """How the source is split among subgroups, or None."""
        return wg_map_of(self, "source_map")

    @property
    def source_type(self) -> builtin.VectorType[Attribute]:
        """The type of the source."""
        return vector_type(self.source)

    def verify_maps(self) -> None:
        """Check both maps against the vectors they distribute."""
        verify.map_fits("map", self.wg_map, self.result.type)
        verify.map_fits("source_map", self.source_map, self.source_type)


def accumulator_type(element: Attribute) -> Attribute:
    """Return the type in which products are summed (docs/xetile.md, section 3)."""
    if isinstance(element, builtin.IntegerType):
        return builtin.i32 if element.bitwidth <= 32 else builtin.i64
    return element if isinstance(element, builtin.Float64Type) else builtin.f32


class TileMmaOp(PureOp, name="xetile.tile_mma"):
    """``a @ b + c``: sums run in f32 (i32, f64), one rounding to the type of c.

    Integer operands are signed unless said otherwise.  Source: RFC, "tile_mma".
    """

    a = b = irdl.operand_def(builtin.VectorType)
    c = irdl.opt_operand_def(builtin.VectorType)
    wg_map_a = wg_map_b = wg_map_c = irdl.opt_prop_def(_MAP)
    precision = irdl.opt_prop_def(builtin.StringAttr)
    a_unsigned = b_unsigned = irdl.opt_prop_def(builtin.UnitAttr)
    result = irdl.result_def(builtin.VectorType)

    MAPS = ("wg_map_a", "wg_map_b", "wg_map_c")
    assembly_format = (
        "custom<Listed>(operands) custom<Maps>() attr-dict `:` "
        "custom<Conversion>(type(operands), type(results))"
    )

    def __init__(
        self,
        a: Value,
        b: Value,
        c: Value | None = None,
        *,
        acc_type: Attribute | None = None,
        **others: Any,
    ) -> None:
        made = verify.mma_result(vector_type(a), vector_type(b))
        element = acc_type or accumulator_type(made.element_type)
        type_ = builtin.VectorType(element, made.shape) if c is None else type_of(c)
        super().__init__(a, b, c, type_, **others)

    @property
    def wg_map(self) -> WorkgroupMap | None:
        """How the result is split among subgroups."""
        return self.wg_map_c or wg_map_of(self)

    @property
    def is_of_codes(self) -> bool:
        """Whether the i8 operands hold 8-bit floats, see `xetl.devices.CODES`."""
        precision = None if self.precision is None else self.precision.data
        return precision in PRODUCTS_OF_CODES and not is_float(self.a.type)

    def verify_(self) -> None:
        verify.mma(
            vector_type(self.a),
            vector_type(self.b),
            None if self.c is None else vector_type(self.c),
            self.result.type,
            of_codes=self.is_of_codes,
        )
        verify.map_fits("wg_map_a", self.wg_map_a, self.a.type)
        verify.map_fits("wg_map_b", self.wg_map_b, self.b.type)
        verify.map_fits("wg_map_c", self.wg_map, self.result.type)


class TileTransposeOp(ValueOp, name="xetile.tile_transpose", traits=[Transposes()]):
    """Rows become columns; in blocks, so do the rows and columns of blocks.

    Source: RFC, "tile_transpose"; the form of rank 4, permuted by ``[1, 0, 3, 2]``, is
    ours: with it a transposed operand needs no packing between load and product.
    """

    permutation = irdl.prop_def(builtin.DenseArrayBase)
    result = _result(verify.transposed)

    assembly_format = "custom<DimsBehindComma>($source, $permutation) " + _TO_RESULT

    def __init__(self, source: Value, **common: Unpack[Common]) -> None:
        axes = verify.transposed_axes(vector_type(source).get_num_dims())
        super().__init__(source, permutation=axes, **common)

    def verify_(self) -> None:
        verify.transpose(self.source_type, self.result.type, ints_of(self.permutation))
        self.verify_maps()


class TileReduceOp(
    ValueOp,
    name="xetile.tile_reduce",
    makers={"kind": kind_attribute},
    traits=[Reduces()],
):
    """Combine all elements along ``dims``; these keep size 1 (or the group count).

    With ``reduction_size`` s, groups of s neighbours along the dimension are
    combined, and n / s remain.  Source: RFC, "tile_reduce".
    """

    kind = irdl.prop_def(builtin.StringAttr)
    reduction_dims = irdl.prop_def(builtin.DenseArrayBase)
    reduction_size = irdl.opt_prop_def(builtin.IntegerAttr)
    result = _result("reduction_dims", "reduction_size", verify.reduced)

    assembly_format = (
        "custom<KindAndComma>($kind) custom<Dims>($source, $reduction_dims) "
        + _TO_RESULT
    )

    dims = Ints("reduction_dims")
    """The dimensions that are combined."""

    def verify_(self) -> None:
        size = None if self.reduction_size is None else self.reduction_size.value.data
        types = self.source_type, self.result.type
        verify.reduce(self.kind.data, *types, self.dims, size)
        self.verify_maps()


class TileScanOp(
    ValueOp, name="xetile.tile_scan", makers={"kind": kind_attribute}, traits=[Scans()]
):
    """Combine all elements up to and with each one along ``dim``; rank 2.

    f16 and bf16 combine in f32, and each result is rounded once; integers wrap.  The
    order of the sums is not specified.  Source: MLIR, `vector.scan` (inclusive, from
    the neutral element).
    """

    kind = irdl.prop_def(builtin.StringAttr)
    scan_dims = irdl.prop_def(builtin.DenseArrayBase)
    result = irdl.result_def(like("source", base=builtin.VectorType))

    assembly_format = (
        "custom<KindAndComma>($kind) custom<Dims>($source, $scan_dims) " + _TO_RESULT
    )

    @property
    def dim(self) -> int:
        """The dimension that is scanned."""
        return ints_of(self.scan_dims)[0]

    def verify_(self) -> None:
        source = self.source_type
        is_matrix = len(source.get_shape()) == 2
        check(is_matrix, "tile_scan takes a vector of rank 2, found {}", source)
        dims = ints_of(self.scan_dims)
        check(dims in ((0,), (1,)), "the dimension is 0 or 1, found {}", list(dims))
        kind, element = self.kind.data, source.element_type
        text = "`{}` does not combine elements of {}"
        check(kind_fits(kind, element), text, kind, element)
        self.verify_maps()


class TileAssociativeScanOp(
    XetlOp, name="xetile.tile_associative_scan", traits=[RecursiveMemoryEffect()]
):
    """As `TileScanOp`, by a function: of several vectors of one shape, of any elements.

    The block takes vectors of the sources' types twice, those before and those behind,
    and yields what each pair of elements combines to; it may read what is outside.
    In which order neighbours are combined is not specified.  It has no maps: what
    devices run is `expand-scans`.  Source: Triton, `tt.scan`.
    """

    sources = irdl.var_operand_def(builtin.VectorType)
    scan_dim = irdl.prop_def(builtin.IntegerAttr)
    combine = irdl.region_def("single_block")
    res = irdl.var_result_def(like_all("sources"))

    assembly_format = "$sources attr-dict `:` type($sources) $combine"

    @property
    def dim(self) -> int:
        """The dimension that is scanned."""
        return self.scan_dim.value.data

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all vectors."""
        rows, columns = vector_type(self.sources[0]).get_shape()
        return rows, columns

    @property
    def combined(self) -> Sequence[SSAValue]:
        """The values that the block yields."""
        last = self.combine.block.last_op
        return () if last is None else last.operands

    def is_elementwise(self) -> bool:
        """Whether the function is elementwise."""
        ops = list(self.combine.block.ops)[:-1]
        return all(
            op.name.startswith(("arith.", "math.", "vector.fma", "vector.broadcast"))
            or isinstance(op, TileBroadcastOp)
            for op in ops
        )

    def verify_(self) -> None:
        types = [each.type for each in self.sources]
        shapes = {vector_type(each).get_shape() for each in self.sources}
        fits = len(shapes) == 1 and len(next(iter(shapes))) == 2
        check(fits, "a scan takes vectors of rank 2 and of one shape")
        check(self.dim in (0, 1), "the dimension is 0 or 1, found {}", self.dim)
        taken = [each.type for each in self.combine.block.args]
        check(taken == types * 2, "the block takes the types of the sources twice")
        given = [each.type for each in self.combined]
        check(given == types, "the block yields the types of the sources")


class TileSortOp(ValueOp, name="xetile.tile_sort"):
    """The elements along ``dim`` in ascending order: i32 or i64, as signed; rank 2.

    It has no map: what devices run is `expand-sorts`.  Other orders and types are made
    of keys, see `xetl.language.ops.order`.
    """

    sort_dims = irdl.prop_def(builtin.DenseArrayBase)
    result = irdl.result_def(like("source", base=builtin.VectorType))

    assembly_format = (
        "custom<Dims>($source, $sort_dims) attr-dict `:` "
        "custom<SameType>(type(operands), type(results))"
    )

    @property
    def dim(self) -> int:
        """The dimension that is sorted."""
        return ints_of(self.sort_dims)[0]

    def verify_(self) -> None:
        source = self.source_type
        is_whole = source.element_type in (builtin.i32, builtin.i64)
        text = "tile_sort takes a vector of rank 2 of i32 or i64, found {}"
        check(len(source.get_shape()) == 2 and is_whole, text, source)
        dims = ints_of(self.sort_dims)
        check(dims in ((0,), (1,)), "the dimension is 0 or 1, found {}", list(dims))


class TileBroadcastOp(ValueOp, name="xetile.tile_broadcast", traits=[Repeats()]):
    """Repeat the one element along each of ``dims``.  Source: RFC, "tile_broadcast"."""

    broadcast_dims = irdl.prop_def(builtin.DenseArrayBase)

    assembly_format = "custom<Dims>($source, $broadcast_dims) " + _TO_RESULT

    dims = Ints("broadcast_dims")
    """The dimensions that grow."""

    def verify_(self) -> None:
        verify.broadcast(self.source_type, self.result.type, self.dims)
        self.verify_maps()


class TileConvLayoutOp(ValueOp, name="xetile.tile_conv_layout"):
    """The same values in other subgroups.  Source: RFC, "tile_conv_layout"."""

    result = irdl.result_def(like("source", base=builtin.VectorType))

    assembly_format = (
        "$source custom<Maps>() attr-dict `:` "
        "custom<SameType>(type(operands), type(results))"
    )

    def __init__(
        self,
        source: Value,
        wg_map: WorkgroupMap | None,
        src_map: WorkgroupMap | None = None,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(source, **common)
        for name, value in (("map", wg_map), ("source_map", src_map)):
            if value is not None:
                self.attributes[name] = value

    def verify_(self) -> None:
        check(self.wg_map is not None, "tile_conv_layout needs the map of its result")
        self.verify_maps()


class _BlocksOp(ValueOp):
    """A conversion between a matrix and its blocks."""

    blocks = irdl.prop_def(builtin.DenseArrayBase, prop_name="inner_blocks")

    assembly_format = "$source " + _TO_RESULT

    inner_blocks = Ints("blocks")
    """Rows and columns of a block."""


class TilePackOp(_BlocksOp, name="xetile.tile_pack"):
    """(h, w) to (h/b0, w/b1, b0, b1): P[a,b,c,d] = V[a*b0 + c, b*b1 + d].

    Source: RFC, "Internal Operations to support gradual lowering".
    """

    result = _result("blocks", verify.packed)

    def verify_(self) -> None:
        verify.pack(self.source_type, self.result.type, self.inner_blocks)


class TileUnpackOp(_BlocksOp, name="xetile.tile_unpack"):
    """(h/b0, w/b1, b0, b1) to (h, w).  Source: RFC, as tile_pack."""

    result = _result("blocks", verify.unpacked)

    def verify_(self) -> None:
        verify.pack(self.result.type, self.source_type, self.inner_blocks)
