"""The rule of distribution: worked tables, and a model that deals data like cards."""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.layouts import is_first_owner
from xetl.language.distribution import (
    Layout,
    origins,
    problem_in,
    problem_with,
    rounds,
    spreads,
    whole,
)


def owned(shape: tuple[int, ...], layout: Layout) -> list[list[tuple[int, ...]]]:
    assert problem_with(shape, layout) is None
    return [origins(shape, layout, sg) for sg in range(layout.subgroups)]


# The worked tables -------------------------------------------------------------------


def test_the_table_of_the_rfc() -> None:
    """XeTile RFC, "wg_map": rounds along the rows, sharing along the columns."""
    layout = Layout((2, 2), (32, 128))
    table = {
        (0, 0): [(0, 0), (0, 1)],
        (32, 0): [(1, 0), (1, 1)],
        (64, 0): [(0, 0), (0, 1)],
        (96, 0): [(1, 0), (1, 1)],
    }
    for sub_tile, owners in table.items():
        ids = [sg for sg in range(4) if sub_tile in origins((128, 128), layout, sg)]
        assert [layout.coordinates(sg) for sg in ids] == owners


def test_a_square_goes_round_in_both_dimensions() -> None:
    found = owned((256, 256), Layout((2, 2), (64, 64)))
    assert found[0] == [(0, 0), (0, 128), (128, 0), (128, 128)]
    assert found[1] == [(0, 64), (0, 192), (128, 64), (128, 192)]
    assert found[2] == [(64, 0), (64, 128), (192, 0), (192, 128)]
    assert found[3] == [(64, 64), (64, 192), (192, 64), (192, 192)]


def test_three_rounds_of_rows() -> None:
    found = owned((192, 64), Layout((2, 2), (32, 32)))
    assert found[0] == [(0, 0), (64, 0), (128, 0)]
    assert found[1] == [(0, 32), (64, 32), (128, 32)]
    assert found[2] == [(32, 0), (96, 0), (160, 0)]
    assert found[3] == [(32, 32), (96, 32), (160, 32)]


@pytest.mark.parametrize(
    ("shape", "data", "place"),
    [
        # The operands and results of the worked GEMM with 32 subgroups as [8, 4].
        ((256, 256), (32, 64), lambda sg: (sg // 4 * 32, sg % 4 * 64)),
        ((256, 32), (32, 32), lambda sg: (sg // 4 * 32, 0)),
        ((32, 256), (32, 64), lambda sg: (0, sg % 4 * 64)),
        ((1, 256), (1, 64), lambda sg: (0, sg % 4 * 64)),
    ],
)
def test_the_operands_of_a_gemm(shape, data, place) -> None:
    layout = Layout((8, 4), data)
    assert owned(shape, layout) == [[place(sg)] for sg in range(32)]


def test_one_column_of_subgroups() -> None:
    found = owned((256, 1), Layout((32, 1), (8, 1)))
    assert found == [[(8 * sg, 0)] for sg in range(32)]
    assert owned((32, 256), Layout((4, 8), (8, 32)))[9] == [(8, 32)]


@pytest.mark.parametrize(
    ("shape", "layout", "problem"),
    [
        ((96, 64), Layout((2, 2), (32, 32)), "2 * 32 = 64 and extent 96 of dimension"),
        ((192, 256), Layout((4, 2), (64, 64)), "4 * 64 = 256 and extent 192"),
        ((100, 64), Layout((2, 2), (32, 32)), "sg_data 32 does not divide extent 100"),
        ((16, 64), Layout((2, 2), (32, 32)), "sg_data 32 does not divide extent 16"),
        ((64, 96), Layout((2, 2), (32, 32)), "extent 96 of dimension 1: neither"),
        ((64, 64, 4), Layout((2, 2), (32, 32)), "it has 2 dimensions, the shape"),
    ],
)
def test_maps_that_cannot_spread(shape, layout, problem) -> None:
    assert problem in (problem_with(shape, layout) or "")


# The RFC on layouts that reach down to lanes -----------------------------------------


def test_order_says_how_ids_count() -> None:
    """ "[2, 1, 0] is z + dim_2*y + dim_2*dim_1*x, [1, 2, 0] y + ...": fastest first."""
    dims = (2, 3, 5)
    usual = Layout(dims, (1, 1, 1))
    other = Layout(dims, (1, 1, 1), order=(1, 2, 0))
    for x, y, z in itertools.product(*map(range, dims)):
        assert usual.coordinates(z + 5 * y + 5 * 3 * x) == (x, y, z)
        assert other.coordinates(y + 3 * z + 3 * 5 * x) == (x, y, z)


def test_columns_first() -> None:
    layout = Layout((2, 4), (8, 8), order=(0, 1))
    assert [layout.coordinates(sg) for sg in range(3)] == [(0, 0), (1, 0), (0, 1)]
    assert origins((16, 32), layout, 3) == [(8, 8)]


def test_a_transpose_keeps_its_owners_when_ids_count_down_the_columns() -> None:
    """docs/design/0003: why an input of a transpose is given the order [0, 1]."""
    result = Layout((4, 8), (32, 64))
    source = Layout((8, 4), (64, 32), order=(0, 1))
    for sg in range(32):
        mirrored = [(c, r) for r, c in origins((512, 128), source, sg)]
        assert mirrored == origins((128, 512), result, sg)


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        (Layout((2, 2), (8,)), "`sg_data` must have 2 entries as `sg_layout` has"),
        (Layout((2, 0), (8, 8)), "entries of `sg_layout` must be positive"),
        (Layout((2, 2), (8, 8), order=(0, 0)), "`order` must name each of the 2"),
        (Layout((2, 2), (8, 8), order=(0,)), "`order` must name each of the 2"),
        (Layout((1, 1), (8, 8), lane_layout=(1, 8)), "given together or not at all"),
        (Layout((1, 1), (8, 8), (3, 8)), "`inst_data` 3 does not divide `sg_data` 8"),
        (
            Layout((1, 1), (8, 8), lane_layout=(1, 16), lane_data=(1, 1)),
            "16 * 1 = 16 does not divide `sg_data` 8 of dimension 1",
        ),
        (
            Layout((1, 1), (8, 32), (8, 8), (1, 16), (1, 1)),
            "16 * 1 = 16 does not divide `inst_data` 8 of dimension 1",
        ),
    ],
)
def test_layouts_that_are_wrong_whatever_they_spread(layout, problem) -> None:
    assert problem in (problem_in(layout) or "")


def test_a_plain_layout_is_right() -> None:
    assert problem_in(Layout((8, 4), (32, 64), (8, 16), (1, 16), (1, 1))) is None
    assert Layout((8, 4), (1, 1)) == Layout((8, 4), (1, 1), order=(1, 0))


# The model ---------------------------------------------------------------------------


def deal(extent: int, count: int, size: int) -> list[list[int]]:
    """What each of ``count`` players holds when the parts are dealt out in turns.

    The RFC's words: who is left goes on with the rest of the data; when the data is
    used up before everyone was served, it is dealt from the beginning again.
    """
    deck = list(range(0, extent, size))
    hands: list[list[int]] = [[] for _ in range(count)]
    dealt = 0
    while dealt < len(deck):
        for hand in hands:
            hand.append(deck[dealt % len(deck)])
            dealt += 1
    return hands


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], Layout]:
    """A tile of one to three dimensions and a map that can spread it."""
    rank = draw(st.integers(1, 3))
    shape, counts, sizes = [], [], []
    for _ in range(rank):
        count, size = draw(st.integers(1, 6)), draw(st.integers(1, 4))
        several = draw(st.integers(1, 3))
        divisors = [n for n in range(1, count + 1) if count % n == 0]
        parts = draw(st.sampled_from([count * several, *divisors]))
        shape.append(parts * size)
        counts.append(count)
        sizes.append(size)
    order = tuple(draw(st.permutations(range(rank))))
    return tuple(shape), Layout(tuple(counts), tuple(sizes), order=order)


