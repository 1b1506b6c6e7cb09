"""Choose the register tile and the cache blocking of a user's tile of C.

The register model.  A micro-kernel keeps ``mr x nr`` accumulators in registers; with
``v = nr / lanes`` vectors per row it needs

    mr * v   accumulators
  + v        vectors of B, loaded once per step of k and used by all rows
  + 1        one broadcast element of A

registers, at most 32 (AVX-512) or 16 (AVX2).

The time of one step of k (a pair of k for the bf16 dot product) is the largest of

    fma * mr * v         the arithmetic; `dot` for pairs, twice for `madd`
    load * (mr + v)      the loads: v of B, mr broadcasts of A
    latency              no sum is ready before its last product is done
    (v + 1) * bytes / l2   wide panels do not fit L1: B comes from L2, and a row in
                         place begins amid a line

cycles, with the costs of the machine (`machine.py`), plus the overhead of a step. If a
row is one vector, ten rows do not hide the latency of a dot product: then there are two
sets of accumulators, which alternate, if registers allow (4096 x 4096 x 16 in bf16: 11
% faster on one thread, 8 to 17 % on two; f32 gains nothing).

The end of a loop shares ports with the multiply-adds if the machine's costs say so.
Then up to four steps are in the loop's body, to make it a small part (1024 cubed in f32
on Granite Rapids: 84 % of the peak, 77 by one step). So are prefetches: each step
prefetches a few bytes, and then the same line again.

A run of k adds a prologue and the update of C; a program that packs takes runs long
enough to make these a small part, too.  Of all tiles that fit we take the one with the
least time over the *padded* block: padding is work too.

The cache model (Goto and van de Geijn, 2008).  A quarter of L2 holds A's block, ``mc``
rows of ``kc`` steps, which all panels of B read before the next rows: at least six
strips, so that a panel is read from L3 once for six uses.  It has one strip more if
otherwise one were left at the end, for which all of B is read (512 to 2048 cubed in f32
on Granite Rapids, 132 rows of 256 and not 126: 4 % faster).  An eighth of L2 holds the
run of a panel of B, which streams from L2 through L1.  The rest is for the next data,
and for runs of twice the length where that saves the update of C: rows of A may then be
apart by as much as they are long.  What a program packs itself goes through L2 too, A's
and B's part a quarter each.  Measured on prepacked products of 1024 and 2048 in f32 on
Zen 5: runs of 256 steps and all rows at once are 3 to 4 % slower.

With AMX, a panel that streams through L1 evicts B: ``kc`` keeps a sub-panel of B in two
thirds of L1 (measured on silicon: 512 of bf16, 96 % of the peak against 67 with more),
and the block GEMM does its run in steps of that, all as long and up to 5/4 of it.
"""

from math import ceil, gcd, lcm

from xetl.records import record
from xetl_cpu.machine import LINE, Machine
from xetl_cpu.microkernels.arithmetic import (
    DTYPES,
    Arithmetic,
    Signs,
    choose_arithmetic,
)
from xetl_cpu.targets import INLINE, Target

__all__ = ["CALLED_K", "DTYPES", "Blocking", "choose_blocking"]

_STRIPS = 6
"""Strips of A's block, at least: a sub-panel of B is used as often."""

_LONGEST = 1024
"""Steps of a run, at most: longer ones save nothing more."""

_SHORTEST, _RUN_PART = 128, 0.04
"""Steps that a program packs at once, at least; more if the overhead of a run is a
larger part of it than this (128 x 1024 x 4096 in f32 on Zen 3 by 128 and 256 steps: 67
and 71 to 76 GFLOP/s)."""

FEW_PANELS = 4
"""Panels of B, at most, that read whole rows of A on tiles."""

AMX_TILE = 16
"""Rows and 32-bit columns of a tile; a strip has one or two of them each way."""

_AMX_STEP_BYTES = 64
"""Bytes of a row of A that one product takes."""

CALLED_K = 32
"""Steps of k in one product of a batch that a library adds up."""

