"""Memory of the IR, bytes with an origin; views of it; operations of `memref`.

An access never reaches outside the bytes: NumPy checks each window against them. Tiles
are clipped before that (tiles.py). A memory reports each access to its shadow before
it happens.
Source of allocations, views and single elements: MLIR, `memref`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import EllipsisType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX

from xetl.dialects.base import fill_gaps, ints_of, shape_of
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.memref_layout import memory_space_of, strides_of
from xetl.errors import InternalError
from xetl.language.strides import row_major
from xetl_reference.combining import combine
from xetl_reference.plan import PROGRAM, Builder, Frame, Plan, Step
from xetl_reference.values import (
    Array,
    DType,
    Function,
    Meaning,
    always,
    dtype_of,
    nothing,
    same,
    unbox,
)

if TYPE_CHECKING:
    from xetl_reference.shadow import Shadow


READ, WRITE, ATOMIC = "read", "written", "updated"
"""The kinds of access, as findings name them."""


class Memory:
    """The bytes of an array argument or of an allocation.

    Attributes:
        data: all bytes.
        origin: the byte at offset 0; an array with negative strides has elements before
            it.
        shadow: the tables of the checks (shadow.py); None: nothing is checked.
    """

    __slots__ = ("data", "origin", "shadow")

    def __init__(self, data: Array, origin: int = 0) -> None:
        self.data = data
        self.origin = origin
        self.shadow: Shadow | None = None

    def window(
        self, dtype: DType, offset: int, shape: Sequence[int], strides: Sequence[int]
    ) -> Array:
        """Return the elements at ``offset + i * strides`` as a view of the memory."""
        size = dtype.itemsize
        start = self.origin + offset * size
        try:
            return np.ndarray(
                shape, dtype, self.data, start, [stride * size for stride in strides]
            )
        except ValueError:
            raise InternalError(
                f"an access leaves its memory: offset {offset}, shape {list(shape)}, "
                f"strides {list(strides)}"
            ) from None

    def access(
        self,
        kind: str | None,
        dtype: DType,
        offset: int,
        shape: Sequence[int],
        strides: Sequence[int],
        chosen: Array | EllipsisType = ...,
    ) -> Array:
        """Return a window of which the elements ``chosen``, an index, are accessed.

        ``kind``: how; None: a debugger looks at them, which is no access.
        """
        window = self.window(dtype, offset, shape, strides)
        if self.shadow is not None and kind is not None:
            start = self.origin + offset * dtype.itemsize
            self.shadow.access(kind, start, window, chosen)
        return window

    def bounds(self, dtype: DType) -> tuple[int, int]:
        """Return the first element and the one past the end, from the origin on."""
        size = dtype.itemsize
        return -(self.origin // size), (len(self.data) - self.origin) // size


class AddressMemory(Memory):
    """Memory at a bare address, of unknown size."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        super().__init__(np.empty(0, np.uint8))
        self.address = address

    def window(
        self, dtype: DType, offset: int, shape: Sequence[int], strides: Sequence[int]
    ) -> Array:
        """The elements at ``offset + i * strides``."""
        memory = at_address(self.address, dtype, offset, shape, strides)
        return Memory.window(memory, dtype, 0, shape, strides)

    def bounds(self, dtype: DType) -> tuple[int, int]:
        """Return bounds that no index exceeds."""
        return -(1 << 62), 1 << 62


