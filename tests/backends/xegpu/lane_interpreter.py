"""A small interpreter of the stage `lanes`, in NumPy: 16 lanes in step.

A value is an array of 16 numbers, or of 16 rows of n numbers.  What is the same before
and after lanes (`arith`, `math`) is asked of the reference backend, with the lanes as
one more dimension.  Subgroups are generators that stop at barriers.  Memory is bytes;
whoever leaves an array, or meets a barrier alone, is found out.

What stands between the halves of a barrier runs as early as it may, before others have
arrived (`EARLY`), or as late, after others have done what follows (`LATE`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from itertools import product
from typing import Any

import numpy as np
from lane_memory import Array, Memory
from xdsl.dialects.builtin import DYNAMIC_INDEX, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.test_value import create_ssa_value

from xetl.dialects.base import ints_of, is_memref, is_vector, shape_of
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.upstream import arith, gpu, scf, vector
from xetl.transforms.stages import check_stage
from xetl_reference.combining import combine, reduction
from xetl_reference.interpreter import TABLE
from xetl_reference.values import BF16, constant_value, dtype_of
from xetl_xegpu import simt
from xetl_xegpu.dialect import DIALECTS
from xetl_xegpu.lowering.distribute_to_lanes import DistributeToLanesPass

LANES = 16
Steps = Generator[Operation, None, list[Array]]
"""A run of operations, which stops at barriers; ends with what the region gives."""

EARLY, LATE = simt.BarrierWaitOp, simt.BarrierArriveOp
"""The half of a barrier where a subgroup stops until all have come to it."""


class Group:
    """One workgroup: its shared memory, and where it is."""

    def __init__(
        self,
        memory: Memory,
        size: int,
        at: Sequence[int],
        grid: Sequence[int],
        half: type[Operation] = EARLY,
    ):
        self.memory = memory
        self.stops = (simt.BarrierOp, simt.NamedBarrierOp, half)
        self.local = Memory([np.full(size, 0xCD, np.uint8)])
        self.at, self.grid = at, grid
        self.records: list[tuple[str, list[Array]]] = []


class Subgroup:
    """16 lanes, and what they know."""

    def __init__(self, group: Group, number: int) -> None:
        self.group, self.number = group, number
        self.known: dict[SSAValue, Array] = {}

    def get(self, value: SSAValue) -> Array:
        return self.known[value]

    def uniform(self, value: SSAValue) -> Any:
        """A number that is the same in all lanes, as control flow wants it."""
        found = self.get(value)
        assert (found == found[0]).all(), f"lanes go different ways: {found}"
        return found[0].item()

    def set(self, values: Sequence[SSAValue], found: Sequence[Array]) -> None:
        for value, array in zip(values, found, strict=True):
            type_ = value.type
            assert array.shape == (LANES, *shape_of(type_)), (value, array.shape)
            assert array.dtype == dtype_of(type_), (value, array.dtype)
            self.known[value] = array

    # Regions ------------------------------------------------------------------------

    def run(self, block: Block, arguments: Sequence[Array] = ()) -> Steps:
        self.set(block.args, arguments)
        for op in block.ops:
            if isinstance(op, scf.YieldOp | scf.ConditionOp | simt.ReturnOp):
                return [self.get(value) for value in op.operands]
            if op.regions:
                found = yield from _REGIONS[type(op)](self, op)
            elif isinstance(op, self.group.stops):
                yield op
                found = []
            else:
                found = evaluate(self, op)
            self.set(op.results, found)
        raise AssertionError("a block without an end")


def _for(self: Subgroup, op: scf.ForOp) -> Steps:
    bounds = [self.uniform(v) for v in (op.lower_bound, op.upper_bound, op.step)]
    carried = [self.get(value) for value in op.init_args]
    for counter in range(*bounds):
        filled = np.full(LANES, counter, dtype_of(op.lower_bound.type))
        carried = yield from self.run(op.body.block, [filled, *carried])
    return carried


def _if(self: Subgroup, op: scf.IfOp) -> Steps:
    region = op.then_region if self.uniform(op.condition) else op.else_region
    return (yield from self.run(region.block)) if region.blocks else []


def _while(self: Subgroup, op: scf.WhileOp) -> Steps:
    carried = [self.get(value) for value in op.inits]
    while True:
        condition, *values = yield from self.run(op.before.block, carried)
        assert (condition == condition[0]).all()
        if not condition[0]:
            return values
        carried = yield from self.run(op.after.block, values)


_REGIONS: dict[type[Operation], Callable[[Subgroup, Any], Steps]] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
}


# Operations -------------------------------------------------------------------------


def evaluate(lanes: Subgroup, op: Operation) -> list[Array]:
    """What the results of an operation without regions are."""
    own = _OWN.get(type(op))
    if own is not None:
        found = own(lanes, op)
        return found if isinstance(found, list) else [found]
    wide = type(op).create(
        operands=[create_ssa_value(_with_lanes(v.type)) for v in op.operands],
        result_types=[_with_lanes(value.type) for value in op.results],
        properties=op.properties,
    )
    with np.errstate(all="ignore"):
        found = TABLE.meanings[op.name](wide)(*map(lanes.get, op.operands))
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]


def _with_lanes(type_: Attribute) -> VectorType[Attribute]:
    if is_vector(type_):
        return VectorType(type_.element_type, [LANES, *type_.get_shape()])
    return VectorType(type_, [LANES])


def _constant(lanes: Subgroup, op: arith.ConstantOp) -> Array:
    value = constant_value(op.value, op.result.type)
    shape = (LANES, *shape_of(op.result.type))
    return np.broadcast_to(np.asarray(value, dtype_of(op.result.type)), shape)


def _extract(lanes: Subgroup, op: vector.ExtractOp) -> Array:
    (position,) = op.position
    assert isinstance(position, int)
    return lanes.get(op.source)[:, position]


def _insert(lanes: Subgroup, op: vector.InsertOp) -> Array:
    (position,) = op.position
    assert isinstance(position, int)
    found = lanes.get(op.dest).copy()
    found[:, position] = lanes.get(op.value)
    return found


def _broadcast(lanes: Subgroup, op: vector.BroadcastOp) -> Array:
    (length,) = shape_of(op.result.type)
    return np.repeat(lanes.get(op.source)[:, None], length, axis=1)


def _from_elements(lanes: Subgroup, op: vector.FromElementsOp) -> Array:
    return np.stack([lanes.get(element) for element in op.elements], axis=1)


def _order(lanes: Subgroup, op: vector.ShuffleOp) -> Array:
    both = np.concatenate([lanes.get(op.v1), lanes.get(op.v2)], axis=1)
    return both[:, list(ints_of(op.mask))]


def _bits(lanes: Subgroup, op: vector.BitcastOp) -> Array:
    return np.ascontiguousarray(lanes.get(op.source)).view(dtype_of(op.result.type))


def _space(lanes: Subgroup, op: simt.LoadOp | simt.StoreOp | simt.AtomicOp) -> Memory:
    return lanes.group.local if op.is_local else lanes.group.memory


def _load(lanes: Subgroup, op: simt.LoadOp) -> Array:
    """What a mask leaves out is anything to XeGPU, whatever a lane gets here."""
    on, found = lanes.get(op.mask), garbage(lanes.get(op.fill))
    found[on] = _space(lanes, op).load(lanes.get(op.address)[on], found.dtype)
    return found


def garbage(like: Array) -> Array:
    """Bits that no kernel can have meant."""
    if like.dtype == np.bool_:
        return np.resize([True, False], like.shape)
    raw = np.resize(np.array([0xFF, 0x7F, 0x55, 0xC3, 0x12], np.uint8), like.nbytes)
    return raw.view(like.dtype).reshape(like.shape)


def _store(lanes: Subgroup, op: simt.StoreOp) -> list[Array]:
    on = lanes.get(op.mask)
    _space(lanes, op).store(lanes.get(op.address)[on], lanes.get(op.value)[on])
    return []


def _atomic(lanes: Subgroup, op: simt.AtomicOp) -> Array:
    memory, value = _space(lanes, op), lanes.get(op.value)
    step = combine(op.kind.data, value.dtype)
    old = np.zeros_like(value)
    for lane in np.flatnonzero(lanes.get(op.mask)):
        here = lanes.get(op.address)[lane : lane + 1]
        old[lane] = memory.load(here, value.dtype)[0]
        new = np.asarray(step(old[lane : lane + 1], value[lane : lane + 1]))
        memory.store(here, new.astype(value.dtype))
    return old


def _block(lanes: Subgroup, op: Any) -> tuple[Array, Array]:
    """Addresses of the elements of a block, (count, rows, columns), and which exist."""
    shape, size = op.shape, op.shape.bits // 8
    *surface, step = op.surface
    base, width, height, pitch, x, y = map(lanes.uniform, surface)
    step = size if step is None else lanes.uniform(step)
    columns = np.arange(shape.count * shape.columns).reshape(shape.count, 1, -1) + x
    rows = np.arange(shape.rows).reshape(1, -1, 1) + y
    inside = (columns >= 0) & (columns * size < width) & (rows >= 0) & (rows < height)
    return base + rows * pitch + columns * step, inside


def _block_load(lanes: Subgroup, op: simt.BlockLoadOp) -> list[Array]:
    shape = op.shape
    addresses, inside = _block(lanes, op)
    block = np.zeros(addresses.shape, f"int{shape.bits}")
    block[inside] = lanes.group.memory.load(addresses[inside], block.dtype)
    if shape.mode == "transpose":
        block = block.swapaxes(1, 2)
    if shape.mode == "transform":
        pairs = block.reshape(shape.count, -1, 32 // shape.bits, shape.columns)
        block = pairs.swapaxes(2, 3)
    flat = np.ascontiguousarray(block).reshape(-1).view(f"int{shape.item_bits}")
    items = flat.reshape(-1, LANES).T
    pieces: list[Array] = []
    for type_ in shape.pieces():
        count = shape_of(type_)[0] if shape_of(type_) else 1
        pieces.append(items[:, :count] if shape_of(type_) else items[:, 0])
        items = items[:, count:]
    return pieces


def _block_store(lanes: Subgroup, op: simt.BlockStoreOp) -> list[Array]:
    addresses, inside = _block(lanes, op)
    items = lanes.get(op.value).reshape(LANES, -1).T
    flat = np.ascontiguousarray(items).view(f"int{op.shape.bits}")
    block = flat.reshape(addresses.shape)
    lanes.group.memory.store(addresses[inside], block[inside])
    return []


_OPERANDS = {"f16": np.float16, "bf16": BF16, "i8": np.int8, "u8": np.uint8}


def _operand(lanes: Subgroup, value: SSAValue, name: str, rows: int) -> Array:
    """What 16 lanes hold of an operand, lane by lane: (rows, 16, elements)."""
    bits = np.ascontiguousarray(lanes.get(value).reshape(LANES, -1))
    return bits.view(_OPERANDS[name]).reshape(LANES, rows, -1).swapaxes(0, 1)


def _dpas(lanes: Subgroup, op: simt.DpasOp) -> Array:
    name, c = op.a_type.data, lanes.get(op.c).reshape(LANES, -1).T
    if name == "tf32":
        # Item i of lane l is the element 16i + l of A, row by row.
        a = lanes.get(op.a).reshape(LANES, -1).T.reshape(-1, 8)[: op.m]
        a, right = _cut_to_tf32(a), _cut_to_tf32(lanes.get(op.b).T)
    else:
        a = _operand(lanes, op.a, name, op.m).reshape(op.m, -1)
        b = _operand(lanes, op.b, op.b_type.data, 8)
        right = b.swapaxes(1, 2).reshape(-1, LANES)
    wide = np.int64 if c.dtype == np.int32 else np.float64
    found = a.astype(wide) @ right.astype(wide) + c.astype(wide)
    if c.dtype != np.int32:
        found = found.astype(np.float32)
    return found.astype(c.dtype).T.reshape(lanes.get(op.c).shape)


def _lane_product(lanes: Subgroup, op: simt.LaneProductOp) -> Array:
    a, c = (lanes.get(v).reshape(LANES, -1).T for v in (op.a, op.c))
    b = np.concatenate([lanes.get(op.upper).T, lanes.get(op.lower).T])
    return (a @ b + c).T.reshape(lanes.get(op.c).shape)


def _nearest_tf32(values: Array) -> Array:
    """Rounded to ten bits of fraction, ties to even; a NaN stays one."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    near = bits + ((bits >> 13) & 1) + 0xFFF
    kept = np.where(np.isnan(values), bits | 1 << 22, near) & 0xFFFFE000
    return kept.astype(np.uint32).view(np.float32)


