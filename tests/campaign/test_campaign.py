"""The campaign of random kernels finds faults of every kind, and makes them small."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import xetl
import xetl_cpu
import xetl_xegpu
from tests.backends.xegpu import device
from tests.campaign import worker as workers
from tests.campaign.__main__ import main
from tests.campaign.cases import BF16, LAYOUTS, Array, Case, of_seed
from tests.campaign.check import Fault, check, difference
from tests.campaign.shrink import Shrinker
from tests.campaign.values import FLOAT_EXPRESSIONS, MATHEMATICS, QUOTIENT
from tests.campaign.worker import Worker

ADD = """
def generated(X, Y, n):
    a = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
    for i in range(n):
        xetile.store_tile(a + i, xetile.init_tile(Y, [0, 0], (4, 4)))
"""


def case(source: str) -> Case:
    arrays = {name: Array("i32", (4, 4), fill=3) for name in "XY"}
    return Case(source.strip() + "\n", "one", arrays, (2, 3), "cpu", "host", (1, 1))


FUNCTIONS = vars(math) | {
    "abs": abs,
    "round": round,
    "minimum": min,
    "maximum": max,
    "where": lambda mask, a, b: a if mask else b,
    "fma": lambda a, b, c: a * b + c,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}
"""Functions of the language, of one number in float64."""


def values_of(expression: str) -> list[float]:
    """What an expression gives for all values that floats have."""
    text = expression.replace("xetile.arange({cols}).to(xetile.{t})", "3")
    code = compile(text.format(a="a", b="b"), "", "eval")
    names = {"xetile": SimpleNamespace(**FUNCTIONS), "helper": min, "small": abs}
    pairs = product(range(-8, 9), repeat=2)
    return [eval(code, {**names, "a": float(a), "b": b, "n": 3}) for a, b in pairs]


@pytest.mark.parametrize("expression", FLOAT_EXPRESSIONS)
def test_floats_stay_integers(expression: str) -> None:
    assert all(each == int(each) for each in values_of(expression))


@pytest.mark.parametrize("expression", [*MATHEMATICS, QUOTIENT])
def test_what_is_rounded_is_near_no_tie(expression: str) -> None:
    """16 ulp of f32, which the language allows, of a number below 3 move 3 times it by
    16 * 2**-22 * 3 < 2e-5, and its sums by less; greater ones are clamped to 8."""
    text = expression if expression == QUOTIENT else f"xetile.{expression}"
    found = [each * 3 + 0.29 for each in values_of(text)]
    near = [each for each in found if abs(each) < 9]
    assert min(abs(each - math.floor(each) - 0.5) for each in near) > 1e-3


def test_a_seed_is_one_case() -> None:
    assert of_seed(7) == of_seed(7)
    assert of_seed(7) != of_seed(8)


WRITTEN = {
    "a transposed output": r"store_tile\(.*init_tile\(\w(\[.*?\])?\.T",
    "a divisor that is computed": r" // \(v\d+ [-+&^*%]",
    "modulo by a reduction": r" % xetile\.tile_reduce",
    "a scalar divided by an element": r"q\d+ = .* // [XY]\[",
    "scatter": "store_scatter",
    "gather": "load_gather",
    "atomics": "atomic_rmw_tile",
    "parts of arrays": r"\w\[n:, :-1\]",
    "rows of neighbours": r"\w\[xetile.arange",
    "orders": r"xetile\.(sort|topk)",
    "indices that sort": r"xetile\.argsort",
    "functions of scans": "associative_scan",
    "scans of pairs": r"associative_scan\(\(",
    "a far prefetch": r"prefetch_tile\(.*(1000000|<< 3)",
    "a far load": r"load_tile\(.*(1000000|<< 3)",
    "a far store": r"store_tile\(.*(1000000|<< 3)",
    "several carried values": r"v\d+, v\d+, v\d+ = v\d+, v\d+, ",
    "broadcasts": "tile_broadcast",
    "products": "tile_mma",
    "wide tiles": r"init_tile\(\w+, \[[^\]]*\], \(\d, (1024|2048)\)\)",
    "tall tiles": r"init_tile\(\w+, \[[^\]]*\], \((1024|2048), \d\)\)",
    "pieces of rows": r"for place in range\(.*\.shape\[\d\], \d+\)",
    "sums up to a width of the run": r"arange\(\d+\)\[.*\+ place\) < .*\.sum\(",
    "grids of one dim": r"program_id\(0\) // 4 \* \d+",
    "groups of rows": r"% min\(3 - swap",
    "grids of three dims": r"program_id\(2\)",
    "maps": r"wg_map\(sg_layout=\[2, 2\]",
    "random numbers": r"xetile\.randint",
    "compare and swap": r"atomic_cas",
    "numbers of four bits": "dot_scaled",
    "shifts by all amounts": r"<< \(v\d+ & 63\)",
}


def test_everything_is_written_that_should_be() -> None:
    cases = [of_seed(seed) for seed in range(1500)]
    text = "\n".join(each.source for each in cases)
    assert not [name for name, form in WRITTEN.items() if not re.search(form, text)]
    arrays = [array for each in cases for array in each.arrays.values()]
    assert {array.dtype for array in arrays} > {"f16", "bf16", "i8", "u8", "u32", "i64"}
    assert {(0, 1), (1, 1), (1, 0)} < {array.shape for array in arrays}
    layouts = {array.layout for array in arrays}
    assert layouts == {*LAYOUTS, "equal", "aligned"}
    assert max(array.shape[-1] for array in arrays) > 4096
    assert len({each.grid for each in cases}) == 7
    assert {each.mode for each in cases} == {"one", "programs", "subgroups"}


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("layout", [*LAYOUTS, "aligned"])
def test_layouts_hold_the_same_elements(layout: str, shape: tuple[int, ...]) -> None:
    array = Array("i16", shape, "rows", fill=1)
    found = replace(array, layout=layout).build()
    np.testing.assert_array_equal(found, array.build())


def test_runs_of_a_kernel_have_other_lines() -> None:
    array = Array("f32", (3, 5), "rows", fill=1)
    runs = [array.of_run(run).build(run) for run in range(5)]
    assert [each.shape for each in runs] == [(3, 5), (3, 6), (3, 12), (3, 21), (4, 4)]
    assert runs[3].base.size == 3 * 21 + 3


def test_differences() -> None:
    nan = np.array([1, np.nan], np.float32)
    assert difference(nan, nan.copy()) == ""
    assert "at (1,) nan instead of 2.0" in difference(nan, np.array([1, 2], np.float32))
    assert difference(nan.astype(BF16), nan.astype(BF16)) == ""
    assert difference(np.arange(3), np.array([0, 1, 3])).startswith("1 elements")


FAULTS = {
    "SIGFPE": "import os, signal\nos.kill(os.getpid(), signal.SIGFPE)",
    "exit code 3": "import os\nos._exit(3)",
    "hang": "while True: pass",
    "reference: KeyError": "{}[1]",
    "reference: X0101": "",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as found:
        yield found


@pytest.mark.parametrize("kind", FAULTS)
def test_whatever_happens_is_a_fault(
    kind: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = case(FAULTS[kind] + ADD.replace("a + i", "b"))
    monkeypatch.setitem(workers.SECONDS, "cpu", 2.0 if kind == "hang" else 60.0)
    fault = worker.run(bad)
    assert fault is not None
    assert fault.kind == kind
    monkeypatch.undo()
    assert worker.run(case(ADD)) is None


def test_warnings_are_faults() -> None:
    text = "import warnings\nwarnings.warn('slow', RuntimeWarning)"
    fault = check(case(text + ADD))
    assert fault is not None
    assert "RuntimeWarning" in fault.kind


def test_what_nobody_wrote_is_no_fault() -> None:
    """Strict checks keep shrunk kernels free of what gives any result."""
    room = "    s = xetile.slm((4, 4), xetile.i32)\n"
    room += "    b = xetile.load_tile(xetile.init_tile(s, [0, 0], (4, 4)))\n"
    text = ADD.replace("    for", room + "    for").replace("a + i", "b + i")
    fault = check(case(text), strict=True)
    assert fault is not None
    assert fault.kind.startswith("reference: X08")


def test_shrinking_keeps_the_fault_and_nothing_else() -> None:
    """Of a long kernel with one division in a loop, that line is left."""
    division = r"\n {8}v\d+ = .*v\d+ % v\d+"
    found = [each for each in map(of_seed, range(2000)) if each.source.count("\n") > 15]
    long = next(each for each in found if re.search(division, each.source))

    def run(tried: Case, strict: bool) -> Fault | None:
        compile(tried.source, "", "exec")
        return Fault("SIGFPE") if re.search(r"v\d+ % v\d+", tried.source) else None

    shrunk = Shrinker(long, Fault("SIGFPE"), run, tries=5000).shrink()
    lines = shrunk.source.splitlines()
    assert len(lines) == 2, shrunk.source
    assert re.fullmatch(r" +v\d+ = v\d+ % v\d+", lines[1])
    assert len(shrunk.runs) == 1
    assert set(shrunk.grid) == {1}
    assert not shrunk.arrays


def test_shrinking_runs_real_kernels(worker: Worker) -> None:
    """A kernel that the front end refuses, with what it does not need."""
    wrong = ADD.replace("a + i", "(a + i) * 2 + a.to(xetile.f32)")
    fault = worker.run(case(wrong))
    assert fault is not None
    assert fault.kind.startswith("reference: X")
    shrunk = Shrinker(case(wrong), fault, worker.run).shrink()
    assert worker.run(shrunk) is not None
    assert len(shrunk.source) < len(wrong) - 20


@pytest.mark.slow
def test_the_runner_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ["--log", str(tmp_path / "log"), "--jobs", "2"]
    assert main(["--seeds", "0:4", *log]) == 0
    assert "4 kernels" in capsys.readouterr().out
    assert main(["--seeds", "0:6", *log]) == 0
    assert "2 kernels" in capsys.readouterr().out
    (tmp_path / "log").write_text("0 SIGFPE\n1 -\n")
    assert main(["--seeds", "0:2", *log]) == 1
    assert "1 faults {'SIGFPE': 1}" in capsys.readouterr().out


def first_seed() -> int:
    """It follows from the product's sources: another code meets other kernels, and the
    same code the same ones on any machine, so that what fails elsewhere fails here."""
    digest = hashlib.sha256()
    for package in (xetl, xetl_cpu, xetl_xegpu):
        for file in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(file.read_bytes())
    return int.from_bytes(digest.digest()[:6])


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kernels"), [("cpu", 400), ("xegpu", 40)])
def test_kernels_nobody_has_run(
    backend: str,
    kernels: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other ones for each change, verified after each pass; reports name the seeds."""
    device.require(backend)
    monkeypatch.setenv("XETL_VERIFY", "1")  # workers are processes
    seeds = f"{first_seed()}:{first_seed() + kernels}"
    code = main(["--backend", backend, "--seeds", seeds, "--jobs", "2"])
    assert code == 0, capsys.readouterr().out
