"""A launch with everything decided: the cheapest way to run a kernel again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xetl.backend import Argument, ArrayView, Event, Place
from xetl.errors import LaunchError, XetlError
from xetl.runtime.arrays import locate
from xetl.runtime.call_site import at_caller
from xetl.runtime.executables import Loaded
from xetl.runtime.grid import Grid
from xetl.runtime.native_calls import NativelyCalled, answer, may_be_native, native
from xetl.runtime.overlap import same_view
from xetl.runtime.placement import FINISHED, run, shortcut_entry
from xetl.runtime.shortcuts import entry_table
from xetl.runtime.specialize import Specialization
from xetl.runtime.tensors import hide_from_dynamo, is_plain_tensor, is_tensor


class Plan(NativelyCalled):
    """What ``kernel.bind(...)`` returns; call it to launch.

    Attributes:
        grid: the sizes it launches.
        args: the arguments it launches with; what is in the arrays may change.
    """

    __slots__ = ("_done", "_fast", "_launch", "_table", "args", "grid")

    def __init__(
        self,
        code: Loaded,
        grid: Grid,
        found: Specialization,
        values: Sequence[Any],
        place: Place | None = None,
        waits: object = True,
    ) -> None:
        self.grid = grid
        self.args = tuple(values)
        self._done = None if waits else FINISHED
        check = partial(_check_unchanged, found.names, found.args)
        self._launch = partial(
            _run_checked, check, code, grid, found.args, place, waits
        )
        stored = found.positions(code.stored)
        fast = shortcut_entry(code, values, stored, place, waits)
        self._fast: Callable[[], Any] = _refuse
        objects: tuple[Any, ...] = (*grid, *values)
        seen = [x for x in found.args if isinstance(x, ArrayView) and is_tensor(x.obj)]
        addresses = {id(view.obj): view.address for view in seen}
        tensors = [i for i, x in enumerate(objects) if id(x) in addresses]
        table, by = entry_table(fast), native()
        if table is not None and by is not None:
            by.look_around()
            slow, count = self.__call__, len(objects)
            words = by.process, table, id(slow), id(self._done), count, len(tensors)
            places = [x for i in tensors for x in (i, addresses[id(objects[i])])]
            made = answer(self, by.plan, (*words, *map(id, objects), *places))
            self._table = by, fast, slow, objects, made
        elif fast is not None:
            self._fast = partial(_run_unmoved, partial(fast, *objects), seen)

    def __call__(self) -> Event | None:
        """Launch; the event, if it was bound with ``wait=False``.

        Raises:
            LaunchError: an array lies elsewhere than when it was bound.
        """
        result = self._fast()
        if result == 0:
            return self._done
        return self._launch() if result == 1 else result


hide_from_dynamo(Plan.__call__)
may_be_native(Plan)


def _refuse() -> int:
    return 1


def _run_unmoved(fast: Callable[[], Any], tensors: Sequence[Any]) -> Any:
    """Launch if tensors have the memory that they had when they were bound."""
    for view in tensors:
        if not is_plain_tensor(view.obj) or view.obj.data_ptr() != view.address:
            return 1
    return fast()


def _run_checked(
    check: Callable[[], None],
    code: Loaded,
    grid: Grid,
    args: Sequence[Argument],
    place: Place | None,
    waits: object,
) -> Event | None:
    try:
        check()
        return run(code, grid, args, place, waits)
    except XetlError as error:
        raise at_caller(error) from None


def _check_unchanged(names: Sequence[str], args: Sequence[Argument]) -> None:
    """Whether all arrays are where they were.

    Raises:
        LaunchError: one is not, or cannot be read any more.
    """
    for name, arg in zip(names, args):
        # What came by DLPack is kept as it was: object and capsule.
        if not isinstance(arg, ArrayView) or isinstance(arg.obj, tuple):
            continue
        if not same_view(locate(arg.obj, name), arg):
            raise LaunchError(
                f"`{name}` has other memory than when it was bound",
                code="X0805",
                help="bind again",
            )
