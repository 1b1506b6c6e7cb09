"""Everything a kernel can refer to is edited, or set anew: never stale code.

docs/language.md, section 3: what a kernel read while it was compiled is in the keys of
the caches by value, and compared at each launch.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from xetl import xetile

FILES = {
    "pkg/__init__.py": "from pkg.sub import deep\nTOP = {n}\n",
    "pkg/sub/__init__.py": "INNER = {n}\n",
    "pkg/sub/deep.py": "from xetl import xetile\nCONST = {n}\n"
    "@xetile.function\ndef helper(v, n={n}): return v * 0 + n\n",
    "pkg/mod.py": """
import enum, functools
from collections import namedtuple
from dataclasses import dataclass, field
from xetl import xetile
CONST = {n}
@xetile.function
def helper(v): return v * 0 + {n}
@xetile.function
def reads_global(v): return v * 0 + CONST
@xetile.function
def calls_helper(v): return reads_global(v)
@xetile.function
def with_default(v, n={n}): return v + n
@xetile.function
def with_keyword(v, *, n={n}): return v + n
@xetile.function
def with_list(v, n=[{n}]): return v + n[0]
double = lambda v: v + {n}
class Mode(enum.Enum):
    FAST = {n}
    SLOW = 9
    @property
    def weight(self): return self.value
class Level(enum.IntEnum):
    LOW = {n}
class Base:
    inherited = {n}
class Box(Base):
    CONST = {n}
    class Inner: CONST = {n}
    kind = {n}
    def __init__(self): self.own = {n}; self.large = 1000 + {n}; self.op = helper
    @property
    def value(self): return self.own
    @property
    def computed(self): return self.large * 1.5
    @staticmethod
    def plain(v): return v
    @xetile.function
    def method(v): return v * 0 + {n}
    @classmethod
    def made(cls): return cls.CONST
    def __getitem__(self, index): return self.own + index
    def __contains__(self, value): return value == self.own
@dataclass
class Config:
    size: int = {n}
    parts: list = field(default_factory=lambda: [1, {n}])
Pair = namedtuple("Pair", "one two")
thing = Box()
config = Config()
pair = Pair(1, {n})
things = [Box(), (Box(), 1)]
numbers = [1, 2, {n}]
nested = [[1], ([{n}],)]
table = {{"a": {n}, 7: {{"b": {n}}}, Mode.FAST: {n}, xetile.f32: {n}}}
partial = functools.partial(helper, {n})
class Holder:
    def __init__(self): self.fn = helper; self.ops = [lambda v: v * 0 + {n}]
holder = Holder()
mode, level = Mode.FAST, Level.LOW
members = {{{n}, 8}}
import numpy as np
array = np.array([0, {n}])
scalar = np.float32({n})
""",
}

KERNELS = """
import numpy as np, pkg, pkg.mod, pkg.sub.deep, pkg.mod as mod
from pkg.mod import Box, Level, Mode, thing, numbers, helper, table, mode
from pkg import mod as renamed
from xetl import xetile
ALIAS = mod.thing
def around(n, items, lookup):
    {kernels}
    return locals()
closed = [{n}]
kernels = around({n}, closed, dict(a={n}))
def launch(name, **options):
    x, y = np.ones(16, "f4"), np.zeros(16, "f4")
    kernels[name][1](x, y, **options)
    return float(y[0])
"""

KERNEL = """
    @xetile.kernel
    def {name}(X, Y):
        v = xetile.load_tile(xetile.init_tile(X, [0], (16,))) * 0
        {body}
        xetile.store_tile(v + ({value}), xetile.init_tile(Y, [0], (16,)))
