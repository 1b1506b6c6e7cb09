"""Rules of the operations on tiles: init, offset updates, loads, stores, prefetches.

Block messages move the tiles that they support (`surfaces`); lanes with masks move all
others (`lines`).

A lane map of the user is accepted if it describes the hardware's distribution. A
message fills registers of 64 bytes one after the other. The lanes of a register hold
elements, or words of 32 bits. As words, 16 columns of f16 are 2 rows of 8 lanes with 2
neighbours each, which is the map in the example of the first RFC. Both maps put each
bit into the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import FixedBitwidthType, IndexType, IntegerType
from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.base import Index, is_memref, vector_type, with_element
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.transforms.diagnostics import remark
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.dialect.attributes import READ_HINTS, WRITE_HINTS
from xetl_xegpu.dialect.stage import NO_BLOCKS

from . import block_messages
from .conversion import Converter, Rule
from .elementwise import from_numbers
from .fragments import (
    LANE_DATA,
    LANES,
    Form,
    Fragments,
    Grid,
    Matrix,
    MmaOperand,
    Scattered,
    Span,
    Start,
    Tile,
    TransposedLoad,
    View,
    grid_of,
    vector_of,
)
from .lines import (
    Hints,
    from_lines,
    line_access,
    lines_of,
    load_line,
    prefetch_line,
    store_line,
    to_lines,
)
from .surfaces import folded, in_its_matrix, is_message, surface_of
from .views import moved

_WORD = 32
_TWO_ROWS = (2, LANES // 2)
"""The lanes of words if a row has 32 bytes: a register holds two rows."""


def check_lane_map(c: Converter, op: xetile.InitTileOp) -> None:
    """Refuse a map that differs from the distribution of messages."""
    given = op.result.type.sg_map
    if given is None or _is_followed(given, op.result.type.element_type):
        return
    raise c.refusal(
        op,
        f"no message spreads a tile as `sg_map<wi_layout = {list(given.wi_layout)}, "
        f"wi_data = {list(given.wi_data)}>` says",
        f"leave `sg_map` out, or give `wi_layout = [1, {LANES}], wi_data = [1, 1]`",
    )


def _is_followed(given: xetile.SgMapAttr, element: object) -> bool:
    if given.wi_layout == (1, LANES):
        return given.wi_data in LANE_DATA
    if not isinstance(element, FixedBitwidthType):
        return False
    neighbours = _WORD // element.bitwidth
    return given.wi_layout == _TWO_ROWS and given.wi_data == (1, neighbours)


# Where a tile is --------------------------------------------------------------------


def _init(c: Converter, op: xetile.InitTileOp) -> None:
    check_lane_map(c, op)
    c.set(op.result, described(c, op))


def described(c: Converter, op: xetile.InitTileOp) -> Tile | Scattered:
    """Return the tile that an `init_tile` describes."""
    element, start = op.result.type.element_type, Start(op.source)
    is_array = is_memref(op.source.type)
    view = c.view(op.source) if is_array else View(start, element, (), (), start)
    sizes = op.mixed_sizes or view.sizes
    strides = op.mixed_strides or view.strides
    if op.indices is not None:
        size = sizes[0] if sizes else None
        stride = strides[0] if strides else 1
        return Scattered(view.start, element, size, stride, c.fragments(op.indices))
    start, rows, columns = view.start, sizes[-2], sizes[-1]
    inside: SSAValue | None = None
    for place, size, stride in zip(op.mixed_offsets[:-2], sizes, strides):
        start = moved(c, start, c.emit.times(place, stride))
        if not (isinstance(place, int) and isinstance(size, int) and place < size):
            below = c.emit.compare("ult", place, size)
            inside = c.emit.conjunction(inside, below)
    if inside is not None:
        rows, columns = (c.emit.select(inside, each, 0) for each in (rows, columns))
    matrix = Matrix(start, element, (rows, columns), (strides[-2], strides[-1]))
    row, column = op.mixed_offsets[-2:]
    return Tile(matrix, row, column)


def _update(c: Converter, op: xetile.UpdateTileOffsetOp) -> None:
    found = c.lowered(op.tile)
    if isinstance(found, Scattered):
        assert op.indices is not None
        pairs = zip(found.indices.parts, c.fragments(op.indices).parts)
        parts = [c.emit.insert(arith.AddiOp(*pair)) for pair in pairs]
        indices = Fragments(found.indices.shape, IndexType(), parts)
        c.set(op.result, replace(found, indices=indices))
        return
    assert isinstance(found, Tile)
    down, right = op.mixed_offsets
    row, column = c.emit.plus(found.row, down), c.emit.plus(found.column, right)
    c.set(op.result, replace(found, row=row, column=column))


# Moving it --------------------------------------------------------------------------


def hints_of(op: Operation, allowed: tuple[str, ...]) -> Hints:
    """Return the cache hints of an operation, without those it does not allow."""
    found: Hints = {}
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        hint = op.properties.get(name)
        if not isinstance(hint, xetile.CacheHintAttr):
            continue
        if hint.word in allowed:
            found[name] = xegpu.CacheHintAttr(hint.word)
        else:
            said = f"`{hint.word}` says nothing to `{op.name}`"
            remark(op, "caches", f"`{name}` is left out: {said}")
    return found


def _load(c: Converter, op: xetile.LoadTileOp) -> None:
    type_ = op.tile_type
    rows, columns = type_.shape
    tile, hints = c.tile(op.tile), hints_of(op, READ_HINTS)
    padding = 0 if op.padding is None else splat_value(op.padding) or 0
    is_usual = len(op.results) > 1 or padding
    grid = grid_of(rows, columns)
    special = None if is_usual else _load_special(c, op, tile, grid, hints)
    if special is None:
        _load_side_by_side(c, op, tile, padding, hints)
    else:
        c.set(op.result, special)


def _load_special(
    c: Converter, op: xetile.LoadTileOp, tile: Tile, grid: Grid, hints: Hints
) -> MmaOperand | TransposedLoad | None:
    """Load a tile in the form of its only users: products, or a transpose.

    Return None if the tile has other users, or if there is no such load.
    """
    form, transposed = c.plan.forms.get(op), op in c.plan.transposed
    if form is None and not transposed:
        return None
    surface = surface_of(c, tile, c.plan.columns[op])
    if surface is None or (not grid.spread and not transposed):
        return None
    move = block_messages.Move(tile, surface, grid, hints)
    if not transposed:
        is_deep = form is Form.DEEP
        load = block_messages.load_deep if is_deep else block_messages.load_packed
        return load(c, move)
    turned = move.turned()
    if surface.by_lanes and not turned.grid.spread:
        return None
    if surface.by_lanes and is_message(c, turned.surface):
        return None  # the launch would not know which array a message moves
    if form is Form.PACKED:
        # A load by lanes packs the elements directly.
        return TransposedLoad(
            block_messages.load_packed(c, turned)
            if surface.by_lanes
            else block_messages.load_packed_transposed(c, move)
        )
    if form is Form.PARTED and not surface.by_lanes:
        return TransposedLoad(block_messages.load_parted(c, move))
    shape = (grid.columns, grid.rows)
    if surface.by_lanes:
        parts = block_messages.load_fragments(c, turned)
    elif 1 in shape:
        return None
    else:
        parts = block_messages.load_transposed(c, move)
    return TransposedLoad(Fragments(shape, tile.matrix.element, parts))


def _load_side_by_side(
    c: Converter, op: xetile.LoadTileOp, tile: Tile, padding: int | float, hints: Hints
) -> None:
    """Load tiles side by side: by one load if each has a multiple of 16 columns."""
    rows, columns = op.tile_type.shape
    count = len(op.results)
    if columns % LANES:
        grid = grid_of(rows, columns)
        for number, result in enumerate(op.results):
            column = c.emit.plus(tile.column, number * columns)
            beside = replace(tile, column=column)
            c.set_fragments(result, _fragments(c, op, beside, grid, padding, hints))
        return
    whole = grid_of(rows, count * columns)
    parts = _fragments(c, op, tile, whole, padding, hints)
    each = columns // LANES
    for number, result in enumerate(op.results):
        firsts = range(number * each, whole.count, whole.groups)
        some = [part for at in firsts for part in parts[at : at + each]]
        c.set_fragments(result, some)


def _fragments(
    c: Converter,
    op: xetile.LoadTileOp,
    tile: Tile,
    grid: Grid,
    padding: int | float,
    hints: Hints,
) -> Sequence[SSAValue]:
    moves = _moves(c, op, tile, grid, hints)
    if not moves:
        lines = [
            load_line(c, line_access(c, tile, line, exact=False), padding, hints)
            for line in lines_of(grid)
        ]
        return from_lines(c, grid, tile.matrix.element, lines)
    parts, *others = (block_messages.load_fragments(c, move) for move in moves)
    for other in others:
        # An element is 0 in one of them, or in both.
        parts = [_united(c, *pair) for pair in zip(parts, other)]
    whole, element = moves[0].grid, tile.matrix.element
    if padding != 0:
        parts = _padded(c, [move.tile for move in moves], whole, parts, padding)
    shape = (whole.rows, whole.columns)
    return _recut(c, Fragments(shape, element, parts), grid).parts


def _united(c: Converter, *values: SSAValue) -> SSAValue:
    """Return fragments as one: the bits that are 1 in some of them."""
    type_ = values[0].type
    found = _as_words(c, values[0])
    for each in values[1:]:
        found = c.emit.pure(arith.OriOp, found, _as_words(c, each))
    return (
        found if found.type == type_ else c.emit.insert(arith.BitcastOp(found, type_))
    )


def _as_words(c: Converter, value: SSAValue) -> SSAValue:
    """Return the bits of a vector's elements as integers."""
    type_ = vector_type(value)
    words = with_element(type_, IntegerType(bit_width(type_.element_type)))
    return value if words == type_ else c.emit.insert(arith.BitcastOp(value, words))