def _cut_to_tf32(values: Array) -> Array:
    """What is left of f32 if its last bits are not looked at."""
    return (np.ascontiguousarray(values).view(np.int32) & -0x2000).view(np.float32)


def _shuffle(lanes: Subgroup, op: simt.ShuffleOp) -> Array:
    return lanes.get(op.value)[lanes.get(op.lane) % LANES]


def _reduce(lanes: Subgroup, op: simt.ReduceOp) -> Array:
    value = lanes.get(op.value)
    found = reduction(op.kind.data, value.dtype)(value, [0])
    return np.broadcast_to(found, value.shape)


def _reduce_rows(lanes: Subgroup, op: simt.ReduceRowsOp) -> Array:
    value = lanes.get(op.value)
    found = reduction(op.kind.data, value.dtype)(value, [0]).reshape(-1)
    return found[np.arange(LANES) % 8]


def _record(lanes: Subgroup, op: simt.PrintOp | simt.AssertOp) -> list[Array]:
    failed = isinstance(op, simt.AssertOp) and not lanes.uniform(op.condition)
    if failed or isinstance(op, simt.PrintOp):
        values = [lanes.get(value) for value in op.arguments]
        lanes.group.records.append((op.template.data, values))
    assert not failed, op.template.data
    return []


def _filled(number: int, dtype: Any) -> Array:
    return np.full(LANES, number, dtype)


