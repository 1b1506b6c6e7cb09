"""Choose how one user tile of C is cut into register tiles.

The register model.  A micro-kernel keeps ``mr x nr`` accumulators in registers; with
``v = nr / lanes`` vectors per row it needs

    mr * v   accumulators
  + v        vectors of B, loaded once per step of k and used by all rows
  + 1        one broadcast element of A
  + v        sums of B's columns, where A is moved (`arithmetic.py`)

registers, at most 32 (AVX-512) or 16 (AVX2).

The time of one step of k (a pair of k for the bf16 dot product) is the largest of

    mr * v / 2           two FMA pipes (`madd` takes them twice)
    0.58 * (mr + v)      the loads: v of B, mr broadcasts of A
    5.5, or 6 for dots   no accumulator is ready before its last FMA is through
    1.5 * v              wide panels do not fit L1, and L2 gives ~42 bytes a cycle

Where a row is one vector, ten rows do not hide the latency of a dot product: there are
two sets of accumulators, which take turns, if registers allow (4096 x 4096 x 16 in
bf16: 11 % faster on one thread, 8 to 17 % on two; f32 gains nothing).

cycles (the constants are fitted to 19 tiles measured on Zen 5, in f32 and bf16).
A run of k adds a prologue and the update of C.  Of all tiles that fit we take the
one whose time over the *padded* block is least: padding is work too.

The cache model.  Runs are long (1024 steps), so that prologues and updates are rare:
what a panel of B has of a run streams through L2 anyway.  ``mc`` rows of A meet all
panels before the next rows do: 64 rows of 4 KB stay in L2 even where rows are a power
of two apart and share its sets.  What a program packs itself goes through L2 too, in
chunks of 256 steps.  Measured on prepacked products of 1024 and 2048 in f32: runs of
256 steps and all rows at once are 3 to 4 % slower.
"""

from dataclasses import dataclass
from math import ceil

from xetl_cpu.microkernels.arithmetic import (
    DTYPES,
    Arithmetic,
    Signs,
    choose_arithmetic,
)
from xetl_cpu.targets import INLINE, Target

__all__ = ["CALLED_K", "DTYPES", "Blocking", "choose_blocking"]

_LATENCY = 5.5
_DOT_LATENCY = 6
_LOAD_CYCLES = 0.58
_L2_CYCLES = 1.5
_PROLOGUE_CYCLES = 24
_CHUNK = 256
"""Steps of k that a program packs at once."""

_RUN = 1024
"""Steps between updates of C, where nothing is packed by the program."""

_ROWS_AT_ONCE = 64
"""Rows of A that meet all panels before the next ones do, or a little less."""

_AMX_TILE = 16
"""Rows and 32-bit columns of a tile; a strip has one or two of them each way."""

_AMX_STEP_BYTES = 64
"""Of a row of A that one product takes."""

CALLED_K = 32
"""Steps of k in one product of a batch that a library sums."""

_MAX_ROWS = 10
"""Rows a power of two apart share the sets of L1, which have 12 ways: at 4096 x 4096
by 16, 13 rows run at 0.83 of the speed of 10."""

_ROWS_THAT_ASK = 8
"""With ten rows an address is kept in memory."""

_NARROW_UNROLL = 8
"""Steps at once where a row of the register tile is one vector: 6 % faster there. Where
it is more, that gains less than 1 % and doubles the time to compile."""

_MAX_VECTORS = 8
"""Wider panels fall out of L2 with long k, and gain nothing."""


@dataclass(frozen=True)
class Blocking:
    """How to compute one block; sizes in elements.

    Attributes:
        dtype: element type of A and B as the user has them.
        arithmetic: how it multiplies.
        mr: rows of the register tile.
        nr: columns of the register tile, and the width of a panel.
        chunk: how much of k a program packs at once.  A multiple of ``k_pack``.
        kc: how much of k is done before C is updated, if k is more than
            ``all_at_once``.  So is this.
        mc: rows of A that meet all panels before others.  A multiple of ``mr``.
        unroll: steps (of ``k_pack``) in the body of the inner loop.
        sets: of accumulators, which take turns; ``unroll`` is a multiple.
        lanes: of the accumulator's type in a vector register.
        block_m: rows of the block that was asked for.
        block_n: its columns.
        is_called: whether a library computes it, `CALLED_K` of k at a time.
    """

    dtype: str
    arithmetic: Arithmetic
    mr: int
    nr: int
    chunk: int
    kc: int
    mc: int
    unroll: int
    sets: int
    lanes: int
    block_m: int
    block_n: int
    is_called: bool = False

    @property
    def compute(self) -> str:
        """Element type of the packed panels."""
        return self.arithmetic.compute

    @property
    def k_pack(self) -> int:
        """How many consecutive k lie together in a panel."""
        return self.arithmetic.k_pack

    @property
    def all_at_once(self) -> int:
        """The longest k that is done in one run: then C is not kept in between.

        Rows of A may then be apart by as much as they are long, and need not share
        sets of L2; with longer k they would, so runs are shorter there.
        """
        return 2 * self.kc

    @property
    def k_step(self) -> int:
        """What k must be a multiple of, by padding with zeros; 1 for vectors."""
        if self.is_called:
            return CALLED_K
        if self.arithmetic.instruction != "amx":
            return 1
        return _AMX_STEP_BYTES // self.compute_bytes

    @property
    def row_step(self) -> int:
        """What rows must be a multiple of, by padding with zeros; 1 for vectors."""
        if self.is_called:
            return self.rows_padded
        return self.mr if self.arithmetic.instruction == "amx" else 1

    @property
    def panels(self) -> int:
        """Panels of B, the last one padded."""
        return ceil(self.block_n / self.nr)

    @property
    def ldc(self) -> int:
        """Row stride of the scratch C.

        Loops over it take as many elements at once as a register has f32, so a row of
        f64 has room for two registers behind its start.
        """
        step = self.lanes * self.arithmetic.accumulator_bytes // 4
        return ceil(self.panels * self.nr / step) * step

    @property
    def rows_padded(self) -> int:
        """Rows the scratch C must have; those past ``block_m`` hold rubbish."""
        return ceil(self.block_m / self.mr) * self.mr

    @property
    def vectors(self) -> int:
        """Vector registers to a row of the register tile."""
        return self.nr // self.lanes

    @property
    def asks_ahead(self) -> bool:
        """Whether strips ask for the memory of others.

        One vector leaves no time for it, many rows no registers for addresses.
        """
        return self.vectors > 1 and self.mr <= _ROWS_THAT_ASK

    @property
    def compute_bytes(self) -> int:
        """Size of an element of A and of a panel."""
        return self.arithmetic.compute_bytes

    def panel_elements(self, k: int) -> int:
        """Elements of one packed panel for ``k`` steps of k: whole 64-byte lines."""
        multiple = max(self.k_pack, self.k_step)
        used = ceil(k / multiple) * multiple * self.nr
        line = 64 // self.compute_bytes
        return ceil(used / line) * line


