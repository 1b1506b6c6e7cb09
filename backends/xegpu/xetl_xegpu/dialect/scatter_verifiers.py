"""What must agree between a base, offsets, a mask and elements."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType, i1
from xdsl.ir import Attribute

from xetl.dialects.base import check, element_type, shape_of
from xetl.dialects.kinds_of_types import is_memref

from .types import TensorDescType

_SHARED_SPACE = 3


def _verify_base(base: Attribute) -> None:
    """Check that scattered places are of a memref of rank 1, or of an address."""
    if is_memref(base):
        rank = base.get_num_dims()
        check(rank == 1, f"scattered places are of a memref of rank 1, found {rank}")
        return
    check(
        isinstance(base, IntegerType) and base.bitwidth in (32, 64),
        f"scattered places are of a memref or of an address, found {base}",
    )


def _space_of(base: Attribute) -> str | None:
    """Where a memref lies; None of an address, which does not say."""
    if not is_memref(base):
        return None
    space = getattr(getattr(base.memory_space, "value", None), "data", 0)
    return "slm" if space == _SHARED_SPACE else "global"


def verify_scattered(
    base: Attribute | None, offsets: Attribute, tdesc: TensorDescType
) -> None:
    """Check the offsets of a descriptor, and its base where there is one."""
    check(tdesc.scattered, "scattered places need #xegpu.scatter_tdesc_attr<...>")
    check(
        isinstance(element_type(offsets), IndexType),
        f"offsets are of type index, found {offsets}",
    )
    check(
        shape_of(offsets) == tdesc.shape[:1],
        f"{tdesc} has {tdesc.shape[0]} places, found {offsets}",
    )
    if base is None:
        return
    _verify_base(base)
    if is_memref(base):
        check(
            base.element_type == tdesc.element_type,
            f"the memref holds {base.element_type}, the places {tdesc.element_type}",
        )
        check(
            _space_of(base) == tdesc.memory_space,
            f"the memref lies in {_space_of(base)} memory, found {tdesc}",
        )


def verify_access(
    base: Attribute,
    offsets: Attribute | None,
    mask: Attribute | None,
    value: Attribute | None,
    chunk: int,
) -> None:
    """Check a gather, scatter, prefetch or atomic.

    Args:
        base: a descriptor, then without offsets; a memref or an address, then with.
        offsets: index, or a vector of them.
        mask: a bit for each place; None for a prefetch.
        value: what is loaded, stored or combined; None for a prefetch.
        chunk: elements at each place.
    """
    if isinstance(base, TensorDescType):
        check(base.scattered, "a block is accessed by load_nd, store_nd, prefetch_nd")
        check(offsets is None, "a descriptor has its offsets already")
        places, element = base.shape[:1], base.element_type
    else:
        _verify_base(base)
        check(
            offsets is not None and isinstance(element_type(offsets), IndexType),
            f"offsets are of type index, found {offsets}",
        )
        places = () if offsets is None else shape_of(offsets)
        element = base.element_type if is_memref(base) else None
    if mask is None or value is None:
        return
    fits = shape_of(mask) == places and element_type(mask) == i1
    check(fits, "the mask has one bit a place, found {}", mask)
    expected = places if chunk == 1 else (*places, chunk)
    check(
        shape_of(value) == expected,
        "{} elements at each of {} places, found {}",
        *(chunk, list(places), value),
    )
    check(
        element is None or element_type(value) == element,
        "the memory holds {}, found {}",
        *(element, value),
    )
