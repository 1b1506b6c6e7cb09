from collections.abc import Iterator

import pytest

# The fixture is made in tests/native.
from tests.native.conftest import amx as amx
from xetl.runtime.config import config


@pytest.fixture(params=["host", "avx2"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Launches compile for this target, and compile anew in each test run."""
    config.target, config.cache = request.param, False
    yield request.param
    del config.target, config.cache
