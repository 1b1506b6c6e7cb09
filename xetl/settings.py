"""Every setting of xetl: one object, each field with an environment variable.

A field that was assigned wins over its variable; variables are read at each use, so
setting one in a running program counts from then on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from xetl.errors import LaunchError, did_you_mean, suggest

T = TypeVar("T")

# `os.environ` encodes and decodes at each access: 0.4 us. Behind it is this mapping.
environ: Mapping[bytes, bytes] | None = getattr(os.environ, "_data", None)
_set_now = None if environ is None else environ.keys()


class Setting(Generic[T]):
    """A field of `Config`: the variable behind it, how to read it, its default."""

    def __init__(self, variable: str, parse: Callable[[str], T], default: T) -> None:
        self.variable = variable
        self.parse = parse
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, config: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, config: Config, owner: type) -> T: ...
    def __get__(self, config: Config | None, owner: type) -> Setting[T] | T:
        if config is None:
            return self
        if self.name in config.assigned:
            return config.assigned[self.name]
        text = os.environ.get(self.variable, "")
        if not text:
            return self.default
        return self._parsed(text, f"the variable {self.variable}")

    def __set__(self, config: Config, value: T) -> None:
        given: object = value
        if isinstance(given, str):  # as the variable has it
            value = self._parsed(given, f"`xetl.config.{self.name}`")
        config.assign({**config.assigned, self.name: value})

    def _parsed(self, text: str, what: str) -> T:
        try:
            return self.parse(text)
        except ValueError as error:
            raise LaunchError(f"{what} is {text!r}: {error}", code="X0814") from None

    def __delete__(self, config: Config) -> None:
        rest = dict(config.assigned)
        rest.pop(self.name, None)
        config.assign(rest)


def _switch(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("it must be 1 or 0")


def _bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    unit = units.get(text[-1:].upper(), 1)
    number = text[:-1] if unit > 1 else text
    if not number.isdecimal():
        raise ValueError("it must be a number of bytes, such as 500M")
    return int(number) * unit


def _steps(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("it must be a number of steps, 0 for none")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError("it must be a positive number")
    return int(text)


def _products(text: str) -> str:
    if text not in ("inline", "libxsmm", "recording") and not text.startswith("/"):
        raise ValueError("it must be inline, libxsmm, recording, or a path from /")
    return text


def _override(text: str) -> tuple[str, Path]:
    name, equals, file = text.removeprefix("after:").partition("=")
    if not name or not equals or not file:
        raise ValueError("it must be after:<stage or pass>=FILE")
    return name.strip(), Path(file)


DpasSums = Literal["ordered", "pairwise"]


def _sums(text: str) -> DpasSums:
    if text in ("ordered", "pairwise"):
        return text
    raise ValueError("it must be ordered or pairwise")


class Config:
    """The settings; `xetl.config` is the only one."""

    backend = Setting[str | None]("XETL_BACKEND", str, None)
    """The backend of launches on host arrays that name none; None: cpu."""
    target = Setting[str | None]("XETL_TARGET", str, None)
    """The machine to compile for; None: the one we run on."""
    interpret = Setting("XETL_INTERPRET", _switch, default=False)
    """Whether every launch is run by the reference interpreter."""
    cache = Setting("XETL_CACHE", _switch, default=True)
    """Whether compiled kernels are kept on disk."""
    cache_dir = Setting[Path | None]("XETL_CACHE_DIR", Path, None)
    """The folder they are kept in; None: the user's cache folder."""
    cache_size = Setting("XETL_CACHE_SIZE", _bytes, default=1 << 30)
    """How many bytes they may take; those used least recently go first."""
    tuned_dir = Setting[Path | None]("XETL_TUNED_DIR", Path, None)
    """The folder of best configs (`xetl.autotune`), JSON files that can be checked in;
    None: ``tuned`` in the cache's folder."""
    dump = Setting[str | None]("XETL_DUMP", str, None)
    """Prints IR while compiling: ``after:<pass or stage>``, several, or ``all``."""
    override = Setting[tuple[str, Path] | None]("XETL_OVERRIDE", _override, None)
    """Puts a text in place of the IR: ``after:<stage or pass>=FILE``, of the kernel it
    is about; a tuple of both when it is assigned."""
    perf = Setting("XETL_PERF", _switch, default=False)
    """Whether ``perf`` is told the names and the code of kernels on the CPU:
    ``/tmp/perf-<process>.map``, ``/tmp/jit-<process>.dump``."""
    verify = Setting("XETL_VERIFY", _switch, default=False)
    """Whether the IR is verified after every pass, not only where most stages begin."""
    log = Setting("XETL_LOG", _switch, default=False)
    """Whether a launch on a device says on stderr which of its kernels it takes."""
    xsmm = Setting("XETL_XSMM", _products, default="inline")
    """What computes products on the CPU: ``inline``, xetl's own code; ``libxsmm``;
    ``recording``, NumPy that writes calls down; or the path of a libxsmm, or of a
    library with ``xsmm_*`` functions."""
    prefetch = Setting[int | None]("XETL_PREFETCH", _steps, None)
    """How many steps ahead loops around products ask for their tiles on a GPU, where
    the kernel does not do it itself; 0: not at all; None: a model of costs says."""
    dpas = Setting[DpasSums]("XETL_DPAS", _sums, default="ordered")
    """How products of an emulated matrix unit add up: ``ordered``, in the order of k;
    ``pairwise``, with subnormals of bf16 and tf32 as zeros. Hardware may do either."""
    ocloc = Setting[Path | None]("XETL_OCLOC", Path, None)
    """Intel's offline compiler, by its path; None: that of PATH or of the cache."""

    max_tile_elements = Setting("XETL_MAX_TILE_ELEMENTS", _count, default=1 << 24)
    """How many elements a tile or vector may have (X0212)."""
    max_unrolled = Setting("XETL_MAX_UNROLLED", _count, default=4096)
    """How many iterations of `static_range` a kernel may have, and how many inlined
    calls (X0605)."""
    max_constant_size = Setting("XETL_MAX_CONSTANT_SIZE", _count, default=1 << 16)
    """Bits of an integer, or items of a text, list or tuple, that a kernel may compute
    when it is compiled (X0316)."""

    reuse_constants = Setting("XETL_REUSE_CONSTANTS", _switch, default=False)
    """Whether `xetl.ops.matmul` prepacks a right operand that comes again, if it is a
    read-only NumPy array. Nobody may write to its elements through another view."""

    def __init__(self) -> None:
        self.assigned: dict[str, Any] = {}
        self.compiling_forbidden = False
        self._before = [self.assigned]

    def assign(self, values: dict[str, Any]) -> None:
        """Take these for all fields that were assigned.

        The same values are the same object again: native code looks at that only.
        """
        known = next((each for each in self._before if each == values), values)
        # The present one comes last, so it is never the one forgotten.
        rest = [each for each in self._before if each is not known]
        self._before = [*rest[-_MOST_BEFORE:], known]
        self.assigned = known

    if not TYPE_CHECKING:  # checkers know the fields

        def __setattr__(self, name: str, value: object) -> None:
            known = [each for each, s in vars(Config).items() if isinstance(s, Setting)]
            if name not in (*known, "assigned", "compiling_forbidden", "_before"):
                problem = f"`xetl.config` has no field `{name}`"
                raise LaunchError(problem, "X0814", did_you_mean(name, known))
            super().__setattr__(name, value)

    @property
    def of_code(self) -> tuple[object, ...]:
        """The settings that code depends on: part of the keys of all caches."""
        return self.prefetch, self.override, self.dpas


