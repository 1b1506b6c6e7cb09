from collections.abc import Iterator

import pytest

from tests.native.amx_emulator import Emulator, emulator
from tests.native.amx_traps import trapping
from tests.other_processor import WANTED


@pytest.fixture
def amx() -> Iterator[Emulator]:
    """The AMX emulator, and code that needs it; skips where it cannot be built."""
    if WANTED:  # by software there are no tile instructions that could be counted
        pytest.skip("it counts instructions; here functions stand for them")
    found = emulator()
    if isinstance(found, str):
        pytest.skip(found)
    with trapping():
        yield found
