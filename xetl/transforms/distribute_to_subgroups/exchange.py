"""Move values between the subgroups of a workgroup.

A value stays within each subgroup if its register slices make up the new layout
(`slices_for`). Otherwise it goes through shared memory: the owners store their parts, a
barrier, all subgroups load their new parts, a barrier before the memory is used again
(so an exchange may be in a loop, and many exchanges share one memory). A tile larger
than the memory goes in chunks (slm_exchange.py): 256x256 of f32 from
``[8, 4]; [32, 64]`` to ``[32, 1]; [8, 256]`` needs 256 KiB, so it takes several rounds.

In memory a chunk is a row-major matrix, which suits block accesses of CPU and GPU. A
backend whose shared memory has banks may swizzle it later.
Source: XeTile RFC, "tile_conv_layout", "tile_reduce"; docs/xetile.md, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import gcd
from operator import add, mod, sub

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import Values, Vector, element_type, vector_type
from xetl.dialects.literals import make_splat
from xetl.dialects.reduction_kinds import operation_of, sums_run_in
from xetl.dialects.upstream import arith, gpu, vector
from xetl.dialects.xetile import TileReduceOp, TileTransposeOp
from xetl.language.distribution import Layout, origins, rounds
from xetl.records import record
from xetl.transforms.distribute_to_subgroups import slm_exchange
from xetl.transforms.distribute_to_subgroups.context import Subgroups

Offsets = tuple[int, ...]


@record(frozen=True)
class Slice:
    """A block of a new part, and the block of an old part that is copied to it.

    Attributes:
        at: where the block begins in the new part.
        source: the number of the old part.
        origin: where the block begins in the old part.
    """

    at: Offsets
    size: Offsets
    source: int
    origin: Offsets


@lru_cache(maxsize=1024)
def slices_for(
    shape: tuple[int, ...], source: Layout, target: Layout
) -> list[list[Slice]] | None:
    """Return the slices of old parts for each new part, the same in all subgroups.

    Return None if a subgroup needs elements of another one, or if the slices are not
    the same in all subgroups.
    """
    if source.subgroups != target.subgroups:
        return None
    owned = [
        {at: number for number, at in enumerate(origins(shape, source, sg))}
        for sg in range(source.subgroups)
    ]
    wanted = [origins(shape, target, sg) for sg in range(target.subgroups)]
    made: list[list[Slice]] = []
    for part in range(len(wanted[0])):
        starts = [each[part] for each in wanted]
        slices = _part(owned, starts, source.sg_data, target.sg_data)
        if slices is None:
            return None
        made.append(slices)
    return made


def _part(
    owned: Sequence[Mapping[Offsets, int]],
    starts: Sequence[Offsets],
    old: Offsets,
    new: Offsets,
) -> list[Slice] | None:
    """Return the slices of one new part.

    Args:
        owned: the numbers of the old parts of each subgroup, by their origins.
        starts: the origin of the new part in each subgroup.
        old: the size of the old parts; ``new``: that of the new one.
    """

    def source_of(at: Offsets) -> tuple[int, Offsets] | None:
        found = set[tuple[int | None, Offsets]]()
        for parts, start in zip(owned, starts):
            element = tuple(map(add, start, at))
            inner = tuple(map(mod, element, old))
            found.add((parts.get(tuple(map(sub, element, inner))), inner))
        part, inner = found.pop()
        return None if found or part is None else (part, inner)

    size, blocks = tuple(map(gcd, old, new)), list[Slice]()
    for at in product(*(range(0, n, step) for n, step in zip(new, size))):
        found = source_of(at)
        if found is None:
            return None
        blocks.append(Slice(at, size, *found))
    # If all blocks come from one old part, side by side, they are one slice.
    first = blocks[0]
    fits = all(o + n <= most for o, n, most in zip(first.origin, new, old))
    if fits and all(each.source == first.source for each in blocks):
        return [Slice(first.at, new, first.source, first.origin)]
    return blocks


def convert_layout(
    team: Subgroups,
    parts: Values,
    shape: Sequence[int],
    element: Attribute,
    source: Layout,
    target: Layout,
) -> list[SSAValue]:
    """Return the parts of a value in another layout.

    Args:
        team: the kernel's subgroups. All of them must reach its insertion point.
        parts: the parts of this subgroup in the layout ``source``, in order.
        element: the element type, any that a vector can have.

    Returns:
        The parts of this subgroup in the layout ``target``, in order. No bit changes.
    """
    found = slices_for(tuple(shape), source, target)
    if found is None:
        return _through_memory(team, parts, shape, source, target)
    type_ = VectorType(element, target.sg_data)
    return [_assembled(team, parts, slices, type_) for slices in found]


def share(
    team: Subgroups, parts: Values, shape: Sequence[int], layout: Layout
) -> list[SSAValue]:
    """Give all owners of each sub-tile the value that its first owner has."""
    if team.first_owner(shape, layout) is None:
        return list(parts)
    return _through_memory(team, parts, shape, layout, layout)


# Within a subgroup ------------------------------------------------------------------


def _assembled(
    team: Subgroups, parts: Values, slices: Sequence[Slice], type_: Vector
) -> SSAValue:
    """Return a new part that is assembled from blocks of old parts."""
    blocks = [parts[each.source] for each in slices]
    for n, (part, each) in enumerate(zip(blocks, slices)):
        if vector_type(part).get_shape() != each.size:
            taken = vector.ExtractStridedSliceOp(part, each.origin, each.size)
            blocks[n] = team.insert(taken)
    if len(blocks) == 1:
        return blocks[0]
    whole: SSAValue = team.insert(arith.ConstantOp(make_splat(0, type_), type_))
    for block, each in zip(blocks, slices):
        whole = team.insert(vector.InsertStridedSliceOp(block, whole, each.at))
    return whole


# Through memory ---------------------------------------------------------------------


def _through_memory(
    team: Subgroups, parts: Values, shape: Sequence[int], source: Layout, target: Layout
) -> list[SSAValue]:
    element = element_type(parts[0].type)
    room = max(1, team.slm_limit // slm_exchange.stored_bytes(element))
    cuts = slm_exchange.cuts_for(shape, source.sg_data, target.sg_data, room)
    exchange = slm_exchange.ChunkedExchange(team, shape, cuts, element)
    fetched: list[SSAValue] = []
    for chunk in exchange.chunks():
        exchange.store(parts, source, chunk)
        team.add(gpu.BarrierOp())
        fetched = exchange.load(fetched, target, chunk)
        team.add(gpu.BarrierOp())
    return fetched


# Reductions -------------------------------------------------------------------------


def reduce_across(
    team: Subgroups,
    kind: str,
    parts: Values,
    shape: Sequence[int],
    source: Layout,
    dims: Sequence[int],
    target: Layout,
) -> list[SSAValue]:
    """Reduce along ``dims``, also over the elements of other subgroups.

    Each subgroup first reduces its own parts, and only these partial results move: of
    a 256x256 tile in ``[8, 4]; [32, 64]`` four columns instead of 256. Sums of f16 and
    bf16 run in f32 and are rounded once.

    Args:
        kind: the kind of `tile_reduce`.
        dims: the reduced dimensions, which keep size 1.

    Returns:
        The parts of the result that this subgroup owns, in order.
    """
    element = element_type(parts[0].type)
    extents, layout = _partial(shape, source, dims)
    own = _combined(team, kind, parts, rounds(shape, source), dims)
    if all(extents[dim] == 1 for dim in dims):
        own = [team.narrowed(part, element) for part in own]
        return convert_layout(team, own, extents, element, layout, target)
    # The owner of a result fetches all its partial results.
    data = [n if d in dims else target.sg_data[d] for d, n in enumerate(extents)]
    wanted = Layout(target.sg_layout, tuple(data), order=target.order)
    running, over = element_type(own[0].type), dims
    is_turned = list(dims) == [1] and extents[1] <= 2 * data[0] and data[0] > 1
    if is_turned:
        # Rows of partial results are combined element by element, columns by shuffles.
        own = [team.insert(TileTransposeOp(part)) for part in own]
        extents, layout, wanted = extents[::-1], _turned(layout), _turned(wanted)
        over = [0]
    fetched = convert_layout(team, own, extents, running, layout, wanted)
    reduced = [team.insert(TileReduceOp(part, kind, over)) for part in fetched]
    if is_turned:
        reduced = [team.insert(TileTransposeOp(part)) for part in reduced]
    return [team.narrowed(part, element) for part in reduced]


def _turned(layout: Layout) -> Layout:
    """Return the layout of the transpose of a matrix."""
    order = tuple(1 - dim for dim in layout.order)
    return Layout(layout.sg_layout[::-1], layout.sg_data[::-1], order=order)


def _partial(
    shape: Sequence[int], source: Layout, dims: Sequence[int]
) -> tuple[tuple[int, ...], Layout]:
    """Return shape and layout of the partial results.

    There is one element for each subgroup along a reduced dimension.
    """
    extents, data = list(shape), list(source.sg_data)
    for dim in dims:
        # Subgroups that wrap share a sub-tile and have the same partial results.
        sub_tiles = shape[dim] // source.sg_data[dim]
        extents[dim], data[dim] = min(source.sg_layout[dim], sub_tiles), 1
    layout = Layout(source.sg_layout, tuple(data), order=source.order)
    return tuple(extents), layout


def _combined(
    team: Subgroups, kind: str, parts: Values, owned: Sequence[int], dims: Sequence[int]
) -> list[SSAValue]:
    """Reduce a subgroup's own parts along ``dims``, in the type that sums run in."""
    groups: dict[tuple[int, ...], list[SSAValue]] = {}
    for part, turn in zip(parts, product(*map(range, owned))):
        left = tuple(0 if dim in dims else i for dim, i in enumerate(turn))
        wide = sums_run_in(kind, vector_type(part).element_type)
        groups.setdefault(left, []).append(team.widened(part, wide))
    # Parts have one shape: combine them element by element, then reduce once.
    joined = [combine(team, kind, group) for group in groups.values()]
    return [team.insert(TileReduceOp(part, kind, dims)) for part in joined]


def combine(team: Subgroups, kind: str, values: Values) -> SSAValue:
    """Combine at least one value of one type, element by element."""
    found, *rest = values
    operation = operation_of(kind, found.type)
    for each in rest:
        found = team.insert(operation(found, each))
    return found
