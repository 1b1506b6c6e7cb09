"""Arrays of every kind through kernels: issue 3, point 5; docs/language.md, section 4.

"Any NumPy stride is accepted for inputs, also zero and negative; arrays may have zero
extent."
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tests.backends.xegpu import device
from xetl import xetile
from xetl.errors import LaunchError
from xetl.runtime.kernel import kernel

ROWS, COLUMNS = 20, 24
HALF = 1 << 31
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux; named since 3.13


def grid(m: Any) -> tuple[int, int]:
    return tuple(max(1, -(-size // 16)) for size in m.C.shape)  # type: ignore[return-value]


@kernel(grid=grid)
def double(A, C):
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 16
    a = xetile.load_tile(xetile.init_tile(A, [m, n], (16, 16)))
    xetile.store_tile(a + a, xetile.init_tile(C, [m, n], (16, 16)))


@kernel(grid=lambda m: max(1, -(-m.C.shape[0] // 16)))
def flip(A, C):
    i = xetile.program_id(0) * 16
    a = xetile.load_tile(xetile.init_tile(A, [i], (16,)))
    xetile.store_tile(~a, xetile.init_tile(C, [i], (16,)))


@kernel
def invert(A, C):
    i = xetile.program_id(0) * 16
    a = xetile.load_tile(xetile.init_tile(A, [i], (16,)))
    xetile.store_tile(~a, xetile.init_tile(C, [i], (16,)))


@kernel(grid=1)
def sum_of_products(A, B, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, 32)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (32, 32)))
    xetile.store_tile(xetile.tile_mma(a, b), xetile.init_tile(C, [0, 0], (32, 32)))


@pytest.fixture(params=["cpu", "reference"])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folder: Path = tmp_path_factory.mktemp("cache")
        patch.setenv("XETL_CACHE_DIR", str(folder))
        yield


def plain() -> np.ndarray:
    return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def misaligned() -> np.ndarray:
    array = np.zeros(ROWS * COLUMNS * 4 + 1, np.uint8)[1:].view(np.float32)
    array = array.reshape(ROWS, COLUMNS)
    array[...] = plain()
    assert not array.flags.aligned
    return array


def huge() -> np.ndarray:
    """Rows that are 2^31 bytes apart; only the pages that are used exist."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    memory = mmap.mmap(-1, 2 * HALF + 4096, flags=flags)
    first = np.frombuffer(memory, np.float32, count=COLUMNS)
    array = as_strided(first, (3, COLUMNS), (HALF, 4))
    array[...] = plain()[:3]
    return array


LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "rows backwards": lambda: plain()[::-1],
    "columns backwards": lambda: plain()[:, ::-1],
    "both backwards": lambda: plain()[::-1, ::-1],
    "column-major": lambda: plain().T,
    "column-major backwards": lambda: plain().T[::-1, ::-1],
    "neither stride is 1": lambda: plain()[::3, ::5],
    "misaligned": misaligned,
    "misaligned, neither stride is 1": lambda: misaligned()[::2, ::3],
    "rows far apart": huge,
    "columns far apart": lambda: huge().T,
    "rows far apart, backwards": lambda: huge()[::-1, ::-2],
    "no rows": lambda: plain()[:0],
    "no columns": lambda: plain()[:, :0],
    "nothing": lambda: plain()[:0, :0],
    "one element": lambda: plain()[3:4, 5:6],
}
INPUTS: dict[str, Callable[[], np.ndarray]] = {
    **LAYOUTS,
    "one row many times": lambda: np.broadcast_to(plain()[1:2], (ROWS, COLUMNS)),
    "one column many times": lambda: np.broadcast_to(plain()[:, 1:2], (ROWS, COLUMNS)),
    "one element many times": lambda: np.broadcast_to(np.float32(3), (ROWS, COLUMNS)),
    "windows": lambda: as_strided(plain(), (ROWS, 5), (4, 4)),
}


