"""Random loads and stores of one array, in loops and branches: never a race.

Blocks begin at constants, at counters of loops, in rings of buffers, or move with a
loop; they overlap, or only nearly.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meaning import same_meaning
from test_place_barriers import passes

from xetl.transforms.place_barriers import PlaceBarriersPass

MAPS = {
    "rows": "sg_layout = [4, 1], sg_data = [2, 8]",
    "columns": "sg_layout = [1, 4], sg_data = [8, 2]",
    "blocks": "sg_layout = [2, 2], sg_data = [4, 4]",
    "turns": "sg_layout = [2, 2], sg_data = [2, 2]",
    "shared": "sg_layout = [2, 2], sg_data = [8, 4]",
    "all": "sg_layout = [4, 1], sg_data = [8, 8]",
}
MEMORY, LOADED = "memref<8x64xf32>", "memref<8x256xf32>"
VALUE = "vector<8x8xf32>"
STEPS = (2, 4, 8, 16)
NUMBERS = (0, 2, 4, 8, 16, 24, 32)

places = st.one_of(
    st.tuples(st.just("at"), st.sampled_from([0, 4, 8, 16, 24])),
    st.tuples(st.just("counter"), st.sampled_from([0, 4, 8])),
    st.tuples(st.just("ring"), st.sampled_from([0, 8, 16]), st.sampled_from([16, 32])),
    st.tuples(st.just("carried"), st.sampled_from([0, 8])),
)
touches = st.tuples(
    st.sampled_from(["load", "store", "add"]), places, st.sampled_from(list(MAPS))
)
moving = st.tuples(
    st.sampled_from(["store", "add"]),
    places.filter(lambda place: place[0] != "at"),
    st.sampled_from(["columns", "blocks"]),
)
statements = st.recursive(
    touches | st.just(("barrier",)),
    lambda inner: st.one_of(
        st.tuples(
            st.just("for"),
            st.sampled_from(STEPS),
            st.sampled_from(list(MAPS)),
            st.lists(inner, min_size=1, max_size=4),
        ),
        st.tuples(st.just("if"), st.booleans(), st.lists(inner, max_size=3)),
    ),
    max_leaves=8,
)


class Writer:
    """Writes a kernel; no two stores write the same value."""

    def __init__(self):
        self.lines = []
        self.loads = 0
        self._names = 0
        self._counter = "%c4"
        self._carried = ("%first", "!rows")

    def write(self, program):
        for kind, *rest in program:
            getattr(self, f"_{kind}")(*rest)

    def _new(self, text):
        self._names += 1
        self.lines.append(f"%v{self._names} = {text}")
        return f"%v{self._names}"

    def _tile(self, place, map_):
        kind, constant, *rest = place
        if kind == "carried":
            tile, type_ = self._carried
            moved = f"xetile.update_tile_offset {tile}, [0, {constant}] : {type_}"
            return self._new(moved), type_
        at = f"%c{constant}"
        if kind in ("counter", "ring"):
            at = self._new(f"arith.addi {self._counter}, {at} : index")
        if kind == "ring":
            at = self._new(f"arith.remui {at}, %c{rest[0]} : index")
        made = f"xetile.init_tile %x[0, {at}] : {MEMORY} -> !{map_}"
        return self._new(made), f"!{map_}"

    def _put(self, value, tile, type_):
        self.lines.append(f"xetile.store_tile {value}, {tile} : {VALUE}, {type_}")

    def _load(self, place, map_):
        """What is loaded is seen in the end: in a place of its own in Y."""
        tile, type_ = self._tile(place, map_)
        value = self._new(f"xetile.load_tile {tile} : {type_} -> {VALUE}")
        at = 8 * self.loads
        self.loads += 1
        kept = self._new(f"xetile.init_tile %y[0, {at}] : {LOADED} -> {type_}")
        self._put(value, kept, type_)

    def _store(self, place, map_):
        tile, type_ = self._tile(place, map_)
        splat = f"dense<{self._names}.0>"
        self._put(self._new(f"arith.constant {splat} : {VALUE}"), tile, type_)

    def _add(self, place, map_):
        tile, type_ = self._tile(place, map_)
        old = self._new(f"xetile.load_tile {tile} : {type_} -> {VALUE}")
        self._put(self._new(f"arith.addf {old}, {old} : {VALUE}"), tile, type_)

    def _barrier(self):
        self.lines.append("gpu.barrier")

    def _if(self, holds, program):
        self.lines.append(f"scf.if %{str(holds).lower()} {{")
        self.write(program)
        self.lines.append("}")

    def _for(self, step, map_, program):
        outside = self._counter, self._carried
        type_ = f"!{map_}"
        first = self._new(f"xetile.init_tile %x[0, 0] : {MEMORY} -> {type_}")
        self._names += 1
        tile, self._counter = f"%t{self._names}", f"%i{self._names}"
        self._carried = (tile, type_)
        self.lines.append(
            f"%r{self._names} = scf.for {self._counter} = %c0 to %c16 step %c{step}"
            f" iter_args({tile} = {first}) -> ({type_}) {{"
        )
        self.write(program)
        moved = f"xetile.update_tile_offset {tile}, [0, {step}] : {type_}"
        self.lines += [f"scf.yield {self._new(moved)} : {type_}", "}"]
        self._counter, self._carried = outside


def kernel(program):
    writer = Writer()
    writer.write(program)
    constants = [f"%c{i} = arith.constant {i} : index" for i in NUMBERS]
    types = [
        f"!{name} = !xetile.tile<8x8xf32, #xetile.tile_attr<wg_map = <{map_}>>>"
        for name, map_ in MAPS.items()
    ]
    return "\n".join(
        [
            *types,
            f"gpu.module @m {{ gpu.func @k(%x: {MEMORY}, %y: {LOADED}, %true: i1,",
            '%false: i1) kernel attributes {xetile.level = "workgroup",',
            "xetile.alias_groups = array<i64: -1, -1, -1, -1>} {",
            *constants,
            f"%first = xetile.init_tile %x[0, 0] : {MEMORY} -> !rows",
            *writer.lines,
            "gpu.return } }",
        ]
    )


def check(program):
    x = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    y = np.zeros((8, 256), np.float32)
    text = kernel(program)
    same_meaning(text, (1,), [x, y, True, False], passes(PlaceBarriersPass()))


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(statements, min_size=2, max_size=6))
def test_random_accesses(program):
    check(program)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.sampled_from(STEPS),
    st.sampled_from(["columns", "blocks"]),
    st.lists(moving, min_size=1, max_size=2),
)
def test_blocks_that_move_with_a_loop(step, map_, touches):
    check([("for", step, map_, touches)])