def _moves(
    c: Converter, op: Operation, tile: Tile, grid: Grid, hints: Hints
) -> list[block_messages.Move]:
    """Return how messages, or lanes in their place, move a tile as blocks.

    Each move has the whole tile, of which the others have nothing in their matrices.
    """
    is_line = grid.rows == 1 and NO_BLOCKS in c.kernel.attributes
    if not grid.spread or (is_line and not c.device.emulated):
        return []
    found = folded(c, tile, grid)
    if found is not None:
        grid, places = found
        return [block_messages.Move(*place, grid, hints) for place in places]
    tile = in_its_matrix(c, tile)
    surface = surface_of(c, tile, c.plan.columns[op])
    return [block_messages.Move(tile, surface, grid, hints)] if surface else []


def _recut(c: Converter, pieces: Fragments, grid: Grid) -> Fragments:
    """Return a value as another matrix of the same elements in the same order."""
    if pieces.grid == grid:
        return pieces
    parts = from_lines(c, grid, pieces.element, to_lines(c, pieces))
    return Fragments((grid.rows, grid.columns), pieces.element, parts)


def _padded(
    c: Converter,
    tiles: Sequence[Tile],
    grid: Grid,
    parts: Sequence[SSAValue],
    padding: int | float,
) -> list[SSAValue]:
    """Write a padding, which is not 0, outside of all matrices.

    Elements outside were loaded as 0: the bits of the padding are added to theirs. This
    is one instruction for each register, with a word for each row and each column.
    """
    bits = _as_words(c, c.emit.constant(padding, vector_of(tiles[0].matrix.element, 1)))
    fill = c.emit.insert(vector.ExtractOp(bits, [0]))

    def words(mask: SSAValue) -> SSAValue:
        shape = vector_type(mask).get_shape()
        zero = c.emit.constant(0, vector_of(fill.type, *shape))
        return c.emit.pure(arith.SelectOp, mask, zero, c.spread(fill, *shape))

    def outside(tile: Tile, span: Span, group: int) -> SSAValue:
        rows, top = tile.matrix.sizes[0], c.emit.plus(tile.row, span.first)
        numbers = from_numbers(c, [[i] for i in range(span.count)], IndexType())[0]
        masks = _inside(c, numbers, top, rows), _columns_inside(c, tile, group)
        pair = (c.spread(words(mask), span.count, LANES) for mask in masks)
        return c.emit.pure(arith.OriOp, *pair)

    found: list[SSAValue] = []
    for (span, group), part in zip(grid.blocks(), parts):
        word, *others = (outside(tile, span, group) for tile in tiles)
        for other in others:
            word = c.emit.pure(arith.AndiOp, word, other)
        found.append(_united(c, part, word))
    return found


