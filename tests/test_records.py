"""A record does what a dataclass does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Any

import pytest

from xetl.records import record

Make = Callable[..., Any]


def define(make: Make) -> tuple[Any, Any]:
    """A class with defaults, and one that extends it."""

    @make(frozen=True)
    class Point:
        x: int
        y: float = 2.0
        names: list[str] = field(default_factory=list[str], compare=False)
        hidden: int = field(default=0, repr=False)
        steps: int = field(default=1, kw_only=True)

    @make(frozen=True)
    class Named(Point):
        label: str = "none"

        def __post_init__(self) -> None:
            if not self.label:
                raise ValueError("label")

    return Point, Named


RECORDS, DATACLASSES = define(record), define(dataclass)

GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 3.0), {"steps": 4}),
    ((1, 2.0, ["a"], 5), {}),
    ((), {"x": 1, "hidden": 3}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1, 2.0, [], 4, "label", 6), {}),
    ((1,), {"x": 2}),
    ((1,), {"z": 2}),
]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("args", "named"), GIVEN)
def test_values_are_those_of_a_dataclass(
    which: int, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, theirs = RECORDS[which](*args, **named), DATACLASSES[which](*args, **named)
    assert asdict(ours) == asdict(theirs)
    assert repr(ours) == repr(theirs)
    assert hash(ours) == hash(theirs)
    assert asdict(replace(ours, x=7)) == asdict(replace(theirs, x=7))
    same, other = replace(ours, names=["other"]), replace(ours, x=7)
    assert ours == same
    assert ours not in (other, theirs)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("args", "named"), WRONG)
def test_wrong_values_are_refused(
    which: int, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=RECORDS[which].__qualname__):
        RECORDS[which](*args, **named)


def test_frozen_stays_as_it_is() -> None:
    point = RECORDS[1](1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises(ValueError, match="label"):
        RECORDS[1](1, label="")
    assert point.x == 1


def test_default_lists_are_not_shared() -> None:
    one, other = RECORDS[0](1), RECORDS[0](1)
    one.names.append("a")
    assert other.names == []


@record()
class Counter:
    """One that changes."""

    count: int = 0


@record(eq=False)
class Place:
    """One that is only itself."""

    name: str


def test_what_changes_has_no_hash() -> None:
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError):
        hash(counter)


def test_without_eq_each_is_itself() -> None:
    place = Place("a")
    assert place != Place("a")
    assert len({place, Place("a")}) == 2


def test_a_record_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Counter(3))) == Counter(3)
