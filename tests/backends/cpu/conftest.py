from collections.abc import Iterator

import pytest

from xetl.runtime.config import config


@pytest.fixture(params=["host", "avx2"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Launches compile for this target, and compile anew in each test run."""
    config.target, config.cache = request.param, False
    yield request.param
    del config.target, config.cache
