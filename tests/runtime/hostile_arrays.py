"""Objects that look like arrays and are not quite: each is read rightly or refused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

SIZE = 32

_New = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_new_capsule = _New(("PyCapsule_New", ctypes.pythonapi))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class Foreign:
    """An array of another library, with fields of its capsule changed at will."""

    def __init__(
        self,
        shape: tuple[int, ...] | None = (SIZE,),
        strides: tuple[int, ...] | None = (1,),
        name: bytes = b"dltensor_versioned",
        **fields: Any,
    ) -> None:
        self.numbers = np.arange(SIZE, dtype=np.float32)
        self.name = name
        made = _Versioned(major=fields.pop("major", 1))
        tensor = made.tensor
        tensor.data = self.numbers.ctypes.data
        tensor.device_type, tensor.ndim = 1, len(shape or ())
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        if shape is not None:
            tensor.shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        if strides is not None:
            tensor.strides = (ctypes.c_int64 * max(1, len(strides)))(*strides)
        for field, value in fields.items():
            setattr(tensor, field, value)
        self.made = made

    def __dlpack__(self, **_: object) -> object:
        is_old = not self.name.endswith(b"versioned")
        what = self.made.tensor if is_old else self.made
        return _new_capsule(ctypes.addressof(what), self.name, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _answers(**methods: Any) -> Callable[[], object]:
    return lambda: type("Odd", (Foreign,), methods)()


def _raises(error: BaseException) -> Callable[..., object]:
    def method(*_: object, **__: object) -> object:
        raise error

    return method


RIGHT: dict[str, tuple[Callable[[], object], range]] = {
    "capsule": (Foreign, range(SIZE)),
    "without a version": (lambda: Foreign(name=b"dltensor"), range(SIZE)),
    "no strides": (lambda: Foreign(strides=None), range(SIZE)),
    "offset": (lambda: Foreign((SIZE - 2,), byte_offset=8), range(2, SIZE)),
    "backwards": (
        lambda: Foreign(strides=(-1,), byte_offset=4 * (SIZE - 1)),
        range(SIZE - 1, -1, -1),
    ),
    "empty, no data": (lambda: Foreign((0,), data=None), range(0)),
}
"""What kernels can read, and the elements."""

WRONG: dict[str, Callable[[], object]] = {
    "device raises": _answers(__dlpack_device__=_raises(RuntimeError("no"))),
    "device is None": _answers(__dlpack_device__=lambda _: None),
    "device is a number": _answers(__dlpack_device__=lambda _: 1),
    "device of three": _answers(__dlpack_device__=lambda _: (1, 0, 0)),
    "device of texts": _answers(__dlpack_device__=lambda _: ("cpu", "0")),
    "device elsewhere": _answers(__dlpack_device__=lambda _: (2, 0)),
    "capsule raises": _answers(__dlpack__=_raises(BufferError("no"))),
    "capsule raises TypeError": _answers(__dlpack__=_raises(TypeError("no"))),
    "capsule is None": _answers(__dlpack__=lambda *_, **__: None),
    "capsule is a number": _answers(__dlpack__=lambda *_, **__: 7),
    "method is a number": _answers(__dlpack__=3, __dlpack_device__=4),
    "method cannot be had": _answers(__dlpack__=property(_raises(ValueError("no")))),
    "name": lambda: Foreign(name=b"tensor"),
    "consumed": lambda: Foreign(name=b"used_dltensor"),
    "consumed, versioned": lambda: Foreign(name=b"used_dltensor_versioned"),
    "version 2": lambda: Foreign(major=2),
    "version 0": lambda: Foreign(major=0),
    "capsule elsewhere": lambda: Foreign(device_type=2),
    "rank -1": lambda: Foreign(ndim=-1),
    "rank 0": lambda: Foreign((), ()),
    "rank of a million": lambda: Foreign(ndim=1_000_000),
    "no shape": lambda: Foreign(None, ndim=1),
    "extent -1": lambda: Foreign((-1,)),
    "extents -1, -1": lambda: Foreign((-1, -1), (1, 1)),
    "extent huge": lambda: Foreign((1 << 40,)),
    "extent most": lambda: Foreign(((1 << 63) - 1,)),
    "extents wrap": lambda: Foreign((1 << 32, 1 << 32), (1 << 32, 1)),
    "stride huge": lambda: Foreign(strides=(1 << 40,)),
    "stride least": lambda: Foreign(strides=(-(1 << 63),)),
    "stride backwards": lambda: Foreign(strides=(-(1 << 30),)),
    "no data": lambda: Foreign(data=None),
    "no data but an offset": lambda: Foreign(data=None, byte_offset=64),
    "data nowhere": lambda: Foreign(data=(1 << 64) - 4096),
    "offset huge": lambda: Foreign(byte_offset=(1 << 64) - 4096),
    "bits 0": lambda: Foreign(bits=0),
    "bits 33": lambda: Foreign(bits=33),
    "bits of a bool": lambda: Foreign(code=6, bits=1),
    "lanes 0": lambda: Foreign(lanes=0),
    "lanes 4": lambda: Foreign(lanes=4),
    "code": lambda: Foreign(code=200),
    "complex": lambda: Foreign(code=5, bits=64),
    "a class": lambda: Foreign,
    "class of NumPy": lambda: np.ndarray,
    "USM is nothing": lambda: type("U", (), {"__sycl_usm_array_interface__": None})(),
    "USM is empty": lambda: type("U", (), {"__sycl_usm_array_interface__": {}})(),
    "USM raises": lambda: type(
        "U", (), {"__sycl_usm_array_interface__": property(_raises(OSError("no")))}
    )(),
}
"""What they must refuse."""


def plain() -> Any:
    """What tensors below are made of."""
    return torch.arange(SIZE, dtype=torch.float32)


class Units(torch.Tensor):
    """A class with memory."""


class Stubborn(torch.Tensor):
    """A class that answers no question."""

    @classmethod
    def __torch_function__(cls, *_: object, **__: object) -> object:
        raise RuntimeError("no")


class Wrapper(torch.Tensor):
    """A class without memory: what it wraps has it."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, *_: object, **__: object) -> object:
        raise NotImplementedError


