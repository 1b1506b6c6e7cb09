"""Write the site's pages about the compiler from the compiler's own pipelines.

* a picture of the stages, from the chart that docs/architecture.py writes;
* a page with each pass: its documentation, and its changes to one kernel.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xetl import compiler, pipeline, xetile
from xetl.backend import find_backend
from xetl.language.dtypes import f32
from xetl.language.signature import ArrayParam, Signature
from xetl.xetile import cdiv

ROOT = Path(__file__).parents[2]
TARGETS = {"cpu": "avx2", "xegpu": "pvc"}
MOST_LINES = 40
_EXAMPLE = re.compile(r"before:.*(\n|   )after:", re.IGNORECASE | re.DOTALL)

HEAD = """# The passes, before and after

This page is made from the code together with the site. For each backend it lists the
passes in the order in which they run, with the documentation from the file of the pass.
Below it are the changes of the pass to the following kernel: lines with `-` go, lines
with `+` come. Types and attributes are left out, and so are changes longer than {most}
lines; `kernel.ir("PASS", ...)` shows everything.

```python
{source}```
"""


@xetile.kernel(grid=lambda k: cdiv(k.C.shape[0], 32))
def gemm(A, B, C):  # noqa: N803
    """C = max(A @ B, 0), with tiles of 32 x 32."""
    m = xetile.program_id(0) * 32
    acc = xetile.zeros((32, 32), f32)
    for k in range(0, A.shape[1], 16):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (32, 16)))
        b = xetile.load_tile(xetile.init_tile(B, [k, 0], (16, 32)))
        acc = xetile.tile_mma(a, b, acc)
    tile = xetile.init_tile(C, [m, 0], (32, 32))
    xetile.store_tile(xetile.maximum(acc, 0), tile)


def passes_page() -> str:
    """Return the text of the page."""
    source = textwrap.dedent(inspect.getsource(gemm.fn)).replace("  # noqa: N803", "")
    parts = [HEAD.format(most=MOST_LINES, source=source), "## Every backend"]
    for number, (name, target) in enumerate(TARGETS.items()):
        common, *own = steps(name, target)
        parts += [] if number else list(common)
        parts.append(f"## {name}, {target}")
        parts += [part for each in own for part in each]
    return "\n\n".join(parts) + "\n"


def steps(name: str, target: str) -> Iterator[list[str]]:
    """The sections of the common passes, then of each pass of a backend."""
    backend = find_backend(name)
    params = [ArrayParam(each, f32, 2, 1) for each in "ABC"]
    module = compiler.build(gemm.fn, Signature(tuple(params)), backend, target)
    common = pipeline.common_passes(backend, target)
    by_name = {each.name: each for each in [*common, *backend.passes(target)]}
    before, known = short(module), set[str]()
    for step in pipeline.lower(module, backend, target):
        after = short(module)
        if step.name not in by_name:
            continue
        stage = "" if step.stage is None else f" → stage `{step.stage}`"
        found: list[str] = []
        for each in [by_name[step.name]] if known else common:
            found.append(f"### `{each.name}`{stage if each.name == step.name else ''}")
            if each.name not in known:
                # Passes of the CPU backend that are loaded late stand for others.
                late: Any = getattr(each, "load", None)
                kind = late() if late else type(each)
                found.append(documentation(kind.__module__))
            known.add(each.name)
        yield [*found, "```diff\n" + "\n".join(changes(before, after)) + "\n```"]
        before = after


def documentation(name: str) -> str:
    """Return the documentation of a module, and its path."""
    module = sys.modules[name]
    assert module.__doc__ is not None
    assert module.__file__ is not None
    package = name.partition(".")[0]
    folder = "" if package == "xetl" else f"backends/{package.removeprefix('xetl_')}/"
    place = folder + module.__file__[module.__file__.rindex(f"/{package}/") + 1 :]
    return f"`{place}`\n\n{as_markdown(module.__doc__)}"


def as_markdown(text: str) -> str:
    """Documentation of a pass: examples of IR, which keep their lines, and prose."""
    found: list[str] = []
    for part in text.strip("\n").split("\n\n"):
        if part.startswith(" ") or _EXAMPLE.match(part):
            example = textwrap.dedent(part).replace("``", "")
            found.append(f"```text\n{example}\n```")
        else:
            lines = re.sub("::$", ":", part.replace("``", "`"))
            found.append(re.sub(r"\n(?=\*\w[\w ]*\*[:,])", "\n\n", lines))
    return "\n\n".join(found)


def short(module: Any) -> list[str]:
    """Return the lines of a module without types and attributes."""
    found = [
        re.sub(r" : (?!index\b).*| <\{.*| attributes .*", "", line)
        for line in str(module).splitlines()
    ]
    return [line[:100] for line in found if line.strip(" {}")]


def changes(before: list[str], after: list[str]) -> list[str]:
    """Return the changes of a pass."""
    lines = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    lines = ["  ..." if line.startswith("@@") else line for line in lines]
    if not lines:
        return ["  (nothing to do in this kernel)"]
    rest = len(lines) - MOST_LINES
    return lines if rest <= 0 else [*lines[:MOST_LINES], f"  ... {rest} more lines"]


def chart() -> str:
    """Return the stages as SVG, with a column for each backend."""
    path = ROOT / "docs" / "architecture.py"
    spec = importlib.util.spec_from_file_location("architecture", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    arrow = re.compile(r'(\w+)(?:\["[^"]+"\])? -->\|"?([^|"]+)"?\| (\w+)\["([^"]+)"\]')
    edges = [found.groups() for found in map(arrow.search, script.picture()) if found]
    names = list(script.TARGETS)
    place: dict[str, tuple[int, int]] = {"python": (1, 0)}
    parts = [box("Python function", 1, 0)]
    for start, label, end, text in edges:
        column = next((i for i, n in enumerate(names) if end.startswith(n)), 1)
        first_column, row = place[start]
        place[end] = column, row + 1
        parts.append(link(first_column, row, column, label))
        parts.append(box(text, *place[end]))
    height = 70 * (1 + max(row for _, row in place.values())) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {height}"'
        f' width="660" height="{height}"><style>text{{font:13px sans-serif;fill:#222;'
        "text-anchor:middle}</style>"
        f'<rect width="660" height="{height}" rx="6" fill="#fff"/>{"".join(parts)}'
        "</svg>"
    )


def box(text: str, column: int, row: int) -> str:
    """A stage."""
    x, y = 220 * column + 40, 70 * row + 12
    return (
        f'<rect x="{x}" y="{y}" width="140" height="30" rx="5" fill="#8ecae6"'
        f' stroke="#888"/><text x="{x + 70}" y="{y + 20}">{text}</text>'
    )


def link(start: int, row: int, column: int, label: str) -> str:
    """Return a line to the stage below, labelled with the passes between them."""
    x, y, to = 220 * start + 110, 70 * row + 42, 220 * column + 110
    return (
        f'<path d="M{x} {y}L{to} {y + 40}" stroke="#888"/>'
        f'<rect x="{to - 70}" y="{y + 12}" width="140" height="18" fill="#fff"/>'
        f'<text x="{to}" y="{y + 26}">{label}</text>'
    )
