"""What commands about a kernel take: the kernel, its signature, constants, target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from xetl.backend import backend_names, find_backend
from xetl.runtime.select_backend import choose_backend
from xetl.tools.kernel_files import constants, find_kernel, split_words

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Asked:
    """A kernel and what to compile it for.

    Attributes:
        kernel: of Python or of a text.
        signature: the signature string, empty if there is none.
        constants: compile-time values by name.
        backend: its name.
        target: the machine, or None for the one launches use.
    """

    kernel: Any
    signature: str
    constants: Mapping[str, Any]
    backend: str
    target: str | None

    @property
    def is_text(self) -> bool:
        """Whether the kernel was written as IR: its types are its signature."""
        return not hasattr(self.kernel, "fn")

    @property
    def arguments(self) -> tuple[str, ...]:
        """What stands for the arguments of a launch."""
        return () if self.is_text else (self.signature,)


def about_a_kernel(command: F) -> F:
    """Give a command the parameters ``place``, ``words``, ``target``, ``backend``."""
    words = click.argument("words", nargs=-1, metavar="[SIGNATURE] [NAME=VALUE]...")
    place = click.argument("place", metavar="FILE:KERNEL", shell_complete=_files)
    return place(words(about_a_machine(command)))


def about_a_machine(command: F) -> F:
    """Give a command the options ``target`` and ``backend``."""
    decorate = (
        click.option(
            "--target",
            help="The machine, such as avx512, amx, pvc.",
            shell_complete=_targets,
        ),
        click.option(
            "--backend",
            help="By default the one that has the target.",
            shell_complete=_backends,
        ),
    )
    for each in reversed(decorate):
        command = each(command)
    return command


def _files(*_: Any) -> list[CompletionItem]:
    return [CompletionItem(None, type="file")]  # the shell lists them


def _targets(_: object, __: object, typed: str) -> list[str]:
    names = (name for each in backend_names() for name in find_backend(each).targets)
    return [name for name in names if name.startswith(typed)]


def _backends(_: object, __: object, typed: str) -> list[str]:
    return [name for name in backend_names() if name.startswith(typed)]


def asked(
    place: str, words: tuple[str, ...], target: str | None, backend: str | None
) -> Asked:
    """Find the kernel and read the rest.

    Raises:
        BadParameter: the command line is wrong.
        LaunchError: there is no such backend or target.
    """
    kernel, names = find_kernel(place)
    signature, rest = split_words(words)
    values = constants(rest, names)
    chosen = choose_backend(backend, target=target).name
    found = Asked(kernel, signature or "", values, chosen, target)
    if found.is_text and (signature is not None or rest):
        why = "a kernel of a text takes no signature: its types say it all"
        raise click.BadParameter(why, param_hint="SIGNATURE")
    return found
