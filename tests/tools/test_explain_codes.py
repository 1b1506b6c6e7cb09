"""`xetl explain`: the page of an error code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from xetl.tools.commands import explain as error_pages

PAGES = Path(__file__).parents[2] / "docs" / "errors"


def test_a_process_of_its_own(shell: Any) -> None:
    done = shell("explain", "X0201")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (PAGES / "X0201.md").read_text()


@pytest.mark.parametrize("code", ["x0201", "0201"])
def test_codes_may_be_written_shorter(xetl: Any, code: str) -> None:
    assert xetl("explain", code).stdout.startswith("# X0201: ")


def test_no_such_code(xetl: Any) -> None:
    result = xetl("explain", "X0299")
    assert result.exit_code == 2
    assert "no error has the code `X0299`; did you mean `X0" in result.output


def test_all_codes(xetl: Any) -> None:
    lines = xetl("explain").stdout.splitlines()
    assert len(lines) == len(list(PAGES.glob("*.md")))
    assert "X0201  the shapes of tile_mma do not agree" in lines


def test_pages_of_an_installed_package_come_first(
    xetl: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "X1234.md").write_text("# X1234: installed\n")
    monkeypatch.setattr(error_pages, "_FOLDERS", (tmp_path, PAGES))
    assert xetl("explain").stdout == "X1234  installed\n"
