"""Values that loops and conditionals carry: scalars, offsets, vectors in buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    StridedLayoutAttr,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.analysis.control_flow import yielded
from xetl.codegen.memref import static_strides
from xetl.dialects.base import (
    Index,
    constant_index,
    is_memref,
    memref_type,
    vector_type,
)
from xetl.dialects.upstream import arith, memref, scf
from xetl.dialects.xetile import InitTileOp, UpdateTileOffsetOp, unmoved
from xetl.errors import InternalError
from xetl.ir.builder import Builder
from xetl.records import record
from xetl_cpu.lowering.loops.state import Buffer, Matrix, ScatterTile, State, TileAt
from xetl_cpu.lowering.tiles import is_non_negative


@record()
class Carried:
    """How the carried values of a loop, or the results of a conditional, are split.

    Scalars stay as they are. Vectors, and the indices of scatter tiles, have a buffer,
    or have types in ``registers``. A tile becomes the two indices of its offset. A
    ``roaming`` tile may change its matrix, and also carries that: a memref and its two
    sizes. A roaming scatter tile carries its array and the array's size.
    """

    values: Sequence[SSAValue]
    buffers: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    registers: dict[int, list[VectorType[Attribute]]] = field(
        default_factory=dict[int, "list[VectorType[Attribute]]"]
    )
    tiles: dict[int, TileAt | ScatterTile] = field(
        default_factory=dict[int, "TileAt | ScatterTile"]
    )
    roaming: dict[int, MemRefType[Attribute]] = field(
        default_factory=dict[int, "MemRefType[Attribute]"]
    )

    def add_tile(
        self, state: State, index: int, value: SSAValue, stays: bool, forward: bool
    ) -> None:
        """Carry a tile. ``stays``: in its matrix; ``forward``: it never moves back."""
        tile = state.tiles[value]
        if isinstance(tile, ScatterTile):
            self.buffers[index] = state.room_for(tile.indices)
            self.tiles[index] = tile
        else:
            inside = tile.non_negative and forward and stays
            self.tiles[index] = replace(tile, non_negative=inside, is_inside=False)
        if not stays:
            self.roaming[index] = _any_memory(state, value, _memory_of(tile)[0])

    def types(self) -> list[Attribute]:
        """Return the types of the values after splitting."""
        types: list[Attribute] = []
        for index, value in enumerate(self.values):
            if index in self.roaming:
                sizes = _memory_of(self.tiles[index])[1]
                types += [self.roaming[index], *(IndexType() for _ in sizes)]
            if index in self.buffers:
                continue
            if index in self.registers:
                types += self.registers[index]
            elif index in self.tiles:
                types += [IndexType(), IndexType()]
            else:
                types.append(value.type)
        return types

    def bind(
        self, state: State, old: Sequence[SSAValue], new: Sequence[SSAValue]
    ) -> None:
        """Replace old values by their buffer, their tile or a new value."""
        remaining = iter(new)
        for index, value in enumerate(old):
            tile = self.tiles.get(index)
            if tile is not None and index in self.roaming:
                tile = _moved(tile, remaining)
            if isinstance(tile, ScatterTile):
                indices = _stand_in(state, tile.indices)
                state.buffers[indices] = self.buffers[index]
                state.tiles[value] = replace(tile, indices=indices)
            elif isinstance(tile, TileAt):
                row, col = next(remaining), next(remaining)
                state.tiles[value] = replace(tile, row=row, col=col)
            elif index in self.buffers:
                state.buffers[value] = self.buffers[index]
            elif index in self.registers:
                count = len(self.registers[index])
                state.registers[value] = [next(remaining) for _ in range(count)]
            else:
                value.replace_all_uses_with(next(remaining))

    def flatten(
        self, state: State, values: Sequence[SSAValue], op: Operation
    ) -> list[SSAValue]:
        """Return the split values, from the old ones as they are in front of ``op``."""
        build, flat = Builder.before(op), list[SSAValue]()
        for index, value in enumerate(values):
            if index in self.tiles:
                tile = state.tiles[value]
                flat += self._memory(build, index, tile)
                if isinstance(tile, TileAt):
                    flat += [build.index(tile.row), build.index(tile.col)]
            elif index in self.registers:
                flat += state.registers[value]
            elif index not in self.buffers:
                flat.append(value)
        return flat

    def _memory(
        self, build: Builder, index: int, tile: TileAt | ScatterTile
    ) -> list[SSAValue]:
        """Return the memory of a roaming tile, and its sizes; nothing for others."""
        if index not in self.roaming:
            if not same_matrix(tile, self.tiles[index]):
                raise InternalError("a carried tile changes its matrix")
            return []
        memory, sizes = _memory_of(tile)
        if len(sizes) != len(_memory_of(self.tiles[index])[1]):
            raise InternalError("an array of known size and one of unknown are mixed")
        return [_cast(build, memory, self.roaming[index]), *map(build.index, sizes)]

    def vectors(
        self, state: State, values: Sequence[SSAValue]
    ) -> list[tuple[SSAValue, Buffer]]:
        """Return the values that are stored to buffers, with the buffers."""
        found: list[tuple[SSAValue, Buffer]] = []
        for index, buffer in self.buffers.items():
            value = values[index]
            if index in self.tiles:
                tile = state.tiles[value]
                assert isinstance(tile, ScatterTile)
                value = tile.indices
            found.append((value, buffer))
        return found


def _memory_of(tile: TileAt | ScatterTile) -> tuple[SSAValue, Sequence[Index]]:
    """Return the memref of a tile, and its sizes as far as the tile has them."""
    if isinstance(tile, ScatterTile):
        return tile.memref, () if tile.size is None else (tile.size,)
    return tile.matrix.memref, (tile.matrix.rows, tile.matrix.cols)


def _moved(
    tile: TileAt | ScatterTile, memory: Iterator[SSAValue]
) -> TileAt | ScatterTile:
    """Return the same tile of other memory: the next memref and its sizes."""
    base, sizes = next(memory), [next(memory) for _ in _memory_of(tile)[1]]
    if isinstance(tile, TileAt):
        return replace(tile, matrix=Matrix(base, *sizes))
    return replace(tile, memref=base, size=sizes[0] if sizes else None)


def same_matrix(left: TileAt | ScatterTile, right: TileAt | ScatterTile) -> bool:
    """True for tiles of one matrix, or scatter tiles of one array."""
    same_kind = type(left) is type(right)
    return same_kind and _memory_of(left)[0] is _memory_of(right)[0]


def stays_in_matrix(tile: SSAValue, start: SSAValue) -> bool:
    """True if ``tile`` is ``start`` moved by updates, also in nested loops.

    Must be called before the operations between them are lowered.
    """
    while tile is not start:
        op = tile.owner
        if isinstance(op, UpdateTileOffsetOp):
            tile = op.tile
        elif isinstance(op, scf.ForOp):
            index = op.results.index(tile)  # pyright: ignore[reportArgumentType]
            body = op.body.block
            if not stays_in_matrix(yielded(body)[index], body.args[index + 1]):
                return False
            tile = op.init_args[index]
        else:
            return False
    return True


def moves_forward(tile: SSAValue, start: SSAValue) -> bool:
    """True if one iteration moves a tile only by updates that are not negative."""
    first, moves = unmoved(tile)
    steps = [step for each in moves for step in each.mixed_offsets]
    return first is start and all(map(is_non_negative, steps))


def adjacent_dims(program: Operation) -> dict[Attribute, set[int]]:
    """Return the dimensions that are contiguous in all matrices, for each tile type.

    Must be called before the program is lowered: later, blocks are detached for a
    while.
    """
    found: dict[Attribute, set[int]] = {}
    for op in program.walk():
        if isinstance(op, InitTileOp):
            dims = _unit_strides(op)
            found[op.result.type] = found.get(op.result.type, dims) & dims
    return found


def _any_memory(state: State, tile: SSAValue, memory: SSAValue) -> MemRefType:
    """Return a type for any memory that a tile of this type may be in."""
    type_ = memref_type(memory)
    dims = range(len(type_.get_shape()))
    units = state.adjacent.get(tile.type, set[int]()).intersection(dims)
    unit = max(units, default=None)
    strides = [1 if dim == unit else None for dim in dims]
    layout = StridedLayoutAttr(strides, None)
    dynamic = [DYNAMIC_INDEX] * len(strides)
    return MemRefType(type_.element_type, dynamic, layout, type_.memory_space)


def _unit_strides(op: InitTileOp) -> set[int]:
    """Return the dimensions along which the tile's matrix is contiguous."""
    if op.mixed_strides:
        return {d for d, s in enumerate(op.mixed_strides) if constant_index(s) == 1}
    if not is_memref(op.source.type) and op.indices is not None:
        return {0}  # at an address without strides elements are neighbours
    type_ = op.source.type
    if not is_memref(type_):
        return set()
    return {d for d, s in enumerate(static_strides(type_)) if s == 1}


def _cast(build: Builder, base: SSAValue, type_: MemRefType[Attribute]) -> SSAValue:
    if base.type == type_:
        return base
    return build.insert(memref.CastOp(base, type_))


def _stand_in(state: State, like: SSAValue) -> SSAValue:
    """Return a placeholder value for a buffer."""
    op = arith.ConstantOp.of(0, vector_type(like))
    Builder(InsertPoint.at_start(state.scratch)).add(op)
    state.dead.append(op)
    return op.result
