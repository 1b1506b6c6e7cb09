"""What all commands of `xetl` have in common."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
import pytest

from xetl.tools.cli import command
from xetl.tools.output import write_files


def test_help_lists_the_commands(shell: Any) -> None:
    done = shell("--help")
    assert done.returncode == 0
    for name in command.list_commands(None):
        assert f"\n  {name} " in done.stdout


def test_each_command_is_documented() -> None:
    names = command.list_commands(None)
    for name in names:
        found = command.get_command(None, name)
        assert found.short_help.endswith("."), name
        assert found.help, name


@pytest.mark.parametrize("name", command.list_commands(None))
def test_help_is_as_it_was_written(xetl: Any, name: str) -> None:
    """Examples keep their lines, and no mark of click is left."""
    shown = xetl(name, "--help").stdout
    assert "\\b" not in shown
    assert "\b" not in shown
    found = command.get_command(None, name)
    lines = [line.strip() for line in (found.callback.__doc__ or "").splitlines()]
    for line in lines:
        if line.startswith("xetl "):
            assert f"\n  {line}\n" in shown


def test_misspelt_commands(xetl: Any) -> None:
    result = xetl("docter")
    assert result.exit_code == 2
    assert "no command is called `docter`; did you mean `doctor`?" in result.output


def test_version(xetl: Any) -> None:
    assert xetl("--version").stdout.startswith("xetl 0.")


def test_help_loads_no_compiler() -> None:
    program = (
        "import sys; from xetl.tools.cli import command\n"
        "try: command(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'xdsl', 'llvmlite', 'torch', 'numpy'} & set(sys.modules) or 'light')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("light\n")


def test_what_is_wrong_is_said_in_a_line(xetl: Any) -> None:
    for words in (["ir"], ["ir", "x.py:k"], ["cache", "prune", "--to", "much"]):
        result = xetl(*words)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: ")
        assert line.endswith(f"(see xetl {words[0]}{_sub(words)} --help)")


def _sub(words: list[str]) -> str:
    return " prune" if words[0] == "cache" else ""


def test_an_interrupted_command(xetl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("xetl.tools.commands.doctor.sections", interrupted)
    result = xetl("doctor")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "interrupted" in result.stderr


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("xetl ex", "explain"), ("xetl ir f.py:k --target avx", "avx2")],
)
def test_completion(shell: Any, typed: str, answer: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = shell(_XETL_COMPLETE="bash_complete", **words)
    assert f"plain,{answer}" in done.stdout.splitlines()


def test_a_command_that_is_interrupted_in_code_that_is_evaluated(
    tmp_path: Path,
) -> None:
    """Python would end as by a signal: programs could not tell it from a crash."""
    file = tmp_path / "slow.py"
    ready = tmp_path / "ready"
    sleep = '__import__("time").sleep(60)'
    file.write_text(f"open({str(ready)!r}, 'w').close()\neval({sleep!r})\n")
    command = [sys.executable, "-m", "xetl", "ir", str(file), "f32[M,N]"]
    paths = os.pathsep.join(filter(None, sys.path))
    started = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not ready.exists() and started.poll() is None:
        time.sleep(0.02)
    time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    said = started.communicate(timeout=60)[1]
    assert (started.returncode, said.count("\n")) == (2, 1)
    assert said.startswith("error: interrupted")


def test_no_room_for_what_a_command_needs_for_itself(
    xetl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("xetl.tools.commands.doctor.sections", full)
    result = xetl("doctor")
    assert result.exit_code == 2
    said = "error: No space left on device: make room, or set TMPDIR elsewhere\n"
    assert result.stderr == said


def test_files_are_written_all_or_none(tmp_path: Path) -> None:
    first, folder = tmp_path / "a.o", tmp_path / "b.h"
    folder.mkdir()
    first.write_text("before")
    with pytest.raises(click.BadParameter, match=r"`.*b.h` cannot be written: it is a"):
        write_files({first: b"after", folder: "text"})
    with pytest.raises(click.BadParameter, match="there is no folder"):
        write_files({first: b"after", tmp_path / "nowhere" / "c": "text"})
    assert first.read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.o", "b.h"]
    write_files({first: b"after"})
    assert first.read_text() == "after"


def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tmp_path / "k.o"
    before.write_text("before")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(click.BadParameter, match="No space left on device; name anot"):
        write_files({before: b"after"})
    assert [each.name for each in tmp_path.iterdir()] == ["k.o"]
    assert before.read_text() == "before"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """Run by root, ``-o /dev/null`` made a file of the device of the whole machine."""
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to(file)
    read: list[bytes] = []
    reader = threading.Thread(
        target=lambda: read.append(pipe.read_bytes()), daemon=True
    )
    reader.start()
    write_files({pipe: "to the pipe", link: "to the file"})
    reader.join(20)
    assert pipe.is_fifo()
    assert read == [b"to the pipe"]
    assert link.is_symlink()
    assert file.read_text() == "to the file"


def test_what_is_no_file_and_cannot_be_written(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(click.BadParameter, match=r"`.*socket` cannot be written: "):
            write_files({tmp_path / "socket": "text"})
        assert (tmp_path / "socket").is_socket()


FILE = str(Path(__file__).parent / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (
            ["ir", f"{FILE}:gemm", GEMM],
            {"backend", "stage", "target", "text", "output"},
        ),
        (
            ["compile", f"{FILE}:gemm", GEMM, "--target", "avx2", "-o", "k.o"],
            {"wrote"},
        ),
        (["cache", "prune", "--to", "1G"], {"removed", "bytes", "folder"}),
        (
            ["repro", f"{FILE}:gemm", "f32[M,K] bf16[K,N] f32[M,N]"],
            {"wrote", "error", "reproduces"},
        ),
    ],
)
def test_json(
    xetl: Any,
    words: list[str],
    names: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = xetl(*words, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout).keys() == names


def options_of(found: click.Command) -> set[str]:
    return {name for each in found.params for name in each.opts}


def test_every_command_prints_json_if_asked() -> None:
    for name in command.list_commands(None):
        found = command.get_command(None, name)
        parts = getattr(found, "commands", {name: found}).values()
        assert all("--json" in options_of(each) for each in parts), name
