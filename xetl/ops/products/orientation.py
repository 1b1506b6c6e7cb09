"""Which factor of a product on a CPU comes first: ``a @ b``, or ``b.T @ a.T``.

The first factor is read in place, the second one is packed, or streamed if the first
one has few rows.
"""

from __future__ import annotations

from xetl.language.ops import cdiv
from xetl.ops.calling.operands import Numbers, dtype_of
from xetl.ops.products.host_tiles import LOW, STREAMED
from xetl.runtime.executables import choose_target
from xetl.runtime.placement import choose_backend

_SHORT = 32
"""With fewer steps of k, writing the result in the order of memory matters most.

[measured] Zen 4, f32 and bf16: 10,000 rows of 16 gain from it, of 32 do not.
"""

_MOST, _LEAST = 256, 64
"""The most rows of a product with a large b that is read in place as first factor, and
the least steps of k.

[measured] Emerald Rapids, GFLOP/s, b = (768, 3072).T, as it is and transposed: bf16 16,
64, 256, 512 rows 185, 502, 869, 1023 and 408, 795, 1004, 996; f32 32, 128, 256, 1024
rows 97, 137, 139, 162 and 153, 160, 147, 163.
"""

_FEW = 4
"""The most vectors of rows that need not be whole, but three quarters full.

[measured] Emerald Rapids, f32, 768 x 768, as it is and transposed, us: 12, 20, 24, 40,
72, 100 rows 161, 249, 270, 474, 722, 785 and 159, 264, 239, 386, 847, 883.
"""


_LINE = 64
"""Bytes of a cache line: tiles load rows that lie across two at half the speed.

[measured] Emerald Rapids, bf16, as it is and transposed, GFLOP/s: 128 x 1001 x 768 725,
679; 100 x 100 x 1000 453, 304; 64 x 777 x 1000 523, 624; 16 x 333 x 2000 203, 388.
"""


def is_transposed(left: Numbers, right: Numbers, b_is_packed: bool) -> bool:
    """Return whether the transposed product is computed.

    * With more than 4 rows and at most 4 columns (32 if a's columns are contiguous and
      rows are four times as many), b is streamed in the order of memory. The same holds
      if a's columns are contiguous and b is one column (``X.T @ y``, f64, 100,000
      steps: 150 us, not 1000). If a's rows are contiguous, several columns stay as they
      are with a short k, and if they are no rows in memory, for which all of a would be
      packed (bf16, 1500 x 4000 by 2 on AMX: 1,150 us, not 550).
    * If the columns of b are contiguous, as those of a layer's weight, and a is the
      smaller one, with 5 to 256 rows: a is packed instead of b (`_packs_a`). If those
      of a are contiguous, too, neither is in order otherwise, and b may be smaller.

    Args:
        left: a, as matrices.
        right: b, as matrices.
        b_is_packed: whether b may be prepacked.
    """
    m, n = left.shape[-2], right.shape[-1]
    along_k, along_n = (x.strides[-1] <= x.strides[-2] for x in (left, right))
    stays = along_k and (along_n or left.shape[-1] < _SHORT)
    if n == 1 and _is_seen_from_side(left):
        return True
    if n <= STREAMED:
        return m > STREAMED and (n == 1 or not stays)
    if not along_k and n <= LOW and 4 * n <= m:
        return True  # 777 x 150 x 16: 60 us, not 84; but 100 x 100 x 30: 15, not 12
    lies_along_k = right.strides[-2] == right.itemsize < right.strides[-1]
    is_smaller = STREAMED < min(m, n) <= _MOST and (m <= n or not along_k)
    gains = is_smaller and lies_along_k and not b_is_packed
    return gains and _packs_a(left, right)


def _is_seen_from_side(left: Numbers) -> bool:
    """Return whether the columns of a are contiguous, not its rows."""
    rows, steps = left.shape[-2:]
    beside, below = left.strides[-1], left.strides[-2]
    is_turned = below == left.itemsize and beside >= rows * left.itemsize
    return rows > 1 and steps > 1 and is_turned


def _packs_a(left: Numbers, right: Numbers) -> bool:
    """Return whether it takes less time to pack a, and to store columns of the result.

    Then rows of a are the columns of vectors. Pairs and quadruples of k are multiplied
    so fast that packing b takes longer than vectors that are not full, but not if rows
    of b lie across cache lines: tiles load them at half the speed. Elements that are
    multiplied in another dtype are not read in place.
    """
    m, k = left.shape[-2:]
    least = min(m, right.shape[-1])
    if k < max(least, _LEAST):
        return False
    backend = choose_backend(values=(left, right))
    if backend.cores() is not None:
        return False
    target, dtype = choose_target(backend), dtype_of(left, "a")
    if backend.products(target, dtype.name)[0] != dtype.name:
        return False
    if dtype.bits < 32:
        return right.strides[-1] % _LINE == 0 or 4 * least <= _MOST <= k
    lanes = backend.vectors(target)[1] * 32 // dtype.bits
    vectors = cdiv(m, lanes)
    is_full = m % lanes == 0 or m > _MOST
    return is_full or (vectors <= _FEW and 4 * m >= 3 * lanes * vectors)
