"""What is said when subgroups wait for one another and nobody can go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xetl.errors import CheckError
from xetl_reference.where import at_operation, line_of

Position = tuple[int, int, int]


def stuck(
    standing: Mapping[int, Any], ended: Sequence[int], program: Position
) -> CheckError:
    """Nobody can go on.

    Args:
        standing: the operation at which each subgroup waits.
        ended: the subgroups that have come to the end of the kernel.
        program: the program they belong to.
    """
    barriers = [op for op in standing.values() if op.name == "gpu.barrier"]
    here = barriers[0] if barriers else next(iter(standing.values()))
    notes = [f"in program {program}"]
    for op in dict.fromkeys(standing.values()):
        if op is not here:
            there = [number for number, other in standing.items() if other is op]
            notes.append(f"{_subgroups(there, 'wait')} at line {line_of(op)}")
    if ended:
        notes.append(f"{_subgroups(ended, 'have ended')}")
    waiting = [number for number, op in standing.items() if op is here]
    if barriers:
        return _divergent(here, waiting, notes, program)
    error = CheckError(
        "these subgroups wait at a named barrier where too few others arrive",
        code="X0826",
        label=f"{_subgroups(waiting, 'wait')} here",
        notes=notes,
        help="as many subgroups must arrive as `init_nbarrier` says, before each wait",
        programs=(program,),
    )
    return at_operation(error, here)


def _divergent(
    op: Any, waiting: Sequence[int], notes: Sequence[str], program: Position
) -> CheckError:
    error = CheckError(
        "not all subgroups of a program reach this barrier",
        code="X0825",
        label=f"{_subgroups(waiting, 'wait')} here",
        notes=notes,
        help="all subgroups must come to the same barrier: move it out of `if`, loop or"
        " `return` that depends on the subgroup",
        programs=(program,),
    )
    return at_operation(error, op)


def no_such_barrier(op: Any, number: int, limit: int) -> CheckError:
    """The number of a named barrier is not one of those the kernel has."""
    error = CheckError(
        f"there is no named barrier {number}: they are 0 to {limit - 1}",
        code="X0826",
        help="`alloc_nbarrier` says how many a kernel has, 32 at most",
    )
    return at_operation(error, op)


def participants(op: Any, number: int, most: int) -> CheckError:
    """A named barrier is for more subgroups than there are, or for none."""
    error = CheckError(
        f"a named barrier for {number} subgroups, but a program has {most}",
        code="X0826",
        help=f"1 to {most} subgroups can arrive",
    )
    return at_operation(error, op)


def _subgroups(numbers: Iterable[int], verb: str) -> str:
    """``subgroup 1 waits``, ``subgroups 0, 2-31 wait``."""
    listed = sorted(numbers)
    if len(listed) == 1:
        single = {"wait": "waits", "have ended": "has ended"}
        return f"subgroup {listed[0]} {single[verb]}"
    return f"subgroups {', '.join(_ranges(listed))} {verb}"


def _ranges(numbers: Sequence[int]) -> list[str]:
    """Neighbours are joined: 0, 1, 2, 5 are ``0-2`` and ``5``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return [f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in ranges]
