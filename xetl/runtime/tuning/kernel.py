"""Kernels whose calls are completed by constants: from configs, then from functions.

A call is completed first. From then on it is a call of a plain kernel, with shortcuts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xetl.backend import Event
from xetl.errors import LaunchError, XetlError
from xetl.language.pickling import reduced
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.grid import Grid, GridFunction, GridSpec
from xetl.runtime.kernel import Kernel
from xetl.runtime.launcher import Plan
from xetl.runtime.parameters import Args, Keywords
from xetl.runtime.shortcuts import OPTIONS
from xetl.runtime.signature_text import describe
from xetl.runtime.tensors import hide_from_dynamo
from xetl.runtime.tuning.config import Call, Config, Heuristic, Hooks
from xetl.runtime.tuning.trials import Trial
from xetl.runtime.tuning.tuner import Tuner


class CompletingLauncher:
    """A `CompletedKernel` with a grid; call it with the arguments."""

    __slots__ = ("_kernel", "grid")

    def __init__(self, kernel: CompletedKernel, grid: Grid | GridFunction) -> None:
        self._kernel = kernel
        self.grid = grid

    def __call__(self, *args: Any, **keywords: Any) -> Event | None:
        """Launch with all constants; see `Launcher.__call__`."""
        kernel, grid = self._kernel, self.grid
        try:
            named = kernel.completed(args, keywords, grid)
            if callable(grid):
                grid = kernel.grid_of(grid, args, named)
            return kernel.at(grid)(*args, **named)
        except XetlError as error:
            raise at_caller(error) from None


class CompletedKernel(Kernel):
    """A kernel whose constants ``autotune`` or ``heuristics`` choose.

    `ir`, `explain`, `stats` and `interpret` use the best config that is known, or else
    the first; `warmup` compiles all configs.

    Attributes:
        tuner: the tuner with the configs; None: there are no configs.
        heuristics: functions of the arguments, by the names of their constants.
        hooks: functions called before and after each trial.
    """

    def __init__(
        self,
        kernel: Kernel,
        tuner: Tuner | None = None,
        heuristics: Mapping[str, Heuristic] | None = None,
        hooks: Hooks = (None, None),
    ) -> None:
        """Take over ``kernel``, with a tuner and heuristics that it has already."""
        self.tuner = tuner
        self.hooks = hooks
        self.heuristics = dict(heuristics or {})
        if isinstance(kernel, CompletedKernel):
            self.tuner = tuner or kernel.tuner
            self.hooks = kernel.hooks if tuner is None else hooks
            self.heuristics = {**kernel.heuristics, **self.heuristics}
        self._made = (kernel, tuner, heuristics, hooks)
        super().__init__(kernel.fn, kernel.grid, kernel.subgroups)
        chosen = frozenset[str]() if self.tuner is None else self.tuner.chosen
        self._computed = chosen | self.heuristics.keys()
        self._names = tuple(self._parameters.names)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self, self._made, self.fn)

    @property
    def best_config(self) -> Config | None:
        """The config of the last launch; None before the first."""
        return None if self.tuner is None else self.tuner.best

    @property
    def configs(self) -> list[Config]:
        """The configs that are chosen among."""
        return [] if self.tuner is None else list(self.tuner.configs)

    @property
    def trials(self) -> list[Trial]:
        """The trial of each config in the last tuning of this process."""
        return [] if self.tuner is None else list(self.tuner.trials)

    @errors_at_caller
    def bind(self, *args: Any, grid: GridSpec | None = None, **keywords: Any) -> Plan:
        """Do the same as `Kernel.bind`; tune first if no config is known."""
        spec = self.grid if grid is None else grid
        named = keywords
        if spec is not None:
            named = self.completed(args, keywords, spec)
        if self.best_config is not None and self.best_config.pre_hook is not None:
            raise LaunchError(
                f"`{self.fn.__name__}` cannot be bound: a plan would not call the "
                f"`pre_hook` of its config ({self.best_config})",
                code="X0851",
                help=f"launch it: {self.fn.__name__}[grid](...)",
            )
        return super().bind(*args, grid=grid, **named)

    def warmup(
        self, signature: str, *, target: str | None = None, **keywords: Any
    ) -> None:
        """Do the same as `Kernel.warmup`, for each config."""
        for config in self.configs or [Config()]:
            chosen = {**config.kwargs, **keywords}
            super().warmup(signature, target=target, **chosen)

    def completed(
        self, args: Args, keywords: Keywords, grid: GridSpec
    ) -> dict[str, Any]:
        """Return the keywords of a launch with all constants; tune if necessary.

        Raises:
            LaunchError: the call gives a constant that the configs set.
        """
        call = self._call(args, keywords, grid)
        if call is None:  # the launch reports the error
            return self._anything(keywords)
        if self.tuner is None:
            return {**call.computed(Config()), **keywords}
        self._refuse_given(args, keywords)
        config = self.tuner.choose(call)
        if config.pre_hook is not None:
            config.pre_hook({**call.values, **config.kwargs})
        return {**config.kwargs, **call.computed(config), **keywords}

    def _launcher(self, grid: Grid | GridFunction) -> Callable[..., Event | None]:
        return CompletingLauncher(self, grid)

    def _known(self, args: Args, keywords: Keywords) -> dict[str, Any]:
        """Do the same as `completed` without trials; given values override a config."""
        if len(args) == 1 and isinstance(args[0], str):
            return self._of_text(args[0], keywords)
        call = self._call(args, keywords, 1)
        if call is None:
            return self._anything(keywords)
        config = Config() if self.tuner is None else self.tuner.known(call)
        given = {k: v for k, v in keywords.items() if k in config.kwargs}
        config = Config({**config.kwargs, **given})
        return {**config.kwargs, **call.computed(config), **keywords}

    def _of_text(self, text: str, keywords: Keywords) -> dict[str, Any]:
        """Complete a call whose arguments a text describes, by the first config."""
        first = self._first()
        named = {**first, **keywords}
        described = describe(text, self._parameters, named)
        call = self._call((), {**described, **named}, 1)
        if call is None:
            return self._anything(keywords)
        computed: dict[str, Any] = {}
        for name in self.heuristics:
            if name in keywords:
                continue
            try:
                computed[name] = call.compute(name, Config({**first, **computed}))
            except Exception as error:
                # The user's function may need an argument that has no value.
                raise LaunchError(
                    f"`{name}` of `{self.fn.__name__}` cannot be computed of a "
                    f"signature ({type(error).__name__}: {error})",
                    code="X0851",
                    help=f"give it: {name}=...",
                ) from None
        return {**named, **computed}

    def _first(self) -> dict[str, Any]:
        return {} if self.tuner is None else self.tuner.configs[0].kwargs

    def _anything(self, keywords: Keywords) -> dict[str, Any]:
        """Return any value for each constant: the call has another error to report."""
        return {**dict.fromkeys(self.heuristics), **self._first(), **keywords}

    def _call(self, args: Args, keywords: Keywords, grid: GridSpec) -> Call | None:
        """Return the call with its arguments by name; None if it is wrong."""
        options: Keywords = {}
        rest = keywords
        if keywords:
            options = {n: v for n, v in keywords.items() if n in OPTIONS}
            rest = {n: v for n, v in keywords.items() if n not in OPTIONS}
        free = self._computed.difference(self._names[: len(args)], rest)
        try:
            values = self._parameters.bind(args, {**dict.fromkeys(free), **rest})
        except LaunchError:
            return None
        named = dict(zip(self._names, values))
        for name in free:
            del named[name]
        return Call(self, self.heuristics, self.hooks, named, options, grid)

    def _refuse_given(self, args: Args, keywords: Keywords) -> None:
        assert self.tuner is not None
        given = self.tuner.chosen.intersection((*self._names[: len(args)], *keywords))
        for name in sorted(given):
            raise LaunchError(
                f"`{name}` was given to `{self.fn.__name__}`, whose configs set it",
                code="X0804",
                help="leave it out; for a launch without tuning make a plain kernel: "
                f"xetile.kernel({self.fn.__name__}.fn)",
            )


hide_from_dynamo(CompletedKernel.bind, CompletingLauncher.__call__)