"""


three = xetile.function(lambda v: v + 3)


class Case(NamedTuple):
    """A reference, and a statement that makes it mean 3 in the same process."""

    value: str
    change: str
    body: str = "pass"
    offset: float = 0.0
    is_edited: bool = True


CASES = [
    Case("mod.CONST", "mod.CONST = 3"),
    Case("pkg.mod.CONST", "mod.CONST = 3"),
    Case("renamed.CONST", "mod.CONST = 3"),
    Case("pkg.TOP", "pkg.TOP = 3"),
    Case("pkg.sub.INNER", "pkg.sub.INNER = 3"),
    Case("pkg.sub.deep.CONST", "pkg.deep.CONST = 3"),
    Case("pkg.deep.CONST", "pkg.deep.CONST = 3"),
    Case("pkg.mod.helper(v)", "mod.helper = three"),
    Case("helper(v)", "run.helper = three"),
    Case("pkg.sub.deep.helper(v)", "pkg.deep.helper.fn.__defaults__ = (3,)"),
    Case("mod.reads_global(v)", "mod.CONST = 3"),
    Case("mod.calls_helper(v)", "mod.CONST = 3"),
    Case("mod.with_default(v)", "mod.with_default.fn.__defaults__ = (3,)"),
    Case("mod.with_keyword(v)", "mod.with_keyword.fn.__kwdefaults__ = {'n': 3}"),
    Case("mod.with_list(v)", "mod.with_list.fn.__defaults__[0][0] = 3"),
    Case("mod.double(v)", "mod.double = three.fn"),
    Case("Box.CONST", "mod.Box.CONST = 3"),
    Case("mod.Box.CONST", "mod.Box.CONST = 3"),
    Case("Box.inherited", "mod.Box.inherited = 3"),
    Case("Box.inherited", "mod.Base.inherited = 3"),
    Case("Box.Inner.CONST", "mod.Box.Inner.CONST = 3"),
    Case("Box.method(v)", "mod.Box.method = three"),
    Case("thing.method(v)", "mod.thing.method = three"),
    Case("thing.op(v)", "mod.thing.op = three"),
    Case("thing.kind", "mod.thing.kind = 3"),
    Case("thing.own", "mod.thing.own = 3"),
    Case("ALIAS.own", "mod.thing.own = 3"),
    Case("thing.value", "mod.thing.own = 3"),
    Case("thing.computed", "mod.thing.large = 1003", offset=1.5 * 1003 - 3),
    Case("thing[0]", "mod.thing.own = 3"),
    Case("1 if 2 in thing else 3", "mod.thing.own = 3"),
    Case("mod.config.size", "mod.config.size = 3"),
    Case("mod.config.parts[1]", "mod.config.parts[1] = 3"),
    Case("mod.pair.two", "mod.pair = mod.Pair(1, 3)"),
    Case("mod.pair[1]", "mod.pair = mod.Pair(1, 3)"),
    Case("mod.things[0].own", "mod.things[0].own = 3"),
    Case("mod.things[1][0].value", "mod.things[1][0].own = 3"),
    Case("numbers[2]", "mod.numbers[2] = 3"),
    Case("numbers[-1:][0]", "mod.numbers[2] = 3"),
    Case("len(numbers)", "mod.numbers.append(3)", offset=1, is_edited=False),
    Case("sum(numbers) - 3", "mod.numbers[2] = 3"),
    Case("0", "mod.numbers[2] = 3", "for n in numbers: v = v * 0 + n"),
    Case("first[0]", "mod.nested[1][0][0] = 3", "(x, (first,)) = mod.nested"),
    Case("1 if 2 in numbers[2:] else 3", "mod.numbers[2] = 3"),
    Case("table['a']", "mod.table['a'] = 3"),
    Case("table[7]['b']", "mod.table[7]['b'] = 3"),
    Case("table[Mode.FAST]", "mod.table[mod.Mode.FAST] = 3"),
    Case("table[xetile.f32]", "mod.table[xetile.f32] = 3"),
    Case("2 if 'c' not in table else 3", "mod.table['c'] = 3", is_edited=False),
    Case("mod.partial.args[0]", "mod.partial = functools.partial(three, 3)"),
    Case("mod.partial.func(v)", "mod.partial = functools.partial(three)"),
    Case("mod.holder.fn(v)", "mod.holder.fn = three.fn"),
    Case("mod.holder.ops[0](v)", "mod.holder.ops[0] = three.fn"),
    Case("Mode.FAST.value", "mod.Mode.FAST._value_ = 3"),
    Case("mode.value", "run.mode = mod.Mode.SLOW", offset=6),
    Case("mode.weight", "mod.Mode.weight = 3"),
    Case("1 if mode == Mode.FAST else 3", "run.mode = 5", is_edited=False),
    Case("1 if mode is Mode.FAST else 3", "run.mode = 5", is_edited=False),
    Case("Level.LOW + 0", "mod.Level.LOW._value_ = 3"),
    Case("mod.level.value", "mod.level = mod.Box; mod.Box.value = 3"),
    Case("1 if 2 in mod.members else 3", "mod.members.remove(2)"),
    Case("mod.array[1]", "mod.array[1] = 3"),
    Case("mod.scalar", "mod.scalar = np.float32(3)"),
    Case("n", "set_cell('n', 3)"),
    Case("items[0]", "run.closed[0] = 3"),
    Case("lookup['a']", "set_item('lookup', 'a', 3)"),
    Case("f(v)", "mod.CONST = 3", "f = lambda w: w + mod.CONST"),
    Case("1 if isinstance(thing, Box) else 3", "run.thing = 5", is_edited=False),
]
STALE_WITHOUT_CHANGE = {"Level.LOW + 0"}
"""The int of a member is fixed when it is made; only its source can change it."""


def write(folder: Path, n: int) -> None:
    kernels = "".join(
        KERNEL.format(name=f"case_{i}", body=case.body, value=case.value)
        for i, case in enumerate(CASES)
    )
    texts = {**FILES, "run.py": KERNELS.replace("    {kernels}\n", kernels)}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(n=n))


ALL = """
import contextlib, sys, xetl, run
with xetl.no_compile() if sys.argv[1:] else contextlib.nullcontext():
    print(*(run.launch(name) for name in run.kernels if name.startswith("case_")))
