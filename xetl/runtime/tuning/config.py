"""Configs: values of a kernel's constants to choose among; calls that they complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from xetl.errors import LaunchError, did_you_mean
from xetl.language.signature import replaced
from xetl.runtime.executables import Prepared, choose_target
from xetl.runtime.grid import Grid, GridSpec, fixed
from xetl.runtime.kernel import Kernel
from xetl.runtime.launcher import Plan
from xetl.runtime.parameters import Parameters, triton_option
from xetl.runtime.placement import choose_backend

DECLARED_WRONG = "X0850"


class Config:
    """Values of constants of a kernel: ``Config(BM=128, BN=64)``.

    A dict may be given, as in Triton: ``Config({"BM": 128}, num_stages=3)``. Each name
    must be a parameter of the kernel.

    Args:
        kwargs: values by name.
        pre_hook: called with the arguments by name before each trial of this config,
            and before each launch that uses it.
        constants: further values.

    Attributes:
        kwargs: all values by name.
        pre_hook: see above.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any] | None = None,
        /,
        *,
        pre_hook: Callable[[dict[str, Any]], object] | None = None,
        **constants: Any,
    ) -> None:
        self.kwargs: dict[str, Any] = {**(kwargs or {}), **constants}
        self.pre_hook = pre_hook

    def all_kwargs(self) -> dict[str, Any]:
        """Return a copy of all values by name."""
        return dict(self.kwargs)

    @property
    def texts(self) -> dict[str, str]:
        """The values as texts that are the same in every process."""
        return {name: text_of(value) for name, value in self.kwargs.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name}={text}" for name, text in self.texts.items())

    def __repr__(self) -> str:
        return f"Config({self})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self.texts == other.texts and self.pre_hook is other.pre_hook

    def __hash__(self) -> int:
        return hash(tuple(self.texts.items()))


def text_of(value: object) -> str:
    """Return a value as a text that is the same in every process."""
    name = getattr(value, "__qualname__", None)  # of a function: its address may change
    return name if isinstance(name, str) else repr(value)


def all_configs(
    configs: Iterable[Config | Mapping[str, Any]] | None,
    spaces: Mapping[str, Sequence[Any]],
) -> list[Config]:
    """Return the given configs, combined with all combinations of the spaces' values.

    Raises:
        LaunchError: the result sets no constant, or an argument has a wrong type.
    """
    for name, values in spaces.items():
        if isinstance(values, str) or not isinstance(cast("object", values), Iterable):
            raise LaunchError(
                f"`{name}=` of `autotune` is {values!r}, but must be a list of values",
                code=DECLARED_WRONG,
                help=f"write {name}=[...]; a single value belongs into the launch",
            )
    points = [dict(zip(spaces, each)) for each in product(*spaces.values())]
    given = [Config()] if configs is None else [_config(each) for each in configs]
    found = [
        Config({**config.kwargs, **point}, pre_hook=config.pre_hook)
        for config in given
        for point in points
    ]
    if not found or not any(config.kwargs for config in found):
        problem = "`autotune` has nothing to choose from"
        help_ = "write configs=[xetl.Config(BM=64), ...], or values: BM=[64, 128]"
        raise LaunchError(problem, DECLARED_WRONG, help_)
    return list(dict.fromkeys(found))


def _config(given: object) -> Config:
    if isinstance(given, Config):
        return given
    if isinstance(given, Mapping):
        return Config(cast("Mapping[str, Any]", given))
    kwargs: Any = getattr(given, "kwargs", None)
    if isinstance(kwargs, dict):  # triton.Config; its other fields have no use here
        return Config(cast("dict[str, Any]", kwargs))
    problem = f"`configs` of `autotune` holds {given!r}, which is no config"
    help_ = "write configs=[xetl.Config(BM=64), ...]"
    raise LaunchError(problem, DECLARED_WRONG, help_)


def check_names(parameters: Parameters, names: Iterable[str], what: str) -> None:
    """Check that a kernel has parameters of these names.

    ``what`` says in the error where the names are from.

    Raises:
        LaunchError: a parameter is missing.
    """
    known = parameters.names
    for name in names:
        if name not in known:
            kernel = parameters.kernel
            problem = f"{what} name `{name}`, but `{kernel}` has no such parameter"
            near = triton_option(name) or did_you_mean(name, known)
            help_ = near or f"its parameters are {', '.join(known)}"
            raise LaunchError(problem, DECLARED_WRONG, help_)


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
