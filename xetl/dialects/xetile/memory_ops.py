"""Operations on tiles in memory: describe, load, store, move, gather, scatter, atomics.

Source: XeTile RFC, also "support for load_gather and store_scatter" and
"atomic_rmw_tile"; semantics in docs/xetile.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from ..base import (
    MixedList,
    Value,
    check,
    element_type,
    ints_of,
    is_integer_attr,
    is_memref,
    type_of,
)
from ..memref_layout import strides_of
from ..operation import Common, PureOp, XetlOp
from ..reduction_kinds import kind_attribute, kind_fits, normalize_kind
from ..traits import READS_AND_WRITES, AccessesTile
from ..type_rules import like
from ..upstream.elementwise import is_float
from .attributes import CacheHintAttr
from .types import TileType, mask_type
from .verifiers import verify_block, verify_scattered


def tile_type(value: Value) -> TileType:
    """Return the tile type of ``value``. Raise a TypeError for other types."""
    found = type_of(value)
    if not isinstance(found, TileType):
        raise TypeError(f"expected a tile, found {found}")
    return found


class InitTileOp(PureOp, name="xetile.init_tile"):
    """Describe a tile of a matrix: no memory is touched.

    Without ``indices`` the tile is the block at ``offsets``; a memref of static shape
    says its sizes and strides itself, a dynamic one or an address needs them here.
    With ``indices`` each element has its own offset, in elements, from a base of rank
    0 or 1.  Source: XeTile RFC, "init_tile".
    """

    source = irdl.operand_def()
    offsets = sizes = strides = irdl.var_operand_def(builtin.IndexType)
    indices = irdl.opt_operand_def()
    static_offsets = irdl.prop_def(builtin.DenseArrayBase)
    static_sizes = irdl.prop_def(builtin.DenseArrayBase)
    static_strides = irdl.prop_def(builtin.DenseArrayBase)
    result = irdl.result_def(TileType)

    assembly_format = (
        "$source custom<Window>($offsets, $static_offsets, $sizes, $static_sizes, "
        "$strides, $static_strides, $indices) attr-dict `:` "
        "custom<WindowTypes>(type($source), type($indices), type($result))"
    )

    def __init__(
        self,
        source: Value,
        offsets: Sequence[int | Value],
        result_type: TileType,
        sizes: Sequence[int | Value] = (),
        strides: Sequence[int | Value] = (),
        indices: Value | None = None,
        **common: Unpack[Common],
    ) -> None:
        lists = (offsets, sizes, strides)
        super().__init__(source, *lists, indices, result_type, **common)

    mixed_offsets = MixedList("offsets", "static_offsets")
    """The offsets in elements; () if scattered."""
    mixed_sizes = MixedList("sizes", "static_sizes")
    """The sizes of the base matrix; () if the memref is static."""
    mixed_strides = MixedList("strides", "static_strides")
    """The strides of the base matrix in elements; () if the memref is static."""

    @property
    def has_rows(self) -> bool:
        """Whether the base is a memref whose last dimension is contiguous."""
        base = self.source.type
        if not is_memref(base):
            return False
        return (self.mixed_strides or strides_of(base) or (None,))[-1] == 1

    def verify_(self) -> None:
        tile, base = self.result.type, self.source.type
        if self.indices is not None:
            problem = "a scattered tile takes an index vector, not offsets as well"
            check(not self.mixed_offsets, problem)
            verify_scattered(base, self.indices.type, tile)
            return
        verify_block(
            base, tile, self.mixed_offsets, self.mixed_sizes, self.mixed_strides
        )


def held_vector(type_: Attribute) -> Attribute:
    """Return the vector type of a tile's elements."""
    if not isinstance(type_, TileType):
        raise TypeError(f"expected a tile, found {type_}")
    return type_.vector_type()


def check_vector(what: str, found: Attribute, tile: TileType) -> None:
    """Check that a vector type is that of the tile's elements."""
    expected = tile.vector_type()
    check(found == expected, "{} is {}, but the tile holds {}", what, found, expected)


def _check_transposing(
    permutation: builtin.DenseArrayBase, tile: TileType, found: Attribute
) -> None:
    """Check that a transposing load returns one plain vector."""
    dims, vector = list(ints_of(permutation)), tile.vector_type()
    check(dims == [1, 0], "`transpose` must be [1, 0], found {}", dims)
    text = "a load transposes one vector of rank 2, not several or a blocked one"
    check(tile.array_length == 1 and vector.get_num_dims() == 2, text)
    expected = builtin.VectorType(tile.element_type, vector.get_shape()[::-1])
    check(found == expected, "the transposed tile is {}, found {}", expected, found)


def check_mask(mask: Attribute, tile: TileType) -> None:
    """Check that a mask has one bit for each element."""
    expected = mask_type(tile)
    check(mask == expected, "the mask is {}, expected {}", mask, expected)


