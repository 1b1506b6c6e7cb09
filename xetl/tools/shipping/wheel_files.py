"""From kernels to a wheel: each compiled for every kind of processor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from xetl.backend import find_backend
from xetl.language.signature import ConstParam
from xetl.runtime.export import export
from xetl.tools.kernel_options import Asked
from xetl.tools.shipping.compiled_files import facts_of
from xetl.tools.shipping.grid_text import checked_grid, grid_text
from xetl.tools.shipping.wheel import wheel, wheel_name

_HOST = "host"
_PLAIN = (int, float, str, bool, type(None))


def wheel_files(
    kernels: Sequence[Asked],
    package: str,
    version: str,
    grid: str | None,
    output: Path,
) -> dict[Path, bytes]:
    """Compile the kernels; nothing is written yet.

    Args:
        kernels: at least one; their names must differ.
        package: the name of the wheel's package.
        version: of the wheel.
        grid: Python for the grid of the first kernel; None: the declared one.
        output: the wheel, or a folder for it.

    Raises:
        UsageError: what was asked for cannot be put into a wheel.
    """
    if not re.fullmatch(r"\d+(\.\w+)*", version, re.ASCII):
        raise click.BadParameter(f"`{version}` is no version", param_hint="--version")
    if grid is not None:
        try:
            grid = checked_grid(grid, _scope(kernels[0]))
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--grid") from None
    names = [_name(each) for each in kernels]
    if len(set(names)) < len(names):
        raise click.UsageError("two kernels of a wheel have the same name: rename one")
    files: dict[str, bytes] = {}
    facts = [
        _compiled(each, grid if index == 0 else None, files)
        for index, each in enumerate(kernels)
    ]
    if output.suffix != ".whl":
        output = output / wheel_name(package, version)
    return {output: wheel(package, version, facts, files)}


def _scope(found: Asked) -> Mapping[str, Any]:
    return {} if found.is_text else found.kernel.fn.__globals__


def _name(found: Asked) -> str:
    return getattr(found.kernel, "name", None) or found.kernel.__name__


def _compiled(
    found: Asked, grid: str | None, files: dict[str, bytes]
) -> dict[str, Any]:
    """The facts of a kernel; its code is added to ``files``."""
    name = _name(found)
    facts: dict[str, Any] = {}
    variants: list[Any] = []
    for target in _targets(found):
        made, signature, machine = export(
            found.kernel,
            found.signature,
            found.constants,
            name=name,
            backend=found.backend,
            target=target,
        )
        if not made.variant:
            why = f"no wheel can hold the code of backend `{found.backend}`"
            if made.suffix == ".spv":
                raise click.UsageError(
                    f"{why}, whose drivers are loaded by dpctl: put the package xetl "
                    f"there, or write files for your own loader: -o {name}.spv"
                )
            raise click.UsageError(
                f"{why} as it is set up: name a CPU, such as --target avx2, and unset "
                "XETL_XSMM"
            )
        facts = facts_of(found, signature, made, name, machine)
        facts["plain_constants"] = {
            p.name: p.value
            for p in signature.params
            if isinstance(p, ConstParam) and isinstance(p.value, _PLAIN)
        }
        variants.append(dict(made.variant))
        files |= made.wheel_files
    declared = None if found.is_text else grid_text(found.kernel)
    shown = ("kernel", "source", "xetl", "function", "arguments", "plain_constants")
    kept = {key: facts[key] for key in shown}
    kept["source"] = Path(facts["source"]).name  # a wheel goes to other machines
    return {**kept, "grid": grid or declared, "variants": variants}


def _targets(found: Asked) -> list[str]:
    """The one that was asked for, else all that do not depend on this machine."""
    if found.target is not None:
        return [found.target]
    return [each for each in find_backend(found.backend).targets if each != _HOST]
