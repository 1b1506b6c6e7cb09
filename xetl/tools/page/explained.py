"""From an explanation to its page: compiles once more and draws."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from xetl.backend import BackendBase, find_backend
from xetl.language.signature import Signature
from xetl.runtime.report import Explanation
from xetl.tools.page.page import page
from xetl.tools.page.stages import Stages, collect
from xetl.tools.performance.peak import Peak, measure_peak


def explained(
    said: Explanation,
    function: Callable[..., Any],
    signature: Signature,
    measures: bool,
) -> str:
    """The text of the page about ``function``.

    Args:
        said: what was found when it was compiled.
        function: the kernel's.
        signature: what it was compiled for.
        measures: whether to draw a roofline: of a GPU by its data sheet, of a CPU by
            measuring this machine.
    """
    backend = find_backend(said.backend)
    stages = collect(function, signature, backend, said.target)
    peak = _peak(stages, backend, said.target) if measures else None
    return page(said, stages, _span(function), peak)


def _peak(stages: Stages, backend: BackendBase, target: str) -> Peak | None:
    """As its maker says, or measured here."""
    dtypes = [each.dtype for each in stages.products] or ["f32"]
    said = backend.peak(target, dtypes[0])
    if said is not None:
        return Peak(*said)
    is_bf16 = "bf16" in dtypes
    return measure_peak("bf16" if is_bf16 else "f32") if backend.name == "cpu" else None


def _span(function: Callable[..., Any]) -> tuple[int, int]:
    """First and last line of a function in its file."""
    first = function.__code__.co_firstlineno
    lines = (line for *_, line in function.__code__.co_lines() if line is not None)
    return first, max(max(lines, default=first), _end(function))


def _end(function: Callable[..., Any]) -> int:
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):  # it was not written in a file
        return 0
    return first + len(lines) - 1
