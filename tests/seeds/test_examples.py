"""Every example of the documents, on all backends against NumPy in float64."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import xetl
from tests.backends.xegpu import device
from tests.seeds import operations, workgroups  # noqa: F401 (fill the list)
from tests.seeds.examples import EXAMPLES, HERE, STATED, Example

BACKENDS = ("reference", "cpu")
MODULES = {"modules", "whole_module"}
"""Of another source than the documents; test_modules.py runs them."""

pytestmark = pytest.mark.filterwarnings("ignore::xetl.errors.TileMapWarning")
"""The documents show maps larger than their tiles, and maps that meet."""


def files() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.mlir"))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_example(example: Example, backend: str) -> None:
    run = example.run()
    kernel = xetl.load_mlir(example.text())[example.kernel]
    kernel[(1, 1, 1)](*run.arguments, backend=backend)
    for array, expected in run.left:
        assert np.array_equal(array.astype(np.float64), expected)


@pytest.mark.slow  # a driver builds each; all take two minutes
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_example_on_a_device(example: Example) -> None:
    device.require()
    test_example(example, "xegpu")


@pytest.mark.slow  # 4096 cubed, four times over, and NumPy's truth of it in float64
@pytest.mark.parametrize(
    "example",
    [replace(each, extent=int(STATED)) for each in EXAMPLES if each.extent],
    ids=lambda each: each.name,
)
def test_example_at_the_size_of_the_document(example: Example) -> None:
    test_example(example, "cpu")


@pytest.mark.parametrize("file", sorted({each.file for each in EXAMPLES}))
def test_every_kernel_has_an_example(file: str) -> None:
    library = xetl.load_mlir((HERE / f"{file}.mlir").read_text("utf-8"))
    assert set(library) == {each.kernel for each in EXAMPLES if each.file == file}


def test_every_file_has_examples() -> None:
    ran = {each.file for each in EXAMPLES}
    assert ran | MODULES | {"appendix_1_incorrect"} == set(files())


def test_appendix_2_stands_in_the_sizes_of_the_document() -> None:
    for section in (1, 2, 4, 5):
        text = (HERE / f"appendix_2_{section}.mlir").read_text("utf-8")
        assert f"memref<{STATED}x{STATED}xf16>" in text


def test_the_table_of_the_readme_is_whole() -> None:
    readme = (HERE / "README.md").read_text("utf-8")
    listed = set(re.findall(r"`(\w+)\.mlir`", readme))
    assert listed == set(files())
    for name in re.findall(r"`((?:tests|xetl|tutorials)/[\w/.]+)`", readme):
        assert (HERE.parents[1] / name).exists(), name
