"""One declaration for each function of `xetl.ops`.

A *rule* is a Python function with the signature of torch's function. It gets operands
(shape and dtype), refuses those that do not fit, and returns the results and the
launches that compute them. `function` makes a public function of a rule: this takes
arrays of any library, returns arrays of the same library, and supports ``out=``,
derivatives and an operator of torch (`torch_library`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple, ParamSpec, cast

from xetl.errors import XetlError
from xetl.imports import import_whole
from xetl.ops.calling.calls import Plans, kind
from xetl.ops.calling.declarations import Backward, Call, wrong_shape
from xetl.ops.calling.operands import Numbers, as_numpy, new_result
from xetl.ops.calling.options import EXACT, refuse_other
from xetl.ops.calling.options import plain as plain_option
from xetl.ops.calling.planning import Plan, elements_of, plan_for
from xetl.ops.calling.recorded import Completing, again_of, picker
from xetl.ops.calling.repeated import Arguments, NativeFunction, Recording, remember
from xetl.records import record
from xetl.runtime.call_site import at_caller
from xetl.runtime.shortcuts import Shortcuts
from xetl.runtime.tensors import note_written

P = ParamSpec("P")


class Outer(NamedTuple):
    """The function that a user called, if another function computes it.

    Attributes:
        inputs: its arrays, in the order of those of the function that computes it.
        natives: the native functions that answer its calls.
        form: makes its only result of what the function that computes it returns.
    """

    inputs: Sequence[Any]
    natives: Sequence[NativeFunction]
    form: Callable[[Any], Any]


FUNCTIONS: dict[str, Function] = {}
"""All declared functions, by ``namespace::name``."""


@record()
class Function:
    """A declared function.

    Attributes:
        name: also the name of torch's operator, ``xetl::name``.
        rule: see the module.
        results: the number of results.
        backward: its derivative; None: an error with its name says that it has none.
        saves: the names of the inputs that the derivative needs, and ``result``.
        aliases: older names of arguments, and the present name of each.
        adapt: moves arguments of older call forms to their present places.
        only: torch's further arguments, which follow ours, and the only value that each
            may have; a class: it changes nothing, and may be any of it.
        namespace: the namespace of torch's operator.
        kinds: the kinds of the parameters, as annotations name them; (): they are
            read from the annotations.
        plain: computes the function from all arguments, without a plan.
        fake: makes tensors without elements, without the rule.
        writes: names of the arrays that the function changes.
        by_rows: whether arrays whose rows are not contiguous are copied first.
    """

    name: str
    rule: Callable[..., Call]
    results: int = 1
    backward: Backward | None = None
    saves: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    adapt: Callable[[list[Any]], None] | None = None
    only: Mapping[str, object] = field(default_factory=dict[str, object])
    namespace: str = "xetl"
    kinds: Sequence[str] = ()
    plain: Callable[[list[Any]], Any] | None = None
    fake: Callable[[list[Any]], Any] | None = None
    writes: tuple[str, ...] = ()
    by_rows: bool = False

    def __post_init__(self) -> None:
        parameters = dict(inspect.signature(self.rule).parameters)
        self.parameters = [p for name, p in parameters.items() if name != "out"]
        self.names = [p.name for p in self.parameters]
        self.shown = self.name.removesuffix("_with_indices")
        self.kinds = self.kinds or [str(p.annotation) for p in self.parameters]
        kinds = [each.partition(" |")[0] for each in self.kinds]
        self.arrays = [i for i, each in enumerate(kinds) if each == "ArrayLike"]
        self.array_names = [self.names[i] for i in self.arrays]
        self.saved = [i for i in self.arrays if self.names[i] in self.saves]
        self.unsaved = [i for i in self.arrays if i not in self.saved]
        self.numbers = [i for i, each in enumerate(kinds) if each == "Number"]
        self.checks = [
            (i, EXACT[each], each, self.kinds[i].endswith(" | None"))
            for i, each in enumerate(kinds)
            if each in EXACT
        ]
        varying = {*self.arrays, *self.numbers}
        self.options = [i for i in range(len(kinds)) if i not in varying]
        self.places = {name: i for i, name in enumerate([*self.names, "out"])}
        # NumPy's names, which torch takes as well.
        other = {"axis": "dim", "keepdims": "keepdim", **self.aliases}
        self.places |= {a: self.places[b] for a, b in other.items() if b in self.places}
        missing = inspect.Parameter.empty
        self.defaults = [p.default for p in self.parameters]
        self.needed = sum(each is missing for each in self.defaults)
        self._rest = [(*self.defaults[n:], None) for n in range(len(kinds) + 1)]
        self.arrays_of = picker(self.arrays)
        self.plans = Plans[Plan]()
        calls = Shortcuts()
        below = NativeFunction(self._computed, calls)
        public = NativeFunction(self._called, calls, self.rule, self.recorded_like)
        self.public: Callable[..., Any] = public
        """The function that users call."""
        self.compute: Callable[..., Any] = below
        """Computes the function; torch does not record the call."""
        self.natives = [public, below]
        self.completing = Completing(self.complete, self._by_name)

    def complete(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return all arguments in order, ``out`` last.

        Raises:
            TypeError: the arguments do not fit the signature.
            LaunchError: an option is of another kind (X0829).
        """
        if kwargs or not self.needed <= len(args) <= len(self.names):
            values: list[Any] = self._by_name(args, kwargs)
            further = zip(self.only, args[len(self.names) :])
            for name, value in (*further, *kwargs.items()) if self.only else ():
                refuse_other(self.shown, name, value, self.only.get(name, object))
                if name == "inplace" and value:
                    values[-1] = values[0]
        else:
            values = [*args, *self._rest[len(args)]]
        if self.adapt is not None:
            self.adapt(values)
        for i, exact, wanted, may_lack in self.checks:
            value = values[i]
            if type(value) not in exact and not (value is None and may_lack):
                values[i] = plain_option(self.names[i], wanted, value)
        return values

    def _by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        most = len(self.names) + len(self.only)
        if len(args) > max(most, len(self.names) + 1):
            raise TypeError(f"`{self.name}` takes at most {most} arguments")
        if self.only:
            args = args[: len(self.names)]
            kwargs = {name: x for name, x in kwargs.items() if name not in self.only}
        count = len(args)
        values = [*args, *(self._rest[count] if count <= len(self.names) else ())]
        for name, value in kwargs.items():
            place = self.places.get(name)
            if place is None or place < count:
                problem = "has no argument" if place is None else "was given twice"
                raise TypeError(f"`{self.name}` {problem} `{name}`")
            values[place] = value
        for i in range(count, self.needed):
            if values[i] is inspect.Parameter.empty:
                raise TypeError(f"`{self.name}` needs the argument `{self.names[i]}`")
        return values

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return traced(self, self.complete(args, kwargs))
        try:
            return self.call_values(self.complete(args, kwargs), (args, kwargs))
        except XetlError as error:
            raise at_caller(error) from None

    def recorded_like(self, call: Arguments) -> Any:
        """Return a faster function for calls like this that torch records, or None."""
        return again_of(self, self.compute, self.completing, call)

    @cached_property
    def recorder(self) -> Any:
        """The function that records a call in torch (`torch_library.recorder_of`)."""
        return import_whole("xetl.ops.calling.torch_library").recorder_of(self)

    def drop_arrays(self, values: list[Any]) -> None:
        """Replace arrays that are saved by None, others by their dtype and shape."""
        for i in self.saved:
            values[i] = None
        for i in self.unsaved:
            x = values[i]
            if x is not None:
                values[i] = x.dtype, x.shape

    def call_values(
        self, values: list[Any], call: Arguments, outer: Outer | None = None
    ) -> Any:
        """Compute the function; tell torch about the call if it has to know.

        Args:
            values: all arguments in order, ``out`` last.
            call: the arguments as the user passed them.
            outer: the function that the user called; None: this one.

        Raises:
            LaunchError: the arguments do not fit.
        """
        way = self.way_of(values)
        if way is None:
            return self._compute(values, call, outer)

        def below(*given: Any) -> Any:
            return self._compute([*given, None], call, outer)

        return way(self, values, below)

    def way_of(self, values: list[Any]) -> Any:
        """Return how torch is told about a call; None: it does not have to know."""
        if "torch" not in sys.modules:
            return None
        calls: Any = import_whole("xetl.ops.calling.torch_calls")
        return calls.way_of(self, values)

    def as_operator(self, values: list[Any]) -> tuple[Function, list[Any]]:
        """Return the function that torch has an operator of, and its arguments."""
        return self, values

    def _computed(self, *args: Any, **kwargs: Any) -> Any:
        return self._compute(self.complete(args, kwargs), (args, kwargs))

    def _compute(
        self, values: list[Any], call: Arguments, outer: Outer | None = None
    ) -> Any:
        """Compute from all arguments, and remember the call: of `outer` if given."""
        if self.plain is not None:
            return self.plain(values)
        outs = self.outs_of(values[-1])
        given = [values[i] for i in self.arrays]
        arrays = [
            None if each is None else elements_of(each, self.names[i])
            for i, each in zip(self.arrays, given)
        ]
        places = [None if each is None else elements_of(each, "out") for each in outs]
        options = [values[i] for i in self.options]
        shapes = [getattr(each, "shape", None) == () for each in (*given, *outs)]
        key = (*map(kind, arrays), *map(kind, places), *shapes, *options)
        plan = self.plans.find(key, lambda: plan_for(self, values, arrays, places))
        made = [
            new_result(given[0], spec.shape, spec.dtype, spec.order)
            if out is None
            else out
            for spec, out in zip(plan.results, outs)
        ]
        if plan.steps:
            self._launch(plan, values, call, arrays, made, places, outer)
        written = [values[self.places[name]] for name in self.writes]
        note_written([each for each in (*outs, *written) if each is not None])
        return made[0] if self.results == 1 else tuple(made) or None

    def _launch(
        self,
        plan: Plan,
        values: Sequence[Any],
        call: Arguments,
        arrays: Sequence[Numbers | None],
        made: Sequence[Any],
        places: Sequence[Numbers | None],
        outer: Outer | None,
    ) -> None:
        like = values[self.arrays[0]]
        results = [
            elements_of(m, "out") if p is None else p for m, p in zip(made, places)
        ]
        temporary = [
            as_numpy(new_result(like, spec.shape, spec.dtype, spec.order), "out")
            for spec in plan.temporary
        ]
        memory = [*arrays, *results, *temporary]
        numbers = [float(values[i]) for i in self.numbers]
        launched = plan.recorder.begin(call)
        for launch, where, fixed in plan.steps:
            taken = [None if i is None else memory[i] for i in where]
            launch.run(taken, *fixed, *numbers, launched=launched)
        if self.writes and len(plan.steps) > 1:
            return  # native code may do only a part of it, and no step may run twice
        inputs, shown, natives = [values[i] for i in self.arrays], made, self.natives
        if outer is not None:
            inputs, natives = outer.inputs, outer.natives
            shown = [outer.form(made[0] if self.results == 1 else made)]
        count = len(shown)
        objects, seen = [*inputs, *shown], [*arrays, *results[:count]]
        temporary = [*results[count:], *temporary]
        given = len(call[0])
        numbers = [i if i < given else self.names[i] for i in self.numbers]
        found = Recording(call, launched, objects, seen, count, temporary, numbers)
        remember(plan.recorder, found, natives)

    def outs_of(self, out: Any) -> tuple[Any, ...]:
        """Return the array that the user gave for each result, or None for each.

        Raises:
            LaunchError: ``out`` is not one array for each result.
        """
        if out is None or self.results == 1:
            return (out,) * self.results
        outs = tuple(cast("Any", out)) if isinstance(out, tuple | list) else ()
        if len(outs) != self.results:
            problem = f"`out` is no sequence of {self.results} arrays"
            raise wrong_shape(self.shown, problem, "pass one array for each result")
        return outs


