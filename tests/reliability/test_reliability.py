"""Each check once, on a small scale; `python -m tests.reliability` does it in full."""

from __future__ import annotations

import pytest

from tests.reliability.__main__ import CHECKS

pytestmark = [pytest.mark.reliability, pytest.mark.slow]


@pytest.mark.parametrize("name", CHECKS)
def test_it_holds_under_load(name: str) -> None:
    said = CHECKS[name](0.01)
    if said.startswith("left out"):
        pytest.skip(said)
