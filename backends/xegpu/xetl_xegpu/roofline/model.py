"""A model of the least time of a launch on a GPU, and of its limit, from counts.

`xetl_xegpu.roofline.count` counts the work of a kernel; `xetl.devices` has the peaks of
a GPU. Each of six limits gives a time as if it were the only one; the longest counts:

*matrix unit*: rows of A. *vector units*: instructions of 16 lanes. *first cache*: bytes
of messages, in whole rows of 64, and of shared memory. *second cache*: bytes of the
different blocks of a program. *memory*: bytes of the programs that run at once, each
block once (programs start along x, or *walk* in groups of rows); bytes of the whole
launch, if its blocks fit the second cache. *latency*: steps that wait for memory that
was not prefetched.

Cores get the same number of programs, rounded up: idle cores of a small grid count.
Times of matrix unit, vector units and memory are those of good kernels, not of data
sheets (`Sustained`); shares are of the data sheet.  docs/gpu.md compares with published
figures.

Numbers that depend on the arguments of a kernel are a list of *slots*. A slot is
``[operation, slots or numbers]``, in JSON. Its operands precede it, so that the list is
evaluated in order, without recursion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

from xetl.backend import Argument, Artifact, Expected
from xetl.devices import Card, Device, find_device
from xetl.dialects.literals import wrap
from xetl.transforms.canonicalize.folding import BINARY, Arithmetic
from xetl_xegpu.launch.facts import Grid, facts_of, words_of
from xetl_xegpu.simt.block_ops import OPERAND_BITS

Slots = Sequence[list[Any]]


def _halfway(start: int, end: int, step: int) -> int:
    return start + step * (_trips(start, end, step) // 2)


def _trips(start: int, end: int, step: int) -> int:
    return max(0, -((start - end) // max(1, step)))


OPERATIONS: Mapping[str, Arithmetic] = {
    **{op.name.removeprefix("arith."): compute for op, (compute, _) in BINARY.items()},
    "halfway": _halfway,
    "trips": _trips,
}
_SOME = 4096
"""The value of an unknown size."""


def evaluate(
    slots: Slots,
    words: Sequence[int | None],
    program: Sequence[int],
    grid: Sequence[int],
    subgroup: int = 0,
) -> list[int | None]:
    """Return the value of each slot, None if it depends on something unknown.

    Args:
        words: the arguments of the kernel; missing ones are 4096.
        program: the index of the program along each axis.
        grid: programs along each axis.
        subgroup: the index of the subgroup in the program.
    """
    known = {"program": program, "grid": grid, "subgroup": [subgroup]}
    found: list[int | None] = []
    for slot in slots:
        kind: str = slot[0]
        rest: list[int] = slot[1:]
        if kind == "number":
            found.append(rest[0])
        elif kind == "word":
            word = words[rest[0]] if rest[0] < len(words) else None
            found.append(_SOME if word is None else word)
        elif kind in known:
            found.append(known[kind][rest[0]])
        else:
            found.append(_computed(kind, [found[each] for each in rest]))
    return found


def _computed(kind: str, operands: Sequence[int | None]) -> int | None:
    do = OPERATIONS.get(kind)
    numbers = [each for each in operands if each is not None]
    if do is None or len(numbers) < len(operands):
        return None
    found = do(*[*numbers, 64][:3])  # arithmetic of two numbers takes its bits
    return None if found is None else wrap(found, 64)


LEAVES = ("number", "word", "program", "grid", "subgroup")
"""Operations whose operand is a number, not a slot."""


_FULL = 4
"""If no grid is known: the number of programs by those that run at once."""

MATRIX, VECTOR, MEMORY = "the matrix unit", "the vector units", "memory"


def expect(
    work: Mapping[str, Any],
    device: Device,
    card: Card,
    *,
    words: Sequence[int | None] = (),
    grid: Grid | None = None,
    is_large: bool = False,
    slm_bytes: int = 0,
) -> Expected:
    """Estimate the time of a launch, and what limits it.

    Args:
        work: the counts of `xetl_xegpu.roofline.count.work_of`.
        words: the arguments of the kernel; missing ones are sizes of 4096.
        grid: the grid of the launch; None: one that fills the card four times.
        is_large: whether threads have the large register file.
        slm_bytes: bytes of shared memory of a program.
    """
    speed, subgroups = device.speed, work["subgroups"]
    together = max(1, speed.engines * speed.threads[is_large] // subgroups)
    if slm_bytes:
        together = max(1, min(together, device.shared_bytes // slm_bytes))
    if grid is None:
        grid = _full_grid(work["axes"], _FULL * card.cores * together)
        rounds: float = prod(grid) / card.cores
    else:
        rounds = ceil(prod(grid) / card.cores)
    total, programs = _total(work, words, grid), prod(grid)
    engines = min(speed.engines, subgroups * min(together, rounds))
    each = rounds * subgroups / engines  # subgroups that an engine runs, one by one
    moved = _moved(total["far"], grid, card, card.cores * together, work["walk"])
    clock, kept = card.gigahertz * 1e9, device.sustained
    seconds = {
        MATRIX: each * total["rows"] * speed.row_cycles / clock / kept.matrix,
        VECTOR: each * total["vector"] / clock / kept.vector,
        "the first cache": each * total["near"] / speed.cache_bytes / clock,
        "the second cache": programs
        * sum(total["far"])
        / (card.cores * speed.cache2_bytes * clock),
        MEMORY: moved / card.gbytes / 1e9 / kept.memory,
        "the latency of memory": ceil(rounds / together)
        * total["waits"]
        * speed.memory_latency
        / clock,
    }
    limit = max(seconds, key=lambda name: seconds[name])
    longest = max(seconds[limit], 1e-9)
    on_all = programs * subgroups / (card.cores * speed.engines) / clock / longest
    shares = {
        MATRIX: on_all * total["rows"] * speed.row_cycles,
        VECTOR: on_all * total["vector"],
        MEMORY: moved / card.gbytes / 1e9 / longest,
    }
    whole = MATRIX if total["rows"] and limit != MEMORY else limit
    if whole not in shares:
        whole = MEMORY
    return Expected(
        machine=card.name,
        seconds=longest,
        limit=limit,
        tflops=programs * subgroups * total["flops"] / longest / 1e12,
        gbytes=moved / longest / 1e9,
        part=shares[whole],
        whole=whole,
    )


def expected(
    artifact: Artifact, grid: Grid | None, args: Sequence[Argument] | None
) -> list[Expected]:
    """Return the estimates for each card of the target; see `BackendBase`."""
    meta = artifact.meta
    device = find_device(meta["target"])
    work = meta.get("work")
    if not work:
        return []
    facts = facts_of(meta)
    words: list[int | None] = []
    for fact, arg in zip(facts.arguments, args or ()):
        given = [each.value for each in words_of(fact, arg)]
        words += [each if isinstance(each, int) else None for each in given]
    size: Any = {"is_large": facts.is_large, "slm_bytes": facts.slm_bytes}
    size |= {"words": words, "grid": grid}
    return [expect(work, device, card, **size) for card in device.cards]


def peak(target: str, dtype: str) -> tuple[float, float] | None:
    """Return the peak of the first card, in 10^9 operations and 10^9 bytes a second."""
    device = find_device(target)
    if not device.cards:
        return None
    card, speed, unit = device.cards[0], device.speed, device.matrix
    products = float(speed.vector_products)
    if dtype in OPERAND_BITS:
        depth = unit.depth_bits // OPERAND_BITS[dtype]
        products = unit.columns * depth / speed.row_cycles
    cores = card.cores * card.gigahertz
    return 2 * products * speed.engines * cores, card.gbytes


def _full_grid(axes: int, programs: int) -> Grid:
    """Return a grid of about so many programs, along the axes that the kernel uses."""
    used = [axis for axis in range(3) if axes >> axis & 1] or [0]
    side = max(1, round(programs ** (1 / len(used))))
    x, y, z = (side if axis in used else 1 for axis in range(3))
    return x, y, z


def _total(
    work: Mapping[str, Any], words: Sequence[int | None], grid: Grid
) -> dict[str, Any]:
    """Return the counts of a program in the middle of the grid, with all loop trips."""
    middle = [(size - 1) // 2 for size in grid]
    slots = evaluate(work["slots"], words, middle, grid)
    loops: list[tuple[int | None, Mapping[str, Any]]]
    names = ("rows", "flops", "vector", "near", "messages", "waits")
    total: dict[str, Any] = {**dict.fromkeys(names, 0), "far": [0] * 8}
    todo: list[tuple[Mapping[str, Any], int]] = [(work["body"], 1)]
    while todo:
        node, times = todo.pop()
        for name in names:
            total[name] += times * node.get(name, 0)
        for axes, size in node["far"].items():
            total["far"][int(axes)] += times * size
        loops = node["loops"]
        for slot, inner in loops:
            trips = None if slot is None else slots[slot]
            todo.append((inner, times if trips is None else times * trips))
    return total


def choose_walk(work: Mapping[str, Any], device: Device) -> int:
    """Choose the programs along x of a group so that a large grid takes least time.

    Of groups that take the same time, the one that moves the fewest bytes is best.
    Return 0 (programs in the order of their starts) if it saves less than 2 %.

    Args:
        device: the times of all its cards are added.
    """
    grid = (_LARGE, _LARGE, 1)

    def cost(walk: int) -> tuple[float, float]:
        tried = {**work, "walk": walk}
        size: Any = {"grid": grid, "is_large": True}
        found = [expect(tried, device, card, **size) for card in device.cards]
        moved = sum(each.gbytes * each.seconds for each in found)
        return sum(each.seconds for each in found), moved

    best = min(_WALKS, key=cost)
    return best if cost(best)[0] < _WORTH * cost(0)[0] else 0


_LARGE = 256
_WALKS = (2, 4, 8, 16, 32)
_WORTH = 0.98


def _moved(
    far: Sequence[float], grid: Grid, card: Card, at_once: int, walk: int
) -> float:
    """Return the bytes that a launch moves, in groups of ``walk`` programs along x."""
    whole = _different(far, grid)
    if whole <= card.cache_bytes:
        return whole
    running, left = [1, 1, 1], at_once
    # Programs start in the order of their numbers.
    for axis, size in enumerate((min(grid[0], walk or grid[0]), *grid[1:])):
        running[axis] = max(1, min(size, left))
        left //= running[axis]
    waves = prod(grid) / prod(running)
    return min(waves * _different(far, running), prod(grid) * sum(far))


def _different(far: Sequence[float], grid: Sequence[int]) -> float:
    """Return the bytes of all different blocks of the programs of a grid."""
    return sum(
        size * prod(grid[axis] for axis in range(3) if axes >> axis & 1)
        for axes, size in enumerate(far)
    )