def _resized(size: int) -> Any:
    tensor = plain()
    tensor.untyped_storage().resize_(size)
    return tensor


def _resized_view() -> Any:
    tensor = plain()
    view = tensor[SIZE // 2 :: 2]
    tensor.untyped_storage().resize_(4 * (SIZE - 8))
    return view


def _in_inference_mode() -> Any:
    with torch.inference_mode():
        return plain()


def _quantised() -> Any:
    return torch.quantize_per_tensor(plain(), 1.0, 0, torch.quint8)


def _fake() -> Any:
    with FakeTensorMode():
        return plain()


def _complex() -> Any:
    return torch.view_as_complex(torch.zeros(SIZE, 2))


def _nested(layout: Any) -> Any:
    parts = [torch.zeros(2), torch.zeros(3)]
    return torch.nested.nested_tensor(parts, layout=layout)


RIGHT_TENSORS: dict[str, tuple[Callable[[], Any], range]] = {
    "tensor": (plain, range(SIZE)),
    "class with memory": (lambda: plain().as_subclass(Units), range(SIZE)),
    "class without answers": (lambda: plain().as_subclass(Stubborn), range(SIZE)),
    "strided": (lambda: torch.arange(2 * SIZE).float()[::2], range(0, 2 * SIZE, 2)),
    "inference mode": (_in_inference_mode, range(SIZE)),
    "frozen": (lambda: torch.nn.Parameter(plain(), requires_grad=False), range(SIZE)),
    "detached": (lambda: plain().requires_grad_().detach(), range(SIZE)),
    "empty, storage resized": (lambda: _resized(0)[:0], range(0)),
}

WRONG_TENSORS: dict[str, Callable[[], Any]] = {
    "COO": lambda: plain().to_sparse(),
    "CSR": lambda: plain()[None].to_sparse_csr(),
    "mkldnn": lambda: plain().to_mkldnn(),
    "quantised": _quantised,
    "meta": lambda: plain().to("meta"),
    "nested": lambda: _nested(torch.strided),
    "jagged": lambda: _nested(torch.jagged),
    "complex": _complex,
    "conjugate": lambda: _complex().conj(),
    "negative": lambda: _complex().conj().imag,
    "storage resized to 0": lambda: _resized(0),
    "storage resized": lambda: _resized(4 * SIZE - 1),
    "storage of a view resized": _resized_view,
    "zero tensor": lambda: torch._efficientzerotensor(SIZE),
    "wrapper": lambda: Wrapper(plain()),
    "fake": _fake,
    "uninitialised": lambda: torch.nn.UninitializedParameter(requires_grad=False),
    "no dimensions": lambda: torch.tensor(1.0),
    "requires a gradient": lambda: plain().requires_grad_(),
    "has a history": lambda: plain().requires_grad_() * 2,
    "parameter": lambda: torch.nn.Parameter(plain()),
    "class with a gradient": lambda: plain().requires_grad_().as_subclass(Units),
}


def transformed() -> Iterator[tuple[str, Callable[[Callable[[Any], None]], None]]]:
    """Calls of a function with tensors that torch.func or forward mode has made."""

    def forward(seen: Callable[[Any], None]) -> None:
        with ExitStack() as stack:
            stack.enter_context(torch.autograd.forward_ad.dual_level())
            dual = torch.autograd.forward_ad.make_dual(plain(), torch.ones(SIZE))
            seen(dual)

    def told(seen: Callable[[Any], None]) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            seen(x)
            return x.sum()

        return function

    func = torch.func
    yield "forward mode", forward
    yield "vmap", lambda seen: torch.vmap(told(seen))(torch.zeros(3, SIZE))
    yield "grad", lambda seen: func.grad(told(seen))(plain())
    yield "jvp", lambda seen: func.jvp(told(seen), (plain(),), (plain(),))
    yield "functionalize", lambda seen: func.functionalize(told(seen))(plain())
