"""Stage `xegpu`: its legal operations, and the facts that its modules record.

`mlir-opt` 22 reads, verifies and lowers a module at this stage.
"""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i32
from xdsl.ir import Attribute, Operation

from xetl.devices import DEVICES, Access, Device
from xetl.dialects.base import ints_of, vector_type
from xetl.dialects.upstream import gpu
from xetl.dialects.upstream.elementwise import bit_width
from xetl.transforms.stages import StageSpec, register_stage

from .attributes import TensorDescType
from .nd_ops import CreateNdTdescOp, LoadNdOp, PrefetchNdOp, StoreNdOp
from .value_ops import DpasOp


def why_no_message(op: Operation, device: Device) -> str | None:
    """Return what ``device`` lacks for an operation, or None if it lacks nothing."""
    if isinstance(op, DpasOp):
        a, c = vector_type(op.lhs), vector_type(op.result)
        unit = device.matrix
        (rows, depth), columns = a.get_shape(), c.get_shape()[1]
        name = "f8" if op.codes else operand_name(a.element_type)
        if str(c.element_type) not in unit.results.get(name, ()):
            return f"`{device.name}` does not multiply {name} to {c.element_type}"
        fits = depth * bit_width(a.element_type) == unit.depth_bits
        if not fits or rows not in unit.rows or columns != unit.columns:
            return f"`{device.name}` has no product of {a} that gives {c}"
        return None
    if isinstance(op, LoadNdOp | StoreNdOp | PrefetchNdOp):
        return _why_no_block(_access_of(op), op.descriptor, device)
    return None


def on_some_device(op: Operation) -> str | None:
    """Return why no device has an operation. Return None if some device has it."""
    found = None
    for device in DEVICES.values():
        problem = why_no_message(op, device)
        if problem is None:
            return None
        found = found or problem
    return found


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
    known = device.blocks_of(access, bit_width(tdesc.element_type))
    if not known.allows((rows, columns)):
        return f"`{device.name}` has no {access} of {tdesc}"
    if tdesc.array_length not in known.counts[columns]:
        return f"`{device.name}` has no {access} of so many blocks, {tdesc}"
    return None


def operand_name(element: Attribute) -> str:
    """Return the name of an operand type in `xetl.devices`: f32 is tf32 there."""
    return "tf32" if str(element) == "f32" else str(element)


SUBGROUP_SIZE = "intel_reqd_sub_group_size"
"""Attribute of a kernel: lanes of a subgroup. Source: MLIR, `xevm`."""

NO_BLOCKS = "xegpu.no_blocks"
"""Attribute of a kernel: lanes move the elements of blocks, because the memory may not
meet the requirements of block messages."""

_OURS = ("xetile", "xetl")
"""Dialects whose attributes only earlier stages understand. The facts for launches are
attributes of ``xegpu``, which `mlir-opt` keeps."""


def set_launch_facts(kernel: gpu.FuncOp, work_items: int, subgroup_size: int) -> None:
    """Record how a kernel is launched, and drop attributes of earlier stages.

    Args:
        kernel: changed in place.
        work_items: lanes of a workgroup, all along x.
        subgroup_size: lanes of a subgroup.
    """
    for op in kernel.walk():
        for name in [name for name in op.attributes if _is_ours(name)]:
            del op.attributes[name]
    size = DenseArrayBase.from_list(i32, [work_items, 1, 1])
    kernel.properties["known_block_size"] = size
    kernel.attributes[SUBGROUP_SIZE] = IntegerAttr(subgroup_size, i32)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in _OURS and "." in name


def only_facts_of_mlir(op: Operation) -> str | None:
    """Refuse attributes of earlier stages, except those of the module."""
    if isinstance(op, builtin.ModuleOp):
        return None
    for name in op.attributes:
        if _is_ours(name):
            return f"`{op.name}` still carries `{name}`"
    return None


def kernels_say_how_they_launch(op: Operation) -> str | None:
    """Refuse a kernel without its work items or the size of its subgroups."""
    if not isinstance(op, gpu.FuncOp) or not op.is_kernel:
        return None
    block, lanes = ints_of(op.known_block_size), op.attributes.get(SUBGROUP_SIZE)
    if len(block) != 3 or not isinstance(lanes, IntegerAttr):
        return f"kernel `{op.sym_name.data}` does not say how it is launched"
    size = lanes.value.data
    if block[1:] != (1, 1) or block[0] % size:
        return f"{block} work items are no row of subgroups of {size}"
    return None


def offsets_are_values(op: Operation) -> str | None:
    """Refuse offsets of descriptors, and static offsets of loads and stores.

    `mlir-opt` 22 does not lower offsets of descriptors, and loses static offsets.
    """
    if isinstance(op, CreateNdTdescOp) and op.mixed_offsets:
        return "a descriptor has offsets"
    if isinstance(op, LoadNdOp | StoreNdOp | PrefetchNdOp):
        offsets = op.mixed_offsets
        if not offsets or any(isinstance(offset, int) for offset in offsets):
            return f"`{op.name}` needs offsets that are values, found {offsets}"
    return None


def _named(dialect: str, *names: str) -> frozenset[str]:
    return frozenset(f"{dialect}.{name}" for name in names)


_GPU = _named(
    "gpu",
    *("module", "func", "return", "barrier"),
    *("block_id", "grid_dim", "subgroup_id"),
)
_MEMREF = _named(
    "memref",
    *("alloc", "view", "extract_aligned_pointer_as_index", "extract_strided_metadata"),
)
_VECTOR = _named(
    "vector",
    *("extract", "insert", "extract_strided_slice", "insert_strided_slice"),
    *("broadcast", "shape_cast", "bitcast", "from_elements", "shuffle"),
    *("transpose", "multi_reduction", "step", "contract"),
)

XEGPU = register_stage(
    StageSpec(
        "xegpu",
        frozenset({"builtin", "scf", "arith", "math", "xegpu", "xegpu_x"}),
        _GPU | _VECTOR | _MEMREF,
        (
            only_facts_of_mlir,
            kernels_say_how_they_launch,
            offsets_are_values,
            on_some_device,
        ),
        is_verified=False,
    )
)