_OWN: dict[type[Operation], Callable[[Subgroup, Any], Any]] = {
    arith.ConstantOp: _constant,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.BroadcastOp: _broadcast,
    vector.FromElementsOp: _from_elements,
    vector.ShuffleOp: _order,
    vector.BitcastOp: _bits,
    simt.GroupIdOp: lambda lanes, op: _filled(lanes.group.at[op.axis], np.int64),
    simt.NumGroupsOp: lambda lanes, op: _filled(lanes.group.grid[op.axis], np.int64),
    simt.SubgroupIdOp: lambda lanes, op: _filled(lanes.number, np.int32),
    simt.LaneIdOp: lambda lanes, op: np.arange(LANES, dtype=np.int32),
    simt.LocalBaseOp: lambda lanes, op: _filled(
        lanes.group.local.starts[0] + op.offset.value.data, np.int64
    ),
    simt.RoundToTf32Op: lambda lanes, op: _nearest_tf32(lanes.get(op.value)),
    simt.LoadOp: _load,
    simt.StoreOp: _store,
    simt.AtomicOp: _atomic,
    simt.BlockLoadOp: _block_load,
    simt.BlockStoreOp: _block_store,
    simt.BlockPrefetchOp: lambda lanes, op: [],
    simt.DpasOp: _dpas,
    simt.LaneProductOp: _lane_product,
    simt.ShuffleOp: _shuffle,
    simt.ReduceOp: _reduce,
    simt.ReduceRowsOp: _reduce_rows,
    simt.FenceOp: lambda lanes, op: [],
    simt.BarrierArriveOp: lambda lanes, op: [],
    simt.BarrierWaitOp: lambda lanes, op: [],
    simt.PrintOp: _record,
    simt.AssertOp: _record,
}


