"""Gather the pages of the site in build/docs, for Sphinx.

* the pages of docs/, README.md as the first one, CONTRIBUTING.md and others;
* each tutorial, cell by cell, with its output and its pictures;
* pictures of the language's operations (`figures`), and the passes (`design`);
* the API from the docstrings.

`--quick` is passed on to the tutorials: the demo trains less.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import design
import figures

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "build" / "docs"
TUTORIALS = [
    *sorted((ROOT / "tutorials").glob("[0-9]*.py")),
    ROOT / "tutorials" / "puzzles.py",
    ROOT / "tutorials" / "demo_gpt.py",
]

PAGES = {
    "Learn": ["language", "ops", "migration", "tools"],
    "Facts": [
        "performance",
        *sorted(page.stem for page in (ROOT / "docs").glob("performance-*.md")),
        "reliability",
        "gpu",
        "xetile",
    ],
    "Inside": [
        "folders",
        "architecture",
        "passes",
        "backend_xegpu",
        "contributing",
        "changes",
    ],
}
"""Pages that are files of the repository, by the heading of the list they are in."""

API = {
    "Operations": "xetl.language.ops",
    "Arrays, tiles, vectors": "xetl.language.values",
    "Types": "xetl.language.dtypes",
    "Maps": "xetl.language.maps",
    "Kernels": "xetl.runtime.kernel",
    "Functions": "xetl.ops",
    "Tuning": "xetl.runtime.tuning.decorators",
    "Measuring": "xetl.runtime.measure",
    "Settings": "xetl.settings",
    "Errors": "xetl.errors",
}
FROM = {
    "index.md": "README.md",
    "folders.md": "docs/index.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
    "backend_xegpu.md": "backends/xegpu/README.md",
}
"""Pages of the site whose name differs in the repository."""

MOVED = {
    **{file: page for page, file in FROM.items()},
    "index.md": "folders.md",
    "docs/errors": "errors/index.md",
    "errors": "errors/index.md",
    "docs/design": "design/0001-seams.md",
    "design": "design/0001-seams.md",
    "tutorials": "tutorials/01_vector_add.md",
    "tutorials/demo_gpt.py": "tutorials/demo_gpt.md",
}
"""Where files of the repository are in the site; folders have a first page."""


def write(page: str, text: str) -> None:
    """Write a page, with links and fences converted for the site."""
    path = SOURCE / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if "/" in page else with_links(text))


def with_links(text: str) -> str:
    """Return a page of the repository with its links converted for the site."""

    def moved(found: re.Match[str]) -> str:
        target = re.sub(r"^(\.\./)+", "", found[1]).rstrip("/")
        return f"]({MOVED.get(target, target.removeprefix('docs/'))})"

    return re.sub(r"\]\((?!https?:|#)([\w./-]+)\)", moved, text)


def cells(path: Path) -> list[tuple[str, int, str]]:
    """The cells of a script in percent format: kind, line from 0, text."""
    lines = path.read_text().splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("# %%")]
    found = [("code", 0, "\n".join(lines[: starts[0]]))]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        kind = "text" if "[markdown]" in lines[start] else "code"
        text = "\n".join(lines[start + 1 : end])
        blank = len(text) - len(text.lstrip("\n"))
        found.append((kind, start + 1 + blank, text.strip("\n")))
    return found


def run(path: Path, folder: Path) -> list[str | None]:
    """Return the output of each cell, None if it does not run; pictures go to a folder.

    Raises:
        SystemExit: a cell fails; names tutorial, cell and line.
    """
    script = Path(__file__).with_name("run_cells.py")
    every = json.dumps([each[1:] for each in cells(path) if each[0] == "code"])
    quick = [each for each in sys.argv if each == "--quick"]
    command = [sys.executable, str(script), str(path), *quick]
    done = subprocess.run(
        command, input=every, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{path.name}: {done.stderr}")
    return json.loads(done.stdout)


def tutorial(path: Path) -> None:
    """Write the page of a tutorial.

    Raises:
        SystemExit: a cell fails, or does not draw its picture.
    """
    printed: list[str | None] = []
    with tempfile.TemporaryDirectory() as folder:
        printed += run(path, Path(folder))
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, SOURCE / "tutorials")
    _, *others = cells(path)
    head = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    title, what = head.split("  You will: ")
    parts = [f"# {title.rstrip('.')}", f"You will {what}"]
    outputs = iter(printed[1:])
    for kind, start, text in others:
        if kind == "text":
            parts.append(re.sub(r"(?m)^# ?", "", text))
            continue
        parts.append(
            f"```{{code-block}} python\n:lineno-start: {start + 1}\n{text}\n```"
        )
        if (output := next(outputs)) is None:
            continue  # the tutorial needs what is not installed, and has said so
        if output:
            output = output.replace(f"{ROOT}/", "").rstrip()
            parts.append(f"```text\n{output}\n```")
        for picture in re.findall(r'(?:savefig\(|roofline=)"([^"]+)"', text):
            if not (SOURCE / "tutorials" / picture).exists():
                raise SystemExit(f"{path.name}: {picture} was not drawn")
            parts.append(f"![what the cell draws]({picture})")
    write(f"tutorials/{path.stem}.md", "\n\n".join(parts) + "\n")


def toctree(caption: str, pages: Iterable[str]) -> str:
    """Return the list of pages under a heading in the sidebar."""
    return "\n".join(
        ["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"]
    )


def undocumented(module: str) -> list[str]:
    """The public functions and classes of a module that have no docstring."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [n for n in vars(found) if n[0] != "_"]
    objects = {name: getattr(found, name) for name in names}
    return [
        f"{module}.{name}"
        for name, each in objects.items()
        if inspect.isroutine(each) or inspect.isclass(each)
        if each.__module__.partition(".")[0] == found.__name__.partition(".")[0]
        if not inspect.getdoc(each)
    ]


