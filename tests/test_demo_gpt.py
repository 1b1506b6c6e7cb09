"""The small GPT of the tutorials: its losses are torch's, it learns, and it writes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "tutorials" / "demo_gpt.py"


def run(folder, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_few_steps_agree_with_torch(tmp_path):
    for needed in ("torch", "matplotlib"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    said = run(tmp_path, DEMO, "--quick", "--plot")
    difference = re.search(r"the largest difference of 20 losses: ([\d.]+)", said)
    assert float(difference[1]) < 0.03
    losses = re.search(r"loss after 20 steps: ([\d.]+), torch ([\d.]+)", said)
    assert max(map(float, losses.groups())) < 4.5
    assert "Return the " in said
    assert (tmp_path / "demo_gpt.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_it_says_that_torch_is_missing(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError")
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    said = run(tmp_path, DEMO, PYTHONPATH=path)
    command = f"{sys.executable} -m pip install -e '.[torch]'"
    assert said == (
        f"torch is not installed: this demo needs it (in the clone: {command})\n"
    )
