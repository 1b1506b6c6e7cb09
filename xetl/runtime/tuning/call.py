"""One call of a kernel whose constants are chosen, as a tuner sees it."""

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

Heuristic = Callable[[dict[str, Any]], Any]
Hooks = tuple[Callable[..., object] | None, Callable[..., object] | None]
"""Called with the arguments by name before and after each trial."""


@dataclass(frozen=True)
class Call:
    """A call: its arguments by name, and how to make it.

    Attributes:
        heuristics: functions of the arguments by name, by the constant they compute.
        hooks: called around each trial.
        values: the arguments by name; what configs and functions set is left out.
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
        """Of the kernel."""
        return self.kernel.fn.__name__

    @property
    def backend(self) -> object:
        """``backend=`` of the call."""
        return self.options.get("backend")

    def where(self) -> tuple[str, str, str]:
        """Names of backend, target and machine."""
        backend = choose_backend(self.backend, self.values.values())
        target = choose_target(backend)
        return backend.name, target, backend.machine_name(target)

    def compute(self, name: str, config: Config) -> Any:
        """What the function of a constant says, with those of a config."""
        return self.heuristics[name]({**self.values, **config.kwargs})

    def computed(self, config: Config) -> dict[str, Any]:
        """All constants that functions compute, but those that were given.

        A function sees what those before it computed.
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
        """The grid of the call with a config."""
        if callable(self.grid):
            return self.kernel.grid_of(self.grid, (), self._named(config))
        return fixed(self.grid)

    def plan_with(self, config: Config, arrays: Mapping[str, Any]) -> Plan:
        """Bind the call with a config, some arrays replaced."""
        named = self._with(self._named(config), arrays)
        # Copies lie on the host, whose arrays do not say which backend is meant.
        named["backend"] = self.where()[0]
        return Kernel.bind(self.kernel, grid=self.grid, **named)

    def has_hooks(self, config: Config) -> bool:
        """Whether `before` or `after` do anything."""
        return config.pre_hook is not None or any(self.hooks)

    def before(self, config: Config, arrays: Mapping[str, Any]) -> None:
        """Call the hooks that the user wants before a trial."""
        named = self._with({**self.values, **config.kwargs}, arrays)
        if self.hooks[0] is not None:
            self.hooks[0](named)
        if config.pre_hook is not None:
            config.pre_hook(named)

    def after(self, config: Config, arrays: Mapping[str, Any]) -> None:
        """Call the hook that the user wants after a trial."""
        if self.hooks[1] is not None:
            named = self._with({**self.values, **config.kwargs}, arrays)
            self.hooks[1](named, exception=None)

    def _with(
        self, named: Mapping[str, Any], arrays: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Arguments with other arrays, also where these are in tuples."""
        return {name: replaced(name, each, arrays) for name, each in named.items()}

    def _named(self, config: Config) -> dict[str, Any]:
        """All by name; the trial waits, whatever the call does."""
        options = {n: v for n, v in self.options.items() if n != "wait"}
        computed = self.computed(config)
        return {**self.values, **config.kwargs, **computed, **options}
