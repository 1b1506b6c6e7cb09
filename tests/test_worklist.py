"""A worklist gives each thing once, also what is added while it is gone through."""

from __future__ import annotations

from xetl.worklist import Worklist


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
