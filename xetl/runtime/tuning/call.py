"""A call of a kernel whose constants a tuner chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xetl.language.signature import replaced
from xetl.runtime.executables import Prepared, choose_target
from xetl.runtime.grid import Grid, GridSpec, fixed
from xetl.runtime.kernel import Kernel
from xetl.runtime.launcher import Plan
from xetl.runtime.placement import choose_backend
from xetl.runtime.tuning.config import Config

Heuristic = Callable[[Any], Any]
Hooks = tuple[Callable[..., object] | None, Callable[..., object] | None]
"""Two functions, called with the arguments by name before and after each trial."""


class _Arguments(dict[str, Any]):
    """Arguments by name: ``args["A"]`` as in Triton, or ``args.A`` as in a grid."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


@dataclass(frozen=True)
class Call:
    """A call with any config: kernel, arguments, options and grid.

    Attributes:
        heuristics: functions of the arguments, by the names of their constants.
        hooks: functions called before and after each trial.
        values: the arguments by name, without constants of configs and heuristics.
        options: backend, queue, wait.
    """

    kernel: Kernel
    heuristics: Mapping[str, Heuristic]
    hooks: Hooks
    values: Mapping[str, Any]
    options: Mapping[str, Any]
    grid: GridSpec

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.kernel.fn.__name__

    @property
    def backend(self) -> object:
        """``backend=`` of the call."""
        return self.options.get("backend")

    def where(self) -> tuple[str, str, str]:
        """Return the names of backend, target and machine."""
        backend = choose_backend(self.backend, self.values.values())
        target = choose_target(backend)
        return backend.name, target, backend.machine_name(target)

    def compute(self, name: str, config: Config) -> Any:
        """Compute a constant by its function, which sees the constants of a config."""
        return self.heuristics[name](_Arguments({**self.values, **config.kwargs}))

    def computed(self, config: Config) -> dict[str, Any]:
        """Compute all constants that have a function and are not given by the call.

        A function sees the constants of the functions before it.
        """
        found: dict[str, Any] = {}
        for name in self.heuristics:
            if name not in self.values:
                found[name] = self.compute(name, Config({**config.kwargs, **found}))
        return found

    def prepare_with(self, config: Config) -> Prepared:
        """Compile the call with a config."""
        return self.kernel.prepare((), self._named(config))

    def grid_with(self, config: Config) -> Grid:
        """Return the grid of the call with a config."""
        if callable(self.grid):
            return self.kernel.grid_of(self.grid, (), self._named(config))
        return fixed(self.grid)

    def plan_with(self, config: Config, arrays: Mapping[str, Any]) -> Plan:
        """Bind the call with a config; ``arrays`` replace those of the same name."""
        named = self._with(self._named(config), arrays)
        # The copies may be host arrays, which would choose another backend.
        named["backend"] = self.where()[0]
        return Kernel.bind(self.kernel, grid=self.grid, **named)

    def before(self, config: Config, arrays: Mapping[str, Any]) -> None:
        """Call the user's hooks for the time before a trial."""
        named = self._with({**self.values, **config.kwargs}, arrays)
        if self.hooks[0] is not None:
            self.hooks[0](named)
        if config.pre_hook is not None:
            config.pre_hook(named)

    def after(self, config: Config, arrays: Mapping[str, Any]) -> None:
        """Call the user's hook for the time after a trial."""
        if self.hooks[1] is not None:
            named = self._with({**self.values, **config.kwargs}, arrays)
            self.hooks[1](named, exception=None)

    def _with(
        self, named: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments with arrays replaced, also those in tuples."""
        return {name: replaced(name, each, arrays) for name, each in named.items()}

    def _named(self, config: Config) -> dict[str, Any]:
        """Return all arguments and options by name, without ``wait``: a trial waits."""
        options = {n: v for n, v in self.options.items() if n != "wait"}
        computed = self.computed(config)
        return {**self.values, **config.kwargs, **computed, **options}