@given(cases())
def test_it_is_what_dealing_gives(case) -> None:
    shape, layout = case
    hands = [deal(*dim) for dim in zip(shape, layout.sg_layout, layout.sg_data)]
    for sg, found in enumerate(owned(shape, layout)):
        place = layout.coordinates(sg)
        expected = list(itertools.product(*(h[i] for h, i in zip(hands, place))))
        assert found == expected
        assert len(found) == prod(rounds(shape, layout))


@given(cases())
def test_every_element_has_owners_and_one_of_them_is_first(case) -> None:
    shape, layout = case
    owners: Counter[tuple[int, ...]] = Counter()
    firsts: Counter[tuple[int, ...]] = Counter()
    for sg, found in enumerate(owned(shape, layout)):
        for origin in found:
            spans = [range(o, o + d) for o, d in zip(origin, layout.sg_data)]
            for element in itertools.product(*spans):
                owners[element] += 1
                firsts[element] += is_first_owner(shape, layout, sg)
    assert set(owners) == set(itertools.product(*map(range, shape)))
    assert len(set(owners.values())) == 1, "all data is shared by equally many"
    assert set(firsts.values()) == {1}


@given(cases())
def test_ids_and_places_are_one_to_one(case) -> None:
    _, layout = case
    places = [layout.coordinates(sg) for sg in range(layout.subgroups)]
    assert sorted(places) == list(itertools.product(*map(range, layout.sg_layout)))


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 8))
def test_what_spreads_is_what_can_be_dealt_evenly(extent, count, size) -> None:
    """Legal: parts of full size, and everyone holds as many, each shared as often."""
    even = extent % size == 0
    if even:
        hands = deal(extent, count, size)
        shares = Counter(part for hand in hands for part in hand)
        even = len({*map(len, hands)}) == 1 and len(set(shares.values())) == 1
    assert spreads(extent, count, size) == even


@given(cases())
def test_whole_gives_everything_to_everyone(case) -> None:
    shape, layout = case
    everything = whole(shape, layout.sg_layout)
    assert owned(shape, everything) == [[(0,) * len(shape)]] * layout.subgroups
    firsts = [is_first_owner(shape, everything, sg) for sg in range(layout.subgroups)]
    assert firsts == [True] + [False] * (layout.subgroups - 1)
