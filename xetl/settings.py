"""All settings of xetl: fields of one object, each with an environment variable.

An assigned field takes precedence over its variable. A variable is read at each use, so
a running program may set it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from xetl.errors import LaunchError, a_kind, did_you_mean, suggest

T = TypeVar("T")

# Each access of `os.environ` encodes and decodes: 0.4 us. This is the dict it wraps.
environ: Mapping[bytes, bytes] | None = getattr(os.environ, "_data", None)
_names_set = None if environ is None else environ.keys()


class Setting(Generic[T]):
    """A field of `Config`: its variable, the parser of its texts, its default."""

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
        if value is not None or self.default is not None:
            value = self._checked(value)
        config.assign({**config.assigned, self.name: value})

    def _checked(self, given: object) -> T:
        """Parse the text of a value as that of the variable; others must equal it."""
        what, text, kind = f"`xetl.config.{self.name}`", given, a_kind(given)
        if isinstance(given, tuple) and len(cast("tuple[object, ...]", given)) == 2:
            text = "{}={}".format(*cast("tuple[object, ...]", given))
        value = self._parsed(str(text), what)
        is_equal = isinstance(given, Number) and value == given
        if is_equal or isinstance(given, str | type(value)):
            return value
        help_ = f"assign what {self.variable} may be, as a text"
        raise LaunchError(f"{what} is {given!r}, {kind}", "X0814", help_)

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


def _folder(text: str) -> Path:
    """Return a path. Only a shell reads ``~`` as the home; files of settings do not."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no such user
        raise ValueError(f"it must be a folder: {error}") from None


def _number(text: str, least: int, what: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"it must be {what}")
    return int(text)