def function(
    results: int = 1,
    backward: Backward | None = None,
    saves: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
    adapt: Callable[[list[Any]], None] | None = None,
    only: Mapping[str, object] | None = None,
    writes: Sequence[str] = (),
    by_rows: bool = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """Declare a function by its rule; see `Function` for the arguments."""

    def declare(rule: Callable[P, Any]) -> Callable[P, Any]:
        declared = Function(
            rule.__name__.lstrip("_"),
            rule,
            results,
            backward,
            tuple(saves),
            aliases or {},
            adapt,
            only or {},
            writes=tuple(writes),
            by_rows=by_rows,
        )
        return cast("Callable[P, Any]", public_function(declared))

    return declare


def public_function(declared: Function) -> Callable[..., Any]:
    """Add a function to `FUNCTIONS`, and return what users call."""
    FUNCTIONS[f"{declared.namespace}::{declared.name}"] = declared
    return declared.public


def traced(declared: Function, values: list[Any]) -> Any:
    """Call torch's operator; torch.compile reads this in place of the function."""
    from xetl.ops.calling import torch_calls  # noqa: PLC0415 - only with torch

    return torch_calls.traced(declared, values)


def is_traced() -> bool:
    """Whether torch.compile is tracing the caller, so that nothing may be computed.

    By the attribute `_dynamo_marked_constant`, torch calls this function while it
    traces and takes the answer as a constant.
    """
    state = _tracing[0] or _find_tracing()
    if state is None or state.__dict__.get("tracing_context") is None:
        return False
    from xetl.ops.calling import torch_library  # noqa: PLC0415 - only with torch

    torch_library.register()
    return True


_tracing: list[Any] = [None]


def _find_tracing() -> Any:
    """Return torch.compile's thread-local state; None without torch."""
    torch: Any = sys.modules.get("torch")
    guards = getattr(torch, "_guards", None)  # missing while torch is being imported
    _tracing[0] = getattr(guards, "_TLS", None)
    return _tracing[0]


is_traced._dynamo_marked_constant = True  # type: ignore[attr-defined]