# Launches ---------------------------------------------------------------------------


def run_group(kernel: simt.FuncOp, group: Group, arguments: Sequence[Array]) -> None:
    """All subgroups of a workgroup, from barrier to barrier."""
    count = kernel.lanes[0] // LANES
    ready = [
        Subgroup(group, number).run(kernel.body.block, arguments)
        for number in range(count)
    ]
    waiting: list[tuple[int | None, Steps]] = []
    wanted: dict[int | None, int] = {None: count}
    while ready:
        for steps in ready:
            stop = next(steps, None)
            if stop is None:
                continue
            number = None
            if isinstance(stop, simt.NamedBarrierOp):
                number = stop.number.value.data
                wanted[number] = stop.subgroups.value.data
            waiting.append((number, steps))
        met = Counter(number for number, _ in waiting)
        over = {number for number in met if met[number] == wanted[number]}
        ready = [steps for number, steps in waiting if number in over]
        waiting = [each for each in waiting if each[0] not in over]
    assert not waiting, "some wait at a barrier, others ended"


def to_lanes(text: str, target: str = "pvc") -> tuple[simt.FuncOp, list[Attribute]]:
    """The one kernel of a text at stage `xegpu`, and the types of its arguments."""
    context = make_context([*DIALECTS, simt.SIMT])
    module = parse_module(text, "kernel.mlir", context)
    module.verify()
    (before,) = [op for op in module.walk() if isinstance(op, gpu.FuncOp)]
    types = [argument.type for argument in before.body.block.args]
    DistributeToLanesPass(target).apply(context, module)
    module.verify()
    check_stage(module, "lanes")
    (kernel,) = [op for op in module.walk() if isinstance(op, simt.FuncOp)]
    return kernel, types


