"""The errors of the checks of `kernel.interpret`.

`at_operation` puts an error at the user's line of an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from xdsl.dialects.builtin import VectorType

from xetl.dialects.kernel_attributes import BOUNDS, DIM
from xetl.errors import CallFrame, CheckError, XetlError
from xetl.frames import at_frames, frame_at
from xetl.transforms.diagnostics import positions_of
from xetl_reference.shadow import Shadow
from xetl_reference.tiles import ScatteredTile

E = TypeVar("E", bound=XetlError)


def at_operation(error: E, op: Any) -> E:
    """Give ``error`` the line of ``op``, and the calls it was inlined through."""
    return at_frames(error, list(frames_of(op)))


def line_of(op: Any) -> int | None:
    """Return the innermost line of an operation."""
    return next((at.line.data for at in positions_of(op.location)), None)


def frames_of(op: Any) -> Iterator[CallFrame]:
    """Yield the source positions of an operation, the innermost first."""
    for at in positions_of(op.location):
        yield frame_at(at.filename.data, at.line.data, at.column.data)


STEP = "xetile.step"
"""Attribute of the comparison that guards a step of a loop."""


class Who(NamedTuple):
    """A program, and one of its subgroups if it has several."""

    program: tuple[int, int, int]
    subgroup: int | None

    def __str__(self) -> str:
        if self.subgroup is None:
            return f"program {self.program}"
        return f"subgroup {self.subgroup} of program {self.program}"


def found(
    op: Any, text: str, code: str, program: tuple[int, int, int], **parts: Any
) -> CheckError:
    """Return an error at an operation of a program; see `CheckError` for ``parts``."""
    parts.setdefault("programs", (program,))
    return at_operation(CheckError(text, code=code, **parts), op)


class Touch(NamedTuple):
    """An access of an operation to an element."""

    op: Any
    kind: str
    who: Who


def _plain(op: Any) -> str:
    """Return the user's name of an operation."""
    return f"`{op.name.removeprefix('xetile.')}`"


def _element(shadow: Shadow, index: Sequence[int]) -> str:
    if shadow.name.startswith("the "):
        return f"element {tuple(index)} of {shadow.name}"
    return f"`{shadow.name}[{', '.join(map(str, index))}]`"


# oob --------------------------------------------------------------------------------


def outside_base(
    op: Any,
    tile: ScatteredTile,
    lane: tuple[int, ...],
    who: Who,
    dims: Sequence[tuple[int, int]] = (),
) -> CheckError:
    """Return the error that an index of a scatter tile is outside its base.

    Args:
        lane: the element of the tile.
        dims: index and size for each dimension of the array; (): those of the tile.
    """
    index: tuple[int, ...] = (int(tile.indices[lane]),)
    shadow = tile.view.memory.shadow
    name = shadow.name if shadow is not None else "the base"
    shown = name if name.startswith("the ") else f"`{name}`"
    where = f"{shown}, which has {tile.bounds()[1]} elements there"
    wrong = [dim for dim, (at, size) in enumerate(dims) if not 0 <= at < size]
    if wrong:
        index = tuple(at for at, _ in dims)
        where = f"{shown}, whose dimension {wrong[0]} has size {dims[wrong[0]][1]}"
    said = index if wrong else index[0]
    return found(
        op,
        f"{_plain(op)} uses index {said} of {where}",
        "X0821",
        who.program,
        label=f"element {lane[-1] if lane[0] == 0 else lane} of the tile",
        notes=[f"in {who}"],
        help="mask these elements off, as in `load_gather(init_tile(X, [i]), mask)` or"
        " `store_scatter(v, mask, tile)`; unchecked, they read as padding and are not"
        " written",
        array=name,
        index=index,
    )


def dim_of(op: Any) -> int:
    """Return the dimension whose index a marked comparison checks."""
    return op.attributes[DIM].value.data


def marked(op: Any) -> Callable[..., CheckError] | None:
    """Return the error if a comparison is false. Return None if it is not marked."""
    if STEP in op.attributes:
        return partial(_bad_step, op)
    name = op.attributes.get(BOUNDS)
    if name is None or isinstance(op.results[0].type, VectorType):
        return None  # a mask may leave out elements of vectors that are outside
    return partial(_bad_index, op, name.data, dim_of(op))


def _bad_index(
    op: Any, name: str, dim: int, who: Who, index: int, size: int
) -> CheckError:
    return found(
        op,
        f"index {index} is outside of `{name}`, whose dimension {dim} has size {size}",
        "X0821",
        who.program,
        label="selects nothing: loads give padding, stores do nothing",
        notes=[f"in {who}"],
        help="negative indices do not wrap" if index < 0 else None,
        array=name,
        index=(index,),
    )


def _bad_step(op: Any, who: Who, step: int, _: int) -> CheckError:
    text = f"the step of this `range` is {step}, so the loop runs no times"
    help_ = "a step that is known only at run time must be positive"
    return found(op, text, "X0821", who.program, notes=[f"in {who}"], help=help_)


# uninit -----------------------------------------------------------------------------


def unwritten(op: Any, shadow: Shadow, element: int, who: Who) -> CheckError:
    """Return the error that memory is read before it was written."""
    index = shadow.index(element)
    return found(
        op,
        f"{_plain(op)} reads {_element(shadow, index)} before anything was written"
        " there",
        "X0822",
        who.program,
        notes=[f"in {who}"],
        help="shared memory starts without values: store to it first",
        array=shadow.name,
        index=index,
    )


# race -------------------------------------------------------------------------------


def race(now: Touch, before: Touch, shadow: Shadow, element: int) -> CheckError:
    """Return the error that two programs, or subgroups, touch an element unordered."""
    index = shadow.index(element)
    same = now.who.program == before.who.program
    advice = "separate them by xetile.barrier()"
    if not same:
        advice = (
            "programs run in any order: give each its own elements, or use"
            " xetile.atomic_rmw_tile"
        )
    return found(
        now.op,
        f"{_element(shadow, index)} is {now.kind} by {now.who}, and was"
        f" {before.kind} by {before.who}",
        "X0823",
        now.who.program,
        label=f"{now.kind} here",
        notes=[f"{before.kind} at line {line_of(before.op)} by {before.who}"],
        help=advice,
        array=shadow.name,
        index=index,
        programs=(before.who.program, now.who.program),
    )
