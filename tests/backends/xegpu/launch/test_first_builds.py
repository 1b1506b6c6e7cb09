"""What is new to the compiler of a GPU: a process tries it, a table remembers it.

The driver for CPUs stands for that of a GPU; programs that end stand for the process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, grid_of, scale

from xetl import xetile
from xetl.errors import LaunchError
from xetl.settings import config
from xetl_xegpu.launch import executable, first_builds
from xetl_xegpu.launch.first_builds import features_of

DIES = "printf begun; echo 'malloc(): invalid size' >&2; kill -ABRT $$"
ENDS = "printf begun; exit 7"
HANGS = "printf begun; exec sleep 60"
CANNOT_BEGIN = "echo no dpctl >&2; exit 1"
WORKS = f'exec "{sys.executable}" "$@"'

Compiler = Callable[[str], None]


def forget() -> None:
    """Be another process, as far as programs that were built go."""
    first_builds._tables.clear()
    executable._built.clear()


@pytest.fixture(autouse=True)
def table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Any
) -> Iterator[Path]:
    """A cache with nothing in it, and a device that is taken for a GPU."""
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path / "cache"))
    del config.cache
    forget()
    pretend(is_gpu=True)
    yield tmp_path / "cache"
    forget()


@pytest.fixture
def tries(tmp_path: Path) -> Callable[[], int]:
    """How many processes were asked."""
    return lambda: (
        len((tmp_path / "tries").read_text()) if (tmp_path / "tries").exists() else 0
    )


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """Call it with what the process does that builds first."""
    program = tmp_path / "python"
    monkeypatch.setattr(first_builds, "PYTHON", str(program))

    def change(does: str) -> None:
        program.write_text(f"#!/bin/sh\nprintf . >> {tmp_path}/tries\n{does}\n")
        program.chmod(0o755)

    change(WORKS)
    return change


def launch(kernel: Any = scale) -> None:
    """Build it anew, launch it, and look at what it did."""
    executable._built.clear()
    a = counting((16, 16))
    c = aligned((16, 16))
    xetile.kernel(kernel.fn)[grid_of(a)](a, c)
    assert np.array_equal(c, 2 * a)


def failure(kernel: Any = scale) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        launch(kernel)
    assert caught.value.code == "X0836"
    return caught.value


@xetile.kernel
def double(A, C):
    """Twice, and a root: what `scale` has not."""
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16)))
    root = xetile.sqrt(a)
    xetile.store_tile(2.0 * a + (root - root), xetile.init_tile(C, [0, 0], (16, 16)))


def test_what_is_known_goes_to_the_compiler_at_once(
    compiler: Compiler, tries: Any
) -> None:
    launch()
    assert tries() == 1
    launch()
    forget()  # another process reads the table
    compiler(DIES)
    launch()
    assert tries() == 1
    error = failure(double)
    assert tries() == 2
    assert "new to it: instruction 61 of OpenCL" in error.notes[0]
    launch()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (DIES, "ended its process by SIGABRT: malloc(): invalid size"),
        (ENDS, "ended its process by exit code 7"),
        (HANGS, "did not end in 0.3 s"),
    ],
)
def test_a_compiler_that_dies(
    compiler: Compiler,
    tries: Any,
    does: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_builds, "_SECONDS", 0.3)
    compiler(does)
    error = failure()
    assert said in error.message
    assert "kernel `scale`" in error.message
    assert "driver 20" in error.message
    assert "xetl cache prune --all" in (error.help or "")
    for _ in range(2):
        assert failure().message == error.message  # without another process
        forget()
    assert tries() == 1


def test_another_version_of_the_driver_is_another_compiler(
    compiler: Compiler, tries: Any, pretend: Any
) -> None:
    compiler(DIES)
    failure()
    compiler(WORKS)
    pretend(is_gpu=True, driver="20.1")
    launch()
    assert tries() == 2


def test_where_no_process_can_begin_nothing_is_learned(
    compiler: Compiler, tries: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    compiler(CANNOT_BEGIN)
    config.log = True
    try:
        launch()
    finally:
        del config.log
    assert "no process could try a build: no dpctl" in capfd.readouterr().err
    compiler(DIES)
    failure()
    assert tries() == 2


@pytest.mark.slow
def test_a_table_that_is_broken_is_none(
    compiler: Compiler, tries: Any, table: Path
) -> None:
    launch()
    (file,) = table.glob("builds-*")
    file.write_bytes(file.read_bytes()[:-7] + b"nothing")
    forget()
    launch()
    assert tries() == 2


def test_two_at_once(compiler: Compiler) -> None:
    """Both learn, and leave a table that can be read."""
    errors: list[BaseException] = []

    def check(number: int) -> None:
        try:
            table = first_builds._Table("builds-x")
            for each in range(20):
                table.known.add(f"{number} {each}")
                table.write()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=check, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    found = first_builds._Table("builds-x")
    found.read()
    assert len(found.known) >= 20


@pytest.mark.slow
def test_without_a_cache_this_process_remembers(compiler: Compiler, tries: Any) -> None:
    config.cache = False
    launch()
    launch()
    assert tries() == 1


def test_a_larger_program_asks_for_more() -> None:
    word = (1 << 16 | 1).to_bytes(4, "little")  # OpUndef, as far as reading goes
    head = (0x07230203).to_bytes(4, "little") + bytes(16)
    small, large = (features_of(head + word * many, "-a -b") for many in (300, 5000))
    assert small < large
    assert small >= {"option -a", "option -b", "operation 1", "256 instructions"}
    assert large - small == {f"{1 << size} instructions" for size in (9, 10, 11, 12)}


def test_the_driver_for_cpus_needs_none(
    compiler: Compiler, tries: Any, pretend: Any
) -> None:
    pretend(is_gpu=False)
    launch()
    assert tries() == 0
