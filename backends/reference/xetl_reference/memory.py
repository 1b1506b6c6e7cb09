"""Memory as the IR sees it: bytes with an origin, and views of them.

An access never reaches outside the bytes: NumPy checks each window against them, and
what the IR says of clipping happens before (tiles.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xetl.errors import InternalError
from xetl_reference.values import Array, DType

if TYPE_CHECKING:
    from xetl_reference.shadow import Shadow


class Memory:
    """Bytes that belong together: an array argument or an allocation.

    Attributes:
        data: all bytes.
        origin: the byte that offset 0 means; an array with negative strides has
            elements before it.
        shadow: what checks know of it (shadow.py); None: nothing is checked.
    """

    __slots__ = ("data", "origin", "shadow")

    def __init__(self, data: Array, origin: int = 0) -> None:
        self.data = data
        self.origin = origin
        self.shadow: Shadow | None = None

    def window(
        self, dtype: DType, offset: int, shape: Sequence[int], strides: Sequence[int]
    ) -> Array:
        """The elements at ``offset + i * strides``: an array that is this memory."""
        size = dtype.itemsize
        start = self.origin + offset * size
        try:
            return np.ndarray(
                shape, dtype, self.data, start, [stride * size for stride in strides]
            )
        except ValueError:
            raise _outside(offset, shape, strides) from None

    def bounds(self, dtype: DType) -> tuple[int, int]:
        """The first and the last but one element, from the origin on."""
        size = dtype.itemsize
        return -(self.origin // size), (len(self.data) - self.origin) // size


class AddressMemory(Memory):
    """Memory behind a bare address; nobody knows where it ends."""

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
        """Everything."""
        return -(1 << 62), 1 << 62


class _Bytes:
    """What NumPy makes an array of that lies at an address."""

    def __init__(self, address: int, count: int, readonly: bool) -> None:
        self.__array_interface__ = {
            "data": (address, readonly),
            "shape": (count,),
            "typestr": "|u1",
            "version": 3,
        }


def extent(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The lowest offset of an element, and the highest one plus 1; (0, 0): none."""
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
    """The memory of exactly these elements; ``offset`` is its origin."""
    low, high = extent(shape, strides)
    size = dtype.itemsize
    if low == high:
        return Memory(np.empty(0, np.uint8))
    first = address + (offset + low) * size
    data = np.asarray(_Bytes(first, (high - low) * size, readonly))
    return Memory(data, -low * size)


class View:
    """A value of memref type: where its elements lie, in elements.

    ``offset`` counts from the memory's origin, which is what MLIR calls the base.
    """

    __slots__ = ("dtype", "memory", "offset", "sizes", "strides")

    def __init__(
        self,
        memory: Memory,
        dtype: DType,
        offset: int,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self.memory = memory
        self.dtype = dtype
        self.offset = offset
        self.sizes = sizes
        self.strides = strides

    def at(self, indices: Sequence[int]) -> int:
        """The offset of an element."""
        return self.offset + sum(
            index * stride for index, stride in zip(indices, self.strides)
        )

    def whole(self) -> Array:
        """All elements, as an array that is this memory."""
        return self.memory.window(self.dtype, self.offset, self.sizes, self.strides)

    def __repr__(self) -> str:
        return f"View({self.dtype}, {self.offset}, {self.sizes}, {self.strides})"


def view_of_array(array: Any, dtype: DType) -> View:
    """A NumPy array as an argument; ``dtype`` is what the IR calls its elements."""
    if any(stride % dtype.itemsize for stride in array.strides):
        raise InternalError("strides must be whole elements")
    address, readonly = array.__array_interface__["data"]
    strides = tuple(stride // dtype.itemsize for stride in array.strides)
    return argument_view(address, dtype, array.shape, strides, readonly)


def argument_view(
    address: int,
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    readonly: bool,
) -> View:
    """An array argument; its owner must outlive the view."""
    memory = at_address(address, dtype, 0, shape, strides, readonly)
    return View(memory, dtype, 0, tuple(shape), tuple(strides))


def _outside(
    offset: int, shape: Sequence[int], strides: Sequence[int]
) -> InternalError:
    return InternalError(
        f"an access leaves its memory: offset {offset}, shape {list(shape)}, "
        f"strides {list(strides)}"
    )
