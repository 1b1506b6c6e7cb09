"""The facts of a processor that blocking needs: caches, cores, pages, costs.

Sizes come from the system (``/sys``), costs from a table by family. If the system gives
no sizes (no ``/sys``, a virtual machine without the cpuid leaf of caches), the family's
row is used. Fixed targets always use the row of their family, so that their code does
not depend on the machine that compiles it.

Sources of the costs: Zen 5 and Sapphire Rapids measured, the others from uops.info and
Agner Fog's tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path

from xetl.records import record

LINE = 64
"""Bytes of a cache line."""

PAGE = 4096
"""Bytes of a page of memory, unless huge pages were requested."""

KB, MB = 1 << 10, 1 << 20


@record(frozen=True)
class Cache:
    """One cache level: its bytes, its ways, and the number of cores that share it."""

    size: int
    ways: int
    cores: int = 1


@record(frozen=True)
class Costs:
    """Cycles of one core; vectors are those of the family's widest registers.

    Attributes:
        fma: of a fused multiply-add of one vector, if many are independent.
        dot: of `vdpbf16ps`.
        load: of a vector or a broadcast from L1.
        latency: of a multiply-add that waits for the one before.
        dot_latency: of a dot product that waits for the one before.
        l2_bytes: bytes that L2 delivers per cycle.
        l3_latency: the latency of a single load from L3.
        step: overhead of a step of a register tile, beside its arithmetic.
        loop: cycles that the end of a loop, with one prefetch, takes from the
            arithmetic.
        prologue: overhead of a run of steps.
    """

    fma: float
    dot: float
    load: float
    latency: float
    dot_latency: float
    l2_bytes: float
    l3_latency: float = 50
    step: float = 0
    loop: float = 0
    prologue: float = 24


@record(frozen=True)
class Machine:
    """One processor.

    family: its row of `FAMILIES`.
    l1: data cache of a core.
    l2: cache of a core.
    l3: cache of several cores.
    cores: number of cores that this process may use.
    nodes: number of memory nodes (NUMA).
    huge_page: bytes of a transparent huge page; 0: the system has none.
    asks_from: rows of A from which on a product that streams B prefetches; with fewer
    rows there is little to compute, and hardware prefetches are enough.
    kept: bytes of a result up to which it should stay in the caches, even though it may
    not be read soon; None: the size of L3.
    kept_apart: the same of a result that is written line by line, each in another page,
    as by a transpose; None: as ``kept``.
    streams: rows that are best read at once from memory.
    """

    family: str
    l1: Cache
    l2: Cache
    l3: Cache
    costs: Costs
    cores: int = 1
    nodes: int = 1
    huge_page: int = 2 * MB
    asks_from: int = 1
    kept: int | None = None
    kept_apart: int | None = None
    streams: int = 1

    def most_near(self, rows: int) -> int:
        """Bytes of B up to which ``rows`` of A are multiplied without prefetches of B.

        They gain nothing in an L3 whose latency is hidden by the instructions in
        flight. Sapphire Rapids, f32, busy, a B of 4 MB, 8, 16 and 32 rows of A: 394,
        517 and 691 us without prefetches, 306, 399 and 633 with them; 1 and 2 rows 172
        and 178.
        """
        is_near = self.costs.l3_latency < _FAR or rows <= _FEW
        return self.l3.size // 2 if is_near else self.l2.size

    def most_in_place(self, is_low: bool) -> int:
        """Bytes of B up to which strips read it in place; few rows may stream it.

        Emerald Rapids, f32, GFLOP/s streamed and in place: 16 x 1000 x 1000 99, 117, 32
        x 1000 x 1000 113, 132; 24 x 2000 x 1500 100, 82. Packed and in place: 64 x 1000
        x 2000 99, 131; 64 x 1500 x 2000 99, 102; 64 x 2000 x 2000 95, 82.
        """
        if not is_low:
            return max(self.l2.size, 2 * self.l3_of_core)
        is_far = self.costs.l3_latency >= _FAR
        return max(self.l2.size, self.l3_of_core if is_far else 0)

    @property
    def most_kept(self) -> int:
        """Bytes of a result from which on it is stored past the caches."""
        return min(self.l3.size, self.kept or self.l3.size)

    @property
    def most_kept_apart(self) -> int:
        """The same if lines of a result are written in turn, each in another page."""
        return min(self.most_kept, self.kept_apart or self.most_kept)

    @property
    def l3_of_core(self) -> int:
        """Bytes of L3 for each core if all cores that share it work."""
        return self.l3.size // self.l3.cores

    def facts(self) -> str:
        """Return the facts that code compiled for this machine depends on."""
        return repr(astuple(replace(self, cores=1, nodes=1, huge_page=0)))


_FAR = 200
"""Cycles: instructions in flight (about 500) hide no longer latency."""

_FEW = 4
"""Rows of A that leave so little to compute that hardware prefetches are enough."""

_TWO_FMAS = Costs(
    fma=0.5, dot=2, load=0.5, latency=4, dot_latency=5, l2_bytes=32, step=0.8
)
"""Two FMAs per cycle, on vectors of 32 bytes; other families differ in some numbers."""

FAMILIES = {
    each.family: each
    for each in (
        Machine(
            "zen5",
            Cache(48 * KB, 12),
            Cache(1 * MB, 16),
            Cache(32 * MB, 16, 8),
            # Fitted to 19 tiles, in f32 and bf16.
            Costs(fma=0.5, dot=0.5, load=0.58, latency=5.5, dot_latency=6, l2_bytes=42),
        ),
        Machine(
            "zen4",
            Cache(32 * KB, 8),
            Cache(1 * MB, 8),
            Cache(32 * MB, 16, 8),
            # Vectors of 64 bytes are computed in halves.
            Costs(
                fma=1, dot=1, load=0.75, latency=5, dot_latency=6, l2_bytes=32, step=0.2
            ),
        ),
        Machine(
            "sapphire_rapids",  # Emerald and Granite Rapids, too
            Cache(48 * KB, 12),
            Cache(2 * MB, 16),
            Cache(105 * MB, 15, 56),
            # The last two fitted to 6 tiles in f32: of the peak 24 sums reach 86 %, 16
            # and 20 81 %; without unrolling 77 %. L3 in a virtual machine, beside a
            # busy core: 135 ns. L2 alone delivers 45 bytes, beside multiply-adds 32:
            # 28 x 475 x 384 and 377 by 4 x 96 159, 125 GFLOP/s, by 7 x 48 165, 152.
            replace(_TWO_FMAS, dot_latency=6, l3_latency=300, step=1.4, loop=2),
            # A core of Granite Rapids, whose L3 has 480 MB, writes 10 GB/s into it and
            # 25 past it. Three copies, each of the last one's result, take 10 % longer
            # past it at 32 MB, 50 % longer at 16, and 22 % less at 64.
            kept=32 * MB,
            # Its prefetcher begins anew with each page, in several pages at a time.
            # Sums of rows of 1024 f32 on Sapphire Rapids, busy, GB/s of 1, 2, 4 and 8
            # rows at once: 64 MB 12.7, 15.6, 19.9, 21.3; 16 MB 13.5, 17.3, 23.7, 19.9;
            # 8 MB all 25; 1 MB 109, 119, 118, 114.
            streams=4,
            # Four transposes on Sapphire Rapids, each of the last one's result, into
            # the caches and past them, ms: 1 MB 0.09, 0.22; 2 MB 0.32, 0.35; 4 MB 0.9,
            # 0.6; 8 MB 5.1, 1.1; 33 MB 20.7, 4.2. A core waits for each such line.
            kept_apart=2 * MB,
        ),
        Machine(
            "skylake",  # and Ice Lake
            Cache(32 * KB, 8),
            Cache(1 * MB, 16),
            Cache(38 * MB + MB // 2, 11, 28),
            replace(_TWO_FMAS, l2_bytes=45, l3_latency=75),
        ),
        Machine(
            "avx2",
            Cache(32 * KB, 8),
            Cache(512 * KB, 8),
            Cache(8 * MB, 16, 4),
            # Not fitted: a step of 6 x 16 is 6 cycles, and 1 for a loop gives four of
            # them. The same loops in C on Zen 3, busy, 512 cubed in f32: 84 and 85
            # GFLOP/s where each step asks, 92 and 90 where eight together do. L3 of
            # Zen 3 in a virtual machine, beside busy cores: 40 ns.
            replace(_TWO_FMAS, loop=1, l3_latency=130),
            # There, with 32 MB of it: copies past it take 6 % longer at 8 MB, 41 % less
            # at 16; three, each of the last one's result, 31 % longer at 4, less at 8.
            kept=8 * MB,
            # 4096 x 4096 in f32 by 1, 2, 4 and 8 rows on Zen 3, busy: 10.5, 17.9, 28.4
            # and 40 GFLOP/s; without asking 12.1, 18.6, 26 and 36.
            asks_from=3,
        ),
    )
}
"""By name; see the module docstring."""

_ZEN = {25: "zen4", 26: "zen5"}
"""AMD's cpu families; 25 is Zen 3 as well, which has no AVX-512."""

