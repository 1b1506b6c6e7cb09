"""The demo of `make demo`, with less training, learns to read and draws its picture."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DEMO = Path(__file__).parents[1] / "tutorials" / "demo_digits.py"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder it ran in, and what it printed."""
    for needed in ("sklearn", "matplotlib", "rich"):
        pytest.importorskip(needed, reason="the extra `demo` is not installed")
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, DEMO, "--quick"],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_reads_more_than_95_percent_of_unseen_digits(demo):
    accuracy = re.search(r"test accuracy ([\d.]+)% on 360 unseen digits", demo[1])
    assert float(accuracy[1]) > 95


def test_shows_the_loop_and_the_brgemm_it_became(demo):
    assert demo[1].index("scf.for") < demo[1].index("xetile.tile_mma")
    assert "xsmm.brgemm" in demo[1]


def test_checks_its_gradients(demo):
    assert "gradients agree with NumPy in double precision" in demo[1]


def test_draws_a_picture(demo):
    assert (demo[0] / "demo_digits.png").read_bytes().startswith(b"\x89PNG")
