"""Large results get the memory of earlier ones that nobody has any more."""

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xetl import ops
from xetl.ops.calling import recycling

torch = pytest.importorskip("torch")

ROWS, COLUMNS = 1024, 1024
"""4 MB: the least that is kept."""


def some(number: float, *, tensor: bool) -> Any:
    x = np.full((ROWS, COLUMNS), number, np.float32)
    return torch.from_numpy(x) if tensor else x


def address(array: Any) -> int:
    is_numpy = isinstance(array, np.ndarray)
    return array.ctypes.data if is_numpy else array.data_ptr()


@pytest.mark.parametrize("tensor", [False, True])
def test_what_is_gone_is_used_again(tensor: bool) -> None:
    x = some(1, tensor=tensor)
    before = {address(ops.relu(x)) for _ in range(3)}
    assert {address(ops.relu(x)) for _ in range(3)} <= before


def test_the_last_used_memory_is_taken_first() -> None:
    x = some(1, tensor=False)
    several = [ops.relu(x) for _ in range(5)]
    del several
    assert len({address(ops.relu(x)) for _ in range(5)}) == 1


KEEPS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda y: y,
    "view": lambda y: y[5:, 3:],
    "transposed": lambda y: y.T,
    "memory": lambda y: np.asarray(y).data,
    "other library": lambda y: torch.from_dlpack(y),
    "back": lambda y: np.asarray(y),
    "storage": lambda y: torch.as_tensor(y).untyped_storage(),
    "detached": lambda y: torch.as_tensor(y).detach(),
    "shared": lambda y: torch.as_tensor(y).share_memory_(),
    "bytes": lambda y: torch.as_tensor(y).view(torch.uint8),
    "closure": lambda y: y.__len__,
}


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("keep", KEEPS)
def test_what_anybody_has_stays(keep: str, tensor: bool) -> None:
    kept = KEEPS[keep](ops.relu(some(1, tensor=tensor)))
    for _ in range(5):
        ops.relu(some(2, tensor=tensor))
    if keep == "closure":
        kept = kept.__self__
    if keep == "storage":
        kept = torch.tensor([], dtype=torch.float32).set_(kept)
    if keep == "bytes":
        kept = kept.view(torch.float32)
    assert bool((np.asarray(kept) == 1).all())


def test_results_are_tensors_like_others() -> None:
    y = ops.relu(some(1, tensor=True))
    assert y.is_contiguous()
    assert not y._is_view()
    y = ops.softmax(some(1, tensor=True).bfloat16().repeat(2, 1).T, dim=0)
    assert (y.dtype, tuple(y.shape)) == (torch.bfloat16, (COLUMNS, 2 * ROWS))
    x = some(2, tensor=True).requires_grad_()
    y = ops.relu(x)
    (y * y).sum().backward()
    assert bool((x.grad == 4).all())


def test_no_more_is_kept_than_stated() -> None:
    x = some(1, tensor=False)
    number = recycling.KEPT // x.nbytes + 4
    alive = [ops.relu(x) for _ in range(number)]
    assert len({address(y) for y in alive}) == number
    kept = recycling._blocks  # pyright: ignore[reportPrivateUsage]
    assert sum(map(len, kept)) <= recycling.KEPT
    for y in alive:
        assert bool((y == 1).all())


def test_threads_share_no_memory() -> None:
    wrong: list[float] = []

    def work(number: float) -> None:
        x = some(number, tensor=False)
        for _ in range(20):
            y = ops.relu(x)
            if not (y == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1.0, 2.0, 3.0)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_a_child_has_its_own() -> None:
    x = some(1, tensor=False)
    y = ops.relu(x)
    child = os.fork()
    if child == 0:
        y[:] = 7
        os._exit(0)
    os.waitpid(child, 0)
    assert bool((y == 1).all())