_INTEL = {
    **dict.fromkeys((143, 207, 173, 174), "sapphire_rapids"),
    **dict.fromkeys((85, 106, 108, 125, 126), "skylake"),
}
"""Models of Intel's cpu family 6."""


def find_family(cpuinfo: Mapping[str, str], features: frozenset[str]) -> Machine:
    """Return the row of a processor, by /proc/cpuinfo or else by its features."""
    vendor = cpuinfo.get("vendor_id", "")
    family, model = (_number(cpuinfo.get(key)) for key in ("cpu family", "model"))
    name = None
    if "avx512f" not in features:
        name = "avx2"
    elif vendor == "AuthenticAMD":
        name = _ZEN.get(family)
    elif vendor == "GenuineIntel" and family == 6:
        name = _INTEL.get(model)
    return FAMILIES[name or _like(features)]


def _like(features: frozenset[str]) -> str:
    """Return a family for processors that are not listed."""
    if "amxtile" in features:
        return "sapphire_rapids"
    return "zen4" if "avx512bf16" in features else "skylake"


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else -1


def read_machine(row: Machine, root: Path = Path("/sys")) -> Machine:
    """Return the system's facts about this machine; ``row`` has the others."""
    caches = _read_caches(root / "devices/system/cpu/cpu0/cache")
    l1, l2, l3 = (
        _filled(caches.get(level), of_row)
        for level, of_row in ((1, row.l1), (2, row.l2), (3, row.l3))
    )
    nodes = [*root.glob("devices/system/node/node[0-9]*")]
    return replace(
        row,
        l1=l1,
        l2=l2,
        l3=l3,
        cores=len(os.sched_getaffinity(0)),
        nodes=max(1, len(nodes)),
        huge_page=_read_huge_page(root / "kernel/mm/transparent_hugepage"),
    )


