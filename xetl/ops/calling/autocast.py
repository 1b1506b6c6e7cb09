"""Calls under `torch.autocast`: operands are cast, then it is off.

Import this module only if torch is imported.
"""

from __future__ import annotations

from typing import Any

from xetl.imports import import_whole
from xetl.ops.calling.declare import Function

torch: Any = import_whole("torch")

_NARROW = (
    *("matmul", "linear", "bmm", "addmm", "baddbmm", "convolution"),
    "scaled_dot_product_attention",
)
"""Functions that `torch.autocast` computes in its dtype, as it does torch's own."""
_WIDE = ("class_loss", "pointwise_loss")
"""Functions that `torch.autocast` computes in f32."""
_KEYS = {
    device: torch._C._parse_dispatch_key(f"Autocast{device.upper()}")
    for device in ("cpu", "xpu")
}
"""The dispatch key of autocast for each device of kernels."""


def casts(declared: Function) -> bool:
    """Whether autocast casts the operands of a function."""
    name = declared.name
    return declared.namespace == "xetl" and (name in _NARROW or name in _WIDE)


def cast(device: str, declared: Function, values: list[Any]) -> list[Any]:
    """Return arguments with operands in the dtype of autocast."""
    if not casts(declared):
        return values
    is_narrow = declared.name in _NARROW
    dtype = torch.get_autocast_dtype(device) if is_narrow else torch.float32
    values = list(values)
    for i in declared.arrays:
        x = values[i]
        if x is not None and x.is_floating_point() and x.dtype != torch.float64:
            values[i] = x.to(dtype)
    return values


def is_off(device: str) -> bool:
    """Whether autocast is off for a device, or does not exist there."""
    key = _KEYS.get(device)
    return key is None or torch._C._dispatch_tls_is_dispatch_key_excluded(key)


def off(device: str) -> Any:
    """Return a context in which autocast is off for a device."""
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_KEYS[device]))