_ROWS_THAT_ASK = 8
"""With ten rows an address is kept in memory: x86 has 16 registers for them."""

_NARROW_UNROLL = 8
"""Steps at once if a row of the register tile is one vector: 6 % faster there. With
more vectors, that gains less than 1 % and doubles the time to compile; but see
below."""

_MOST_UNROLL, _LOOP_PART = 4, 0.05
"""Steps at once, at most, and the largest part of a step that the end of a loop may
take."""

_MAX_VECTORS = 8
"""Wider panels gain nothing."""

SKINNY_ROWS = 4
_SKINNY_DTYPES = ("f32", "f64", "bf16", "f16")

_FEWEST_WAYS = 8
"""The fewest ways of any L1."""

LOW_ROWS = 32
"""More rows of C than these do not stay in L1, 256 columns wide."""

LOW_BYTES = 512
"""Bytes of a row of B in a block, at least: memory reads shorter pieces slowly.

Of 4096 x 4096, 16 rows by 64 columns of f32 run at 0.79 of the speed of packing, 128
columns at 1.09; in bf16 128 columns at 0.89, 256 at 1.4.
"""


@record(frozen=True)
class Blocking:
    """The plan to compute one block; sizes are in elements.

    Attributes:
        dtype: element type of A and B as the user has them.
        arithmetic: how it multiplies.
        mr: rows of the register tile.
        nr: columns of the register tile, and the width of a panel.
        chunk: the part of k that a program packs at once, a multiple of ``k_pack``.
        run: the part of k of one block GEMM, if k is more than ``all_at_once`` and the
            program packs nothing; a multiple, too.
        kc: the part of k before C is updated; a multiple, too.
        mc: rows of A that all panels read before other rows, a multiple of ``mr``.
        unroll: steps (of ``k_pack``) in the body of the inner loop.
        sets: sets of accumulators, which alternate; ``unroll`` is a multiple.
        lanes: elements of the accumulator's type in a vector register.
        block_m: rows of the requested block.
        block_n: its columns.
        is_called: whether a library computes it, `CALLED_K` of k at a time.
    """

    dtype: str
    arithmetic: Arithmetic
    mr: int
    nr: int
    chunk: int
    run: int
    kc: int
    mc: int
    unroll: int
    sets: int
    lanes: int
    block_m: int
    block_n: int
    is_called: bool = False

    def problem(self) -> str | None:
        """Return what is wrong with numbers that were written by hand, or None."""
        wholes = {"nr": self.lanes, "mc": self.mr, "unroll": self.sets}
        wholes |= dict.fromkeys(("chunk", "run", "kc"), max(self.k_pack, self.k_step))
        for name, step in wholes.items():
            if step < 1 or getattr(self, name) < 1 or getattr(self, name) % step:
                return f"{name} = {getattr(self, name)} is no multiple of {step}"
        return None

    @property
    def is_skinny(self) -> bool:
        """Whether streaming B pays; libraries need panels."""
        if self.is_called:
            return False
        is_known = self.dtype in _SKINNY_DTYPES or self.arithmetic.instruction == "vnni"
        return self.block_m <= SKINNY_ROWS and is_known

    @property
    def is_low(self) -> bool:
        """Whether a program streams its own B (`small_m_gemm.py`, `dots.py`)."""
        if self.is_called or self.is_skinny or self.block_m > LOW_ROWS:
            return False
        if self.block_n * self.compute_bytes < LOW_BYTES:
            return False
        is_plain = self.dtype == self.compute
        return is_plain and self.arithmetic.instruction in ("fma", "dpbf16")

    @property
    def compute(self) -> str:
        """Element type of the packed panels."""
        return self.arithmetic.compute

    @property
    def k_pack(self) -> int:
        """The number of consecutive k that are adjacent in a panel."""
        return self.arithmetic.k_pack

    @property
    def all_at_once(self) -> int:
        """The longest k that is done in one run: then C is not stored in between.

        Rows of A may then be apart by as much as they are long, without sharing sets of
        L2. With longer k they would share sets, so runs are shorter there.
        """
        return 2 * self.run

    @property
    def long_run(self) -> int:
        """`all_at_once` times columns on tiles, if these are few: B fits half of L2."""
        return 16 * self.run * self.nr

    @property
    def packed_columns(self) -> int:
        """Columns of B that a program packs at once on tiles: as much as a block of A.

        They stay in a quarter of L2 until all rows have read them.
        """
        columns = self.mc * self.run // self.chunk
        return max(columns // self.nr, 1) * self.nr

    def copied_row(self, k: int) -> int:
        """Return the distance of rows in a copy of A, with ``k`` elements in each row.

        It is an odd number of whole cache lines: rows a power of two apart would share
        the sets of caches, and unaligned rows of tiles would cross lines.
        """
        lines = ceil(k * self.compute_bytes / LINE) | 1
        return lines * LINE // self.compute_bytes

    @property
    def k_step(self) -> int:
        """The number that k is padded to a multiple of, with zeros; 1 for vectors."""
        if self.is_called:
            return CALLED_K
        if not self.uses_tiles:
            return 1
        return _AMX_STEP_BYTES // self.compute_bytes

    @property
    def least_rows(self) -> int:
        """The rows that A is padded to, at least, with zeros; 1 for vectors."""
        if self.is_called:
            return self.rows_padded
        return self.mr if self.uses_tiles else 1

    @property
    def uses_tiles(self) -> bool:
        """Whether AMX computes it."""
        return self.arithmetic.instruction == "amx"

    @property
    def copies_a(self) -> bool:
        """Whether A must be copied, because it is multiplied as a wider type."""
        return self.dtype != self.compute and not self.is_called

    @property
    def panels(self) -> int:
        """The number of panels of B; the last one is padded."""
        return ceil(self.block_n / self.nr)

    @property
    def ldc(self) -> int:
        """The row stride of the scratch C.

        Loops over it take as many elements at once as a register has f32, so a row of
        f64 has room for two registers from its start. If B is streamed, or if tiles
        store 32 rows of sums, C's rows go through L1 side by side: more than eight rows
        a power of two apart share its sets (16 x 4096 x 4096 by 1024 columns in f32 on
        Zen 5: 115 GFLOP/s, now 175; 1024 cubed in bf16 with a bias on AMX: 6 %).
        """
        step = self.lanes * self.arithmetic.accumulator_bytes // 4
        steps = ceil(self.panels * self.nr / step)
        is_tall = self.block_m > _FEWEST_WAYS
        return (steps | (is_tall and (self.is_low or self.uses_tiles))) * step

    @property
    def rows_padded(self) -> int:
        """The rows that the scratch C must have; rows past ``block_m`` are garbage."""
        return ceil(self.block_m / self.mr) * self.mr

    @property
    def vectors(self) -> int:
        """The vector registers of a row of the register tile."""
        return self.nr // self.lanes

    @property
    def asks_ahead(self) -> bool:
        """Whether strips prefetch memory for others.

        One vector leaves no time for that, many rows leave no registers for addresses.
        """
        return self.vectors > 1 and self.mr <= _ROWS_THAT_ASK

    @property
    def compute_bytes(self) -> int:
        """Size of an element of A and of a panel."""
        return self.arithmetic.compute_bytes

    @property
    def whole_lines(self) -> int:
        """The number of k that panels are multiples of, to start on cache lines."""
        line = LINE // gcd(LINE, self.nr * self.compute_bytes)
        return lcm(line, self.k_pack, self.k_step)

    def panel_elements(self, k: int) -> int:
        """Return the elements of one packed panel for ``k`` steps of k."""
        return ceil(k / self.whole_lines) * self.whole_lines * self.nr


def choose_blocking(
    target: Target,
    dtype: str,
    block_m: int,
    block_n: int,
    unsigned: Signs = (False, False),
    least_n: int | None = None,
) -> Blocking:
    """Return the register tile with the least estimated time for the block.

    ``unsigned``: which of A and B hold unsigned bytes, for ``i8``. ``least_n``: the
    fewest columns that the block may have, ``block_n`` if absent.

    Raises:
        ValueError: there is no block GEMM for ``dtype``.

    >>> from xetl_cpu.targets import find_target
    >>> blocking = choose_blocking(find_target("avx512"), "f32", 256, 256)
    >>> blocking.mr, blocking.nr, blocking.panels
    (8, 32, 8)
    """
    arithmetic = choose_arithmetic(target, dtype, unsigned)
    lanes, least_n = target.lanes(arithmetic.accumulator), least_n or block_n

    def cost(tile: tuple[int, int]) -> tuple[float, bool, int]:
        mr, vectors = tile
        strips = ceil(block_m / mr) * ceil(least_n / (vectors * lanes))
        # Of equal costs take one that prefetches, and then the tallest tile: its narrow
        # panel stays in L1.
        cycles = strips * _strip_cycles(target, tile, arithmetic, block_m)
        return cycles, mr > _ROWS_THAT_ASK, -mr

    if arithmetic.instruction == "amx":
        mr, nr = (AMX_TILE * min(2, ceil(x / AMX_TILE)) for x in (block_m, least_n))
        vectors = nr // lanes
    else:
        fitting = _tiles_that_fit(target, block_m, arithmetic)
        mr, vectors = min(fitting, key=cost)
        nr = vectors * lanes
    run, kc, mc = _runs(target, (mr, nr), arithmetic, (block_m, block_n))
    return Blocking(
        dtype=dtype,
        arithmetic=arithmetic,
        mr=mr,
        nr=nr,
        chunk=_chunk(target, (mr, vectors), arithmetic, (block_m, block_n), kc),
        run=run,
        kc=kc,
        mc=mc,
        unroll=_unroll(target, (mr, vectors), arithmetic),
        sets=_sets(target.vector_registers, mr, vectors, arithmetic),
        lanes=lanes,
        block_m=block_m,
        block_n=block_n,
        is_called=target.calls != INLINE and arithmetic.compute in ("f32", "bf16"),
    )


def _tiles_that_fit(
    target: Target, block_m: int, arithmetic: Arithmetic
) -> list[tuple[int, int]]:
    """Return all (mr, vectors) within the register model."""
    most = min(_most_rows(target.machine), block_m)
    return [
        (mr, vectors)
        for mr in range(1, most + 1)
        for vectors in range(1, _MAX_VECTORS + 1)
        if _registers(mr, vectors, 1) <= target.vector_registers
    ]


def _most_rows(machine: Machine) -> int:
    """Return the most rows: rows a power of two apart share the sets of L1.

    At 4096 x 4096 by 16, 13 rows run at 0.83 of the speed of 10 with 12 ways; 12 at
    0.78 of the speed of 8 or 10 with 8 ways.
    """
    return max(8, machine.l1.ways - 2)


def _runs(
    target: Target,
    tile: tuple[int, int],
    arithmetic: Arithmetic,
    block: tuple[int, int],
) -> tuple[int, int, int]:
    """Return ``run``, ``kc``, ``mc`` of a register tile; see the module docstring."""
    (mr, nr), k_pack = tile, arithmetic.k_pack
    l1, l2 = target.machine.l1.size, target.machine.l2.size
    word = k_pack * arithmetic.compute_bytes
    if arithmetic.instruction == "amx":
        # Whole lines of A: 64 bytes are a step, k_pack of each a word.
        kc = _power_of_two(l1 * 2 // 3 // (nr * word)) * k_pack
        rows = min(ceil(block[0] / mr), _STRIPS) * mr
        run = max(kc, _power_of_two(l2 // 4 // (rows * word)) * k_pack)
        return run, kc, max(rows, _rows_of(l2 // 4, run // k_pack * word, mr))
    steps = l2 // 4 // (_STRIPS * mr * word)
    if block[0] > mr:  # Else nobody meets the panel again.
        steps = min(steps, l2 // 8 // (nr * word))
    steps = _power_of_two(min(steps, _LONGEST))
    mc = _rows_of(l2 // 4, steps * word, mr)
    if block[0] > mc and block[1] > nr and 0 < block[0] % mc <= mr:
        mc += mr
    return steps * k_pack, steps * k_pack, mc


def _rows_of(size: int, row: int, mr: int) -> int:
    """Return how many rows fit, in whole strips."""
    return max(1, size // (row * mr)) * mr


def _chunk(
    target: Target,
    tile: tuple[int, int],
    arithmetic: Arithmetic,
    block: tuple[int, int],
    kc: int,
) -> int:
    """Return how much of k a program packs at once: A's and B's part fit L2 / 4.

    They fit half of L2 if otherwise the overhead of a run is too large. With AMX,
    return ``kc`` at least: half of it updates C twice as often, unless rows are few.
    """
    step = max(block) * arithmetic.k_pack * arithmetic.compute_bytes
    steps, most = (_power_of_two(target.machine.l2.size // n // step) for n in (4, 2))
    if arithmetic.instruction != "amx":
        least = _of_a_run(target, tile) / (_RUN_PART * _work(target, tile, arithmetic))
        steps = max(steps, _SHORTEST, most if steps < least else 0)
        return min(steps, _LONGEST) * arithmetic.k_pack
    least = kc if block[0] > AMX_TILE else _SHORTEST
    return max(min(steps, _LONGEST) * arithmetic.k_pack, least)


def _power_of_two(most: int) -> int:
    """Return the largest power of two up to ``most``."""
    return 1 << max(0, most.bit_length() - 1)


def _sets(registers: int, mr: int, vectors: int, arithmetic: Arithmetic) -> int:
    """Return how many sets of accumulators a tile has; see the module docstring."""
    waits = vectors == 1 and arithmetic.instruction in ("dpbf16", "vnni", "madd")
    return 2 if waits and _registers(mr, vectors, 2) <= registers else 1


def _unroll(target: Target, tile: tuple[int, int], arithmetic: Arithmetic) -> int:
    """Return the steps in the body of a loop; see the module docstring."""
    if tile[1] == 1:
        return _NARROW_UNROLL
    if arithmetic.instruction == "amx":
        return 1
    least = target.machine.costs.loop / (_LOOP_PART * _work(target, tile, arithmetic))
    return next(x for x in (1, 2, _MOST_UNROLL) if x >= min(least, _MOST_UNROLL))


def _work(target: Target, tile: tuple[int, int], arithmetic: Arithmetic) -> float:
    """Return the cycles of the arithmetic of a step."""
    (mr, vectors), costs = tile, target.machine.costs
    product = costs.dot if arithmetic.instruction == "dpbf16" else costs.fma
    if arithmetic.instruction == "madd":
        product *= 2
    return product * mr * vectors


def _of_a_run(target: Target, tile: tuple[int, int]) -> float:
    """Return the overhead of a run in cycles: a prologue, and the update of C."""
    return target.machine.costs.prologue + tile[0] * tile[1]


def _registers(mr: int, vectors: int, sets: int) -> int:
    """Return the registers that a tile needs; see the module docstring."""
    return sets * mr * vectors + vectors + 1


def _strip_cycles(
    target: Target, tile: tuple[int, int], arithmetic: Arithmetic, block_m: int
) -> float:
    """Estimated cycles of one strip for one step of k; see the module docstring."""
    (mr, vectors), costs = tile, target.machine.costs
    is_fma = arithmetic.instruction == "fma"
    sets = _sets(target.vector_registers, mr, vectors, arithmetic)
    step = max(
        _work(target, tile, arithmetic),
        costs.load * (mr + vectors),
        (costs.latency if is_fma else costs.dot_latency) / sets,
        (vectors + 1) * target.vector_bytes / costs.l2_bytes,
    )
    nr = vectors * target.lanes(arithmetic.accumulator)
    run, _, _ = _runs(target, (mr, nr), arithmetic, (block_m, nr))
    prologue = _of_a_run(target, tile) / (run // arithmetic.k_pack)
    loop = costs.loop / _unroll(target, tile, arithmetic)
    return step + costs.step + loop + prologue
