"""Random kernels give on the CPU and on a device what the reference backend gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends.xegpu import device
from tests.campaign.__main__ import again
from tests.campaign.cases import of_seed
from tests.campaign.worker import Worker


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


def check_seed(worker: Worker, seed: int, backend: str = "cpu") -> None:
    case = of_seed(seed, backend)
    fault = worker.run(case)
    if fault is not None:
        pytest.fail(
            f"seed {seed}: {fault.kind}: {fault.text}\n{case.text()}\n"
            f"shrunk by: {again(backend, seed)}"
        )


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(worker: Worker, seed: int) -> None:
    check_seed(worker, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 800))
def test_more_random_kernels(worker: Worker, seed: int) -> None:
    check_seed(worker, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 10))
def test_random_kernels_on_a_device(worker: Worker, seed: int) -> None:
    device.require()
    check_seed(worker, seed, "xegpu")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *range(10, 40)])
def test_more_random_kernels_on_a_device(worker: Worker, seed: int) -> None:
    device.require()
    check_seed(worker, seed, "xegpu")
