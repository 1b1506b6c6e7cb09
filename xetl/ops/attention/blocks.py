"""The block sizes of attention: queries of a program, and keys of a block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from xetl.language.dtypes import DType, bf16
from xetl.language.ops import cdiv
from xetl.ops.calling.declarations import SUMS, Operand
from xetl.ops.calling.views import array_of
from xetl.ops.products.host_tiles import ENOUGH, STREAMED, smallest
from xetl.runtime.executables import choose_target
from xetl.runtime.placement import choose_backend
from xetl.runtime.usm import DEVICE_BACKEND

QUERIES = (1, 4, 16, 64)
"""Queries of a program on a GPU: the first size that holds all, else the last."""

_QUERIES = (1, STREAMED, *range(8, 65, 8))
"""Queries of a program on a CPU. More are not faster, and fewer threads get work."""

_KEYS = range(16, 257, 16)
"""Keys of a block: whole vectors, and few enough that scores stay in L2."""

_TILED, _KEYS_TILED = (1, STREAMED, 16, 32), (16, *range(32, 257, 32))
"""Queries and keys with AMX, whose tiles have 16 rows or 32 elements of a sum."""

_CAUSAL_KEYS = (16, 32, 48, 64, 128)
"""Keys of a block of masked scores. Masked scores of a block are computed in vain;
smaller blocks skip more of them."""

_TURN = 16
"""The fixed cost of a program or block, in queries or keys. [measured] 8 to 22 on a CPU
with AMX, 3 on one without."""

_TURN_PLAIN = 3

_TURN_PROGRAM, _TURN_STREAMED = 6, 2
"""The fixed cost of a program, in queries, on a CPU without AMX. [measured] Zen 4, D 64
to 128, 300 to 1024 keys: a program costs as much as 5 to 7 more queries. Few queries,
which read keys and values in place, cost 0 to 2 more, unless pairs are multiplied."""

_GRADIENT = range(16, 257, 16)
"""Queries, and keys, of a block of the derivative: 256 by 256 scores fit in L2."""

_FEW_GRADIENT = 1, STREAMED

_WHOLE = (*_FEW_GRADIENT, *range(8, 129, 8))
"""Queries of a block of the derivative that has all keys. More are not faster."""

_LEAST_WHOLE = 32
"""With fewer queries, most of the time sums of keys are loaded and stored."""

_KEYS_GRADIENT = (16, 64, 128)
"""The same keys on a GPU, or for sequences of several lengths; 128 only unmasked."""

DEVICE_KEYS = {16: 64, 32: 32, 64: 8}
"""Keys of a block on a GPU, by the bits of the dtype. [measured] Nothing spills. With
twice as many, 32 and 64 bits, which lanes multiply, spill some KB a subgroup."""


_PROGRAMS = 64
"""Programs enough for the cores of a machine, if it can be had by parts of the keys."""

_PART = 1 << 18
"""The least elements of k and v of a part: 20 to 40 us on a CPU."""

_PARTED = 1 << 21
"""The least elements of k and v if there are parts: joining them takes some us."""


def blocks_of(
    operands: Sequence[Operand], extents: tuple[int, int], *, is_masked: bool
) -> tuple[int, int]:
    """Return the queries of a program, and the keys of a block.

    Args:
        operands: query, key, value.
        extents: the numbers of queries and keys of a sequence.
        is_masked: whether a query sees only some keys.
    """
    (queries, keys), dtype, columns = extents, operands[0].dtype, operands[2].shape[-1]
    backend = choose_backend(values=[array_of(x) for x in operands])
    if backend.name == DEVICE_BACKEND:
        return smallest(QUERIES, queries), DEVICE_KEYS[dtype.bits]
    # With AMX, the sums of all columns of v are moved out of the tiles after each
    # block, so a block should have at least as many keys. All that a program keeps in
    # L1 grows with its queries.
    name, rows = backend.products(choose_target(backend), dtype.name)
    if rows:
        block = _cheapest(_TILED, queries)
    else:
        multiplies_pairs = dtype.bits == 16 and name == dtype.name
        streamed = _TURN_PROGRAM if multiplies_pairs else _TURN_STREAMED
        block = _cheapest(_QUERIES, queries, _TURN_PROGRAM, streamed)
    if not is_masked:
        return block, _cheapest(_KEYS_TILED if rows else _KEYS, keys)
    wide = rows and columns > _CAUSAL_KEYS[-2]
    return block, _cheapest(_CAUSAL_KEYS if wide else _CAUSAL_KEYS[:-1], keys)


def parts_of(keys: int, columns: int, programs: int) -> int:
    """Return the number of programs that share the keys of a matrix.

    It follows from shapes alone, so results do not depend on the number of threads.

    Args:
        columns: those of k and v.
        programs: the number of programs, each with all keys.
    """
    if programs * keys * columns < _PARTED:
        return 1
    return max(1, min(cdiv(_PROGRAMS, programs), keys * columns // _PART))


def are_merged(operands: Sequence[Operand], matrices: int) -> bool:
    """Whether heads with the same keys become the rows of one matrix.

    On a GPU they do not: a few programs leave most of its cores without work.
    ``matrices`` is the number of matrices, which are programs if they have few rows.
    """
    backend = choose_backend(values=[array_of(x) for x in operands])
    return matrices >= ENOUGH and backend.name != DEVICE_BACKEND


def gradient_blocks(
    queries: Operand,
    extents: tuple[int, int],
    window: Sequence[int | None],
    *,
    is_ragged: bool,
) -> tuple[int, int]:
    """Return the queries and keys of a block of the derivative.

    [measured] Zen 4, one head, D 64, 49 to 1024 queries and keys: the times of block
    sizes have the ratios of `cost`, within 10 %.

    Args:
        extents: rows of queries, which may be those of several heads, and of keys.
        window: the numbers of keys before and behind its own that a query sees; None:
            all.
        is_ragged: whether there are sequences of several lengths.
    """
    (s, t), (left, right) = extents, window
    backend = choose_backend(values=[array_of(queries)])
    if is_ragged or backend.name == DEVICE_BACKEND:
        end = len(_KEYS_GRADIENT) - (left is not None or right is not None)
        return smallest(QUERIES, s), smallest(_KEYS_GRADIENT[:end], t)
    _, rows = backend.products(choose_target(backend), queries.dtype.name)
    turn = _TURN if rows else _TURN_PLAIN

    def cost(block: tuple[int, int]) -> tuple[int, int]:
        m, n = block
        count = 0
        for first in range(0, t, n):
            start = 0 if right is None else max(first - right, 0) // m
            end = s if left is None else min(s, first + n + left)
            count += max(cdiv(end, m) - start, 0)
        return count * (m + turn) * (n + turn), -m * n

    few = [m for m in _FEW_GRADIENT if m >= s] or _GRADIENT
    return min(product(few, _GRADIENT), key=cost)


def whole_gradient_blocks(
    query: Operand, value: Operand, keys: int
) -> tuple[int, int] | None:
    """Return the sizes of a block of the derivative that has all keys.

    The sums of keys have half of the cache of a core, and two blocks of scores the
    rest. [measured] Granite Rapids (2 MB), D 64, f32: with more keys the time is that
    of several blocks.

    Args:
        query: (..., s, d); s may be the queries of several heads.
        value: (..., t, e).
        keys: t.

    Returns:
        Queries and keys. None: there should be several blocks.
    """
    backend = choose_backend(values=[array_of(query)])
    acc = SUMS[query.dtype]
    if backend.name == DEVICE_BACKEND or not keys or query.dtype is bf16:
        return None
    half = backend.private_cache(choose_target(backend)) // (2 * acc.bits // 8)
    width = cdiv(keys, _KEYS[0]) * _KEYS[0]
    most = half // (2 * width)
    if width * (query.shape[-1] + value.shape[-1]) > half or most < _LEAST_WHOLE:
        return None
    rows = prod(query.shape[:-1]) // max(prod(value.shape[:-2]), 1)
    sizes = [size for size in _WHOLE if size <= most]
    return _cheapest(sizes, rows, _TURN_PROGRAM, _TURN_STREAMED), width


def multiplied_as(operands: Sequence[Operand], queries: int) -> DType:
    """Return the dtype of probabilities in the product with values.

    It is the dtype of sums (no rounding) if the target has no products of the operands'
    dtype, unless there are few queries, which stream the values.
    """
    dtype = operands[0].dtype
    backend = choose_backend(values=[array_of(x) for x in operands])
    name, _ = backend.products(choose_target(backend), dtype.name)
    return dtype if name == dtype.name or queries <= STREAMED else SUMS[dtype]


def _cheapest(
    sizes: Sequence[int], extent: int, turn: int = _TURN, streamed: int = _TURN
) -> int:
    """Return the size that costs least; of equals the largest.

    Args:
        sizes: the sizes of a program or block.
        extent: what they cover.
        turn: the fixed cost of each.
        streamed: that of sizes up to `STREAMED`.
    """

    def cost(size: int) -> tuple[int, int]:
        fixed = streamed if size <= STREAMED else turn
        return cdiv(extent, size) * (size + fixed), -size

    return min(sizes, key=cost)
