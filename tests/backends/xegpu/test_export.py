"""`xetl compile` for GPUs: SPIR-V that runs as the JSON beside it says."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.backends.xegpu import device
from xetl.tools.cli import command
from xetl_xegpu.launch import devices
from xetl_xegpu.offline.ocloc import find_ocloc

FILE = str(Path(__file__).parents[2] / "tools" / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"
MAGIC = (0x07230203).to_bytes(4, "little")


def compiled(folder: Path, kernel: str, signature: str, target: str) -> Any:
    """Compile into ``folder``; the exit code and what was printed."""
    words = ["compile", f"{FILE}:{kernel}", signature, "--target", target]
    return CliRunner().invoke(command, [*words, "-o", str(folder / "k.spv")])


def facts_in(folder: Path) -> Any:
    return json.loads((folder / "k.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_programs_for_arrays_that_fit_blocks_and_for_any(
    tmp_path: Path, target: str
) -> None:
    assert compiled(tmp_path, "gemm", GEMM, target).exit_code == 0
    facts = facts_in(tmp_path)
    assert [each["file_ends_in"] for each in facts["kernels"]] == [".spv", ".any.spv"]
    assert facts["kernels"][0]["moves_by_blocks"] == ["A", "B", "C"]
    assert "multiples of 64 bytes" in facts["kernels"][0]["which_must"]
    assert any("at most 2097152 programs" in each for each in facts["assumptions"])
    assert facts["kernels"][1]["moves_by_blocks"] == []
    assert facts["grf"] in (128, 256)
    for each in facts["kernels"]:
        code = (tmp_path / f"k{each['file_ends_in']}").read_bytes()
        assert code.startswith(MAGIC)
        assert each["function"].encode() in code


def test_arrays_of_one_dimension(tmp_path: Path) -> None:
    assert compiled(tmp_path, "greek", "f32[N] f64 f64", "bmg").exit_code == 0
    first, any_ = facts_in(tmp_path)["kernels"]
    assert "rows of 64 bytes" in first["which_must"]
    assert not any_["which_must"]


def test_the_header_says_the_same_to_c(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not installed")
    signature = "f32[R,16] f64 i64 i1 f32[R,16]"
    assert compiled(tmp_path, "scale", signature, "bmg").exit_code == 0
    facts = facts_in(tmp_path)
    (tmp_path / "main.c").write_text("""
        #include "k.h"
        #include <stdio.h>
        int main(void) {
            int group[] = SCALE_WORK_GROUP, any[] = SCALE_ANY_WORK_GROUP;
            printf("%s %d %d %d %d", SCALE_ANY_FUNCTION, group[0], any[0],
                   (int)SCALE_double, (int)SCALE_ARGUMENTS);
            return 0;
        }
    """)
    words = [compiler, "-Wall", "-Werror", "main.c", "-o", "program"]
    subprocess.run(words, cwd=tmp_path, check=True)
    said = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True)
    first, any_ = facts["kernels"]
    place, count = facts["words"].index("f64 double"), len(facts["words"])
    groups = f"{first['work_group'][0]} {any_['work_group'][0]}"
    assert said.stdout == f"{any_['function']} {groups} {place} {count}"


@pytest.mark.slow
def test_a_binary_where_the_offline_compiler_is(tmp_path: Path) -> None:
    assert compiled(tmp_path, "gemm", GEMM, "pvc").exit_code == 0
    made = sorted(path.name for path in tmp_path.glob("*.bin"))
    wanted = [] if find_ocloc() is None else ["k.any.bin", "k.bin"]
    assert made == wanted


def test_it_runs_as_the_json_says(tmp_path: Path) -> None:
    device.require()
    dpctl: Any = importlib.import_module("dpctl")
    result = compiled(tmp_path, "gemm", GEMM, "opencl")
    assert result.exit_code == 0, result.output
    facts = facts_in(tmp_path)
    rng = np.random.default_rng(0)
    m, n, k = 70, 45, 100
    a, b = (rng.integers(-4, 5, shape).astype("f4") for shape in ((m, k), (k, n)))
    queue = devices.default_queue()
    memories = {"A": shared(queue, a), "B": shared(queue, b)}
    memories["C"] = shared(queue, np.full((m, n), 7, np.float32))
    known = {
        f"i64 address of {name}": memory._pointer for name, memory in memories.items()
    }
    for name, array in {"A": a, "B": b, "C": np.empty((m, n), "f4")}.items():
        for dim in range(2):
            known[f"i64 size {dim} of {name}"] = array.shape[dim]
            known[f"i64 stride {dim} of {name}"] = array.strides[dim] // 4
    spare = shared(queue, np.zeros(64, np.uint8))
    known["i64 address of 64 bytes"] = spare._pointer
    kernel = facts["kernels"][-1]
    code = (tmp_path / f"k{kernel['file_ends_in']}").read_bytes()
    options = facts["build_options"]["opencl"]
    program = dpctl.program.create_program_from_spirv(queue, code, options)
    arguments = [known[word] for word in facts["words"]]
    group = kernel["work_group"]
    whole = [programs * lanes for programs, lanes in zip((3, 2, 1), group)]
    function = program.get_sycl_kernel(kernel["function"])
    queue.submit(function, as_words(arguments), whole[::-1], group[::-1]).wait()
    c = np.frombuffer(memories["C"], np.float32).reshape(m, n)
    assert np.array_equal(c, a @ b)


def as_words(numbers: list[Any]) -> list[Any]:
    ctypes: Any = importlib.import_module("ctypes")
    return [ctypes.c_int64(number) for number in numbers]


def shared(queue: Any, array: Any) -> Any:
    """Memory of the device that the host reaches, with a copy of ``array``."""
    memory: Any = importlib.import_module("dpctl.memory")
    found = memory.MemoryUSMShared(array.nbytes, queue=queue)
    np.frombuffer(found, array.dtype)[:] = array.ravel()
    return found


def test_prints_are_refused(tmp_path: Path) -> None:
    result = compiled(tmp_path, "printing", "f32[1,16]", "pvc")
    assert result.exit_code == 2
    assert "error[X0844]: `printing` prints or asserts" in result.stderr
