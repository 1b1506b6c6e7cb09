"""Constants chosen at a launch: what is tried, what is kept, what the user sees."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.backend import ArrayView
from xetl.errors import LaunchError, TuningWarning
from xetl.language import dtypes
from xetl.runtime.tuning import trials
from xetl.runtime.tuning.copies import difference
from xetl.xetile import cdiv, constexpr

ROOT = Path(__file__).parents[2]
TREES = ("", "backends/reference", "backends/cpu")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XETL_TUNED_DIR", str(tmp_path / "tuned"))
    return tmp_path / "tuned"


def add_one(**options: Any) -> Any:
    """A kernel that works in place, tuned by ``options``."""

    @xetl.autotune(**{"rep": 1, **options})
    @xetile.kernel(grid=lambda m: cdiv(m.X.shape[0], m.BM))
    def bump(X, BM: constexpr, STEP: constexpr = 1.0):
        tile = xetile.init_tile(X, [xetile.program_id(0) * BM, 0], (BM, 16))
        xetile.store_tile(xetile.load_tile(tile) + STEP, tile)

    return bump


def test_the_user_s_array_is_written_once_by_a_kernel_in_place() -> None:
    bump = add_one(BM=[8, 16, 32])
    x = np.zeros((40, 16), np.float32)
    assert bump.best_config is None
    bump(x)
    assert (x == 1).all()
    assert bump.best_config in bump.configs
    assert [trial.problem for trial in bump.trials] == [None] * 3
    assert all(trial.milliseconds > 0 for trial in bump.trials)
    bump[lambda m: cdiv(m.X.shape[0], m.BM)](X=x)
    assert (x == 2).all()


def test_a_key_of_an_array_is_its_shape() -> None:
    tried: list[int] = []

    def early(configs: Any, arguments: Any) -> Any:
        tried.append(arguments["X"].shape[0])
        return configs

    bump = add_one(
        BM=[8, 16], key=["X"], prune_configs_by={"early_config_prune": early}
    )
    for rows in (32, 32, 48, 32):
        bump(np.zeros((rows, 16), np.float32))
    assert tried == [32, 48]
    bump(np.zeros((32, 16), np.float64))  # another dtype
    assert tried == [32, 48, 32]


def test_the_best_is_remembered_in_a_file(folder: Path) -> None:
    x = np.zeros((32, 16), np.float32)
    first = add_one(BM=[8, 16])
    first(x)
    (file,) = folder.glob("*.json")
    (entry,) = json.loads(file.read_text())["entries"]
    assert entry["config"] == {"BM": str(first.best_config.kwargs["BM"])}
    assert (entry["timed"], entry["backend"]) == ("2 of 2", "cpu")
    other = "16" if entry["config"]["BM"] == "8" else "8"
    file.write_text(
        file.read_text().replace(f'"BM": "{entry["config"]["BM"]}"', f'"BM": "{other}"')
    )
    again = add_one(BM=[8, 16])
    again(x)
    assert again.best_config.kwargs == {"BM": int(other)}
    assert not again.trials
    file.write_text("{ half")  # as if there were none
    third = add_one(BM=[8, 16])
    third(x)
    assert len(third.trials) == 2
    add_one(BM=[8, 16], budget_s=9)(x)  # what is tried is the same
    fourth = add_one(BM=[8, 16, 32])
    fourth(x)
    assert len(fourth.trials) == 3
    assert len(list(folder.glob("*.json"))) == 1
    assert (x == 5).all()


def test_nothing_is_written_without_cache_results(folder: Path) -> None:
    add_one(BM=[8, 16], cache_results=False)(np.zeros((32, 16), np.float32))
    assert not folder.exists()


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XETL_TUNED_DIR", str(tmp_path / "file" / "below"))
    x = np.zeros((32, 16), np.float32)
    add_one(BM=[8, 16])(x)
    assert (x == 1).all()


def test_a_config_with_other_results_is_dropped() -> None:
    bump = add_one(configs=[{"BM": 8}, {"BM": 8, "STEP": 2.0}, {"BM": 16}])
    x = np.zeros((32, 16), np.float32)
    with pytest.warns(TuningWarning, match=r"STEP=2.0\) of `bump` is not used: .*`X`"):
        bump(x)
    assert (x == 1).all()
    assert [trial.is_dropped for trial in bump.trials] == [False, True, False]


def test_a_config_that_fails_is_dropped() -> None:
    bump = add_one(BM=[-1, 16])
    x = np.zeros((32, 16), np.float32)
    with pytest.warns(TuningWarning, match=r"config \(BM=-1\)"):
        bump(x)
    assert (x == 1).all()
    assert bump.best_config.kwargs == {"BM": 16}


@pytest.mark.filterwarnings("ignore::xetl.errors.TuningWarning")
def test_if_all_fail_the_first_error_is_raised() -> None:
    with pytest.raises(xetl.errors.CompileError, match="-1"):
        add_one(BM=[-1, -2])(np.zeros((32, 16), np.float32))


def test_layouts_of_arrays_are_kept() -> None:
    bump = add_one(BM=[8, 16])
    whole = np.zeros((32, 40), np.float32)
    bump(whole[:, 5:21])
    assert whole[:, 5:21].all()
    assert whole.sum() == 32 * 16
    reverse = np.zeros((32, 16), np.float32)
    bump(reverse[::-1])
    bump(np.asfortranarray(reverse))
    assert (reverse == 1).all()


def test_the_same_array_twice() -> None:
    @xetl.autotune(BM=[8, 16], rep=1)
    @xetile.kernel
    def double(X, Y, BM: constexpr):
        i = xetile.program_id(0) * BM
        x = xetile.load_tile(xetile.init_tile(X, [i, 0], (BM, 16)))
        xetile.store_tile(x + x, xetile.init_tile(Y, [i, 0], (BM, 16)))

    x = np.ones((32, 16), np.float32)
    double[lambda m: cdiv(32, m.BM)](x, x)
    assert (x == 2).all()


def test_the_budget_limits_what_is_timed() -> None:
    bump = add_one(BM=[8, 16, 32], budget_s=1e-9)
    x = np.zeros((32, 16), np.float32)
    bump(x)
    assert bump.best_config.kwargs == {"BM": 8}
    assert "budget" in bump.trials[2].problem
    assert not bump.trials[2].is_dropped


def test_what_workers_made_in_time_is_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def one(jobs: Any, seconds: float) -> bool:
        jobs[1]()
        time.sleep(max(0.0, seconds))
        return True

    monkeypatch.setattr(trials, "run_in_workers", one)
    monkeypatch.setattr(trials, "_WORTH_WORKERS", 0.0)
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    bump = add_one(BM=[8, 16, 32], budget_s=3)
    bump(np.zeros((32, 16), np.float32))
    assert [t.milliseconds is None for t in bump.trials] == [False, True, False]
    assert "before it was compiled" in bump.trials[1].problem
    assert not bump.trials[1].is_dropped


def test_hooks_are_called_and_values_restored() -> None:
    said: list[str] = []
    config = xetl.Config(BM=8, pre_hook=lambda given: said.append("config"))
    bump = add_one(
        configs=[config, xetl.Config({"BM": 16})],
        pre_hook=lambda given: said.append(f"before {given['X'].max()}"),
        post_hook=lambda given, exception: said.append(f"after {given['X'].max()}"),
        restore_value=["X"],
    )
    x = np.zeros((32, 16), np.float32)
    bump(x)
    assert (x == 1).all()
    assert {"before 0.0", "after 1.0", "config"} <= set(said)
    assert "before 1.0" not in said


def test_reset_to_zero() -> None:
    seen: set[float] = set()
    bump = add_one(
        BM=[8, 16], reset_to_zero=["X"], pre_hook=lambda g: seen.add(g["X"].max())
    )
    bump(np.full((32, 16), 5, np.float32))
    assert seen == {0.0}


def test_a_bound_plan_would_not_call_a_hook() -> None:
    bump = add_one(configs=[xetl.Config(BM=8, pre_hook=print)])
    with pytest.raises(LaunchError, match="a plan would not call the `pre_hook`"):
        bump.bind(np.zeros((32, 16), np.float32))


def test_pruning_by_a_model_and_by_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    model = {"perf_model": lambda X, BM, **_: abs(BM - 16), "top_k": 1}
    bump = add_one(BM=[8, 16, 32], prune_configs_by=model)
    x = np.zeros((32, 16), np.float32)
    bump(x)
    assert [trial.config.kwargs["BM"] for trial in bump.trials] == [16]

    backend = xetl.runtime.placement.find_backend("cpu")
    costs = iter([SimpleNamespace(seconds=s)] for s in (1.0, 100.0, 1.5))
    monkeypatch.setattr(backend, "expect", lambda artifact, grid, args: next(costs))
    bump = add_one(BM=[8, 16, 32], cache_results=False)
    bump(x)
    assert [t.milliseconds is None for t in bump.trials] == [False, True, False]
    assert "estimates" in bump.trials[1].problem


def test_a_user_s_own_timing() -> None:
    bump = add_one(BM=[8, 16], do_bench=lambda call, quantiles: [call() or 3.0, 1, 2])
    bump(np.zeros((32, 16), np.float32))
    assert [trial.milliseconds for trial in bump.trials] == [3.0, 3.0]


def test_the_rest_of_the_kernel_s_interface() -> None:
    bump = add_one(BM=[8, 16])
    x = np.zeros((32, 16), np.float32)
    assert "vector<8x16xf32>" in bump.ir("xetile", x)
    assert "vector<32x16xf32>" in bump.ir("xetile", "f32[M,16]", BM=32)
    assert bump.stats(x).code_bytes > 0
    assert str(bump.explain("f32[M,16]"))
    bump.interpret(x)
    assert (x == 1).all()
    assert not bump.trials
    bump.warmup("f32[M,16]")
    with xetl.no_compile():
        bump(x)  # the first config: nothing is tried
    bump.bind(x)()
    assert (x == 3).all()
    assert len(bump.trials) == 0 or bump.best_config is not None


def test_errors_of_a_launch_are_those_of_a_plain_kernel() -> None:
    bump = add_one(BM=[8, 16])
    x = np.zeros((32, 16), np.float32)
    with pytest.raises(LaunchError, match="was called without `X`"):
        bump()
    with pytest.raises(LaunchError, match="has no parameter `STEPS`"):
        bump(x, STEPS=2)
    with pytest.raises(LaunchError, match="`BM` was given to `bump`, whose configs"):
        bump(x, BM=8)
    with pytest.raises(LaunchError, match="`X` is a str") as caught:
        bump("no array")
    assert caught.value.file == __file__
    x.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        bump(x)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"BM": 8}, "`BM=` of `autotune` is 8, but must be a list"),
        ({}, "has nothing to choose from"),
        ({"BM": []}, "has nothing to choose from"),
        ({"BN": [1]}, "name `BN`, but `bump` has no such parameter"),
        ({"configs": [xetl.Config(BM=8, num_warps=4)]}, "name `num_warps`"),
        ({"configs": [8]}, "holds 8, which is no config"),
        ({"BM": [8], "key": "X"}, "`key` of `autotune` is 'X'"),
        ({"BM": [8], "key": ["N"]}, "`key` of `autotune` has the name `N`"),
        ({"BM": [8], "key": ["BM"]}, "names `BM`, which the configs set"),
        ({"BM": [8], "restore_value": ["C"]}, "`restore_value` has the name `C`"),
        ({"BM": [8], "budget_s": 0}, "`budget_s` of `autotune` is 0"),
        ({"BM": [8], "use_cuda_graph": True}, "no such graphs here"),
        ({"BM": [8], "prune_configs_by": {"top": 1}}, "has no `top`"),
    ],
)
def test_wrong_declarations(options: Any, said: str) -> None:
    with pytest.raises(LaunchError, match=said) as caught:
        add_one(**options)
    assert caught.value.code == "X0850"
    assert caught.value.file == __file__


def test_decorators_go_above_kernels() -> None:
    with pytest.raises(LaunchError, match="above `plain`, which is no kernel"):

        @xetl.autotune(BM=[8])
        def plain(X, BM): ...

    with pytest.raises(LaunchError, match="takes functions by the name"):
        xetl.heuristics({"BM": 8})(xetile.kernel(lambda X, BM: None))


def test_heuristics_see_configs_and_each_other() -> None:
    @xetl.heuristics({"TWICE": lambda a: 2 * a.STEP})
    @xetl.autotune(BM=[8, 16], rep=1)
    @xetl.heuristics({"STEP": lambda a: float(a["X"].shape[0] % a["BM"] == 0)})
    @xetile.kernel(grid=lambda m: cdiv(m.X.shape[0], m.BM))
    def bump(X, BM: constexpr, STEP: constexpr, TWICE: constexpr):
        tile = xetile.init_tile(X, [xetile.program_id(0) * BM, 0], (BM, 16))
        xetile.store_tile(xetile.load_tile(tile) + STEP + TWICE, tile)

    x = np.zeros((32, 16), np.float32)
    bump(x)
    assert (x == 3).all()
    bump(x, STEP=5.0)
    assert (x == 18).all()
    with pytest.raises(LaunchError, match="`STEP` of `bump` cannot be computed"):
        bump.warmup("f32[M,16]")
    bump.warmup("f32[M,16]", STEP=1.0)
    assert pickle.loads(pickle.dumps(tuned_of_module)) is tuned_of_module


@xetl.autotune(BM=[8, 16], rep=1)
@xetile.kernel(grid=1)
def tuned_of_module(X, BM: constexpr):
    tile = xetile.init_tile(X, [0, 0], (BM, 16))
    xetile.store_tile(xetile.load_tile(tile) + 1.0, tile)


def test_threads_tune_once() -> None:
    calls: list[int] = []
    prune = {"early_config_prune": lambda configs, named: calls.append(1) or configs}
    bump = add_one(BM=[8, 16], prune_configs_by=prune)
    arrays = [np.zeros((32, 16), np.float32) for _ in range(4)]
    threads = [threading.Thread(target=bump, args=(each,)) for each in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert all((each == 1).all() for each in arrays)


def test_tensors_of_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    bump = add_one(BM=[8, 16])
    x = torch.zeros(32, 16, dtype=torch.bfloat16)
    bump(x)
    assert (x == 1).all()


@pytest.mark.parametrize("backend", ["reference", "xegpu"])
def test_other_backends(backend: str) -> None:
    if backend == "xegpu":
        pytest.importorskip("dpctl")
    bump = add_one(BM=[8, 16])
    x = np.zeros((32, 16), np.float32)
    bump(x, backend=backend)
    bump(x)
    assert (x == 2).all()
    assert len(bump.trials) == 2


def test_a_progress_bar_on_a_terminal_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    with trials.Progress(4) as bar:
        bar.advance("compiling")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(trials, "_LONG", 0.0)
    with trials.Progress(4) as bar:  # nobody looks
        bar.advance("compiling")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with trials.Progress(4) as bar:
        bar.advance("compiling")
        bar.advance("timing")
    assert "timing" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with trials.Progress(4) as bar:  # it is no requirement
        bar.advance("compiling")


PROGRAM = """
import sys
import numpy as np
import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr

