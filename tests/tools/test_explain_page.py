"""`explain()` as JSON and as a page, and `xetl explain FILE:KERNEL`."""

from __future__ import annotations

import json
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from tests.tools.kernels_for_commands import gemm, scale
from xetl import xetile
from xetl.backend import find_backend
from xetl.errors import LaunchError
from xetl.xetile import constexpr, f32

FILE = str(Path(__file__).parent / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"
SCALE = "f32[M,16] f64 i64 i1 f32[M,16]"


WHOLE = xetile.wg_map(sg_layout=[2, 2], sg_data=[16, 16])


@xetile.kernel
def mapped(A, B, C, WG: constexpr = WHOLE):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, 16)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (16, 32)))
    acc = xetile.tile_mma(a, b, xetile.zeros((32, 32), f32), wg_map=WG)
    xetile.store_tile(acc, xetile.init_tile(C, [0, 0], (32, 32)))


class Page(HTMLParser):
    """What of a page is looked at: open tags in order, links between lines."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tabs: list[str] = []
        self.keys: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag not in ("meta", "br", "circle", "rect", "polyline", "path"):
            self.open.append(tag)
        for name in ("src", "href"):
            assert name not in known, "something is loaded from elsewhere"
        for key in (known.get("data-k") or "").split():
            self.keys.setdefault(key, []).append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "button":
            self.tabs.append(data)


def test_json_has_what_the_text_has() -> None:
    said = gemm.explain(GEMM, target="avx2")
    facts = json.loads(said.json())
    assert (facts["kernel"], facts["target"]) == ("gemm", "avx2")
    assert facts["figures"]["code_bytes"] > 0
    assert [each["text"] for each in facts["remarks"]] == [
        each.text for each in said.remarks
    ]


@pytest.mark.parametrize(
    ("target", "stages"),
    [
        ("avx2", ["xetile", "xsmm", "loops", "llvm", "asm"]),
        ("pvc", ["xetile", "xetile-mapped", "xetile-sg", "xetile-blocked", "xegpu"]),
    ],
)
def test_the_page_links_lines_of_all_stages(
    tmp_path: Path, target: str, stages: list[str]
) -> None:
    said = gemm.explain(GEMM, target=target)
    start = perf_counter()
    text = said.html(tmp_path / "gemm.html")
    seconds = perf_counter() - start
    assert (tmp_path / "gemm.html").read_text() == text
    assert len(text) < 1 << 20
    assert seconds < 10  # alone on a machine: under one
    page = Page(text)
    assert not page.open
    assert page.tabs[: len(stages)] == stages
    product = page.keys["0.19"]
    assert product[0] == "div"
    assert product.count("i") >= len(stages)
    for remark in said.remarks:
        assert remark.topic in text
    assert "operations a step on f32" in text


def test_maps_are_drawn_and_a_roofline_if_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = mapped.explain("f32[M,K] f32[K,N] f32[M,N]", target="avx2")
    text = said.html()
    assert "wg_map of" in text
    assert len(set(re.findall(r'pattern id="(\w+)"', text))) == text.count("<pattern")
    assert "GFLOP/s" not in text
    cpu = type(find_backend("cpu"))
    monkeypatch.setattr(cpu, "peak", lambda *_: (100.0, 10.0))
    assert "100 GFLOP/s, 10.0 GB/s" in said.html(roofline=True)


def test_notebooks_show_the_page_in_a_frame() -> None:
    shown = scale.explain(SCALE, target="avx2")._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert shown.count("<") == 2


def test_explanations_travel_without_their_page(tmp_path: Path) -> None:
    said = scale.explain(SCALE, target="avx2")
    other = pickle.loads(pickle.dumps(said))
    assert other == said
    assert str(other) == str(said)
    assert other._repr_html_().startswith("<pre>scale, compiled by")
    with pytest.raises(LaunchError, match="there is no page about `scale`"):
        other.html(tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_the_command(xetl: Any, tmp_path: Path) -> None:
    words = ("explain", f"{FILE}:scale", SCALE, "--target", "avx2")
    assert xetl(*words).stdout.startswith("scale, compiled by `cpu` for `avx2`\n")
    assert json.loads(xetl(*words, "--json").stdout)["kernel"] == "scale"
    out = tmp_path / "scale.html"
    assert xetl(*words, "--html", str(out)).stdout == f"wrote {out}\n"
    assert out.read_text().startswith("<!doctype html>")
    assert "X0201" in json.loads(xetl("explain", "--json").stdout)
    assert json.loads(xetl("explain", "X0201", "--json").stdout)["code"] == "X0201"


def test_a_kernel_of_a_text(xetl: Any) -> None:
    place = str(Path(__file__).parents[1] / "seeds" / "appendix_2_1.mlir")
    said = xetl("explain", place, "--target", "avx2").stdout
    assert said.startswith("test_gemm, compiled by `cpu` for `avx2`\n")
    assert "the loop over k is one batch-reduce GEMM" in said
    result = xetl("explain", place, "--html", "x.html")
    assert result.exit_code == 2
    assert "no page about a kernel of a text" in result.stderr


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["nowhere.py:k"], "there is no file `nowhere.py`"),
        ([f"{FILE}:gem"], "did you mean `gemm`?"),
        ([f"{FILE}:gemm", "f32[M"], "is wrong"),
        ([f"{FILE}:scale", SCALE, "--html", "/nowhere/x.html"], "there is no folder"),
        ([f"{FILE}:scale", SCALE, "--html", "/dev"], "`/dev` cannot be written"),
    ],
)
def test_wrong_command_lines(xetl: Any, words: list[str], answer: str) -> None:
    result = xetl("explain", *words)
    assert result.exit_code == 2
    assert answer in result.stderr
