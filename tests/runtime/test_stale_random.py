"""Random chains of modules, classes, objects and containers, changed at random places.

After each change three launches must agree with what Python says the expression is: the
kernel that was launched before (is a change noticed?), another kernel object of the
same function (is code from the disk the right one?), and a fresh compilation for the
reference backend, which keeps nothing.
"""

from __future__ import annotations

import linecache
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.runtime.kernel import Kernel

STEPS = 5
KERNEL = """
def k(X):
    tile = xetile.init_tile(X, [0], (16,))
    v = xetile.load_tile(tile) * 0
    xetile.store_tile(v + {value}, tile)
"""
HELPER = "def helper(v):\n    return v * 0 + {value}\n"


class World:
    """Objects that hang together, and the places where they can be changed.

    Attributes:
        leaves: for each number its expression, and what sets it.
        nodes: for each attribute or element that holds an object: what sets it anew to
            another object that holds the same.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.leaves: list[tuple[str, Callable[[object], None]]] = []
        self.files = 0
        self.scope: dict[str, Any] = {"xetile": xetile, "__name__": "world"}
        for index in range(self.random.randint(1, 3)):
            name = f"n{index}"
            setter = self._item_setter(self.scope, name)
            self.scope[name] = self._value(name, setter, self.random.randint(0, 4))

    def number(self) -> int | float:
        """One of few, so that values come back."""
        value = self.random.choice([1, 2, 3, 1000, 0.5, 1.5, 1e6])
        return value + 1 if isinstance(value, int) else value

    def _value(self, path: str, setter: Callable[[object], None], depth: int) -> Any:
        if depth == 0:
            self.leaves.append((path, setter))
            return self.number()
        kinds = (self._module, self._class, self._object, self._property)
        kinds = (*kinds, self._list, self._tuple, self._dict, self._helper)
        return self.random.choice(kinds)(path, setter, depth - 1)

    def _item_setter(self, owner: Any, key: object) -> Callable[[object], None]:
        return lambda value: owner.__setitem__(key, value)

    def _attribute(self, owner: Any, path: str, depth: int) -> Any:
        for name in self.random.sample("abcd", self.random.randint(1, 2)):
            setter = self._attribute_setter(owner, name)
            value = self._value(f"{path}.{name}", setter, depth)
            setattr(owner, name, value)
        return owner

    def _attribute_setter(self, owner: Any, name: str) -> Callable[[object], None]:
        return lambda value: setattr(owner, name, value)

    def _module(self, path: str, setter: Any, depth: int) -> Any:
        return self._attribute(types.ModuleType("made"), path, depth)

    def _class(self, path: str, setter: Any, depth: int) -> Any:
        owner = type("Made", (), {})
        derived = type("Derived", (owner,), {})
        self._attribute(owner, path, depth)
        return self.random.choice([owner, derived, derived()])

    def _object(self, path: str, setter: Any, depth: int) -> Any:
        return self._attribute(type("Made", (), {})(), path, depth)

    def _property(self, path: str, setter: Any, depth: int) -> Any:
        owner = type("Made", (), {"shown": property(lambda self: self.hidden)})()
        hidden = self._attribute_setter(owner, "hidden")
        owner.hidden = self._value(f"{path}.shown", hidden, depth)
        return owner

    def _list(self, path: str, setter: Any, depth: int) -> Any:
        owner: list[Any] = [7] * self.random.randint(1, 3)
        index = self.random.randrange(len(owner))
        index = self.random.choice([index, index - len(owner)])
        place = self._item_setter(owner, index)
        owner[index] = self._value(f"{path}[{index}]", place, depth)
        if all(isinstance(each, int | float) for each in owner):
            self.leaves.append((f"sum({path})", place))
            self.leaves.append((f"len({path})", lambda _: owner.append(1)))
        return owner

    def _tuple(self, path: str, setter: Any, depth: int) -> Any:
        # Its element cannot be set: the whole is made anew.
        def replace(value: object) -> None:
            setter((7, value))

        return (7, self._value(f"{path}[1]", replace, depth))

    def _dict(self, path: str, setter: Any, depth: int) -> Any:
        owner: dict[object, Any] = {"other": 7}
        key = self.random.choice(["a", 5, (1, "b")])
        place = self._item_setter(owner, key)
        owner[key] = self._value(f"{path}[{key!r}]", place, depth)
        return owner

    def _helper(self, path: str, setter: Any, depth: int) -> Any:
        scope: dict[str, Any] = {"__name__": "other"}
        place = self._item_setter(scope, "N")
        before = len(self.leaves)
        scope["N"] = self._value("N", place, depth)
        found, self.leaves[before:] = self.leaves[before:], []
        inner, change = self.random.choice(found)
        function = xetile.function(self.define(HELPER.format(value=inner), scope))
        self.leaves.append((f"{path}(v)", change))
        # On the host it is the expression that it adds.
        function.host = lambda: eval(inner, scope)  # type: ignore[attr-defined]
        return function

    def define(self, text: str, scope: dict[str, Any]) -> Any:
        """The function of a text, as from a file."""
        self.files += 1
        name = str(self.folder / f"made{self.files}.py")
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), scope)
        return next(v for n, v in scope.items() if n in ("k", "helper"))

    def expected(self, leaf: str) -> float:
        """What Python says."""
        text = leaf.replace("(v)", ".host()")
        return float(np.float32(eval(text, self.scope)))


def launched(kernel: Kernel, **options: Any) -> float:
    X = np.ones(16, np.float32)
    kernel[1](X, **options)
    assert (X[0] == X).all()
    return float(X[0])


@pytest.mark.parametrize("seed", range(60))
def test_random_references(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path / "cache"))
    world = World(seed, tmp_path)
    leaf, _ = world.random.choice(world.leaves)
    fn = world.define(KERNEL.format(value=leaf), world.scope)
    kernel = Kernel(fn)
    backend = world.random.choice(["cpu", "reference"])
    for step in range(STEPS):
        wanted = world.expected(leaf)
        found = {
            "relaunched": launched(kernel, backend=backend),
            "again": launched(kernel, backend=backend),
            "from the disk": launched(Kernel(fn)),
            "fresh": launched(Kernel(fn), backend="reference"),
        }
        assert found == dict.fromkeys(found, wanted), (leaf, step)
        _, change = world.random.choice(world.leaves)
        change(world.number())


def test_the_references_are_of_all_kinds(tmp_path: Path) -> None:
    leaves = "\n".join(
        leaf for seed in range(60) for leaf, _ in World(seed, tmp_path).leaves
    )
    for part in (".a", ".shown", "[-1]", "[0]", "['a']", "(v)", "sum(", "len("):
        assert leaves.count(part) > 3