def check_padding(padding: Attribute | None, tile: TileType) -> None:
    """Check that a padding is a number of the right kind."""
    if padding is None:
        return
    # An integer also pads floats: the RFC writes `{padding = 0}` on bf16.
    element = tile.element_type
    if is_integer_attr(padding) and isinstance(element, builtin.IntegerType):
        bits = element.bitwidth  # signed or unsigned: the element type does not say
        fits = -(1 << bits - 1) <= padding.value.data < 1 << bits
    elif is_float(element):
        fits = isinstance(padding, builtin.IntegerAttr | builtin.FloatAttr)
    else:
        fits = isinstance(padding, builtin.IntegerAttr)
    text = "padding {} does not fit elements of type {}"
    check(fits, text, padding, tile.element_type)


class TileOp(XetlOp):
    """An access to the elements of a tile."""

    tile = irdl.operand_def(TileType)

    @property
    def tile_type(self) -> TileType:
        """The type of the tile."""
        return tile_type(self.tile)


class TileAccess(TileOp):
    """An access with cache hints."""

    l1_hint = l2_hint = l3_hint = irdl.opt_prop_def(Attribute)

    def verify_hints(self) -> None:
        """Check the hints."""
        for hint in (self.l1_hint, self.l2_hint, self.l3_hint):
            is_right = hint is None or isinstance(hint, CacheHintAttr)
            check(is_right, "a cache hint is #xetile.cache_hint<...>, found {}", hint)


STORE = "custom<Listed>(operands) attr-dict `:` custom<Stored>(type(operands))"


class LoadTileOp(TileAccess, name="xetile.load_tile", traits=[MemoryReadEffect()]):
    """The elements of a tile; outside the base matrix ``padding``, or zero.

    With ``array_length`` n there are n results, each one tile further right.  With
    ``transpose = [1, 0]`` rows become columns, as by a tile_transpose behind the load,
    which `legalize-text` makes of it.  Source: XeTile RFC, "load_tile" (``transpose``:
    the first RFC).
    """

    padding = irdl.opt_prop_def(Attribute)
    permutation = irdl.opt_prop_def(builtin.DenseArrayBase, prop_name="transpose")
    values = irdl.var_result_def()

    assembly_format = (
        "$tile custom<PlainLists>() attr-dict `:` "
        "custom<Conversion>(type(operands), type(results))"
    )

    def __init__(
        self, tile: Value, padding: Attribute | None = None, **others: Any
    ) -> None:
        described = tile_type(tile)
        types = [described.vector_type()] * described.array_length
        super().__init__(tile, types, padding=padding, **others)

    @property
    def result(self) -> OpResult:
        """The only result, or the first one."""
        return self.results[0]

    def verify_(self) -> None:
        tile = self.tile_type
        check(not tile.scattered, "a scattered tile is loaded by load_gather")
        wanted, found = tile.array_length, len(self.values)
        text = "array_length {} gives as many vectors, found {}"
        check(found == wanted, text, wanted, found)
        if self.permutation is not None:
            _check_transposing(self.permutation, tile, self.result.type)
        else:
            for value in self.values:
                check_vector("the result", value.type, tile)
        check_padding(self.padding, tile)
        self.verify_hints()


class StoreTileOp(
    TileAccess, name="xetile.store_tile", traits=[MemoryWriteEffect(), AccessesTile()]
):
    """Write a vector to a tile; what lies outside the base matrix is dropped.

    Source: XeTile RFC, "store_tile".
    """

    # Defined in the order of the text: operands of a base class would come last.
    value = irdl.operand_def(builtin.VectorType)
    tile = irdl.operand_def(TileType)

    assembly_format = STORE

    def verify_(self) -> None:
        tile = self.tile_type
        check(not tile.scattered, "a scattered tile is stored by store_scatter")
        check_vector("the value", self.value.type, tile)
        self.verify_hints()


# It writes nothing, but must be neither removed as unused nor moved.
class PrefetchTileOp(TileAccess, name="xetile.prefetch_tile", traits=READS_AND_WRITES):
    """Ask for a tile to be brought to a cache; never faults.

    Source: XeTile RFC, "prefetch_tile".
    """

    locality = irdl.opt_prop_def(builtin.IntegerAttr[builtin.I32])

    assembly_format = "$tile (`locality` `<` $locality^ `>`)? attr-dict `:` type($tile)"

    def verify_(self) -> None:
        if self.locality is not None:
            found = self.locality.value.data
            check(0 <= found <= 3, "locality is 0, 1, 2 or 3, found {}", found)
        self.verify_hints()


