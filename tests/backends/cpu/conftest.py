from collections.abc import Iterator

import pytest

# The fixture is made in tests/native.
from tests.native.conftest import amx as amx
from xetl.runtime.config import config
from xetl_cpu import native


@pytest.fixture(params=["host", "avx2"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Launches compile for this target, and compile anew in each test run."""
    config.target, config.cache = request.param, False
    yield request.param
    del config.target, config.cache


@pytest.fixture
def products(request: pytest.FixtureRequest) -> Iterator[str]:
    """What computes products: parametrise it by values of `config.xsmm`."""
    if request.param == "libxsmm" and native.xsmm_shim() is None:
        pytest.skip(f"native parts: {native.status()}")
    config.xsmm = request.param
    yield request.param
    del config.xsmm
