"""The checks of `kernel.interpret`: ``oob``, ``uninit`` and ``race``.

Each memory reports its accesses, which are checked by its tables (shadow.py). The
`Guard` of a plan notes which operation runs, and adds the checks of indices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from xetl.dialects import xetile
from xetl.dialects.kernel_attributes import BOUNDS
from xetl.dialects.upstream.arith import SelectOp
from xetl.worklist import Worklist
from xetl_reference import findings
from xetl_reference.findings import line_of
from xetl_reference.memory import ATOMIC, READ, WRITE, View
from xetl_reference.plan import PROGRAM, RUN, SUBGROUP_ID, Frame, Plan, Step
from xetl_reference.shadow import Clock, Places, Shadow
from xetl_reference.tiles import ScatteredTile, Tile
from xetl_reference.values import Array

OOB, UNINIT, RACE = "oob", "uninit", "race"

Position: TypeAlias = tuple[int, int, int]
_SITES = 1 << 20
"""More than the operations of a kernel. A code is turn * _SITES + operation."""


class Run:
    """The state of the checks in one launch.

    Attributes:
        several: whether a program has several subgroups.
        site: the number of the operation that runs.
    """

    def __init__(self, guard: Guard, several: bool) -> None:
        self.several = several
        self.site = 0
        self._sites = guard.sites
        self._uninit = UNINIT in guard.checks
        self._race = RACE in guard.checks
        self._named = guard.named
        self._turns: list[tuple[Position, int | None]] = []
        self._position: Position = (0, 0, 0)
        self._barriers: dict[int, int] = {}
        self._clock = Clock(0, 0, 0, 0, None, {})
        self._order = Order()
        self._messages = Messages()

    # Who runs -----------------------------------------------------------------------

    def begin_program(self, position: Position) -> None:
        """Begin a program; the program before it has ended."""
        now = len(self._turns) * _SITES
        self._position, self._barriers = position, {}
        self._clock = Clock(now, now, now, 0, None, self._messages.begin())
        self._order = Order()

    def begin_turn(self, subgroup: int) -> None:
        """Begin a turn of a subgroup; the one before has ended, or waits."""
        now = len(self._turns) * _SITES
        self._turns.append((self._position, subgroup if self.several else None))
        known = self._order.known(subgroup) if self._named else None
        self._clock = self._clock._replace(turn=now, subgroup=subgroup, known=known)

    def pass_barrier(self, subgroup: int) -> None:
        """Note that a subgroup continues after a barrier of all subgroups."""
        passed = self._barriers.get(subgroup, 0) + 1
        if passed > max(self._barriers.values(), default=0):
            self._clock = self._clock._replace(stretch=len(self._turns) * _SITES)
        self._barriers[subgroup] = passed
        self.begin_turn(subgroup)

    def arrive(self, subgroup: int, meeting: Hashable) -> None:
        """Note that a subgroup has arrived at a round of a named barrier."""
        self._order.arrive(subgroup, meeting, len(self._turns) * _SITES)
        self.begin_turn(subgroup)

    def pass_named(self, subgroup: int, meeting: Hashable) -> None:
        """Note that a subgroup continues after all have arrived at a round."""
        self._order.leave(subgroup, meeting)
        self.begin_turn(subgroup)

    def pass_fence(self) -> None:
        """A subgroup goes on after a fence."""
        self._messages.fence(self._clock.program, len(self._turns) * _SITES)
        if not self.several:  # of several each would seem to race with itself
            self.begin_turn(self._clock.subgroup)

    @property
    def who(self) -> findings.Who:
        """The program and the subgroup that run now."""
        return findings.Who(*self._turns[-1])

    # Memory -------------------------------------------------------------------------

    def watch_argument(self, name: str, view: View, stored: bool) -> None:
        """Register an array argument; races are checked if the kernel writes it."""
        self._watch(name, view, fresh=False, tracked=self._race and stored)

    def watch_allocation(self, op: Any, view: View) -> None:
        """Register memory that the kernel has allocated."""
        if view.memory.shadow is None:
            name = f"the shared memory of line {line_of(op)}"
            tracked = self._race and self.several
            self._watch(name, view, fresh=self._uninit, tracked=tracked)

    def _watch(self, name: str, view: View, *, fresh: bool, tracked: bool) -> None:
        view.memory.shadow = Shadow(
            name, view, self._access, fresh=fresh, shared=self.several, tracked=tracked
        )

    def _access(self, shadow: Shadow, kind: str, places: Places) -> None:
        """Check and record an access of the operation that runs.

        Raises:
            CheckError: it reads elements that were never written, or it is a race.
        """
        op = self._sites[self.site]
        if kind != WRITE:
            element = shadow.unwritten(places)
            if element is not None:
                raise findings.unwritten(op, shadow, element, self.who)
        if kind != READ:
            shadow.write(places)
        if not shadow.tracked:
            return
        clash = shadow.clash(kind, places, self._clock)
        if clash is not None:
            turn, other = divmod(clash.code, _SITES)
            raise findings.race(
                findings.Touch(op, kind, self.who),
                findings.Touch(
                    self._sites[other], clash.kind, findings.Who(*self._turns[turn])
                ),
                shadow,
                clash.element,
            )
        shadow.touch(kind, places, self._clock, self._clock.turn + self.site)
        if kind == ATOMIC:
            self._messages.update(shadow, places)


class Guard:
    """Adds checks to the operations of a kernel."""

    def __init__(self, checks: Collection[str]) -> None:
        self.checks = frozenset(checks)
        self.sites: list[Any] = []
        self.named = False

    def __call__(self, plan: Plan, op: Any, step: Step) -> Step:
        """Return the step of ``op`` with its checks."""
        self.named |= op.name == "xegpu.init_nbarrier"
        if op.name in ("memref.alloc", "memref.alloca"):
            result = plan.slot(op.results[0])

            def run(frame: Frame) -> None:
                step(frame)
                frame[RUN].watch_allocation(op, frame[result])

            return run
        if op.name == "gpu.barrier":

            def run(frame: Frame) -> None:
                step(frame)
                if frame[PROGRAM].team is not None:
                    frame[RUN].pass_barrier(frame[SUBGROUP_ID])

            return run
        if op.name == "xegpu.fence":
            return lambda frame: frame[RUN].pass_fence()
        if self.checks & {UNINIT, RACE} and any(map(_is_memory, op.operands)):
            step = self._noted(op, step)
        if OOB in self.checks:
            step = _lanes(plan, op, _marked(plan, op, step))
        return step

    def _noted(self, op: Any, step: Step) -> Step:
        """Note before the step that ``op`` runs."""
        site = len(self.sites)
        self.sites.append(op)

        def run(frame: Frame) -> None:
            frame[RUN].site = site
            step(frame)

        return run


def _is_memory(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType | xetile.TileType)


Lanes: TypeAlias = tuple[ScatteredTile, Array]
"""A scattered tile, and which of its elements are active."""
_SCATTERING = ("xetile.load_gather", "xetile.store_scatter", "xetile.atomic_rmw_tile")


def _lanes_of(plan: Plan, op: Any) -> Callable[[Frame], Lanes] | None:
    """Return how to find the active elements of a scattered access, or None."""
    if op.name not in _SCATTERING or not op.tile.type.scattered:
        return None
    tile = plan.slot(op.tile)
    if op.mask is None:
        return lambda frame: (frame[tile], np.ones(frame[tile].indices.shape, np.bool_))
    mask = plan.slot(op.mask)
    return lambda frame: (frame[tile], frame[mask])


def _lanes(plan: Plan, op: Any, step: Step) -> Step:
    """Check that each active index of a scattered access is inside its base.

    In an array of several dimensions, an index that counts up (`_counts_up`) may cross
    an edge, as a tile may.
    """
    find = _lanes_of(plan, op)
    if find is None:
        return step
    comparisons = _comparisons(op)
    dims = [plan.slots(each.operands) for each in comparisons]
    chosen = [
        plan.slots(each.operands)
        for each in comparisons
        if not _counts_up(each.operands[0])
    ]

    def run(frame: Frame) -> None:
        tile, mask = find(frame)
        outside = tile.outside(mask)
        if dims and outside.any():
            outside = outside & _any_outside(frame, chosen)
        if outside.any():
            lane = tuple(int(i) for i in np.argwhere(outside)[0])
            at = [_at(frame, slots, lane, outside.shape) for slots in dims]
            raise findings.outside_base(op, tile, lane, frame[RUN].who, at)
        step(frame)

    return run


_SPREADING = ("arith.andi", "vector.broadcast", "xetile.tile_broadcast")
"""Operations that join the comparisons of single dimensions to one condition."""

_SHAPES = ("vector.shape_cast", "xetile.tile_broadcast")


def _comparisons(op: Any) -> list[Operation]:
    """Return the operations that compare the indices of a scatter tile with the sizes.

    They are in the order of dimensions. Return [] if the array has one dimension, or if
    `init_tile` did not make the operand directly.
    """
    made = op.tile.owner
    indices = made.indices if isinstance(made, xetile.InitTileOp) else None
    chosen = None if indices is None else indices.owner
    if not isinstance(chosen, SelectOp):
        return []
    found: dict[int, Operation] = {}
    waiting = Worklist([chosen.condition])
    for value in waiting:
        owner = value.owner
        if not isinstance(owner, Operation):
            return []
        if BOUNDS in owner.attributes:
            found[findings.dim_of(owner)] = owner
        elif owner.name in _SPREADING:
            waiting += owner.operands
        else:
            return []
    return [found[dim] for dim in sorted(found)]


def _counts_up(index: SSAValue) -> bool:
    """Whether an index is computed from `arange` and scalars, and not loaded."""
    waiting, found = Worklist([index]), False
    for value in waiting:
        owner = value.owner
        if not isinstance(owner, Operation):
            return False
        if owner.name == "vector.step":
            found = True
        elif owner.name in _SHAPES or owner.name.startswith("arith."):
            waiting += owner.operands
        elif owner.name != "vector.broadcast":
            return False
    return found


def _any_outside(frame: Frame, dims: Sequence[Sequence[int]]) -> Any:
    """Return which elements have an index outside in one of these dimensions."""
    outside: Any = np.False_
    for slots in dims:
        index, limit = (frame[slot] for slot in slots)
        outside = outside | (index < 0) | (index >= limit)
    return outside


def _at(
    frame: Frame, slots: Sequence[int], lane: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, int]:
    """Return index and limit of a comparison at one element of the tile."""
    index, limit = (np.broadcast_to(frame[slot], shape)[lane] for slot in slots)
    return int(index), int(limit)


def _marked(plan: Plan, op: Any, step: Step) -> Step:
    """Check a comparison, or a tile of a line, that the front end has marked."""
    report = findings.marked(op)
    if report is None:
        return step
    operands, result = plan.slots(op.operands), plan.slot(op.results[0])

    def run(frame: Frame) -> None:
        step(frame)
        made = frame[result]
        if isinstance(made, Tile):
            size = made.sizes[1]
            for index in (made.column, made.column + op.result.type.shape[1] - 1):
                if not 0 <= index < size:
                    raise report(frame[RUN].who, index, size)
        elif not made:
            raise report(frame[RUN].who, *[frame[slot] for slot in operands])

    return run


Known = dict[int, int]
"""For each subgroup, or program by its first code, its first code (shadow.py) that is
not ordered before now."""


class Order:
    """The happens-before order of the subgroups of a program, by named barriers."""

    def __init__(self) -> None:
        self._known: defaultdict[int, Known] = defaultdict(dict)
        self._arrived: defaultdict[Hashable, Known] = defaultdict(dict)

    def known(self, subgroup: int) -> Mapping[int, int]:
        """Return what a subgroup knows. It knows nothing of subgroups without entry."""
        return self._known[subgroup]

    def arrive(self, subgroup: int, meeting: Hashable, now: int) -> None:
        """Note an arrival: all work of the subgroup before the code ``now`` is done."""
        known = self._known[subgroup]
        _join(known, {subgroup: now})
        _join(self._arrived[meeting], known)

    def leave(self, subgroup: int, meeting: Hashable) -> None:
        """Note that a subgroup has waited until all had arrived."""
        _join(self._known[subgroup], self._arrived[meeting])


class Messages:
    """The order that atomics between fences impose on programs: locks, flags.

    An atomic leaves what its program did and knew before its last fence, for those that
    update the element later; they know it from their next fence on.
    """

    def __init__(self) -> None:
        self._left: defaultdict[Hashable, Known] = defaultdict(dict)
        self.begin()

    def begin(self) -> Mapping[int, int]:
        """A program begins; what it knows, by the first codes of other programs."""
        self._known, self._found, self._told = Known(), Known(), Known()
        return self._known

    def fence(self, program: int, now: int) -> None:
        """Keep accesses before the code ``now`` before those behind it."""
        _join(self._known, self._found)
        self._told = {**self._known, program: now}

    def update(self, shadow: Shadow, places: Places) -> None:
        """An atomic updates these elements of a memory."""
        if not self._told and not self._left:
            return  # no kernel without fences pays for them
        for element in shadow.elements(places).ravel().tolist():
            message = self._left[shadow, element]
            _join(self._found, message)
            _join(message, self._told)


def _join(known: Known, more: Mapping[int, int]) -> None:
    for key, code in more.items():
        known[key] = max(known.get(key, 0), code)
