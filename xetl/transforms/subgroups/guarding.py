"""What is done by one subgroup only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, Region, SSAValue

from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, scf
from xetl.language.distribution import Layout
from xetl.transforms.subgroups.team import Subgroups

Build = Callable[[], Sequence[SSAValue]]


def is_leader(team: Subgroups) -> SSAValue | None:
    """Whether this is the subgroup that acts for all; None: there is no other."""
    return team.first_owner((1,), Layout((team.subgroups,), (1,)))


def guarded(
    team: Subgroups,
    condition: SSAValue | None,
    types: Sequence[Attribute],
    build: Build,
) -> list[SSAValue]:
    """What ``build`` adds and gives where ``condition`` holds, zeros elsewhere.

    Args:
        team: of the kernel.
        condition: None: it always holds.
        types: of what ``build`` gives.
        build: adds operations.
    """
    if condition is None:
        return list(build())
    then = Block()
    with team.inside(then):
        team.add(scf.YieldOp(*build()))
    otherwise = Region()
    if types:
        otherwise.add_block(_zeros(team, types))
    return list(team.add(scf.IfOp(condition, types, Region(then), otherwise)).results)


def _zeros(team: Subgroups, types: Sequence[Attribute]) -> Block:
    block = Block()
    with team.inside(block):
        zeros = [team.add(arith.ConstantOp(make_splat(0, t), t)) for t in types]
        team.add(scf.YieldOp(*zeros))
    return block
