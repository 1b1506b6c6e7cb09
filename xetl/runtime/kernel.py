"""The decorator ``kernel``, and the class of the functions that it decorates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, cast, overload

from xetl.backend import BackendBase, Event
from xetl.errors import LaunchError
from xetl.imports import late
from xetl.language.signature import Signature
from xetl.language.source_lines import keep_lines
from xetl.runtime import report
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.executables import (
    Executables,
    Found,
    Prepared,
    choose_target,
    compiler,
    target_at,
)
from xetl.runtime.grid import (
    Binder,
    Grid,
    GridSpec,
    checked_subgroups,
    fixed,
    show_shapes,
)
from xetl.runtime.launcher import LaunchedKernel
from xetl.runtime.overlap import check_stored
from xetl.runtime.parameters import Args, Keywords, Parameters
from xetl.runtime.placement import choose_backend, find_place, shortcut_entry
from xetl.runtime.shortcuts import OPTIONS, Shortcut
from xetl.runtime.signature_text import describe
from xetl.runtime.specialize import Specialization, leaves_of, specialize
from xetl.runtime.structured import flat_entry, places_of
from xetl.runtime.tensors import hide_from_dynamo, settle_dynamo

_reduced = late("xetl.language.pickling", "reduced")


class Kernel(LaunchedKernel):
    """A function decorated with ``@xetile.kernel``.

    Attributes:
        subgroups: (rows, columns) of a kernel written at subgroup level, or None.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        grid: GridSpec | None = None,
        subgroups: Sequence[int] | None = None,
    ) -> None:
        if not hasattr(fn, "__code__") or hasattr(fn, "__wrapped__"):
            problem = f"a kernel is made of a function, not of {fn!r}"
            help_ = None
            if hasattr(fn, "__wrapped__"):
                problem = f"`{fn.__name__}` is wrapped by another decorator"
                help_ = "put `@xetile.kernel` next to the function, and leave that out"
            raise LaunchError(problem, code="X0809", help=help_)
        super().__init__(grid)
        self.fn = keep_lines(fn)
        self.subgroups = checked_subgroups(fn.__name__, subgroups)
        if self.subgroups is not None:
            # The front end and the fingerprint get only the function.
            cast("Any", fn).__xetl_subgroups__ = self.subgroups
        update_wrapper(cast("Callable[..., Any]", self), fn)
        self._parameters = Parameters.of(fn)
        self._binder = Binder(self._parameters)
        self._executables = Executables(fn)
        self._declared = None if grid is None else self._new_launcher(grid)
        settle_dynamo()

    def __repr__(self) -> str:
        return f"<xetile.kernel {self.fn.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self, (self.fn, self.grid, self.subgroups), self.fn)

    def __setstate__(self, made: tuple[Any, ...]) -> None:
        type(self).__init__(self, *made)

    def __call__(self, *args: Any, **keywords: Any) -> Event | None:
        """Launch with the declared grid; otherwise as ``kernel[grid](...)``."""
        if self._declared is None:
            error = self._no_grid("called", f"{self.fn.__name__}[grid](...)")
            raise at_caller(error) from None
        return self._declared(*args, **keywords)

    @errors_at_caller
    def ir(
        self,
        stage: str | None = None,
        *args: Any,
        target: str | None = None,
        **keywords: Any,
    ) -> str:
        """Return the text of a stage, of the module after a pass, or of the code.

        Args:
            stage: the name of a stage or pass, or such as ``"llvm"``, ``"asm"``.
            args: as in a launch, or the signature string of `warmup`.
            target: the machine; by default the one that launches use.
            keywords: arguments by name, and ``backend=``.
        """
        if not isinstance(stage, str):
            problem = "`ir` was called without the name of a stage"
            help_ = f'write {self.fn.__name__}.ir("xetile", ...)'
            raise LaunchError(problem, "X0812", help_)
        shows = partial(compiler().has_stage, stage)
        keywords = self._known(args, keywords)
        backend, values = self._bind_any(args, keywords, target, shows)
        machine = choose_target(backend, target)
        signature = specialize(self._parameters, values).signature
        module = compiler().build(self.fn, signature, backend, machine)
        return compiler().ir_at_stage(module, signature, backend, machine, stage)

    @errors_at_caller
    def warmup(
        self, signature: str, *, target: str | None = None, **keywords: Any
    ) -> None:
        """Compile for arguments that a text describes, without arrays or a device.

        Args:
            signature: such as ``"bf16[M,64] f32[64]"``: an argument for each parameter
                that is no constexpr; trailing ones with defaults may be left out.
            target: the machine; by default the one that launches use.
            keywords: compile-time values.
        """
        keywords = self._known([signature], keywords)
        *_, found = self._found([signature], keywords, target)
        found.loaded.complete()

    @errors_at_caller
    def explain(
        self, *args: Any, target: str | None = None, **keywords: Any
    ) -> report.Explanation:
        """Return what the compiler did with each line: BRGEMM, packing, or why not.

        Args:
            args: as in a launch, or the signature string of `warmup`; no grid.
            target: the machine; by default the one that launches use.
            keywords: arguments by name, and ``backend=``.
        """
        keywords = self._known(args, keywords)
        backend, machine, wanted, found = self._found(args, keywords, target)
        artifact = found.loaded.artifact
        # The kernel may have moved in its file since the code in the cache was made.
        if artifact.meta.get("positions") != found.positions:
            artifact = self._executables.compile(wanted, backend, machine)
        where = backend.name, machine, artifact
        return report.explain(self.fn, *where, wanted.signature)

    @errors_at_caller
    def stats(
        self,
        *args: Any,
        target: str | None = None,
        grid: GridSpec | None = None,
        **keywords: Any,
    ) -> report.Stats:
        """Return sizes and times of the code; arguments are those of `explain`.

        If there are arrays, the estimates are about a launch with them.
        """
        keywords = self._known(args, keywords)
        backend, machine, wanted, found = self._found(args, keywords, target)
        # A signature string gives values only to defaults and numbers given by name.
        given = wanted.args if len(wanted.args) == len(wanted.names) else None
        sizes = None
        if given and (grid is not None or self.grid is not None):
            missing = self._no_grid("asked about", "stats(..., grid=...)")
            sizes = self._sizes(grid, args, keywords, missing)
        where = self.fn.__name__, backend.name, machine
        return report.stats(*where, found.loaded.artifact, sizes, given)

    @errors_at_caller
    def numba(
        self, signature: str, *, grid: GridSpec | None = None, **keywords: Any
    ) -> Callable[..., None]:
        """Return a function that numba code can call; ``signature`` as for `warmup`."""
        spec = self.grid if grid is None else grid
        if spec is None:
            raise self._no_grid("given to numba", "numba(..., grid=...)")
        *_, found = self._found([signature], keywords)
        sizes = spec if callable(spec) else fixed(spec)
        return found.loaded.executable.numba_call(self.fn.__name__, sizes)

    def signature_of(self, text: str, constants: Keywords) -> Signature:
        """Return the signature that `warmup` would compile for."""
        _, values = self._bind_any([text], self._known([text], constants))
        return specialize(self._parameters, values).signature

    def why_recompiled(self) -> str:
        """Return a line for each difference between the last two compilations."""
        return self._executables.compiles.why()

    def _shortcut(
        self, prepared: Prepared, args: Args, keywords: Keywords, state: object
    ) -> Shortcut | None:
        wanted, place, (loaded, unchanged, _) = prepared
        stored, waits = prepared.stored, keywords.get("wait", True)
        fast = shortcut_entry(loaded, wanted.values, stored, place, waits)
        tuples, params = wanted.signature.tuples, wanted.signature.params
        if fast is None or (keywords and self._parameters.has_rest):
            return None
        if tuples:
            named = {n: v for n, v in keywords.items() if n not in OPTIONS}
            values = self._parameters.bind(args, named)
            given = len(values) if keywords else len(args)
            fast = flat_entry(fast, self._parameters, tuples, values, given)
        further = self._parameters.each[len(args) :]
        if tuples and not keywords:  # the entry adds the omitted arguments
            further = ()
        elif not keywords:  # else compile-time values may come from the call as well
            last = max(wanted.signature.runtime, default=-1)
            further = self._parameters.each[len(args) : last + 1]
        names = tuple(each.name for each in further)
        rest = tuple(each.default for each in further)
        known = {n: v if n in OPTIONS else None for n, v in keywords.items()}
        written = tuple(places_of([params[i].name for i in stored], self._parameters))
        count = len(args)
        return Shortcut(fast, count, known, names, rest, state, unchanged, written)

    def prepare(self, args: Args, keywords: Keywords) -> Prepared:
        """Check a call, and find or compile its code; do not run it."""
        backend, values = self._bind(args, keywords)
        wanted = specialize(self._parameters, values)
        place = find_place(backend, keywords.get("queue"), wanted.names, wanted.args)
        found = self._executables.get(wanted, backend, target_at(backend, place))
        check_stored(wanted.names, wanted.args, found.loaded.stored)
        return Prepared(wanted, place, found)

    def grid_of(
        self, function: Callable[[Any], object], args: Args, keywords: Keywords
    ) -> Grid:
        """Return the grid that a function computes; it may raise anything."""
        rest = keywords
        if keywords:
            rest = {n: v for n, v in keywords.items() if n not in OPTIONS}
        arguments = self._binder.bind(args, rest)
        try:
            return fixed(function(arguments))
        except LaunchError:
            raise
        except Exception:
            if not show_shapes(arguments):
                # If an argument has a wrong kind, that error explains it better.
                specialize(self._parameters, self._parameters.bind(args, rest))
                raise
        return fixed(function(arguments))

    def _bind(
        self,
        args: Args,
        keywords: Keywords,
        target: str | None = None,
        shows: Callable[[BackendBase], bool] | None = None,
    ) -> tuple[BackendBase, list[Any]]:
        """Choose the backend (see `choose_backend`), and bind the arguments."""
        rest = {n: v for n, v in keywords.items() if n not in OPTIONS}
        name = keywords.get("backend")
        values = self._parameters.bind(args, rest)
        objects = leaves_of(self._parameters, values)
        return choose_backend(name, objects, target=target, shows=shows), values

    def _bind_any(
        self,
        args: Args,
        keywords: Keywords,
        target: str | None = None,
        shows: Callable[[BackendBase], bool] | None = None,
    ) -> tuple[BackendBase, list[Any]]:
        """Do the same as `_bind`, but accept a single text that describes arguments."""
        if len(args) != 1 or not isinstance(args[0], str):
            return self._bind(args, keywords, target, shows)
        described = describe(args[0], self._parameters, keywords)
        return self._bind([], {**described, **keywords}, target, shows)

    def _found(
        self, args: Args, keywords: Keywords, target: str | None = None
    ) -> tuple[BackendBase, str, Specialization, Found]:
        """Return backend, target, specialisation and code of a call or a signature."""
        backend, values = self._bind_any(args, keywords, target)
        machine = choose_target(backend, target)
        wanted = specialize(self._parameters, values)
        return backend, machine, wanted, self._executables.get(wanted, backend, machine)

    def _no_grid(self, what: str, instead: str) -> LaunchError:
        problem = f"`{self.fn.__name__}` was {what} without a grid"
        help_ = f"write {instead}, or declare a grid: @xetile.kernel(grid=...)"
        return LaunchError(problem, "X0802", help_)


hide_from_dynamo(Kernel.__call__)


@overload
def kernel(fn: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(
    *, grid: GridSpec | None = None, subgroups: Sequence[int] | None = None
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    grid: GridSpec | None = None,
    subgroups: Sequence[int] | None = None,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel: ``@kernel`` or ``@kernel(grid=..., subgroups=...)``.

    Args:
        fn: the function; it is compiled when it is first launched.
        grid: the number of programs if a call gives no grid: an int, a tuple of up to
            three ints, or a function of the arguments by name.
        subgroups: [rows, columns] of a kernel that is written at subgroup level.

    Raises:
        LaunchError: a parameter has a reserved name, or the grid is wrong.
    """

    @errors_at_caller
    def decorate(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, grid, subgroups)

    if fn is None:
        return decorate
    if not callable(fn):
        problem = f"`kernel` was given {fn!r}, which is no function"
        help_ = "name the options: @xetile.kernel(grid=...)"
        raise at_caller(LaunchError(problem, "X0809", help_)) from None
    return decorate(fn)