_steps = partial(_number, least=0, what="a number of steps, 0 for none")
_count = partial(_number, least=1, what="a positive number")


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
    """The backend of launches on host arrays that name no backend; None: cpu."""
    target = Setting[str | None]("XETL_TARGET", str, None)
    """The machine to compile for; None: this machine."""
    interpret = Setting("XETL_INTERPRET", _switch, default=False)
    """Whether the reference interpreter runs every launch."""
    cache = Setting("XETL_CACHE", _switch, default=True)
    """Whether compiled kernels are kept on disk."""
    cache_dir = Setting[Path | None]("XETL_CACHE_DIR", _folder, None)
    """The folder of compiled kernels; None: the user's cache folder."""
    cache_size = Setting("XETL_CACHE_SIZE", _bytes, default=1 << 30)
    """The most bytes that compiled kernels take on disk. The least recently used ones
    are removed first."""
    tuned_dir = Setting[Path | None]("XETL_TUNED_DIR", _folder, None)
    """The folder of the best configs of `xetl.autotune`: JSON files, which can be put
    under version control. None: ``tuned`` in the cache's folder."""
    dump = Setting[str | None]("XETL_DUMP", str, None)
    """Which IR is printed while compiling: ``after:<pass or stage>``, several of these,
    or ``all``."""
    override = Setting[tuple[str, Path] | None]("XETL_OVERRIDE", _override, None)
    """A file whose IR replaces that of its kernel: ``after:<stage or pass>=FILE``.
    Python code may also assign the tuple (stage or pass, file)."""
    perf = Setting("XETL_PERF", _switch, default=False)
    """Whether ``perf`` gets the names and the code of kernels on the CPU, in
    ``/tmp/perf-<process>.map`` and ``/tmp/jit-<process>.dump``."""
    verify = Setting("XETL_VERIFY", _switch, default=False)
    """Whether the IR is verified after every pass. Otherwise it is verified only at the
    beginning of most stages."""
    log = Setting("XETL_LOG", _switch, default=False)
    """Whether a launch on a device prints to stderr which of its kernels it runs."""
    xsmm = Setting("XETL_XSMM", _products, default="inline")
    """The code that computes products on the CPU: ``inline``, xetl's own code;
    ``libxsmm``; ``recording``, NumPy, which records the calls; or the path of a
    libxsmm, or of a library with ``xsmm_*`` functions."""
    prefetch = Setting[int | None]("XETL_PREFETCH", _steps, None)
    """How many iterations ahead loops with products prefetch their tiles on a GPU, if
    the kernel has no prefetches. 0: never; None: a cost model decides."""
    dpas = Setting[DpasSums]("XETL_DPAS", _sums, default="ordered")
    """How an emulated matrix unit adds products: ``ordered``, in the order of k;
    ``pairwise``, with subnormals of bf16 and tf32 as zeros. Hardware may do either."""
    ocloc = Setting[Path | None]("XETL_OCLOC", Path, None)
    """The path of Intel's offline compiler; None: the one in PATH or in the cache."""

    max_tile_elements = Setting("XETL_MAX_TILE_ELEMENTS", _count, default=1 << 24)
    """The most elements of a tile or vector (X0212)."""
    max_unrolled = Setting("XETL_MAX_UNROLLED", _count, default=4096)
    """The most iterations of `static_range` in a kernel, and the most inlined calls
    (X0605)."""
    max_constant_size = Setting("XETL_MAX_CONSTANT_SIZE", _count, default=1 << 16)
    """The most bits of an integer, or items of a text, list or tuple, that a kernel
    computes at compile time (X0316)."""

    reuse_constants = Setting("XETL_REUSE_CONSTANTS", _switch, default=False)
    """Whether `xetl.ops.matmul` prepacks a right operand that is passed again, if it is
    a read-only NumPy array. No other view may then write to its elements."""

    def __init__(self) -> None:
        self.assigned: dict[str, Any] = {}
        self.compiling_forbidden = False
        self._before = [self.assigned]

    def assign(self, values: dict[str, Any]) -> None:
        """Replace all assigned fields by ``values``.

        Equal values become the same dict again, because native code compares only its
        identity.
        """
        known = next((each for each in self._before if each == values), values)
        # The present dict comes last, so it is never the one that is dropped.
        rest = [each for each in self._before if each is not known]
        self._before = [*rest[-_MOST_BEFORE:], known]
        self.assigned = known

    def __repr__(self) -> str:
        """Return ``Config(backend=None, ...)`` with each field's present value."""
        values = (f"{name}={getattr(self, name)!r}" for name in _fields())
        return f"Config({', '.join(values)})"

    if not TYPE_CHECKING:  # checkers know the fields

        def __setattr__(self, name: str, value: object) -> None:
            known = _fields()
            if name not in (*known, "assigned", "compiling_forbidden", "_before"):
                problem = f"`xetl.config` has no field `{name}`"
                raise LaunchError(problem, "X0814", did_you_mean(name, known))
            super().__setattr__(name, value)

    @property
    def of_code(self) -> tuple[object, ...]:
        """The settings that compiled code depends on: part of each cache's keys."""
        return self.prefetch, self.override, self.dpas


def _fields() -> list[str]:
    return [name for name, each in vars(Config).items() if isinstance(each, Setting)]


_MOST_BEFORE = 16
_PREFIX = "XETL_"

config = Config()


def variables() -> dict[str, str]:
    """Return the ``XETL_*`` variables that are set, also those that are no settings."""
    return {n: os.environ[n] for n in sorted(os.environ) if n.startswith(_PREFIX)}


def misspelt_variables() -> dict[str, str | None]:
    """Return the ``XETL_*`` variables that are no settings, with a hint for each.

    The hint is None if no setting has a similar name: programs may have variables
    ``XETL_*`` of their own. The part behind ``XETL_`` must be similar.
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
    """Forbid compiling: inside, a launch that needs it raises a LaunchError."""
    before = config.compiling_forbidden
    config.compiling_forbidden = True
    try:
        yield
    finally:
        config.compiling_forbidden = before


def launch_state() -> object:
    """Return a value that changes with the settings that decide where a kernel runs."""
    if environ is None or _names_set is None:
        return (os.environ.copy(), config.assigned)
    if _names_set.isdisjoint(DECIDING):  # the usual case: none is set
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