@pytest.mark.parametrize("layout", INPUTS)
def test_inputs_of_any_layout(layout: str, backend: str) -> None:
    given = INPUTS[layout]()
    result = np.zeros(given.shape, np.float32)
    for _ in range(2):  # by the slow and by the short road
        double(given, result, backend=backend)
        assert np.array_equal(result, given + given)
        result[...] = 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_of_any_layout(layout: str, backend: str) -> None:
    result = LAYOUTS[layout]()
    given = np.random.default_rng(1).random(result.shape, np.float32)
    for _ in range(2):
        double(given, result, backend=backend)
        assert np.array_equal(result, given + given)
        result[...] = 0


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if "far apart" not in n])
def test_what_lies_between_the_elements_stays(layout: str, backend: str) -> None:
    result = LAYOUTS[layout]()
    whole = result
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    before = whole.tobytes()
    inside = np.zeros_like(result)
    double(inside, result, backend=backend)
    assert not result.any()
    after = np.frombuffer(whole.tobytes(), np.uint8)
    changed = after != np.frombuffer(before, np.uint8)
    assert np.count_nonzero(changed) <= result.nbytes
    assert not after[changed].any()


def test_the_same_array_as_input_and_output(backend: str) -> None:
    for layout in ("rows backwards", "column-major", "misaligned", "rows far apart"):
        array = LAYOUTS[layout]()
        expected = array + array
        double(array, array, backend=backend)
        assert np.array_equal(array, expected)
        double(array, array[:], backend=backend)
        assert np.array_equal(array, expected + expected)


@pytest.mark.parametrize(
    ("make", "code", "message"),
    [
        (lambda x: (x[1:], x[:-1]), "X0807", "`C` is written, but shares memory"),
        (lambda x: (x[::-1], x), "X0807", "`C` is written, but shares memory"),
        (lambda x: (x[:20, :20].T, x[:20, :20]), "X0807", "shares memory with `A`"),
        (
            lambda x: (x, as_strided(x, (5, 5), (4, 4))),
            "X0807",
            "elements share memory",
        ),
        (lambda x: (x, as_strided(x, (5, 24), (0, 4))), "X0807", "share memory"),
        (lambda x: (x, np.broadcast_to(x[0], x.shape)), "X0806", "is read-only"),
        (
            lambda x: (x, np.frombuffer(b"1234" * 16, "f4").reshape(4, 4)),
            "X0806",
            "`C`",
        ),
    ],
)
def test_outputs_that_are_refused(
    make: Any, code: str, message: str, backend: str
) -> None:
    array = plain()
    given, result = make(array)
    for _ in range(2):
        with pytest.raises(LaunchError, match=message) as caught:
            double(given, result, backend=backend)
        assert caught.value.code == code
        assert np.array_equal(array, plain())


def test_refused_also_after_calls_that_were_right(backend: str) -> None:
    array, result = plain(), np.zeros((ROWS, COLUMNS), np.float32)
    for _ in range(3):
        double(array, result, backend=backend)
    result.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        double(array, result, backend=backend)
    with pytest.raises(LaunchError, match="shares memory"):
        double(array[1:], array[:-1], backend=backend)
    assert np.array_equal(array, plain())


def test_interleaved_arrays_do_not_overlap(backend: str) -> None:
    array = plain()
    given, result = array[:, ::2], array[:, 1::2]
    double(given, result, backend=backend)
    assert np.array_equal(result, given + given)
    assert np.array_equal(given, plain()[:, ::2])


def test_read_only_inputs(backend: str) -> None:
    given = plain()
    given.flags.writeable = False
    result = np.zeros_like(given)
    double(given, result, backend=backend)
    assert np.array_equal(result, given + given)


def test_files_in_memory(backend: str, tmp_path: Path) -> None:
    file = np.memmap(tmp_path / "file", np.float32, "w+", shape=plain().shape)
    file[...] = plain()
    for _ in range(3):  # later calls take a shorter way
        double(file, file, backend=backend)
    file.flush()
    kept = np.memmap(tmp_path / "file", np.float32, "r", shape=file.shape)
    assert np.array_equal(kept, plain() * 8)
    for _ in range(2):
        double(kept, result := np.zeros_like(plain()), backend=backend)
        assert np.array_equal(result, plain() * 16)
        with pytest.raises(LaunchError, match="read-only"):
            double(result, kept, backend=backend)