"""


def run_all(folder: Path, n: int, *options: str) -> list[float]:
    write(folder, n)
    found = subprocess.run(
        [sys.executable, "-B", "-c", ALL, *options],
        cwd=folder,
        env={**os.environ, "XETL_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return [float(text) for text in found.stdout.split()]


@pytest.mark.slow
def test_edited_files_compile_anew_and_others_do_not(tmp_path: Path) -> None:
    before = run_all(tmp_path, 2)
    assert run_all(tmp_path, 2, "no compile") == before
    after = run_all(tmp_path, 3)
    changed = [one != other for one, other in zip(before, after, strict=True)]
    wrong = [c.value for c, new in zip(CASES, changed) if new != c.is_edited]
    assert wrong == []
    assert run_all(tmp_path, 2, "no compile") == before  # both are kept


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Imports the files anew."""
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write(tmp_path, 2)

    def load() -> Any:
        for name in ("pkg", "pkg.sub", "pkg.sub.deep", "pkg.mod", "run"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("run")

    return load


PRELUDE = """
import functools, numpy as np, pkg
from xetl import xetile
mod = pkg.mod
def cell(name):
    fn = run.kernels[case].fn
    return fn.__closure__[fn.__code__.co_freevars.index(name)]
def set_cell(name, value): cell(name).cell_contents = value
def set_item(name, key, value): cell(name).cell_contents[key] = value
"""


@pytest.mark.parametrize("index", range(len(CASES)), ids=[c.value for c in CASES])
def test_what_is_set_counts_at_the_next_launch(loaded: Any, index: int) -> None:
    case, name, run = CASES[index], f"case_{index}", loaded()
    options = {"backend": "reference"} if index % 2 else {}
    before = [run.launch(name, **options) for _ in range(2)]
    scope = {"run": run, "case": name, "three": three}
    exec(PRELUDE, scope)
    exec(case.change, scope)
    after = [run.launch(name, **options) for _ in range(2)]
    assert before[0] == before[1]
    assert after == [before[0] if case.value in STALE_WITHOUT_CHANGE else
                     3.0 + case.offset] * 2  # fmt: skip