class UpdateTileOffsetOp(TileOp, name="xetile.update_tile_offset", traits=[Pure()]):
    """The tile moved by ``offsets`` rows and columns, or each element by its index.

    Source: XeTile RFC, "update_tile_offset".
    """

    offsets = irdl.var_operand_def(builtin.IndexType)
    indices = irdl.opt_operand_def()
    static_offsets = irdl.prop_def(builtin.DenseArrayBase)
    result = irdl.result_def(like("tile", base=TileType))

    assembly_format = (
        "$tile `,` custom<Step>($offsets, $static_offsets, $indices) attr-dict `:` "
        "custom<StepTypes>(type($tile), type($indices))"
    )

    mixed_offsets = MixedList("offsets", "static_offsets")
    """Rows and columns to move by; () if scattered."""

    def verify_(self) -> None:
        tile = self.tile_type
        if not tile.scattered:
            found = len(self.mixed_offsets)
            fits = found == 2 and self.indices is None
            check(fits, "a tile moves by two offsets, found {}", found)
            return
        expected = builtin.VectorType(builtin.IndexType(), tile.shape)
        found = None if self.indices is None else self.indices.type
        text = "a scattered tile moves by one {}, found {}"
        check(found == expected and not self.mixed_offsets, text, expected, found)


def unmoved(tile: SSAValue) -> tuple[SSAValue, list[UpdateTileOffsetOp]]:
    """Return the tile before its updates, and the updates, the last one first."""
    moves: list[UpdateTileOffsetOp] = []
    while isinstance(op := tile.owner, UpdateTileOffsetOp):
        moves.append(op)
        tile = op.tile
    return tile, moves


class LoadGatherOp(
    TileAccess, name="xetile.load_gather", traits=[MemoryReadEffect(), AccessesTile()]
):
    """The elements of a scattered tile where the mask is set, else ``padding`` or 0.

    Addresses that are masked off are never touched.  Source: RFC, "load_gather".
    """

    tile = irdl.operand_def(TileType)
    mask = irdl.operand_def(builtin.VectorType)
    padding = irdl.opt_prop_def(Attribute)
    result = irdl.result_def(like("tile", held_vector, base=builtin.VectorType))

    assembly_format = (
        "custom<Listed>(operands) attr-dict `:` "
        "custom<Conversion>(type(operands), type(results))"
    )

    def verify_(self) -> None:
        tile = self.tile_type
        check(tile.scattered, "load_gather needs a scattered tile; use load_tile")
        check_mask(self.mask.type, tile)
        check_padding(self.padding, tile)


class StoreScatterOp(
    TileAccess,
    name="xetile.store_scatter",
    traits=[MemoryWriteEffect(), AccessesTile()],
):
    """Write elements where the mask is set; equal offsets: any one of them wins.

    Source: RFC, "store_scatter".
    """

    value = mask = irdl.operand_def(builtin.VectorType)
    tile = irdl.operand_def(TileType)

    assembly_format = STORE

    def verify_(self) -> None:
        tile = self.tile_type
        check(tile.scattered, "store_scatter needs a scattered tile; use store_tile")
        check_mask(self.mask.type, tile)
        check_vector("the value", self.value.type, tile)


class AtomicRmwTileOp(
    TileOp,
    name="xetile.atomic_rmw_tile",
    makers={"kind": kind_attribute},
    traits=[*READS_AND_WRITES, AccessesTile()],
):
    """Combine each element in memory with a value, atomically; gives the old ones.

    Elements outside the base matrix or masked off are not touched; their result is
    0.  ``condition`` is a mask, or what elements must be for ``assign`` to happen: a
    compare and swap, which compares bits.  Source: RFC, "atomic_rmw_tile".
    """

    value = irdl.operand_def(builtin.VectorType)
    tile = irdl.operand_def(TileType)
    condition = irdl.opt_operand_def(builtin.VectorType)
    kind = irdl.prop_def(builtin.StringAttr)
    result = irdl.result_def(like("tile", held_vector, base=builtin.VectorType))

    assembly_format = (
        "custom<Kind>($kind) custom<Listed>(operands) attr-dict `:` "
        "custom<Conversion>(type(operands), type(results))"
    )

    @property
    def mask(self) -> SSAValue | None:
        """The mask of the elements to update; None: all."""
        return None if self._compares else self.condition

    @property
    def expected(self) -> SSAValue | None:
        """The values that the elements must have; None: any values."""
        return self.condition if self._compares else None

    @property
    def _compares(self) -> bool:
        given = self.condition
        return given is not None and element_type(given.type) != builtin.i1

    def verify_(self) -> None:
        tile, kind = self.tile_type, self.kind.data
        fits = kind_fits(normalize_kind(kind), tile.element_type)
        text = "`{}` does not combine elements of type {}"
        check(fits, text, kind, tile.element_type)
        check_vector("the value", self.value.type, tile)
        if self.mask is not None:
            check_mask(self.mask.type, tile)
        if self.expected is not None:
            is_assign = normalize_kind(kind) == "assign"
            check(is_assign, "`{}` compares nothing; only `assign` does", kind)
            check_vector("what is expected", self.expected.type, tile)
