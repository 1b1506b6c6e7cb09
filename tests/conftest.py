"""What all tests need: the driver of intel-opencl-rt, and a choice of targets."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.backends.xegpu import device
from tests.fenced_memory import fence_if_wanted
from tests.other_processor import OF_THIS_MACHINE, WANTED, pretend_if_wanted
from tests.poison import poison_workspaces
from xetl.settings import config
from xetl.transforms.choose_inner_blocks import BLOCKED
from xetl.transforms.distribute_to_subgroups import XETILE_SG
from xetl.transforms.propagate_wg_maps.rules import XETILE_MAPPED
from xetl.transforms.stages import LOOPS, register_stage
from xetl_cpu.targets import find_target, host_machine
from xetl_xegpu.dialect.stage import XEGPU
from xetl_xegpu.launch import devices

pretend_if_wanted()  # before anybody asks what the host is
fence_if_wanted()
devices.set_up()
settings.register_profile(
    "any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any speed")

TARGETS = ("host", "avx2", "opencl")
OF_PARAMETERS = {"avx2": "avx2", "opencl": "opencl", "xegpu": "opencl"}
"""The targets of tests that have such a parameter; others are for the host."""
ON_A_DEVICE = "xegpu"
"""The fixture of tests that launch on a device, whatever their parameters."""

HOST_IS_AVX2 = find_target("host").requires == find_target("avx2").requires
"""Whether this machine has no more than AVX2."""

LARGE_MATRICES = (
    *("backends/", "frontend/", "language/", "numerics/", "ops/", "seeds/"),
    *("transforms/", "runtime/test_linalg_texts"),
)
"""Where the cells of other tests convert or build kernels."""

QUICK_SEEDS = {"host": 2, "avx2": 2, "opencl": 1}
"""How many of a test's random kernels are quick; others are slow tests."""

QUICK_CELLS = {"cpu": 1, "opencl": 1, "ocloc": 1, "repeated": 0, "passes": 1}
"""How many cells of a test are quick; Intel's compilers take a second for each.

Repeated: tests of others on a device, where conformance/ and seeds/ are quick."""

REPEATED = ("backends/cpu/", "language/")
"""Folders of these tests."""

FOLDERS = {
    "cpu": ("backends/cpu/", "conformance/", "numerics/", "ops/", "seeds/"),
    "passes": ("backends/reference/", "backends/xegpu/", "transforms/"),
}
"""Tests whose cells compile kernels for the CPU, and those whose cells run passes."""

SLOW_CELLS = 4
"""How many cells of a slow test, for each target, run however long that takes."""

REPEATS = pytest.mark.slow(repeats=True)
"""A slow test that repeats another one with other values."""

PASSES = 8
"""Such tests run in so many passes over all files, begun with another one each day."""

REPEATED_OF_AN_OPTIMISED = 4
"""The driver for CPUs optimises in one of so many of these and of hypothesis' tests.

Others build faster."""

VERIFIED_LATER = (LOOPS, XETILE_MAPPED, XETILE_SG, BLOCKED, XEGPU)
"""Kernels of users are verified when they come from the front end, and as lanes. At
these stages they are in slow tests, and in one of so many quick ones:"""
VERIFIED_OF_QUICK = 4

ONE_EXAMPLE_OF = {False: 4, True: 10}
"""Quick runs take one of so many examples of hypothesis' tests, by whether these build
kernels; slow ones take all."""

SETTINGS = "_hypothesis_internal_use_settings"
"""Where hypothesis keeps the settings of a test: a profile cannot override them."""

