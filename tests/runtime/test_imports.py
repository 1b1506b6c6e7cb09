"""Modules load whole, whenever Ctrl-C comes."""

from __future__ import annotations

import gc
import importlib
import inspect
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from xetl import imports
from xetl.imports import collecting_rarely, import_whole, late

SLOW = """
import time
time.sleep(0.2)
from slow_package import counted
counted.append(1)
"""

ASKS = """
from xetl.imports import collecting_rarely, import_whole
found = "partly loaded"
import_whole("slow_package.needs")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "slow_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("counted = []\n")
    (folder / "slow.py").write_text(SLOW)
    (folder / "asks.py").write_text(ASKS)
    (folder / "needs.py").write_text("from slow_package.asks import found\n")
    (folder / "wrong.py").write_text("import slow_package.not_there\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield "slow_package"
    for name in [each for each in sys.modules if each.startswith("slow_package")]:
        del sys.modules[name]


@pytest.fixture
def interrupt_after() -> Iterator[Callable[[float], None]]:
    def raises(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raises)
    yield lambda seconds: (signal.setitimer(signal.ITIMER_REAL, seconds), None)[1]
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupt_ends_the_waiting_not_the_import(
    package: str, interrupt_after: Callable[[float], None]
) -> None:
    start = time.perf_counter()
    interrupt_after(0.05)
    with pytest.raises(KeyboardInterrupt):
        import_whole(f"{package}.slow")
    assert time.perf_counter() - start < 0.2
    assert import_whole(f"{package}.slow") is sys.modules[f"{package}.slow"]
    assert importlib.import_module(package).counted == [1]


def test_a_module_may_need_the_one_that_asks(package: str) -> None:
    assert importlib.import_module(f"{package}.asks").found == "partly loaded"


def test_errors_are_those_of_the_import(package: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="not_there"):
        import_whole(f"{package}.wrong")


INTERRUPTED = """
import signal, sys
from tests.reliability.kernels import cases, launch

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
case = cases()["gemm_f32"]
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
try:
    launch(case)
except KeyboardInterrupt:
    print("interrupted")
signal.setitimer(signal.ITIMER_REAL, 0)
launch(case)
"""


@pytest.mark.parametrize(
    "seconds",
    [
        0.05,
        0.2,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (0.02, 0.1, 0.15, 0.3)),
    ],
)
def test_a_first_launch_may_be_interrupted(seconds: float) -> None:
    """Most of its time goes into loading xDSL, LLVM and the passes."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(seconds)],
        env={"PYTHONPATH": ":".join(sys.path), "XETL_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_collector_looks_seldom_only_meanwhile() -> None:
    before = gc.get_threshold()
    with collecting_rarely():
        assert gc.get_threshold()[0] > before[0]
        with collecting_rarely():
            pass
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_a_collector_that_is_off_stays_off() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with collecting_rarely():
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


LATER = """
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Pair:
    left: int
    right: float = 2.0
    made: ClassVar[int] = 0

@dataclass(frozen=True)
class Triple(Pair):
    middle: str = "m"

class Free(Pair):
    pass
"""


def test_methods_of_dataclasses_are_made_when_they_are_called(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(sys.path[0]) / package
    for name in ("usual", "later"):
        (folder / f"{name}.py").write_text(LATER)
    usual = import_whole(f"{package}.usual")
    assert list(inspect.signature(usual.Pair).parameters) == ["left", "right"]
    assert usual.Pair.__doc__ == "Pair(left: 'int', right: 'float' = 2.0)"
    monkeypatch.setattr(imports, "LAZY", (f"{package}.",))
    later = import_whole(f"{package}.later")
    assert later.Pair.__doc__ == "Pair"  # to write it down takes as long as a method
    empty = vars(later.Pair)["__eq__"]
    pair, triple, free = later.Pair(1), later.Triple(1), later.Free(1)
    assert pair == later.Pair(1) != later.Pair(2)
    # Made, in place of what made it; from Python 3.13 on it was made at once.
    was_made_late = vars(later.Pair)["__eq__"] is not empty
    assert was_made_late == (sys.version_info < (3, 13))
    assert pair != triple
    assert triple != later.Triple(1, 2.0, "n")
    assert hash(pair) == hash((1, 2.0))
    assert hash(triple) == hash((1, 2.0, "m"))
    assert repr(triple) == "Triple(left=1, right=2.0, middle='m')"
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'left'"):
        triple.left = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'left'"):
        del pair.left
    free.other = 3
    with pytest.raises(FrozenInstanceError):
        free.left = 3
    assert later.Pair.__eq__.__qualname__ == "Pair.__eq__"
    assert later.Triple(left=1, middle="n") == later.Triple(1, 2.0, "n")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        later.Pair()
    shown = "(left: 'int', right: 'float' = 2.0) -> None"
    assert str(inspect.signature(later.Pair)) == shown


def test_a_late_function_loads_its_module(package: str) -> None:
    folder = Path(sys.path[0]) / package
    (folder / "sums.py").write_text("def add(left, right): return left + right\n")
    add = late(f"{package}.sums", "add")
    assert f"{package}.sums" not in sys.modules
    assert (add(1, 2), add("a", "b")) == (3, "ab")


def test_what_was_loaded_is_old_at_once_and_what_was_frozen_stays(package: str) -> None:
    folder = Path(sys.path[0]) / package
    (folder / "many.py").write_text("objects = [[] for _ in range(5000)]\n")
    (folder / "more.py").write_text("objects = [[] for _ in range(5000)]\n")
    seen: list[int] = []
    gc.unfreeze()  # what conftest.py froze
    gc.collect()
    gc.callbacks.append(lambda phase, _: seen.append(len(gc.get_objects(0))))
    try:
        import_whole(f"{package}.many")
        assert not seen or max(seen) < 2000
        gc.freeze()
        frozen = gc.get_freeze_count()
        import_whole(f"{package}.more")
        assert gc.get_freeze_count() > frozen // 2  # some of them are gone
    finally:
        gc.callbacks.pop()
        gc.unfreeze()
