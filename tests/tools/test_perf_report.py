"""`xetl.perf_report`: tables, files, plots, and the limits of the machine."""

from __future__ import annotations

import csv
import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import xetl
from xetl.errors import LaunchError
from xetl.tools.performance import report
from xetl.tools.performance.benchmark import Peak


def simple(**options: Any) -> Any:
    fields = {"x": "N", "values": [1, 2, 4], "lines": ["a", "b"], "unit": "GFLOP/s"}

    @xetl.perf_report(xetl.Benchmark(**{**fields, **options}))
    def measured(N: int, provider: str) -> Any:
        return (N, 0.5 * N, 2.0 * N) if provider == "a" else 10.0 * N

    return measured


def test_a_table(capsys: Any) -> None:
    ((first, *_),) = simple(name="speed").run()
    assert first.point == {"N": 1}
    assert first.values["a"] == (1.0, 0.5, 2.0)
    assert capsys.readouterr().out.splitlines() == [
        "speed (GFLOP/s)",
        "N  a   b",
        "1  1  10",
        "2  2  20",
        "4  4  40",
    ]
    simple().run(print_data=False)
    assert not capsys.readouterr().out


def test_files(tmp_path: Path) -> None:
    simple(lines={"a": "ours", "b": "theirs"}, log=True).run(
        csv=tmp_path / "speed.csv", png=str(tmp_path / "speed.png")
    )
    with (tmp_path / "speed.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["N", "ours (GFLOP/s)", "theirs (GFLOP/s)"]
    assert rows[3] == ["4", "4.0", "40.0"]
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_a_roofline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(report, "measured_peak", lambda dtype: Peak(100.0, 10.0))
    work = {"flops": lambda N: 8.0 * N, "bytes": lambda N: 2.0 * N}
    simple(**work).run(roofline=tmp_path / "roof.png")
    assert (tmp_path / "roof.png").read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out.splitlines()
    assert out[2].split() == ["1", "1", "10", "2.5%", "25.0%"]  # 4 for a byte: 40
    assert out[-1] == "limit: 100.0 GFLOP/s, 10.0 GB/s (measured)"
    monkeypatch.setattr(report, "measured_peak", lambda dtype: Peak(10.0, 1.0))
    simple(**work).run(roofline=True)
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == "more than the limit: something else ran while that was measured"
    times = xetl.Benchmark(x="N", values=[1], lines=["a"], unit="ms", **work)
    assert times.rate({"N": 1}, 8e-6) == (1.0, 4.0)


def test_triton_s_names() -> None:
    given = xetl.Benchmark(
        x_names=["M", "N"],
        x_vals=[128, (2, 3)],
        line_arg="provider",
        line_vals=["a", "b"],
        line_names=["A", "B"],
        styles=[("blue", "-"), ("green", "--")],
        ylabel="GB/s",
        plot_name="speed",
        args={"K": 1},
        x_log=True,
    )
    assert given.points == [{"M": 128, "N": 128}, {"M": 2, "N": 3}]
    assert (given.lines, given.unit, given.log) == ({"a": "A", "b": "B"}, "GB/s", True)


def test_several_benchmarks_and_the_function_itself(tmp_path: Path) -> None:
    each = xetl.Benchmark(x="N", values=["small", "large"], lines=[1, 2])
    both = xetl.perf_report([each, each])(lambda N, size: size)
    assert both("small", 3) == 3
    assert len(both.run(csv=tmp_path / "a.csv", png=tmp_path / "a.png")) == 2
    assert {f.name for f in tmp_path.iterdir()} == {
        *("a.csv", "a-1.csv", "a.png", "a-1.png")
    }
    both.run(save_path=tmp_path)
    assert (tmp_path / "benchmark.csv").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"values": None}, "needs x=, values= and lines="),
        ({"values": []}, "has nothing to measure"),
        ({"values": [(1, 2)]}, r"\(1, 2\) has 2 values for N"),
        ({"linse": ["a"]}, "`Benchmark` has no `linse`"),
        ({"line_names": ["only"]}, "2 lines, but 1 names"),
        ({"x": "M"}, "which parameter of `measured` says the line"),
    ],
)
def test_wrong_benchmarks(options: Any, said: str) -> None:
    with pytest.raises(LaunchError, match=said) as caught:
        simple(**options)
    assert caught.value.code == "X0850"
    assert caught.value.file == __file__


def test_what_cannot_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LaunchError, match="there is no folder"):
        simple().run(csv=tmp_path / "no" / "a.csv")
    with pytest.raises(LaunchError, match="needs the work of a call"):
        simple().run(roofline=True)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(LaunchError, match="plots need matplotlib"):
        simple().run(png=tmp_path / "a.png")


def test_a_full_disk_leaves_no_part_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(LaunchError, match=r"a\.csv` cannot be written: No space left"):
        simple().run(csv=tmp_path / "a.csv", png=tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_plots_of_no_kind_are_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    with pytest.raises(LaunchError, match="is of no kind that plots have"):
        simple().run(png=tmp_path / "a.xyz")
