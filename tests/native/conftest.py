from collections.abc import Iterator

import pytest

from tests.native.amx_emulator import Emulator, emulator
from tests.native.amx_traps import trapping


@pytest.fixture
def amx() -> Iterator[Emulator]:
    """The AMX emulator, and code that needs it; skips where it cannot be built."""
    found = emulator()
    if isinstance(found, str):
        pytest.skip(found)
    with trapping():
        yield found