def passed(types: Sequence[Attribute], values: Sequence[Any], starts: Sequence[int]):
    """Arguments as the ABI has them, each the same in all lanes."""
    found: list[Array] = []
    addresses = iter(starts)
    for type_, value in zip(types, values, strict=True):
        if not is_memref(type_):
            kind = np.int64 if isinstance(value, int) else np.float64
            found.append(_filled(value, kind))
            continue
        found.append(_filled(next(addresses), np.int64))
        strides = [step // value.itemsize for step in value.strides]
        asked = strides_of(type_) if type_.layout.name == "strided" else None
        sizes = zip(type_.get_shape(), value.shape)
        found += [_filled(n, np.int64) for known, n in sizes if known == DYNAMIC_INDEX]
        steps = zip(asked or [], strides)
        found += [_filled(n, np.int64) for known, n in steps if known is None]
    return [*found, _filled(0, np.int64)]


def launch(
    text: str, *values: Any, grid: Sequence[int] = (1, 1, 1)
) -> list[tuple[str, list[Array]]]:
    """Lower a text at stage `xegpu` and run it; arrays are written.  Gives records.

    Lanes that a mask leaves out load garbage, and shared memory begins as garbage.
    """
    return run(*to_lanes(text), *values, grid=grid)


def run(
    kernel: simt.FuncOp,
    types: Sequence[Attribute],
    *values: Any,
    grid: Sequence[int] = (1, 1, 1),
    half: type[Operation] = EARLY,
) -> list[tuple[str, list[Array]]]:
    """Run a kernel of lanes that was made of a text; as `launch`.

    ``half`` says when subgroups do what stands between the halves of a barrier.
    """
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    memory = Memory(arrays)
    arguments = passed(types, values, memory.starts)
    records: list[tuple[str, list[Array]]] = []
    for z, y, x in product(*(range(n) for n in reversed(grid))):
        size = kernel.slm_bytes.value.data
        group = Group(memory, size, (x, y, z), grid, half)
        with np.errstate(all="ignore"):  # of what becomes of garbage
            run_group(kernel, group, arguments)
        records += group.records
    for array, start in zip(arrays, memory.starts):
        array[...] = memory.seen_as(array, start)
    return records
