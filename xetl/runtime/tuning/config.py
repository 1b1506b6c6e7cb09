"""Configs: the values of a kernel's constants that autotuning chooses among."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, cast

from xetl.errors import LaunchError, did_you_mean
from xetl.runtime.parameters import Parameters, triton_option

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
