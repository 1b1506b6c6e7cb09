import pytest

from tests.native.amx_emulator import Emulator, emulator


@pytest.fixture(scope="session")
def amx() -> Emulator:
    """The AMX emulator; skips where it cannot be built or is not needed."""
    found = emulator()
    if isinstance(found, str):
        pytest.skip(found)
    return found