@pytest.mark.parametrize("layout", ["rows backwards", "columns backwards", "misaligned",
    "neither stride is 1", "rows far apart", "no columns", "windows",
    "one row many times", "one element many times"])  # fmt: skip
def test_products_of_any_layout(layout: str, backend: str) -> None:
    given = INPUTS[layout]()
    b = np.random.default_rng(2).integers(-4, 5, (given.shape[1], 9)).astype("f4")
    c = np.zeros((given.shape[0], 9), np.float32)
    for left in (given, np.asfortranarray(given)):
        c[...] = -1
        sum_of_products(left, b, c, backend=backend)
        assert np.array_equal(c, left @ b)


# Other libraries.


class OnlyDlpack:
    """An array of a library nobody has heard of."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("layout", ["rows backwards", "column-major", "no rows",
    "neither stride is 1", "misaligned", "one row many times"])  # fmt: skip
def test_dlpack(layout: str, backend: str) -> None:
    given = INPUTS[layout]()
    result = np.zeros(given.shape, np.float32)
    for _ in range(2):
        sizes = grid(SimpleNamespace(C=result))
        double[sizes](OnlyDlpack(given), OnlyDlpack(result), backend=backend)
        assert np.array_equal(result, given + given)
        result[...] = 0


def test_dlpack_in_a_grid(backend: str) -> None:
    """A grid function sees the shape of an array whose object has none."""
    given, result = plain(), np.zeros_like(plain())
    double[lambda m: grid(m)](OnlyDlpack(given), OnlyDlpack(result), backend=backend)
    assert np.array_equal(result, given + given)
    with pytest.raises(AttributeError, match="size_of_all"):
        double[lambda m: m.A.size_of_all](OnlyDlpack(given), OnlyDlpack(result))


def test_dlpack_outputs_are_checked_as_well(backend: str) -> None:
    array = plain()
    with pytest.raises(LaunchError, match="shares memory with `A`"):
        double[2, 2](array[1:], OnlyDlpack(array[:-1]), backend=backend)
    array.flags.writeable = False
    with pytest.raises(LaunchError, match=r"read-?only"):  # 2.0: by NumPy
        double[2, 2](plain(), OnlyDlpack(array), backend=backend)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16",
    "int8", "uint8", "int16", "int32", "int64"])  # fmt: skip
def test_torch(dtype: str, backend: str) -> None:
    torch = pytest.importorskip("torch")
    given = (torch.arange(ROWS * COLUMNS) % 50).reshape(ROWS, COLUMNS)
    given = given.to(getattr(torch, dtype))
    for make in (
        lambda x: x,
        lambda x: x.T,
        lambda x: x[::2, 1::3],
        lambda x: x[:1].expand(5, -1),
        lambda x: x[:0],
    ):
        view = make(given)
        result = torch.zeros(view.shape, dtype=view.dtype)
        for _ in range(2):
            double(view, result, backend=backend)
            assert torch.equal(result, view + view)
            result.zero_()


def test_torch_conditions(backend: str) -> None:
    torch = pytest.importorskip("torch")
    given = torch.arange(40) % 3 == 0
    result = torch.zeros(40, dtype=torch.bool)
    for _ in range(2):
        flip(given, result, backend=backend)
        assert torch.equal(result, ~given)
        result.zero_()


def test_numpy_conditions(backend: str) -> None:
    given = np.arange(40) % 3 == 0
    for view in (given, given[::-1], given[::3], given[:0]):
        result = np.zeros(view.shape, bool)
        flip(view, result, backend=backend)
        assert np.array_equal(result, ~view)


def test_torch_tensors_that_need_a_gradient(backend: str) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.ones(4, 4))
    result = torch.zeros(4, 4)
    with torch.no_grad():
        for _ in range(2):
            double(weight, result, backend=backend)
            assert torch.equal(result, torch.full((4, 4), 2.0))
            result.zero_()
    no_leaf = weight * 2
    with torch.no_grad():
        double(no_leaf, result, backend=backend)
    assert torch.equal(result, torch.full((4, 4), 4.0))


def test_torch_and_numpy_may_share_memory_like_any_arrays(backend: str) -> None:
    torch = pytest.importorskip("torch")
    array = plain()
    shared = torch.from_numpy(array)
    with pytest.raises(LaunchError, match="shares memory with `A`"):
        double(array[1:], shared[:-1], backend=backend)
    double(array, shared, backend=backend)  # the very same view
    assert np.array_equal(array, 2 * plain())
    double[2, 2](array, OnlyDlpack(array), backend=backend)
    assert np.array_equal(array, 4 * plain())


def test_numpy_bf16(backend: str) -> None:
    given = plain().astype(ml_dtypes.bfloat16)
    for view in (given, given.T, given[::-1, ::2]):
        result = np.zeros(view.shape, ml_dtypes.bfloat16)
        double(view, result, backend=backend)
        assert np.array_equal(result, view + view)


def usm(count: int, kind: str = "Shared") -> Any:
    memory = pytest.importorskip("dpctl.memory", reason="dpctl is not installed")
    dpctl = pytest.importorskip("dpctl")
    device.require()
    try:
        queue = dpctl.SyclQueue("cpu")
    except dpctl.SyclQueueCreationError:
        pytest.skip("there is no SYCL device for the CPU")
    return getattr(memory, f"MemoryUSM{kind}")(count, alignment=64, queue=queue)


@pytest.mark.parametrize("kind", ["Shared", "Host", "Device"])
def test_memory_of_dpctl(kind: str, backend: str) -> None:
    given, result = usm(100, kind), usm(100, kind)
    data = np.arange(100, dtype=np.uint8)
    given.copy_from_host(data)
    for _ in range(2):
        result.memset(0)
        invert[7](given, result, backend=backend)
        assert np.array_equal(np.frombuffer(result.copy_to_host(), np.uint8), ~data)


def test_numpy_over_memory_of_dpctl(backend: str) -> None:
    given, result = (np.ndarray((6, 4), "f4", buffer=usm(96)) for _ in range(2))
    given[...] = 3
    double(given, result, backend=backend)
    assert np.all(result == 6)


def test_arrays_of_dpnp(backend: str) -> None:
    dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
    given = dpnp.arange(24, dtype="f4").reshape(6, 4)[::2, ::-1]
    result = dpnp.zeros_like(given)
    double(given, result, backend=backend)
    assert np.array_equal(dpnp.asnumpy(result), 2 * dpnp.asnumpy(given))


class FakeUsm:
    """As dpnp's arrays look, without a device."""

    def __init__(self, array: np.ndarray, kind: str = "shared", **more: Any) -> None:
        interface = array.__array_interface__
        steps = tuple(each // array.itemsize for each in array.strides)
        self.__sycl_usm_array_interface__ = {**interface, "strides": steps, **more}
        self.array = array
        self.shape = array.shape
        self.usm_type = kind


def test_the_interface_of_unified_memory(backend: str) -> None:
    for layout in ("rows backwards", "column-major", "neither stride is 1", "no rows"):
        given = INPUTS[layout]()
        result = np.zeros(given.shape, np.float32)
        double(FakeUsm(given), FakeUsm(result, "host"), backend=backend)
        assert np.array_equal(result, given + given)
    whole = np.arange(8, dtype=np.float32).reshape(2, 4)
    result = np.zeros((1, 4), np.float32)
    double(FakeUsm(whole[:1], offset=4, strides=None), result, backend=backend)
    assert np.array_equal(result, 2 * whole[1:])


def test_unified_memory_that_is_refused(backend: str) -> None:
    given, result = plain(), plain()
    with pytest.raises(LaunchError, match="`A` is in the memory of a device") as caught:
        double(FakeUsm(given, "device"), result, backend=backend)
    assert caught.value.code == "X0813"
    with pytest.raises(LaunchError, match="`A` has dtype complex64"):
        double(FakeUsm(given.astype("c8")), result, backend=backend)
    result.flags.writeable = False
    with pytest.raises(LaunchError, match="`C` is written by the kernel"):
        double(given, FakeUsm(result), backend=backend)