@xetl.autotune(BM=[8, 16, 24, 32, 40, 48], rep=1)
@xetile.kernel(grid=lambda m: cdiv(m.X.shape[0], m.BM))
def bump(X, BM: constexpr):
    tile = xetile.init_tile(X, [xetile.program_id(0) * BM, 0], (BM, 16))
    xetile.store_tile(xetile.load_tile(tile) + 1.0, tile)

x = np.zeros((64, 16), np.float32)
print("begin", flush=True)
bump(x)
assert (x == 1).all()
print("done", len(bump.trials), flush=True)
"""


def start(tmp_path: Path) -> subprocess.Popen[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    paths = os.pathsep.join(str(ROOT / tree) for tree in TREES)
    variables = {"PYTHONPATH": paths, "XETL_CACHE_DIR": str(tmp_path / "cache")}
    return subprocess.Popen(
        [sys.executable, str(program)],
        env={**os.environ, **variables, "XETL_TUNED_DIR": str(tmp_path / "tuned")},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_at_once_and_one_that_is_killed(tmp_path: Path) -> None:
    killed = start(tmp_path)
    assert killed.stdout is not None
    killed.stdout.readline()
    time.sleep(0.3)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    both = [start(tmp_path), start(tmp_path)]
    said = [each.communicate(timeout=120)[0].split() for each in both]
    assert all(words[:2] == ["begin", "done"] for words in said)
    (file,) = (tmp_path / "tuned").glob("*.json")
    (entry,) = json.loads(file.read_text())["entries"]
    assert entry["timed"] == "6 of 6"
    again = start(tmp_path)
    assert again.communicate(timeout=120)[0].split()[-1] == "0"


def test_results_are_compared_by_their_largest_element() -> None:
    expected = np.array([[1e3, 1e-3, np.inf, np.nan]], np.float32)
    view = {"X": ArrayView(0, dtypes.f32, (1, 4), (4, 1), False, None)}

    def compared(*row: float) -> str | None:
        found = np.array([row], np.float32)
        return difference({"X": found}, {"X": expected}, view)

    assert compared(1e3 + 0.5, 0.4, np.inf, np.nan) is None
    assert compared(1e3 + 5, 0, np.inf, np.nan) == (
        "`X` differs by 5, where the largest element is 1e+03"
    )
    for wrong in ((1e3, 0, -np.inf, np.nan), (1e3, 0, np.inf, 0), (np.nan, 0, 0, 0)):
        assert compared(*wrong) == "`X` differs in elements that are infinite or NaN"
