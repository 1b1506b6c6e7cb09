"""What all commands of `xetl` have in common."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from xetl.tools.cli import command


def test_help_lists_the_commands(shell: Any) -> None:
    done = shell("--help")
    assert done.returncode == 0
    for name in ("doctor", "explain"):
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
        "print({'xdsl', 'llvmlite', 'torch'} & set(sys.modules) or 'light')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("light\n")
