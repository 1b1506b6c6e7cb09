"""CONTRIBUTING names files that exist, in short lines."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
FROM = (ROOT, ROOT / "backends/cpu/xetl_cpu", ROOT / "backends/xegpu/xetl_xegpu")


def test_its_files_exist() -> None:
    named = re.findall(r"`([\w./]+/[\w./]+\.(?:py|md|mlir))`", TEXT)
    assert len(named) > 15
    gone = [
        n
        for n in named
        if not any((place / n).exists() for place in (*FROM, ROOT / "xetl/language"))
    ]
    assert gone == []


def test_its_lines_are_short() -> None:
    assert max(map(len, TEXT.splitlines())) <= 110