def api() -> None:
    """Write a page for each module of the API, from its docstrings.

    Raises:
        SystemExit: a docstring is missing.
    """
    if missing := [name for module in API.values() for name in undocumented(module)]:
        raise SystemExit(f"without a docstring: {', '.join(missing)}")
    for name, module in API.items():
        is_package = (ROOT / module.replace(".", "/")).is_dir()
        option = "   :imported-members:\n" if is_package else ""
        directive = f".. automodule:: {module}\n{option}"
        text = f"# {name}\n\n```{{eval-rst}}\n{directive}```\n"
        write(f"api/{module}.md", text)


def illustrated(text: str, pictures: Mapping[str, str]) -> str:
    """Return the language page with each section's picture below its first paragraph.

    Raises:
        SystemExit: there is no such section.
    """
    for number, picture in pictures.items():
        text, count = re.subn(
            rf"(?m)^## {re.escape(number)} .*\n\n?(?:.+\n)+",
            lambda found: f"{found[0]}\n{picture}",  # noqa: B023 - called at once
            text,
        )
        if count != 1:
            raise SystemExit(f"docs/language.md has no section {number} for a picture")
    return text


def about_the_compiler() -> None:
    """Add pictures to the pages of the language and the stages; write the passes."""
    pictures = figures.write(SOURCE / "figures")
    (SOURCE / "figures" / "stages.svg").write_text(design.chart(), "utf-8")
    page = SOURCE / "language.md"
    page.write_text(illustrated(page.read_text("utf-8"), pictures), "utf-8")
    page = SOURCE / "architecture.md"
    shown = "![the stages, and the passes between them](figures/stages.svg)"
    chart = re.compile("^```mermaid$.*?^```$", re.MULTILINE | re.DOTALL)
    page.write_text(chart.sub(shown, page.read_text("utf-8")), "utf-8")
    write("passes.md", design.passes_page())


def copied() -> list[str]:
    """Copy the pages of the repository. Return the paths of the design pages."""
    for folder in ("design", "errors"):
        shutil.copytree(ROOT / "docs" / folder, SOURCE / folder)
    for page in (ROOT / "docs").glob("*.md"):
        write(page.name, page.read_text())
    for picture in (ROOT / "docs").glob("*.png"):
        shutil.copy(picture, SOURCE)
    for page, file in FROM.items():
        write(page, (ROOT / file).read_text())
    head = "# Errors\n\nEach error has a code; `xetl explain CODE` prints its page.\n\n"
    pages = sorted(path.name for path in (SOURCE / "errors").glob("X*.md"))
    tree = "\n".join(["```{toctree}", ":maxdepth: 1", "", *pages, "```", ""])
    write("errors/index.md", head + tree)
    return sorted(f"design/{path.name}" for path in (SOURCE / "design").glob("*.md"))


def main() -> None:
    """Gather everything anew."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    (SOURCE / "tutorials").mkdir(parents=True)
    decisions = copied()
    about_the_compiler()
    api()
    for path in TUTORIALS:
        tutorial(path)
    trees = {
        "Tutorials": [f"tutorials/{path.stem}" for path in TUTORIALS],
        **PAGES,
        "API": [f"api/{module}" for module in API.values()],
        "More": ["errors/index", *decisions],
    }
    with (SOURCE / "index.md").open("a") as file:
        file.write("\n".join(toctree(*each) for each in trees.items()))


if __name__ == "__main__":
    main()