CHEAP_CASES = {"test_lit", "test_layout", "test_error_pages", "test_wrong_modules"}
"""Files whose cases are cheap and have little in common."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--targets",
        default=",".join(TARGETS),
        help=f"run tests for these only, of {','.join(TARGETS)} (default: all)",
    )
    parser.addoption(
        "--one-of-each",
        action="store_true",
        help="run one case of each test, of the lit tests and a few others all",
    )
    parser.addoption(
        "--minutes",
        type=float,
        default=inf,
        help="slow tests that repeat others begin within so many (default: any)",
    )


def began() -> float:
    """When the tests did, in seconds; the same in all processes that run them."""
    return float(os.environ.setdefault("TESTS_BEGAN", str(time.time())))


def wanted_targets(config: pytest.Config) -> set[str]:
    wanted = set(config.getoption("--targets").split(","))
    if not wanted <= set(TARGETS):
        raise pytest.UsageError(f"--targets has some of {','.join(TARGETS)}")
    return wanted


def pytest_configure(config: pytest.Config) -> None:
    began()
    device.is_left_out = "opencl" not in wanted_targets(config)
    host_machine()  # is read once: here, not while a test pretends another one


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The driver optimises for some slow tests; some quick ones verify more."""
    slow = item.get_closest_marker("slow")
    minutes = item.config.getoption("--minutes")
    if slow == REPEATS.mark and time.time() > began() + 60 * minutes:
        pytest.skip(f"{minutes} minutes are over; this repeats another test")
    poison_workspaces()
    number = crc32(item.nodeid.encode())
    is_drawn = number % REPEATED_OF_AN_OPTIMISED == 0
    is_long = has_examples(item) or slow == REPEATS.mark
    is_as_for_users = slow is not None and (is_drawn or not is_long)
    is_optimised = is_as_for_users or item.get_closest_marker("optimised")
    device.build_quickly(quickly=not is_optimised)
    is_verified = slow is not None or number % VERIFIED_OF_QUICK == 0
    for each in VERIFIED_LATER:
        register_stage(replace(each, is_verified=is_verified))


def function_of(item: pytest.Item) -> object:
    return getattr(item, "obj", None)


def has_examples(item: pytest.Item) -> bool:
    """Whether hypothesis draws a test's values: many kernels, of any size."""
    return isinstance(getattr(function_of(item), SETTINGS, None), settings)


@cache
def target_of(item: pytest.Item) -> str:
    """The target that a test needs, by its parameters and fixtures."""
    if ON_A_DEVICE in getattr(item, "fixturenames", ()):
        return "opencl"
    given = getattr(item, "callspec", None)
    values = given.params.values() if given is not None else ()
    found = [OF_PARAMETERS.get(each) for each in values if isinstance(each, str)]
    return next(filter(None, found), "host")


@cache
def place_of(path: Path) -> str:
    """The file of a test, as seen from this folder."""
    return path.relative_to(Path(__file__).parent).as_posix()


def is_in_matrix(item: pytest.Item) -> bool:
    """Whether a test repeats what the host's do, or is of a large matrix."""
    is_large = place_of(item.path).startswith(LARGE_MATRICES)
    return is_large or target_of(item) != "host"


def values_of(item: pytest.Item) -> set[tuple[str, ...]]:
    """What each `parametrize` of a test gives this item, with its names."""
    found: set[tuple[str, ...]] = set()
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = names.split(",") if isinstance(names, str) else names
        given = (item.callspec.params.get(name.strip()) for name in names)
        found.add((*names, *map(repr, given)))
    return found


def mark_repeated_cells(items: list[pytest.Item]) -> None:
    """A matrix has each value of each parameter once; other cells are slow tests."""
    seen: set[tuple[str, ...]] = set()
    for item in filter(is_in_matrix, items):
        if item.get_closest_marker("slow"):
            continue
        kind = item.nodeid.partition("[")[0], target_of(item)
        values = {(*kind, *each) for each in values_of(item)}
        if values and values <= seen:
            item.add_marker(REPEATS)
        seen |= values


def mark_later(
    items: list[pytest.Item], cells_of: Callable[[pytest.Item], tuple[str, int] | None]
) -> None:
    """Items repeat others once so many of their cells came, as `cells_of` has both."""
    seen: Counter[str] = Counter()
    for item in items:
        given = cells_of(item)
        if given is None:
            continue
        cells, number = given
        key = f"{cells} {item.nodeid.partition('[')[0]}"
        seen[key] += 1
        if seen[key] > number:
            item.add_marker(REPEATS, append=False)  # the closest of its markers