def _cleared(c: Converter, tile: Tile, pieces: Fragments) -> Fragments:
    """Return a value with 0 in the columns that are outside of the matrix."""
    found: list[SSAValue] = []
    for (span, group), part in zip(pieces.grid.blocks(), pieces.parts):
        mask = c.spread(_columns_inside(c, tile, group), span.count, LANES)
        zero = c.emit.constant(0, part.type)
        found.append(c.emit.insert(arith.SelectOp(mask, part, zero)))
    return replace(pieces, parts=found)


def _columns_inside(c: Converter, tile: Tile, group: int) -> SSAValue:
    """Return a mask of the columns of a fragment that are in the matrix."""
    left = c.emit.plus(tile.column, group * LANES)
    return _inside(c, c.lane_ids(), left, tile.matrix.sizes[1])


def _inside(c: Converter, numbers: SSAValue, first: Index, size: Index) -> SSAValue:
    """Return a mask of a fragment's rows, or columns, that are in the matrix."""
    shape = vector_type(numbers).get_shape()
    start, end = (c.spread(c.index(each), *shape) for each in (first, size))
    return c.emit.compare("ult", c.emit.pure(arith.AddiOp, numbers, start), end)


def _store(c: Converter, op: xetile.StoreTileOp) -> None:
    tile, pieces = c.tile(op.tile), c.fragments(op.value)
    grid, hints = pieces.grid, hints_of(op, WRITE_HINTS)
    moves = _moves(c, op, tile, grid, hints) if grid.columns >= LANES else []
    if moves:
        surface = moves[0].surface
        may_be_odd = not (surface.by_lanes or isinstance(surface.columns, int))
        if op in c.plan.loaded_again and may_be_odd:
            # Messages write at least 64 bytes of a row; loads expect zeros in its tail.
            pieces = _cleared(c, tile, pieces)
        pieces = _recut(c, pieces, moves[0].grid)
        for move in moves:
            block_messages.store_fragments(c, move, pieces)
        return
    for line, value in zip(lines_of(grid), to_lines(c, pieces)):
        store_line(c, line_access(c, tile, line, exact=True), value, hints)


