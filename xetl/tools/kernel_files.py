"""``FILE:KERNEL`` and ``NAME=VALUE``: how commands name kernels and constants.

`about_a_kernel` adds the parameters of such commands: the kernel, its signature, its
constants, the target.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import click

from xetl.backend import backend_names, find_backend
from xetl.errors import XetlError, did_you_mean
from xetl.runtime.placement import choose_backend

PLACE = "FILE:KERNEL"
_CONSTANT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PREFIX = "xetl_file_"
"""The prefix of the module name of a file, so that it hides no other module."""


def find_kernel(
    place: str, also: tuple[type, ...] = ()
) -> tuple[Any, Mapping[str, Any]]:
    """Return the kernel of ``FILE:KERNEL``, and the global names of its file.

    FILE is a Python file, a text of XeTile IR (``.mlir``) or a module such as
    ``package.module``. ``:KERNEL`` may be left out if there is only one kernel. Objects
    of the types ``also`` are found as kernels are.

    Raises:
        BadParameter: there is no such file or kernel.
    """
    file, colon, name = place.rpartition(":")
    if not colon:
        file, name = place, ""
    if file.endswith(".mlir"):
        kernels, names = _of_text(file), {}
    else:
        names = vars(_module(file))
        kinds = (importlib.import_module("xetl.runtime.kernel").Kernel, *also)
        kernels = {n: each for n, each in names.items() if isinstance(each, kinds)}
    return _choose(kernels, name, file), names


def find_file(place: str) -> Path:
    """Return the file of ``FILE:KERNEL`` or of a module; a BadParameter if none is."""
    file = place.rpartition(":")[0] if ":" in place else place
    if Path(file).is_file():
        return Path(file).resolve()
    found = getattr(sys.modules.get(file), "__file__", None)
    if found is None:
        raise _no_file(file)
    return Path(found)


def _of_text(file: str) -> Mapping[str, Any]:
    library: Any = importlib.import_module("xetl.runtime.library")
    path = _existing(file)
    try:
        return library.load_mlir(path.read_text("utf-8"))
    except XetlError as error:
        error.file = file  # `load_mlir` gets a text, and does not know the file
        raise


def _module(file: str) -> ModuleType:
    """Import a file, or a module by its name."""
    is_name = not file.endswith(".py") and re.fullmatch(r"\w+(\.\w+)+|\w+", file)
    try:
        if is_name and not Path(file).exists():
            sys.path.insert(0, "")
            return importlib.import_module(file)
        return _import_file(_existing(file))
    except (click.ClickException, XetlError):
        raise
    except ModuleNotFoundError as error:
        if f"{file}.".startswith(f"{error.name}."):
            raise _no_file(file) from None
        raise _broken(file, error) from None
    except (Exception, SystemExit) as error:
        raise _broken(file, error) from None


def _import_file(path: Path) -> ModuleType:
    """Import a file as a module. Its folder comes first in the path, as a script's."""
    name = _PREFIX + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"`{path}` is no Python file", param_hint=PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def _existing(file: str) -> Path:
    path = Path(file)
    if not path.is_file():
        raise _no_file(file)
    return path.resolve()


def _no_file(file: str) -> click.BadParameter:
    return click.BadParameter(f"there is no file `{file}`", param_hint=PLACE)


def _broken(file: str, error: BaseException) -> click.ClickException:
    """Return the error for a failed import; its traceback begins in the file."""
    frames, name = error.__traceback__, Path(file).stem.rpartition(".")[2]
    while frames and Path(frames.tb_frame.f_code.co_filename).stem != name:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
    return click.ClickException(f"`{file}` cannot be imported:\n{text}")


def _choose(kernels: Mapping[str, Any], name: str, file: str) -> Any:
    if name in kernels:
        return kernels[name]
    if not name and len(kernels) == 1:
        return next(iter(kernels.values()))
    listed = ", ".join(f"`{file}:{each}`" for each in kernels)
    if not kernels:
        why = f"`{file}` has no kernels: they are decorated with `@xetile.kernel`"
    elif name:
        hint = did_you_mean(name, kernels) or f"there are {listed}"
        why = f"`{file}` has no kernel called `{name}`; {hint}"
    else:
        why = f"`{file}` has {len(kernels)} kernels; write {listed}"
    raise click.BadParameter(why, param_hint=PLACE)