def seeds_of(item: pytest.Item) -> tuple[str, int] | None:
    given = getattr(item, "callspec", None)
    if given is None or "seed" not in given.params or item.get_closest_marker("slow"):
        return None
    return "seed", QUICK_SEEDS[target_of(item)]


def compiler_of(item: pytest.Item) -> str:
    """What builds the kernels of a test, as `QUICK_CELLS` has it."""
    path = place_of(item.path)
    if "/offline/" in path:
        return "ocloc"
    if target_of(item) == "opencl":
        is_repeated = path.startswith(REPEATED)
        return "repeated" if is_repeated else "opencl"
    found = [name for name, starts in FOLDERS.items() if path.startswith(starts)]
    return found[0] if found else "none"


def quick_cells_of(item: pytest.Item) -> tuple[str, int] | None:
    compiler = compiler_of(item)
    if not hasattr(item, "callspec") or item.get_closest_marker("slow"):
        return None
    return (compiler, QUICK_CELLS[compiler]) if compiler in QUICK_CELLS else None


def slow_cells_of(item: pytest.Item) -> tuple[str, int] | None:
    slow = item.get_closest_marker("slow")
    return (
        None if slow is None or slow == REPEATS.mark else (target_of(item), SLOW_CELLS)
    )


def pass_of(item: pytest.Item) -> int:
    """In which pass over the files a slow test runs that repeats another one.

    All others come first: they run however long that takes.
    """
    if item.get_closest_marker("slow") != REPEATS.mark:
        return -1
    day = int(began() // (24 * 3600))
    return (crc32(item.nodeid.encode()) + day) % PASSES


def is_asked_for(item: pytest.Item, seen: set[str]) -> bool:
    """Whether the options say to run a test; what was seen of each is noted."""
    wanted = wanted_targets(item.config)
    if HOST_IS_AVX2 and "host" in wanted:
        wanted -= {"avx2"}  # the same cells are there for the host
    if target_of(item) not in wanted:
        return False
    if WANTED is not None and item.path.stem in OF_THIS_MACHINE:
        return False
    if not item.config.getoption("--one-of-each") or item.path.stem in CHEAP_CASES:
        return True
    if item.get_closest_marker("slow"):
        return False
    function = item.nodeid.partition("[")[0]
    is_first = function not in seen
    seen.add(function)
    return is_first


def take_few_examples(items: list[pytest.Item]) -> None:
    """One of so many examples of tests by hypothesis, three at least."""
    found = {function_of(item): item for item in items if has_examples(item)}
    for function, item in found.items():
        given = getattr(function, SETTINGS)
        compiles = compiler_of(item) != "none"
        few = max(3, given.max_examples // ONE_EXAMPLE_OF[compiles])
        setattr(function, SETTINGS, settings(given, max_examples=few))


def mark_all_examples(items: list[pytest.Item]) -> None:
    """Quick tests by hypothesis are slow ones as well, with all their examples."""
    for item in items:
        if has_examples(item) and not item.get_closest_marker("slow"):
            item.add_marker(REPEATS)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    mark_repeated_cells(items)
    mark_later(items, seeds_of)
    mark_later(items, quick_cells_of)
    mark_later(items, slow_cells_of)
    asked = config.option.markexpr
    if asked == "slow":
        mark_all_examples(items)
    seen: set[str] = set()
    kept = [item for item in items if is_asked_for(item, seen)]
    left_out = set(items) - set(kept)
    config.hook.pytest_deselected(items=[each for each in items if each in left_out])
    items[:] = sorted(kept, key=pass_of)
    if asked == "not slow" or config.getoption("--one-of-each"):
        take_few_examples(kept)


def pytest_collection_finish() -> None:
    """What is there by now stays: the collector need not look through it again.

    Compiling makes many objects; to look for circles less often saves a tenth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)


@pytest.fixture(autouse=True)
def settings_are_left_as_they_were() -> Generator[None]:
    """A field that stays assigned would win over the variables of later tests."""
    before = dict(config.assigned)
    yield
    assert config.assigned == before
