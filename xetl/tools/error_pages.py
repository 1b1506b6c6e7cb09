"""The pages of docs/errors, in an installed package as in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]

_FOLDERS = (_PACKAGE / "error_pages", _PACKAGE.parent / "docs" / "errors")
"""Where setup.py puts them, and where they are written."""


def codes() -> list[str]:
    """All codes that have a page, in order."""
    return sorted(path.stem for path in _folder().glob("X*.md"))


def page(code: str) -> str | None:
    """The text of the page of ``code``, or None if there is no such code."""
    return _folder().joinpath(f"{code}.md").read_text() if code in codes() else None


def headline(code: str) -> str:
    """What a code means, in a line."""
    text = page(code) or ""
    return text.partition("\n")[0].partition(": ")[2]


def _folder() -> Path:
    return next((each for each in _FOLDERS if each.is_dir()), _FOLDERS[0])
