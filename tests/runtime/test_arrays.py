"""Describing arrays, against NumPy itself."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from xetl.errors import LaunchError
from xetl.language import dtypes
from xetl.runtime.arrays import locate, unit_dim

torch: Any = pytest.importorskip("torch")

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
DTYPES += ["uint64", "float16", "float32", "float64", ml_dtypes.bfloat16]


class OnlyDlpack:
    """An array of a library nobody has heard of."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.array = array
        self.device = device

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class OldDlpack(OnlyDlpack):
    def __dlpack__(self) -> object:  # type: ignore[override]
        return self.array.__dlpack__()


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=5))
    base = np.arange(math.prod(shape), dtype=draw(st.sampled_from(DTYPES[1:-1])))
    array = base.reshape(shape)
    index = draw(hnp.basic_indices(shape, min_dims=1, allow_newaxis=True))
    array = array[index]
    return array.transpose(draw(st.permutations(range(array.ndim))))


@given(views())
def test_every_element_is_where_the_view_says(array: np.ndarray) -> None:
    view = locate(array)
    assert view.shape == array.shape
    assert view.dtype.numpy == array.dtype
    for index in np.ndindex(array.shape):
        offset = sum(i * s for i, s in zip(index, view.strides))
        address = view.address + offset * array.itemsize
        assert address == array[(*index, ...)].__array_interface__["data"][0]


@given(views())
def test_torch_and_dlpack_agree_with_numpy(array: np.ndarray) -> None:
    if array.size == 0 or min(array.strides) < 0:
        return  # torch has no negative strides, and forgets where empty arrays are
    expected = locate(array)
    shared = torch.from_numpy(array)
    for other in (shared, OnlyDlpack(shared), OldDlpack(shared), OnlyDlpack(array)):
        view = locate(other)
        assert view.address == expected.address
        assert view.dtype == expected.dtype
        assert view.shape == expected.shape
        for dim, size in enumerate(view.shape):
            assert size == 1 or view.strides[dim] == expected.strides[dim]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: Any) -> None:
    view = locate(np.zeros((3, 4), dtype))
    assert view.dtype.numpy == np.dtype(dtype)
    assert view.strides == (4, 1)


def test_torch_dtypes() -> None:
    for name in ("bool", "int8", "uint8", "int64", "float16", "bfloat16", "float64"):
        tensor = torch.zeros(3, dtype=getattr(torch, name))
        assert locate(tensor).dtype == dtypes.BY_NAME[name]
        assert locate(OnlyDlpack(tensor)).dtype == dtypes.BY_NAME[name]


def test_parameters_of_a_model_need_no_detach_where_nothing_is_recorded() -> None:
    weight = torch.nn.Parameter(torch.ones(3, 3))
    with torch.no_grad():
        assert locate(weight).address == weight.data_ptr()


def test_readonly() -> None:
    array = np.zeros(3)
    assert not locate(array).readonly
    array.flags.writeable = False
    assert locate(array).readonly
    assert locate(OnlyDlpack(array)).readonly


def test_memory_is_kept_alive() -> None:
    view = locate(OnlyDlpack(np.arange(1000.0)))
    other = np.zeros(1000)
    assert view.address != other.ctypes.data
    assert view.obj is not None


@pytest.mark.parametrize(
    ("array", "dim"),
    [
        (np.zeros((4, 5)), 1),
        (np.zeros((4, 5)).T, 0),
        (np.zeros((4, 10))[:, ::2], None),
        (np.zeros((4, 1)), 1),
        (np.zeros((4, 10))[:, 3:4], 1),
        (np.zeros((1, 10))[:, ::2], None),
        (np.zeros((10, 1))[::2].T, None),
        (np.broadcast_to(np.float32(1), (1, 10)), None),
        (np.broadcast_to(np.float32(1), (10, 1)), 1),
        (np.zeros((3, 1, 10)).transpose(2, 1, 0), 0),
        (np.zeros((1, 1)), 1),
        (np.zeros((2, 3, 4)).transpose(0, 2, 1), 1),
        (np.zeros(5)[::-1], None),
    ],
)
def test_unit_dim(array: np.ndarray, dim: int | None) -> None:
    assert unit_dim(locate(array)) == dim


STRUCTURED = np.zeros(3, [("a", "f4"), ("b", "i4")])
BAD = [
    (np.zeros(3, ">f4"), "byte order of another machine"),
    (STRUCTURED, "a structured dtype"),
    (STRUCTURED["b"][:0].astype("complex64"), "dtype complex64"),
    (np.zeros(3, "complex128"), "dtype complex128"),
    (np.zeros(3, "M8[s]"), "dtype datetime64"),
    (np.zeros(3, object), "dtype object"),
    (np.zeros(3, "U5"), "dtype str"),
    (np.zeros(3, np.longdouble), "dtype (longdouble|float128)"),
    (np.zeros(3, ml_dtypes.float8_e3m4), "dtype float8_e3m4"),
    (np.zeros(()), "without dimensions"),
    (np.ma.zeros(3), "masked array"),
    (np.zeros(3, [("a", "i1"), ("b", "<i4")])["b"], "stride of 5 bytes"),
    (torch.zeros(3, dtype=torch.complex64), "dtype torch.complex64"),
    (torch.zeros(3, device="meta"), "on device `meta`"),
    (torch.zeros(3, 3).to_sparse(), "layout torch.sparse_coo"),
    (torch.zeros(()), "without dimensions"),
    (torch.zeros(3, dtype=torch.complex64).conj().imag, "sign is not yet applied"),
    (OnlyDlpack(np.zeros(3), (2, 0)), "on another device"),
    (OnlyDlpack(np.zeros(3, "complex64")), "dtype that kernels cannot read"),
    ([1, 2, 3], "not an array but a list"),
]


@pytest.mark.parametrize(("obj", "message"), BAD)
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_refused(obj: object, message: str) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        locate(obj, "A")
    assert "`A`" in str(caught.value)
