"""Write docs/architecture.md from the pipelines: `python docs/architecture.py`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from xetl import compiler, pipeline, xetile
from xetl.backend import BackendBase, find_backend
from xetl.language.dtypes import f32
from xetl.language.signature import ArrayParam, Signature

PAGE = Path(__file__).with_suffix(".md")
WIDTH = 110
TARGETS = {"reference": "interpreter", "cpu": "avx2", "xegpu": "pvc"}
COMMON = [each.name for each in pipeline.common_passes(find_backend("cpu"), "avx2")]

HEAD = """# Architecture: the stages of a kernel

`python docs/architecture.py` writes this page; a test compares it with the pipelines.

A kernel is a Python function. The front end (`xetl/frontend`) turns its syntax tree
into a module of XeTile operations. `xetl/pipeline.py` runs the passes: first the passes
that every backend shares, then those of the backend. A *stage* is a point between
passes where the set of legal operations is known (`xetl/transforms/stages.py`); the
module is verified there. After the last stage the backend generates code.
`kernel.ir("stage", ...)` returns the text of the module at a stage, and
`kernel.ir("pass-name", ...)` that of the module after a pass.
"""

SOURCE = """@xetile.kernel
def double(X, Y):
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [8 * i, 0], (8, 16)))
    xetile.store_tile(x * 2, xetile.init_tile(Y, [8 * i, 0], (8, 16)))
"""


@xetile.kernel
def double(X, Y):  # noqa: D103, N803
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [8 * i, 0], (8, 16)))
    xetile.store_tile(x * 2, xetile.init_tile(Y, [8 * i, 0], (8, 16)))


def picture() -> Iterator[str]:
    """Yield a chart of the stages. An arrow is labelled with its number of passes."""
    yield "```mermaid"
    yield "flowchart TD"
    yield '  python["Python function"] -->|front end| frontend["frontend"]'
    yield f'  frontend -->|"{len(COMMON)} passes"| xetile["xetile"]'
    for name, target in TARGETS.items():
        last, count, backend = "xetile", 0, find_backend(name)
        for each in backend.passes(target):
            count += 1
            stage = backend.stage_after(each.name)
            if stage is not None:
                own = f"{name}_{stage}".replace("-", "_")
                yield f'  {last} -->|"{name}: {count} passes"| {own}["{stage}"]'
                last, count = own, 0
        known = pipeline.pipeline_of(backend, target).names()
        code = ", ".join(s for s in backend.stages if s not in known) or "NumPy"
        after = f"{count} passes, build" if count else "build"
        yield f'  {last} -->|"{name}: {after}"| {name}["{code}"]'
    yield "```"


def passes(backend: BackendBase, target: str) -> Iterator[str]:
    """Yield the passes of a backend. The name of a stage is bold where it begins."""
    names: list[str] = []
    for each in backend.passes(target):
        stage = backend.stage_after(each.name)
        names.append(f"`{each.name}`" + (f" → **{stage}**" if stage else ""))
    text = ", ".join(names) or "none: the interpreter runs the stage `xetile`"
    yield from textwrap.wrap(
        f"* {backend.name} ({target}): {text}.",
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def stages() -> Iterator[str]:
    """Yield the kernel at each stage of each backend."""
    params = (ArrayParam("X", f32, 2, 1), ArrayParam("Y", f32, 2, 1))
    for name, target in TARGETS.items():
        backend = find_backend(name)
        module = compiler.build(double.fn, Signature(params), backend, target)
        for step in pipeline.lower(module, backend, target):
            if step.stage is None or (step.stage == "xetile") != (name == "reference"):
                continue
            where = f"({name}, {target}), after `{step.name}`"
            if step.stage == "xetile":
                where = "(on every backend)"
            yield f"\n### Stage `{step.stage}` {where}"
            yield "\n```mlir"
            for line in str(module).splitlines():
                indent = " " * (len(line) - len(line.lstrip()) + 6)
                yield from textwrap.wrap(
                    line, WIDTH, subsequent_indent=indent, break_on_hyphens=False
                )
            yield "```"


def page() -> str:
    """Return the text of docs/architecture.md."""
    lines = [HEAD, "## The stages\n", *picture(), "\n## The passes\n"]
    common = ", ".join(f"`{name}`" for name in COMMON)
    lines.append(f"* every backend: {common} → **xetile**.")
    for name, target in TARGETS.items():
        lines += passes(find_backend(name), target)
    lines += ["\n## One kernel at each stage\n", f"```python\n{SOURCE}```", *stages()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
