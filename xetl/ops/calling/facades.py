"""Functions of `xetl.ops` that another function computes, and that torch records so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl.errors import XetlError
from xetl.ops.calling.declarations import out_and_gradient
from xetl.ops.calling.declare import FUNCTIONS, Function, Outer, is_traced, traced
from xetl.ops.calling.recorded import again_by
from xetl.ops.calling.repeated import Arguments
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import needs_derivative

Ranks = tuple[int | None, ...]
"""The number of dimensions of each of our arrays; None for other objects."""


class Facade(Function):
    """A function of one result; the function called `inner_name` computes it."""

    inner_name = ""

    def arguments(self, *given: Any) -> Sequence[Any]:
        """Return the arguments of the other function for ours, without ``out``."""
        raise NotImplementedError

    def out_of(self, ranks: Ranks, out: Any) -> Any:
        """Return ``out`` as the other function takes it."""
        raise NotImplementedError

    def form(self, ranks: Ranks, found: Any) -> Any:
        """Return our result for what the other function returns."""
        raise NotImplementedError

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._by_inner(self.complete(args, kwargs), (args, kwargs))
        except XetlError as error:
            names = f"`{self.inner_name.partition('::')[2]}`", f"`{self.name}`"
            error.message = error.message.replace(*names)
            raise at_caller(error) from None

    def _by_inner(self, values: list[Any], call: Arguments) -> Any:
        *given, out = values
        if out is not None and any(map(needs_derivative, given)):
            raise out_and_gradient(self.name)
        inner, passed = FUNCTIONS[self.inner_name], [*self.arguments(*given), None]
        ranks = self.ranks_of(values)

        def form(found: Any) -> Any:
            return self.form(ranks, found) if out is None else out

        if out is not None:
            passed[-1] = self.out_of(ranks, out)
        if is_traced():
            return form(traced(inner, passed))
        outer = Outer([values[i] for i in self.arrays], self.natives, form)
        return form(inner.call_values(passed, call, outer))

    def ranks_of(self, values: Sequence[Any]) -> Ranks:
        """Return the ranks of the arrays among all arguments."""
        return tuple(getattr(values[i], "ndim", None) for i in self.arrays)

    def recorded_like(self, call: Arguments) -> Any:
        """Return a faster function for calls like this that torch records, or None."""
        return again_by(self, FUNCTIONS[self.inner_name], call)