def extent(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Return the lowest offset of an element and the highest plus 1; (0, 0): empty."""
    low = high = 0
    for size, stride in zip(shape, strides):
        if size <= 0:
            return 0, 0
        distance = (size - 1) * stride
        low, high = min(low, low + distance), max(high, high + distance)
    return low, high + 1


def at_address(
    address: int,
    dtype: DType,
    offset: int,
    shape: Sequence[int],
    strides: Sequence[int],
    readonly: bool = False,
) -> Memory:
    """Return the memory of exactly these elements, with its origin at ``offset``."""
    low, high = extent(shape, strides)
    size = dtype.itemsize
    if low == high:
        return Memory(np.empty(0, np.uint8))
    stated = {"data": (address + (offset + low) * size, readonly), "version": 3}
    stated |= {"shape": ((high - low) * size,), "typestr": "|u1"}
    bytes_: Any = SimpleNamespace(__array_interface__=stated)
    return Memory(np.asarray(bytes_), -low * size)


class View(NamedTuple):
    """A value of memref type: a strided view of a memory, in elements.

    ``offset`` counts from the memory's origin, MLIR's base.
    """

    memory: Memory
    dtype: DType
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, indices: Sequence[int]) -> int:
        """Return the offset of an element."""
        steps = zip(indices, self.strides)
        return self.offset + sum(index * stride for index, stride in steps)

    def around(
        self, indices: Sequence[int], places: Array, kind: str
    ) -> tuple[Array, Array]:
        """Access some elements: a view of the memory around them, their places in it.

        ``places`` count from ``indices`` along the last dimension.
        """
        if not places.size:
            return np.empty(0, self.dtype), places
        low, high = int(places.min()), int(places.max())
        stride = self.strides[-1] if self.strides else 1
        start = self.at(indices) + low * stride
        place, at = (start, (high - low + 1,), (stride,)), places - low
        return self.memory.access(kind, self.dtype, *place, at), at

    def part(self, indices: Sequence[int], shape: tuple[int, ...], kind: str) -> Array:
        """Access ``shape`` elements of the last dimensions from ``indices`` on."""
        strides = self.strides[len(self.strides) - len(shape) :]
        return self.memory.access(kind, self.dtype, self.at(indices), shape, strides)

    def whole(self) -> Array:
        """Return all elements as a view of the memory."""
        return self.memory.window(self.dtype, self.offset, self.sizes, self.strides)


def argument_view(
    address: int,
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    readonly: bool,
) -> View:
    """Return the view of an array argument. The owner must outlive it."""
    memory = at_address(address, dtype, 0, shape, strides, readonly)
    return View(memory, dtype, 0, tuple(shape), tuple(strides))


_UNINITIALISED = 0xFF
"""The value of every byte of new memory: NaN as a float, so that reads are noticed."""

Reader = Callable[[Sequence[Any]], tuple[int, ...]]


def readers(*statics: Any) -> list[Reader]:
    """Return readers of lists that mix constants and marks in place of operands.

    The operands of the lists follow one another.
    """
    places = count()
    return [_reader(ints_of(static), places) for static in statics]


def _reader(numbers: tuple[int, ...], places: Iterator[int]) -> Reader:
    if DYNAMIC_INDEX not in numbers:
        return lambda operands: numbers
    picks = [(n, next(places) if n == DYNAMIC_INDEX else None) for n in numbers]
    return lambda operands: tuple(n if i is None else operands[i] for n, i in picks)


def window_readers(op: Any) -> list[Reader]:
    """Readers of the offsets, sizes and strides of an operation."""
    return readers(op.static_offsets, op.static_sizes, op.static_strides)


# Views ------------------------------------------------------------------------------


def _reinterpret_cast(op: Any) -> Function:
    offsets, sizes, strides = window_readers(op)

    def run(source: View, *operands: int) -> View:
        (offset,) = offsets(operands)
        steps = strides(operands)
        return source._replace(offset=offset, sizes=sizes(operands), strides=steps)

    return run


def _subview(op: Any) -> Function:
    offsets, sizes, strides = window_readers(op)
    kept: list[int] = op.kept_dims

    def run(source: View, *operands: int) -> View:
        shape = sizes(operands)
        steps = [s * t for s, t in zip(strides(operands), source.strides)]
        return source._replace(
            offset=source.at(offsets(operands)),
            sizes=tuple(shape[dim] for dim in kept),
            strides=tuple(steps[dim] for dim in kept),
        )

    return run


def _transpose(op: Any) -> Function:
    dims: tuple[int, ...] = op.dims

    def run(source: View) -> View:
        return source._replace(
            sizes=tuple(source.sizes[dim] for dim in dims),
            strides=tuple(source.strides[dim] for dim in dims),
        )

    return run


def _view(op: Any) -> Function:
    """Return bytes from a shift on as a row-major view of another type."""
    dtype, shape = dtype_of(op.result.type), shape_of(op.result.type)

    def run(source: View, shift: int, *sizes: int) -> View:
        extents = fill_gaps(shape, sizes)
        memory = Memory(source.memory.data, source.memory.origin + shift)
        memory.shadow = source.memory.shadow
        return View(memory, dtype, 0, extents, row_major(extents))

    return run


def _metadata(source: View) -> tuple[Any, ...]:
    base = source._replace(offset=0, sizes=(), strides=())
    return (base, source.offset, *source.sizes, *source.strides)


def _dim(source: View, dim: int) -> int:
    return source.sizes[dim]


def _address(source: View) -> int:
    memory = source.memory
    return memory.data.__array_interface__["data"][0] + memory.origin


# Allocation -------------------------------------------------------------------------


def allocate(type_: Any, sizes: Sequence[int]) -> View:
    """Return new memory of a memref type, full of NaN.

    ``sizes`` are those of the dynamic dimensions.
    """
    shape = fill_gaps(shape_of(type_), sizes)
    known = strides_of(type_) or [None] * len(shape)
    strides = tuple(stride for stride in known if stride is not None)
    if None in known:
        strides = row_major(shape)
    dtype = dtype_of(type_)
    size = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if all(shape) else 0
    data = np.full(max(size, 0) * dtype.itemsize, _UNINITIALISED, np.uint8)
    return View(Memory(data), dtype, 0, shape, strides)


def _alloc(plan: Plan, op: Any) -> Step:
    type_, result = op.result.type, plan.slot(op.result)
    sizes = plan.slots(op.dynamic_sizes)
    shared = memory_space_of(type_) == SHARED

    def private(frame: Frame) -> None:
        frame[result] = allocate(type_, [frame[slot] for slot in sizes])

    def common(frame: Frame) -> None:
        """Allocate once for the workgroup; all its subgroups get the same memory."""
        buffers = frame[PROGRAM].shared
        if op not in buffers:
            buffers[op] = allocate(type_, [frame[slot] for slot in sizes])
        frame[result] = buffers[op]

    return common if shared else private


# Elements ---------------------------------------------------------------------------


def _load(source: View, *indices: int) -> Any:
    return unbox(source.part(indices, (), READ))


def _store(value: Any, target: View, *indices: int) -> None:
    target.part(indices, (), WRITE)[...] = value


def _copy(source: View, target: View) -> None:
    if all(source.sizes):
        found = source.part((), source.sizes, READ)
        target.part((), target.sizes, WRITE)[...] = found


def _atomic_rmw(op: Any) -> Function:
    function = combine(op.kind_name, dtype_of(op.result.type))

    def run(value: Any, target: View, *indices: int) -> Any:
        place = target.part(indices, (), ATOMIC)
        old = place.copy()
        place[...] = function(old, np.asarray(value, target.dtype))
        return unbox(old)

    return run


MEANINGS: dict[str, Meaning] = {
    "memref.reinterpret_cast": _reinterpret_cast,
    "memref.subview": _subview,
    "memref.transpose": _transpose,
    "memref.view": _view,
    "memref.cast": same,
    "memref.memory_space_cast": same,
    "memref.extract_strided_metadata": always(_metadata),
    "memref.extract_aligned_pointer_as_index": always(_address),
    "memref.dim": always(_dim),
    "memref.load": always(_load),
    "memref.store": always(_store),
    "memref.copy": always(_copy),
    "memref.dealloc": nothing,
    "memref.prefetch": nothing,
    "memref.atomic_rmw": _atomic_rmw,
}
BUILDERS: dict[str, Builder] = {"memref.alloc": _alloc, "memref.alloca": _alloc}