_LOCALITIES = (
    ("streaming", "uncached"),
    ("streaming", "cached"),
    ("uncached", "cached"),
    ("cached", "cached"),
)
"""The hints for L1 and the outer caches, for `locality<0>` to `locality<3>`. The RFC
prefetches to the outer cache with 2, and to the inner one with 3."""


def _prefetch(c: Converter, op: xetile.PrefetchTileOp) -> None:
    # The operation's own hints override those of its locality.
    defaults: Hints = {}
    if op.locality is not None:
        words = zip(("l1_hint", "l3_hint"), _LOCALITIES[op.locality.value.data])
        defaults = {name: xegpu.CacheHintAttr(word) for name, word in words}
    found, hints = c.lowered(op.tile), (defaults | hints_of(op, READ_HINTS))
    if not isinstance(found, Tile):
        return
    type_ = op.tile.type
    assert isinstance(type_, xetile.TileType)
    grid = grid_of(*type_.shape)
    moves = _moves(c, op, found, grid, hints)
    for move in moves[:1]:
        if not move.surface.by_lanes:  # only messages can prefetch a block
            block_messages.prefetch_blocks(c, move)
    if moves:
        return
    for line in lines_of(grid):
        prefetch_line(c, line_access(c, found, line, exact=False), hints)


RULES: dict[type[Operation], Rule] = {
    xetile.InitTileOp: _init,
    xetile.UpdateTileOffsetOp: _update,
    xetile.LoadTileOp: _load,
    xetile.StoreTileOp: _store,
    xetile.PrefetchTileOp: _prefetch,
}
