"""Every text module of the corpus compiles for both GPUs, and nothing is called."""

import re
from pathlib import Path

import pytest

import xetl
from tests.backends.xegpu.offline.compiling import compiled
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl.backend import find_backend
from xetl.pipeline import lowered

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_OCLOC, reason=REASON)]

CORPUS = Path(__file__).parents[3] / "conformance"
MODULES = sorted(CORPUS.glob("*.mlir"))
LAUNCH = re.compile(r"^// launch: (\S+)", re.MULTILINE)


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_modules_compile_clean(path: Path, target: str) -> None:
    text = path.read_text("utf-8")
    library = xetl.load_mlir(text)
    names = sorted(set(LAUNCH.findall(text)))
    assert names
    for name in names:
        module, _ = library[name].for_any_arguments()
        module = lowered(module, find_backend("xegpu"), target)
        for seen in compiled(module, target).values():
            assert seen.counts.calls == 0
            assert seen.facts.simd == 16
            assert (seen.found.dpas > 0) == (seen.planned.dpas > 0)
