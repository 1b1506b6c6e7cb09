from collections.abc import Iterator

import pytest
from launching import needs

from tests.backends.xegpu import device
from tests.native.amx_emulator import Emulator
from tests.native.conftest import amx as emulated_amx  # noqa: F401 - a fixture
from xetl.settings import config
from xetl_cpu import native


@pytest.fixture
def amx(emulated_amx: Emulator) -> Emulator:  # noqa: F811 - the fixture of this name
    """The emulator, for kernels; they use the vectors of `amx` targets as well."""
    needs("amx")
    return emulated_amx


@pytest.fixture
def amx_target() -> Iterator[None]:
    """Launches compile for `amx`, anew in each test, whatever this machine has."""
    config.target, config.cache = "amx", False
    yield
    del config.target, config.cache


@pytest.fixture(params=["host", "avx2"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Launches compile for this target, and compile anew in each test run."""
    config.target, config.cache = request.param, False
    yield request.param
    del config.target, config.cache


ANYWHERE = {"host": "cpu", "avx2": "cpu", "opencl": "xegpu"}
"""Targets that kernels give the same results for, and whose they are."""


@pytest.fixture(params=ANYWHERE)
def anywhere(request: pytest.FixtureRequest) -> Iterator[str]:
    """As `target`, on all backends that make code."""
    target = request.param
    device.require(ANYWHERE[target])
    config.backend, config.target, config.cache = ANYWHERE[target], target, False
    yield target
    del config.backend, config.target, config.cache


MANY_KERNELS = {
    "test_kernels_properties",
    "test_vector_add",
    "test_vector_add_with_any_stride",
    "test_narrow_floats_are_rounded_once_for_each_operation",
}
"""Files and tests that make a driver build many kernels, or large ones."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The driver for OpenCL takes a second for a kernel: one of each kind is enough.

    The others are slow tests.
    """
    seen: set[tuple[str, str]] = set()
    for item in items:
        given = getattr(item, "callspec", None)
        if given is None or given.params.get("anywhere") != "opencl":
            continue
        kind = item.path.stem, getattr(item, "originalname", item.name)
        if kind in seen or not MANY_KERNELS.isdisjoint(kind):
            item.add_marker(pytest.mark.slow)
        seen.add(kind)


@pytest.fixture
def products(request: pytest.FixtureRequest) -> Iterator[str]:
    """What computes products: parametrise it by values of `config.xsmm`."""
    if request.param == "libxsmm" and native.xsmm_shim() is None:
        pytest.skip(f"native parts: {native.status()}")
    config.xsmm = request.param
    yield request.param
    del config.xsmm
