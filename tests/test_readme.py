"""The README's example runs as it stands, and its two commands exist."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_example_runs(tmp_path):
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(snippet)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_error_it_shows_is_the_one_that_is_raised(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```\n(error.*?)```", README, re.DOTALL)
    assert snippet.count("[0, n], (BK, BN)") == 1
    (tmp_path / "gemm.py").write_text(
        snippet.replace("[0, n], (BK, BN)", "[0, n], (BN, BK)")
    )
    ran = subprocess.run(
        [sys.executable, "gemm.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.stderr.endswith(shown)


def test_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "docs/index.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
