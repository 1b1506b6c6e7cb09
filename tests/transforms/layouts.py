"""Random legal layouts, and a kernel that tries what moves between subgroups."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Block, Region

from tests.run_module import run_module
from xetl.dialects.base import dense_i64
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, gpu, scf
from xetl.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, TileType
from xetl.language.distribution import Layout, problem_with, rounds, spreads
from xetl.transforms.distribute_to_subgroups.context import Subgroups, guarded

ELEMENTS = {
    "float32": f32,
    "float64": f64,
    "float16": Float16Type(),
    "bfloat16": BFloat16Type(),
    "bool": i1,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "uint64": IndexType(),
}
"""By the name of the dtype; unsigned ones of 64 bits stand for index."""
EXTENTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
SUBGROUPS = (1, 2, 3, 4, 6, 8)


def _sizes(extent: int, count: int) -> list[int]:
    """Every legal `sg_data` along a dimension."""
    return [n for n in range(1, extent + 1) if spreads(extent, count, n)]


@st.composite
def layouts(draw, shape, subgroups):
    """Any legal layout of a shape over so many subgroups, ids in either direction."""
    counts = [(n, subgroups // n) for n in range(1, subgroups + 1) if not subgroups % n]
    fitting = [
        pair
        for pair in counts
        if all(_sizes(extent, count) for extent, count in zip(shape, pair))
    ]
    # Rows alone may have no legal size; a layout of everything for all is always there.
    pair = draw(st.sampled_from(fitting or [(1, subgroups)]))
    data = tuple(
        draw(st.sampled_from(_sizes(extent, count)))
        for extent, count in zip(shape, pair)
    )
    layout = Layout(pair, data, order=draw(st.sampled_from([(1, 0), (0, 1)])))
    assert problem_with(shape, layout) is None
    return layout


def is_first_owner(shape, layout, sg):
    """Whether ``sg`` is the one that speaks for its data among all who share it.

    What must be done once (an atomic, a store, a part of a sum) is done by this one.
    """
    places = zip(layout.coordinates(sg), shape, layout.sg_data)
    return all(place < extent // size for place, extent, size in places)


def moved(x, like, source, target, move, *, slm_limit=65536):
    """What `move` makes of the parts of an array, run by all subgroups, checked.

    The kernel loads X as ``source`` says, moves the parts twice, in a loop, and stores
    Y as ``target`` says, each sub-tile by its first owner.

    Args:
        x: the array, of two dimensions.
        like: what Y is like: an array of its shape and dtype.
        source: the layout of what is moved.
        target: the layout of what comes out, of the shape of ``like``.
        move: given the team and the parts, adds operations and gives the new parts.
        slm_limit: of the team, in bytes.
    """
    module = _kernel(x, like, source, target, move, slm_limit)
    module.verify()
    y = np.zeros_like(like)
    run_module(module, (1,), [x, y], checks=("race", "uninit"))
    return y, module


def _kernel(x, like, source, target, move, slm_limit):
    memory = [MemRefType(ELEMENTS[a.dtype.name], a.shape) for a in (x, like)]
    head = Block(arg_types=memory)
    last = gpu.ReturnOp()
    head.add_op(last)
    team = Subgroups(head, source.subgroups, slm_limit)
    team.move_before(last)
    parts = [
        team.add(LoadTileOp(tile)).result
        for tile in _tiles(team, head.args[0], x.shape, source)
    ]
    type_ = VectorType(ELEMENTS[like.dtype.name], target.sg_data)
    zero = team.add(arith.ConstantOp(make_splat(0, type_), type_)).result
    zeros = [zero] * prod(rounds(like.shape, target))
    body = Block(arg_types=[IndexType(), *(value.type for value in zeros)])
    with team.inside(body):
        team.add(scf.YieldOp(*move(team, parts)))
    bounds = [team.head_constant(0), team.head_constant(2), team.head_constant(1)]
    results = team.add(scf.ForOp(*bounds, zeros, Region(body))).results

    def store():
        tiles = _tiles(team, head.args[1], like.shape, target)
        for value, tile in zip(results, tiles, strict=True):
            team.add(StoreTileOp(value, tile))
        return ()

    guarded(team, team.first_owner(like.shape, target), (), store)
    function = gpu.FuncOp("k", Region(head))
    function.attributes["xetile.level"] = StringAttr("subgroup")
    function.attributes["xetile.subgroups"] = dense_i64([1, source.subgroups])
    return ModuleOp([gpu.ModuleOp("m", Region(Block([function])))])


def _tiles(team, memory, shape, layout):
    type_ = TileType(layout.sg_data, memory.type.element_type)
    for number in range(prod(rounds(shape, layout))):
        origin = team.origin(shape, layout, number)
        yield team.add(InitTileOp(memory, origin, type_)).result
