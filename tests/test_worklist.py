"""A worklist gives each thing once, also what is added while it is gone through."""

from __future__ import annotations

from xetl.worklist import Worklist, sources_first


def test_each_is_given_once_and_the_last_one_first() -> None:
    waiting = Worklist("ab")
    given = []
    for each in waiting:
        given.append(each)
        waiting += "abc"
    assert given == ["b", "c", "a"]
    assert waiting.seen == {*"abc"}


def test_what_is_reached_by_many_ways_is_visited_once() -> None:
    """A chain of 100 diamonds has 2**100 ways to its end."""
    waiting = Worklist([0])
    for number in waiting:
        waiting += [number + 1] * 2 if number < 100 else []
    assert len(waiting.seen) == 101


def test_nothing_is_given_of_nothing() -> None:
    assert not list(Worklist[int](()))


def test_sources_come_first_the_last_one_before_the_others() -> None:
    sources = {"a": "bc", "b": "d", "c": "d", "d": ""}
    assert "".join(sources_first("a", sources.__getitem__)) == "dcba"
    assert "".join(sources_first("a", sources.__getitem__, known="c")) == "dba"
    assert not list(sources_first("a", sources.__getitem__, known="a"))


def test_a_circle_of_sources_is_gone_through_once() -> None:
    circle = {1: [2], 2: [3], 3: [1]}
    assert list(sources_first(1, circle.__getitem__)) == [3, 2, 1]


def test_sources_of_a_long_chain_and_of_100_diamonds() -> None:
    chain = sources_first(0, lambda number: [number + 1] * 2 if number < 9999 else [])
    assert list(chain) == list(range(9999, -1, -1))