def split_words(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the signature, or None, and the words of the constants behind it."""
    if words and not _CONSTANT.fullmatch(words[0]):
        return words[0], list(words[1:])
    return None, list(words)


def constants(words: Sequence[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate words ``NAME=VALUE`` as Python, with the names of the kernel's file.

    Args:
        words: such as ``BM=128``, ``EPILOGUE=gelu``, ``OUT=f16``, ``MODE='fast'``.
        names: names that the values may use, besides those of `xetl.xetile`.

    Raises:
        BadParameter: a word has another form, or its value cannot be evaluated.
    """
    xetile: Any = importlib.import_module("xetl.xetile")
    known: dict[str, Any] = {**vars(xetile), "xetile": xetile, **names}
    return dict(_constant(word, known) for word in words)


def read_grid(text: str | None, names: Mapping[str, Any], kernel: Any = None) -> Any:
    """Evaluate the grid of ``--grid`` as Python, with the names of the kernel's file.

    Args:
        text: the expression; None: the declared grid.
        kernel: the kernel, if it will be launched and so needs a grid.

    Raises:
        BadParameter: the text cannot be evaluated, or a grid function fails later.
        UsageError: there is no text, and ``kernel`` declares no grid.
    """
    if text is None:
        if kernel is not None and kernel.grid is None:
            name = kernel.fn.__name__
            why = f'`{name}` declares no grid: give one, such as --grid "(8, 8)"'
            raise click.UsageError(why)
        return None
    grid = constants([f"grid={text}"], names)["grid"]
    if not callable(grid):
        return grid

    def checked(arguments: Any) -> object:
        try:
            return grid(arguments)
        except Exception as error:
            why = f"`{text}` fails: {type(error).__name__}: {error}"
            raise click.BadParameter(why, param_hint="--grid") from None

    return checked


def _constant(word: str, known: dict[str, Any]) -> tuple[str, Any]:
    match = _CONSTANT.fullmatch(word)
    if match is None:
        why = f"`{word}` is no constant; write NAME=VALUE, such as BM=128, and the"
        why += ' signature as one word: "f32[M,N] f32[N]"'
        raise click.BadParameter(why, param_hint="NAME=VALUE")
    name, text = match.groups()
    try:
        return name, eval(text, dict(known))
    except NameError as error:
        hint = did_you_mean(str(error.name), known) or f"a text has quotes: '{text}'"
        why = f"`{error.name}` of `{word}` is not defined; {hint}"
    except Exception as error:
        why = f"`{word}` cannot be read: {type(error).__name__}: {error}"
    raise click.BadParameter(why, param_hint="NAME=VALUE")


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asked:
    """A kernel and what to compile it for.

    Attributes:
        kernel: a kernel of Python or of a text.
        signature: the signature string; empty if there is none.
        constants: compile-time values by name.
        backend: the name of the backend.
        target: the machine; None: the one that launches use.
        names: the global names of the kernel's file.
    """

    kernel: Any
    signature: str
    constants: Mapping[str, Any]
    backend: str
    target: str | None
    names: Mapping[str, Any]

    @property
    def is_text(self) -> bool:
        """Whether the kernel was written as IR, whose types are its signature."""
        return not hasattr(self.kernel, "fn")

    @property
    def arguments(self) -> tuple[str, ...]:
        """The positional arguments of methods of the kernel such as ``ir``."""
        return () if self.is_text else (self.signature,)

    @property
    def options(self) -> dict[str, Any]:
        """The other arguments of the kernel's methods, by name."""
        return {"target": self.target, "backend": self.backend, **self.constants}

    @property
    def name(self) -> str:
        """Return the name of the kernel."""
        return getattr(self.kernel, "name", None) or self.kernel.__name__


def about_a_kernel(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameters of `about_a_place`, read by `asked`."""

    @wraps(command)
    def called(**given: Any) -> None:
        own = [given.pop(name) for name in ("place", "words", "target", "backend")]
        command(asked(*own), **given)

    return about_a_place(called)


def about_a_place(command: F) -> F:
    """Give a command the parameters ``place``, ``words``, ``target``, ``backend``."""
    words = click.argument("words", nargs=-1, metavar="[SIGNATURE] [NAME=VALUE]...")
    place = click.argument("place", metavar=PLACE, type=click.Path())
    return place(words(about_a_machine(command)))


def about_a_launch(command: F) -> F:
    """Give a command the parameters ``sizes`` (by name) and ``grid`` (a text)."""
    sizes = click.option(
        "--size",
        "sizes",
        metavar="NAME=NUMBER",
        multiple=True,
        callback=_read_sizes,
        help="An extent of the arrays that are timed, such as `--size M=1024`.",
    )
    grid = click.option("--grid", help="The grid, in Python; by default the declared.")
    return sizes(grid(command))


def _read_sizes(_: object, __: object, words: Sequence[str]) -> dict[str, int]:
    """Read words such as ``M=1024``; a BadParameter if one has another form."""
    found: dict[str, int] = {}
    for word in words:
        name, equals, number = word.partition("=")
        if not equals or not name.isidentifier() or not number.isdecimal():
            problem = f"`{word}` is not NAME=NUMBER"
            raise click.BadParameter(problem, param_hint="--size")
        found[name] = int(number)
    return found


def about_a_machine(command: F) -> F:
    """Give a command the options ``target`` and ``backend``."""
    help_ = "The machine, such as avx512, amx, pvc."
    target = click.option("--target", help=help_, shell_complete=_targets)
    help_ = "The backend; by default the one that has the target."
    backend = click.option("--backend", help=help_, shell_complete=_backends)
    return target(backend(command))


def _targets(_: object, __: object, typed: str) -> list[str]:
    names = (name for each in backend_names() for name in find_backend(each).targets)
    return [name for name in names if name.startswith(typed)]


def _backends(_: object, __: object, typed: str) -> list[str]:
    return [name for name in backend_names() if name.startswith(typed)]


def asked(
    place: str, words: tuple[str, ...], target: str | None, backend: str | None
) -> Asked:
    """Find the kernel, and read signature, constants, target and backend.

    Raises:
        BadParameter: the command line is wrong.
        LaunchError: there is no such backend or target.
    """
    kernel, names = find_kernel(place)
    signature, rest = split_words(words)
    values = constants(rest, names)
    chosen = choose_backend(backend, target=target).name
    found = Asked(kernel, signature or "", values, chosen, target, names)
    if found.is_text and (signature is not None or rest):
        why = "a kernel of a text takes no signature: its types say it all"
        raise click.BadParameter(why, param_hint="SIGNATURE")
    return found