def choose_blocking(
    target: Target,
    dtype: str,
    block_m: int,
    block_n: int,
    unsigned: Signs = (False, False),
) -> Blocking:
    """The register tile with the least estimated time for a block_m x block_n block.

    ``unsigned``: which of A and B hold unsigned bytes, for ``i8``.

    Raises:
        ValueError: there is no block GEMM for ``dtype``.

    >>> from xetl_cpu.targets import find_target
    >>> blocking = choose_blocking(find_target("avx512"), "f32", 256, 256)
    >>> blocking.mr, blocking.nr, blocking.panels
    (8, 32, 8)
    """
    arithmetic = choose_arithmetic(target, dtype, unsigned)
    lanes = target.lanes(arithmetic.accumulator)

    def cost(tile: tuple[int, int]) -> tuple[float, int]:
        mr, vectors = tile
        strips = ceil(block_m / mr) * ceil(block_n / (vectors * lanes))
        # Of equals the tallest: its narrow panel stays in L1.
        sets = _sets(target.vector_registers, mr, vectors, arithmetic)
        return strips * _strip_cycles(mr, vectors, sets, arithmetic), -mr

    if arithmetic.instruction == "amx":
        mr, nr = (_AMX_TILE * min(2, ceil(x / _AMX_TILE)) for x in (block_m, block_n))
        vectors = nr // lanes
    else:
        fitting = _tiles_that_fit(target.vector_registers, block_m, arithmetic)
        mr, vectors = min(fitting, key=cost)
    return Blocking(
        dtype=dtype,
        arithmetic=arithmetic,
        mr=mr,
        nr=vectors * lanes,
        chunk=_CHUNK * arithmetic.k_pack,
        kc=_RUN * arithmetic.k_pack,
        mc=max(1, _ROWS_AT_ONCE // mr) * mr,
        unroll=_NARROW_UNROLL if vectors == 1 else 1,
        sets=_sets(target.vector_registers, mr, vectors, arithmetic),
        lanes=lanes,
        block_m=block_m,
        block_n=block_n,
        is_called=target.calls != INLINE and arithmetic.compute in ("f32", "bf16"),
    )


def _tiles_that_fit(
    registers: int, block_m: int, arithmetic: Arithmetic
) -> list[tuple[int, int]]:
    """All (mr, vectors) within the register model."""
    return [
        (mr, vectors)
        for mr in range(1, min(_MAX_ROWS, block_m) + 1)
        for vectors in range(1, _MAX_VECTORS + 1)
        if _registers(mr, vectors, 1, arithmetic) <= registers
    ]


def _sets(registers: int, mr: int, vectors: int, arithmetic: Arithmetic) -> int:
    """How many sets of accumulators a tile has; see the module docstring."""
    waits = vectors == 1 and arithmetic.instruction in ("dpbf16", "vnni", "madd")
    return 2 if waits and _registers(mr, vectors, 2, arithmetic) <= registers else 1


def _registers(mr: int, vectors: int, sets: int, arithmetic: Arithmetic) -> int:
    """What a tile needs; see the module docstring."""
    return sets * _rows_of_sums(mr, arithmetic) * vectors + vectors + 1


def _rows_of_sums(mr: int, arithmetic: Arithmetic) -> int:
    return mr + 1 if arithmetic.moves_a else mr


def _strip_cycles(mr: int, vectors: int, sets: int, arithmetic: Arithmetic) -> float:
    """Estimated cycles of one strip for one step of k; see the module docstring."""
    rows = _rows_of_sums(mr, arithmetic)
    per_product = 2 if arithmetic.instruction == "madd" else 1
    step = max(
        per_product * rows * vectors / 2,
        _LOAD_CYCLES * (mr + vectors),
        (_LATENCY if arithmetic.instruction == "fma" else _DOT_LATENCY) / sets,
        _L2_CYCLES * vectors,
    )
    return step + (_PROLOGUE_CYCLES + mr * vectors) / _RUN