_MOST_BEFORE = 16
_PREFIX = "XETL_"

config = Config()


def variables() -> dict[str, str]:
    """The ``XETL_*`` variables that are set, known or not."""
    return {n: os.environ[n] for n in sorted(os.environ) if n.startswith(_PREFIX)}


def misspelt_variables() -> dict[str, str | None]:
    """The ``XETL_*`` variables that are set and no settings: what was meant, if near.

    Programs may have such variables of their own: what follows ``XETL_`` must be near.
    """
    every = vars(Config).values()
    ours = {each.variable for each in every if isinstance(each, Setting)}
    known = {variable.removeprefix(_PREFIX) for variable in ours}
    unknown = {n.removeprefix(_PREFIX) for n in variables()} - known
    found = {name: suggest(name, known) for name in sorted(unknown)}
    hints = {name: m and f"did you mean `{_PREFIX}{m}`?" for name, m in found.items()}
    return {_PREFIX + name: hint for name, hint in hints.items()}


@contextmanager
def no_compile() -> Generator[None]:
    """Inside, a launch that would have to compile raises a LaunchError."""
    before = config.compiling_forbidden
    config.compiling_forbidden = True
    try:
        yield
    finally:
        config.compiling_forbidden = before


def launch_state() -> object:
    """Equal as long as the settings that decide where a kernel runs are the same."""
    if environ is None or _set_now is None:
        return (os.environ.copy(), config.assigned)
    if _set_now.isdisjoint(DECIDING):  # the likely case, in one call
        return (*_UNSET, config.assigned)
    return (*map(environ.get, DECIDING), config.assigned)


DECIDING = (
    b"XETL_BACKEND",
    b"XETL_TARGET",
    b"XETL_INTERPRET",
    b"XETL_XSMM",
    b"XETL_PREFETCH",
)
_UNSET = (None,) * len(DECIDING)
