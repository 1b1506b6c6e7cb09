"""Every tutorial runs, with its asserts, and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.xegpu import device

TUTORIALS = Path(__file__).parents[1] / "tutorials"
EXPECTED = {
    "01_vector_add.py": "1 000 003 sums, equal to NumPy's",
    "02_softmax.py": "1823 rows agree with NumPy's",
    "03_gemm.py": "1000 x 700 x 900: equal to NumPy's, with and without ReLU",
    "04_workgroups.py": "512 bytes of shared memory, 2 barriers",
    "05_ready_made_products.py": "two layers agree with NumPy's in float64",
    "06_layer_norm.py": "layer norm of 3001 rows and its three gradients agree",
    "07_flash_attention.py": "333 long: equal to NumPy's, with and without a causal",
    "08_grouped_gemm.py": "rows: equal to NumPy's",
    "09_int8_and_fp8.py": "int8: sums equal to NumPy's",
    "10_split_k_and_atomics.py": "stream-K: 1, 2, 3 and 7 programs, all equal",
    "11_convolution.py": "stride 2: equal to NumPy's",
    "12_gather_and_sort.py": "sort and top-k of 1000 rows: equal to NumPy's",
    "13_random_and_dropout.py": "backward keeps what forward kept, and no mask",
    "14_under_the_hood_cpu.py": "bf16 and f32: equal to NumPy's",
    "15_under_the_hood_gpu.py": "shared memory: equal to NumPy's; 4096 bytes of SLM",
    "16_torch_model.py": "compiled: the same losses",
    "17_dpctl_queues.py": "USM memory: equal to NumPy's",
    "18_ahead_of_time.py": "the wheel: equal to NumPy's, and xetl was not loaded",
    "19_dask.py": "softmax of blocks: equal to NumPy's",
    "20_debugging.py": "repaired: equal to NumPy's",
    "21_tuning_and_rooflines.py": "GB/s (measured)",
}


ON_DEVICES = (
    "01_vector_add.py",
    "02_softmax.py",
    "04_workgroups.py",
    "06_layer_norm.py",
    "12_gather_and_sort.py",
    "13_random_and_dropout.py",
)
"""Those that are about no backend."""

NEEDS = {"16_torch_model.py": "torch", "19_dask.py": "distributed"}

WITH_PICTURES = [
    p.name for p in TUTORIALS.glob("[0-9]*.py") if "--plot" in p.read_text()
]


def run(name, folder, *arguments, **variables):
    return subprocess.run(
        [sys.executable, TUTORIALS / name, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_none_is_forgotten():
    assert {path.name for path in TUTORIALS.glob("[0-9]*.py")} == set(EXPECTED)


FIRST, *OTHERS = EXPECTED
EACH = [FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]


@pytest.mark.parametrize("name", EACH)
def test_tutorial_runs(name, tmp_path):
    if name == "17_dpctl_queues.py":
        device.require()
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert EXPECTED[name] in done.stdout
    assert list(tmp_path.iterdir()) == []


CHANGES = [
    ("01_vector_add.py", {"= 1000)": "= 10)", "(len(z), 1000)": "(len(z), 10)"}, 0),
    ("02_softmax.py", {", padding=-xetile.inf": "", "10 * rng": "rng"}, 1),
]
"""What tutorials propose under "Try it", and the exit code that they say."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "code"), CHANGES)
def test_a_proposed_change_does_what_its_tutorial_says(name, changes, code, tmp_path):
    text = (TUTORIALS / name).read_text("utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    changed = tmp_path / name
    changed.write_text(text, "utf-8")
    done = run(changed, tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert code == 0 or "Max relative difference" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_DEVICES)
def test_tutorial_runs_on_a_device(name, tmp_path):
    device.require()
    done = run(name, tmp_path, XETL_BACKEND="xegpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert EXPECTED[name] in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_PICTURES)
def test_plot_is_drawn_when_asked_for(name, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra `demo` is not installed")
    done = run(name, tmp_path, "--plot")
    assert done.returncode == 0, done.stdout + done.stderr
    picture = (tmp_path / name).with_suffix(".png")
    assert picture.read_bytes().startswith(b"\x89PNG")
