"""Which blocks and products a device has one instruction for (`xetl.devices`)."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from xetl.devices import DEVICES, Access, Device
from xetl.dialects.base import vector_type

from .block_ops import LoadNdOp, PrefetchNdOp, StoreNdOp
from .block_verifiers import bits_of
from .types import TensorDescType
from .value_ops import DpasOp


def why_no_message(op: Operation, device: Device) -> str | None:
    """What ``device`` lacks for an operation; None if it has it, or needs nothing."""
    if isinstance(op, DpasOp):
        return _why_no_product(op, device)
    if isinstance(op, LoadNdOp | StoreNdOp | PrefetchNdOp):
        return _why_no_block(_access_of(op), op.descriptor, device)
    return None


def on_some_device(op: Operation) -> str | None:
    """What all devices lack for an operation."""
    problems = [why_no_message(op, device) for device in DEVICES.values()]
    return None if None in problems else problems[0]


def _access_of(op: LoadNdOp | StoreNdOp | PrefetchNdOp) -> Access:
    if isinstance(op, StoreNdOp):
        return "store"
    if isinstance(op, PrefetchNdOp):
        return "prefetch"
    if op.is_packed:
        return "transform"
    return "transpose" if op.is_transposed else "load"


def _why_no_block(access: Access, tdesc: TensorDescType, device: Device) -> str | None:
    if len(tdesc.shape) != 2:
        return f"messages move blocks of rank 2, found {tdesc}"
    rows, columns = tdesc.shape
    known = device.blocks_of(access, bits_of(tdesc.element_type))
    if not known.allows((rows, columns)):
        return f"`{device.name}` has no {access} of {tdesc}"
    if tdesc.array_length not in known.counts[columns]:
        return f"`{device.name}` has no {access} of so many blocks, {tdesc}"
    return None


def _why_no_product(op: DpasOp, device: Device) -> str | None:
    a, c = vector_type(op.lhs), vector_type(op.result)
    unit = device.matrix
    (rows, depth), columns = a.get_shape(), c.get_shape()[1]
    name = operand_name(a.element_type)
    if str(c.element_type) not in unit.results.get(name, ()):
        return f"`{device.name}` does not multiply {name} to {c.element_type}"
    fits = depth * bits_of(a.element_type) == unit.depth_bits
    if not fits or rows not in unit.rows or columns != unit.columns:
        return f"`{device.name}` has no product of {a} that gives {c}"
    return None


def operand_name(element: Attribute) -> str:
    """What `xetl.devices` calls an operand of a product: f32 goes as tf32."""
    return "tf32" if str(element) == "f32" else str(element)
