"""How many queries a program of attention has, and how many keys a block."""

from __future__ import annotations

from collections.abc import Sequence

from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.calling.declarations import SUMS, Operand
from xetl.ops.calling.views import array_of
from xetl.ops.products.plans import smallest
from xetl.runtime.executables import choose_target
from xetl.runtime.placement import choose_backend
from xetl.runtime.usm import DEVICE_BACKEND

QUERIES = (1, 4, 16, 64)
"""Of a program on a GPU: the first that is enough, else the last."""

_QUERIES = (1, 4, 16, 32, 48, 64)
"""Of a program on a CPU. More are no faster, and leave less for other threads."""

_KEYS = (16, 32, 64, 96, 128, 160, 192, 224, 256)
"""Of a block: whole register tiles, and few enough for scores to stay in L2."""

_CAUSAL_KEYS = (16, 64, 128)
"""Of a block where scores are masked: what is masked of one is computed in vain, and
smaller blocks leave out more."""

_TURN = 16
"""What a program or block costs besides, in queries or keys. [measured] 8 to 22 on a
CPU with AMX, 3 on one without."""

DEVICE_KEYS = {16: 64, 32: 32, 64: 8}
"""Of a block on a GPU, by the bits of a dtype. [measured] nothing spills; where lanes
multiply (32 and 64 bits) some KB a subgroup would with twice as many."""


def blocks_of(
    operands: Sequence[Operand], extents: tuple[int, int], *, is_masked: bool
) -> tuple[int, int]:
    """How many queries a program has, and how many keys a block.

    Args:
        extents: queries and keys of a sequence.
    """
    (queries, keys), dtype, columns = extents, operands[0].dtype, operands[2].shape[-1]
    backend = choose_backend(values=[array_of(x) for x in operands])
    if backend.name == DEVICE_BACKEND:
        return smallest(QUERIES, queries), DEVICE_KEYS[dtype.bits]
    # Tiles are turned over at the end of a block: sums of each column of v beside as
    # many scores at least. All that a program has in L1 grows with its queries.
    _, rows = backend.products(choose_target(backend), dtype.name)
    most = rows or _QUERIES[-1]
    block = _cheapest([size for size in _QUERIES if size <= most], queries)
    if not is_masked:
        return block, _cheapest(_KEYS, keys)
    wide = _CAUSAL_KEYS if rows and columns > _CAUSAL_KEYS[-2] else _CAUSAL_KEYS[:2]
    return block, smallest(wide, keys)


def multiplied_as(operands: Sequence[Operand], queries: int) -> DType:
    """What probabilities are rounded to for the product with values.

    To nothing, where this one is computed in f32. Few queries stream the values.
    """
    dtype = operands[0].dtype
    backend = choose_backend(values=[array_of(x) for x in operands])
    name, _ = backend.products(choose_target(backend), dtype.name)
    return dtype if name == dtype.name or queries <= _QUERIES[1] else SUMS[dtype]


def _cheapest(sizes: Sequence[int], extent: int) -> int:
    """What leaves the least to be computed in vain; of equals the largest."""
    return min(sizes, key=lambda size: (cdiv(extent, size) * (size + _TURN), -size))
