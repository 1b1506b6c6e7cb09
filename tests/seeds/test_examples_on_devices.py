"""The documents' examples on their way to a device: each pass keeps their meaning.

After each pass they are run in `reference`, by all subgroups of a workgroup, races and
barriers checked; what is for subgroups is run on `cpu` as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import xetl
from tests.seeds import operations, workgroups  # noqa: F401 (fill the list)
from tests.seeds.examples import EXAMPLES, Example
from tests.transforms.meaning import same_meaning
from xetl.errors import TileMapWarning
from xetl.transforms.device_pipeline import device_passes

LARGEST_TILE = {"appendix_2_5": 512}
"""The least extent at which a section's tiles are whole; 256 for the others."""


def small(example: Example) -> Example:
    """With matrices of one workgroup."""
    if example.extent is None:
        return example
    return replace(example, extent=LARGEST_TILE.get(example.file, 256))


ALL = [small(each) for each in EXAMPLES]
FILES_WITH_MAPS = ("workgroup_operations", "layouts", "appendix_2")
MAPPED = [each for each in ALL if each.file.startswith(FILES_WITH_MAPS)]

FINER = "layouts-dpas_of_finer_operands"
EXPECTED_WARNINGS = {
    FINER: pytest.mark.filterwarnings("ignore::xetl.errors.TileMapWarning")
}


def cases(examples: list[Example]) -> list[Any]:
    return [
        pytest.param(each, id=each.name, marks=EXPECTED_WARNINGS.get(each.name, ()))
        for each in examples
    ]


@pytest.mark.parametrize("example", cases(ALL))
def test_every_pass_keeps_the_meaning(example: Example) -> None:
    run = example.run()
    same_meaning(
        example.module(), (1, 1, 1), run.arguments, device_passes(), truth=run.truth()
    )


@pytest.mark.slow
@pytest.mark.parametrize("slm_limit", [4096, 65536])
@pytest.mark.parametrize(
    "name", ["workgroup_operations-conv_layout", "appendix_2_2-test_gemm-2_2"]
)
def test_however_much_shared_memory_there_is(name: str, slm_limit: int) -> None:
    """256 KiB change hands in as many chunks as it takes, on another device, too."""
    example = find(name)
    run, passes = example.run(), device_passes("bmg", slm_limit)
    arguments, truth = run.arguments, run.truth()
    same_meaning(example.module(), (1, 1, 1), arguments, passes, truth=truth)


def lowered(example: Example, last: str) -> ModuleOp:
    module = example.module()
    for each in device_passes():
        each.apply(Context(), module)
        if each.name == last:
            return module
    raise AssertionError(f"no pass is called {last}")


@pytest.mark.parametrize("last", ["distribute-to-subgroups", "choose-inner-blocks"])
@pytest.mark.parametrize("example", cases(MAPPED))
def test_it_runs_on_the_cpu(example: Example, last: str) -> None:
    run, text = example.run(), str(lowered(example, last))
    xetl.load_mlir(text)[example.kernel][1](*run.arguments, backend="cpu")
    for array, expected in run.left:
        assert np.array_equal(array.astype(np.float64), expected)


# What the documents say about the lowering ------------------------------------------


def test_operands_that_lack_a_part_of_k_are_moved() -> None:
    """Legal, says the reviewer; a subgroup has half of K and needs all of it."""
    with pytest.warns(TileMapWarning, match="bf16 changes from") as warned:
        module = lowered(find(FINER), "distribute-to-subgroups")
    a, b = (str(each.message) for each in warned)
    assert "of 256x32 bf16 changes from wg_map([8, 4], [32, 16])" in a
    assert "of 32x256 bf16 changes from wg_map([8, 4], [16, 64])" in b
    assert count(module, "gpu.barrier") > 0


def count(module: ModuleOp, name: str) -> int:
    return sum(op.name == name for op in module.walk())


def find(name: str) -> Example:
    (found,) = [each for each in ALL if each.name == name]
    return found


@pytest.mark.parametrize(
    "name",
    ["workgroup_operations-transpose", "appendix_2_3-in_registers"],
)
def test_transposes_in_registers(name: str) -> None:
    """2.3: "could be implemented with in-register transpose"."""
    module = lowered(find(name), "distribute-to-subgroups")
    assert count(module, "xetile.tile_transpose") == 1
    assert count(module, "memref.alloc") == 0
    assert count(module, "gpu.barrier") == 0


def test_a_change_of_layout_goes_through_shared_memory() -> None:
    """256x256 f32, 256 KiB, in chunks of what a workgroup may have."""
    module = lowered(
        find("workgroup_operations-conv_layout"), "distribute-to-subgroups"
    )
    (memory,) = [op for op in module.walk() if op.name == "memref.alloc"]
    type_: Any = memory.results[0].type
    assert type_.get_shape()[0] <= 128 * 1024
    assert count(module, "gpu.barrier") >= 2 * 256 * 256 * 4 // type_.get_shape()[0] - 1


@pytest.mark.parametrize(("section", "barriers"), [("2_1", 0), ("2_5", 1)])
def test_products_alone_move_nothing(section: str, barriers: int) -> None:
    """Nor wait for one another: the one barrier along K is the document's own."""
    example = find(f"appendix_{section}-test_gemm-{section}")
    module = lowered(example, "distribute-to-subgroups")
    (product,) = [op for op in module.walk() if op.name == "xetile.tile_mma"]
    along_k = product.parent_op()
    assert along_k is not None
    assert sum(op.name == "gpu.barrier" for op in along_k.walk()) == barriers
    assert count(module, "memref.alloc") == 0


def test_row_sums_move_sums() -> None:
    """2.2: of 256x256 f32 that a layout was wanted of, four partial sums a row move."""
    module = lowered(find("appendix_2_2-test_gemm-2_2"), "distribute-to-subgroups")
    (memory,) = [op for op in module.walk() if op.name == "memref.alloc"]
    type_: Any = memory.results[0].type
    assert type_.get_shape() == (256 * 4 * 4,)
    assert count(module, "gpu.barrier") == 2


def test_cooperative_loads_keep_their_barriers() -> None:
    """2.4: before the first stages, behind them, and one a step.

    That a step does not read what the one before it stored follows from arithmetic
    modulo four stages, which place-barriers does not do: it may put one more.
    """
    module = lowered(find("appendix_2_4-test_gemm-2_4"), "distribute-to-subgroups")
    assert 3 <= count(module, "gpu.barrier") <= 4