def _filled(found: Cache | None, row: Cache) -> Cache:
    """Return a cache of the system; numbers that it lacks are those of the family.

    A virtual machine shows only its own cores, but other cores share the cache as well.
    """
    if found is None:
        return row
    cores = 1 if row.cores == 1 else max(found.cores, row.cores)
    return Cache(found.size, found.ways or row.ways, cores)


def _read_caches(folder: Path) -> dict[int, Cache]:
    """Return the data caches of known size, by level."""
    found: dict[int, Cache] = {}
    for each in (folder / f"index{number}" for number in range(5)):
        size = _bytes_of(_read(each / "size"))
        if _read(each / "type") not in ("Data", "Unified") or size == 0:
            continue
        ways = max(0, _number(_read(each / "ways_of_associativity")))
        cores = _count(_read(each / "shared_cpu_list"))
        found[_number(_read(each / "level"))] = Cache(size, ways, cores)
    return found


def _read_huge_page(folder: Path) -> int:
    """Return the bytes of a huge page by ``madvise``; 0: there are none."""
    enabled = _read(folder / "enabled")
    if "[always]" not in enabled and "[madvise]" not in enabled:
        return 0
    return max(0, _number(_read(folder / "hpage_pmd_size"))) or 2 * MB


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


def _bytes_of(text: str) -> int:
    """Return the bytes of ``32K``, as Linux writes it.

    >>> _bytes_of("1024K")
    1048576
    """
    factor = {"K": KB, "M": MB}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    return max(0, _number(digits)) * factor


def _count(cpus: str) -> int:
    """Return the number of CPUs in a list of Linux.

    >>> _count("0-3,8,10-11")
    7
    """
    total = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            total += (int(last) if last.isdigit() else int(first)) - int(first) + 1
    return max(1, total)
