"""`xetl compile`: files that a C or C++ program links, and what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FILE = str(HERE / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N]^T f32[M,N]"
SCALE = "f32[R,16] f64 i64 i1 f32[R,16]"
STRICT = ("-O1", "-Wall", "-Wextra", "-Werror", "-pedantic")

PRODUCT = """
#include "gemm.h"
#include "scale.h"
#include <stdio.h>

enum { M = 70, N = 45, K = 100, ROWS = 3 };
static float a[M * K], b[N * K], c[M * N], x[ROWS * 16], y[ROWS * 16];

static int product(xetl_workspace *workspace)
{
    const int64_t grid[3] = {(M + 31) / 32, (N + 31) / 32, 1};
    const int64_t a_shape[2] = {M, K}, a_strides[2] = {K, 1};
    const int64_t b_shape[2] = {K, N}, b_strides[2] = {1, K};
    const int64_t c_shape[2] = {M, N}, c_strides[2] = {N, 1};

    memset(c, 7, sizeof c);
    if (gemm(grid, a, a_shape, a_strides, b, b_shape, b_strides, c, c_shape, c_strides,
             workspace))
        return 1;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[m * K + k] * b[n * K + k];
            if (c[m * N + n] != sum)
                return 2;
        }
    return 0;
}

static int scaled(void)
{
    const int64_t grid[3] = {ROWS, 1, 1}, shape[2] = {ROWS, 16}, strides[2] = {16, 1};

    if (scale(grid, x, shape, strides, 2.5, 4, 1, y, shape, strides, NULL))
        return 1;
    for (int i = 0; i < ROWS * 16; i++)
        if (y[i] != x[i] * 2.5f + 5)
            return 2;
    return 0;
}

int main(void)
{
    xetl_workspace workspace = {NULL, NULL, 0};
    const int64_t wrong[2] = {K, 2}, shape[2] = {M, K}, grid[3] = {1, 1, 1};
    int failed;

    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i * 7 % 9 - 4);
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i * 5 % 7 - 3);
    for (int i = 0; i < ROWS * 16; i++)
        x[i] = (float)i;
    failed = scaled() + product(NULL) * 10 + product(&workspace) * 100;
    failed += product(&workspace) * 1000;
    xetl_workspace_free(&workspace);
    if (gemm(grid, a, shape, wrong, b, shape, wrong, c, shape, wrong, NULL)
        != XETL_ERROR_STRIDE)
        failed += 10000;
    printf("%d\\n", failed);
    return failed != 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(OpenMP)
set(gemm_DIR ${CMAKE_CURRENT_SOURCE_DIR})
set(scale_DIR ${CMAKE_CURRENT_SOURCE_DIR})
find_package(gemm REQUIRED)
find_package(scale REQUIRED)
add_executable(program main.c)
target_link_libraries(program PRIVATE gemm::gemm scale::scale)
"""


def compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def compiled(xetl: Any, folder: Path, *words: str) -> dict[str, Any]:
    """Compile into ``folder``; what the JSON says."""
    name = words[0].rpartition(":")[2]
    result = xetl("compile", *words, "-o", str(folder / f"{name}.o"))
    assert result.exit_code == 0, result.output
    return json.loads((folder / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("language", "options"),
    [
        ("cc", ["-std=c11", "-Wno-unknown-pragmas"]),
        ("cc", ["-std=gnu11", "-fopenmp"]),
        ("c++", ["-std=c++17", "-fopenmp", "-x", "c++"]),
    ],
)
def test_a_program_without_python(
    xetl: Any, tmp_path: Path, language: str, options: list[str]
) -> None:
    compile_ = compiler(language)
    compiled(xetl, tmp_path, f"{FILE}:gemm", GEMM, "--target", "avx2")
    compiled(xetl, tmp_path, f"{FILE}:scale", SCALE, "--target", "avx2")
    (tmp_path / "main.c").write_text(PRODUCT)
    objects = ["-x", "none", "gemm.o", "scale.o", "-lm", "-o", "program"]
    command = [compile_, *STRICT, *options, "main.c", *objects]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == "0\n"


def test_the_program_of_the_page(xetl: Any, tmp_path: Path) -> None:
    """docs/tools.md has a program and the commands that build it."""
    compiler("cc")
    page = (HERE.parents[1] / "docs" / "tools.md").read_text()
    (program,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (tmp_path / "main.c").write_text(program)
    kernel = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "gemm.py").write_text(kernel)
    signature = "f32[M,K] f32[K,N] f32[M,N]"
    assert f'gemm.py:gemm "{signature}" --target avx2 -o gemm.o\n' in page
    compiled(xetl, tmp_path, f"{tmp_path}/gemm.py:gemm", signature, "--target", "avx2")
    (line,) = re.findall(r"^cc -O2 .*$", page, re.MULTILINE)
    subprocess.run(f"{line} -o program", shell=True, cwd=tmp_path, check=True)
    said = subprocess.run(["./program"], cwd=tmp_path, capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, "200\n")


def test_a_shared_library_by_pkg_config_and_cmake(xetl: Any, tmp_path: Path) -> None:
    compiler("cc")
    for words in ((f"{FILE}:gemm", GEMM), (f"{FILE}:scale", SCALE)):
        name = words[0].rpartition(":")[2]
        out = tmp_path / f"lib{name}.so"
        result = xetl("compile", *words, "--target", "avx2", "-o", str(out))
        assert result.exit_code == 0, result.output
        (tmp_path / f"lib{name}.h").rename(tmp_path / f"{name}.h")
        assert "shared" in json.loads(out.with_suffix(".json").read_text())["format"]
    (tmp_path / "main.c").write_text(PRODUCT)
    env = {**os.environ, "PKG_CONFIG_PATH": str(tmp_path)}
    command = f"cc main.c $({compiler('pkg-config')} --cflags --libs gemm scale) -o by"
    for line in (command, "./by"):
        subprocess.run(line, shell=True, cwd=tmp_path, env=env, check=True)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    cmake = compiler("cmake")
    for line in ([cmake, "-S", ".", "-B", "build"], [cmake, "--build", "build"]):
        subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([str(tmp_path / "build" / "program")], check=True)


def test_without_a_linker_a_library_is_refused(
    xetl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    out = tmp_path / "k.so"
    words = (f"{FILE}:scale", SCALE, "--target", "avx2")
    result = xetl("compile", *words, "-o", str(out))
    assert result.exit_code == 2
    assert "write an object: -o k.o" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_gpus_need_no_device(xetl: Any, tmp_path: Path, target: str) -> None:
    words = (f"{FILE}:gemm", "bf16[M,K] bf16[K,N] f32[M,N]", "--target", target)
    result = xetl("compile", *words, "-o", str(tmp_path / "gemm.spv"))
    assert result.exit_code == 0, result.output
    facts = json.loads((tmp_path / "gemm.json").read_text())
    assert [each["stored"] for each in facts["arguments"]] == [False, False, True]


@pytest.mark.parametrize("target", ["avx2", "bmg"])
def test_greek_parameters_are_told_apart(
    xetl: Any, tmp_path: Path, target: str
) -> None:
    words = (f"{FILE}:greek", "f32[N] f64 f64", "--target", target)
    suffix = "o" if target == "avx2" else "spv"
    result = xetl("compile", *words, "-o", str(tmp_path / f"greek.{suffix}"))
    assert result.exit_code == 0, result.output
    declared = re.findall(
        r"(?:double|GREEK)[ _](u\w+),", (tmp_path / "greek.h").read_text()
    )
    assert declared == ["u3b1", "u3b2"]


def test_a_function_with_a_word_of_c_for_a_name(xetl: Any, tmp_path: Path) -> None:
    compile_, to = compiler("cc"), tmp_path / "double.o"
    words = f"{FILE}:gemm", GEMM, "--target", "avx2", "--name", "double"
    assert xetl("compile", *words, "-o", str(to)).exit_code == 0
    (tmp_path / "main.c").write_text('#include "double.h"\nint (*f)() = double_;\n')
    command = [compile_, "-std=gnu11", "-c", "main.c", "-o", "main.o", "-fopenmp"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr


def test_a_process_of_its_own(shell: Any, tmp_path: Path) -> None:
    out = tmp_path / "gemm.o"
    done = shell("compile", f"{FILE}:gemm", GEMM, "-o", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    names = ("gemm.o", "gemm.h", "gemm.json", "gemm-config.cmake", "gemm.pc")
    assert done.stdout.splitlines() == [f"wrote {tmp_path / name}" for name in names]
    assert out.read_bytes().startswith(b"\x7fELF")


def test_what_the_json_says(xetl: Any, tmp_path: Path) -> None:
    words = (f"{FILE}:gemm", "bf16[M,K] bf16[K,N] f32[M,N]", "BM=64", "EPILOGUE=twice")
    facts = compiled(xetl, tmp_path, *words, "--target", "avx512_bf16")
    assert facts["kernel"] == "gemm"
    assert facts["source"] == f"{FILE}:12"
    assert facts["target"] == "avx512_bf16"
    assert "avx512bf16" in facts["features"]
    assert facts["arguments"][1] == {
        "name": "B",
        "kind": "array",
        "dtype": "bf16",
        "rank": 2,
        "dimension_of_stride_1": 1,
        "needed": [["stride", 1, 1]],
        "stored": False,
    }
    assert facts["arguments"][2]["stored"]
    assert facts["constants"]["BM"] == "64"
    assert facts["slots"] == {"A": 8, "B": 13, "C": 18}
    assert facts["needs"] == []
    assert any("share no memory" in each for each in facts["assumptions"])


def test_the_processor_of_this_machine_is_named(xetl: Any, tmp_path: Path) -> None:
    facts = compiled(xetl, tmp_path, f"{FILE}:gemm", GEMM)
    assert facts["target"] == "host"
    assert "avx2" in facts["features"]
    assert any("name a target" in each for each in facts["assumptions"])


@pytest.mark.parametrize(
    ("compile_", "options"),
    [
        ("cc", ["-std=c11"]),
        ("cc", ["-std=gnu11"]),
        ("c++", ["-std=c++11", "-x", "c++"]),
    ],
)
def test_tiles_ask_for_permission(
    xetl: Any, tmp_path: Path, compile_: str, options: list[str]
) -> None:
    signature = "bf16[M,K] bf16[K,N] f32[M,N]"
    compiled(xetl, tmp_path, f"{FILE}:gemm", signature, "--target", "amx")
    header = (tmp_path / "gemm.h").read_text()
    assert "if (xetl_permit_tiles()) return XETL_ERROR_TILES;" in header
    (tmp_path / "main.c").write_text(
        '#include "gemm.h"\nint main(void) { return 0; }\n'
    )
    command = [compiler(compile_), *STRICT, *options, "-Wno-unknown-pragmas"]
    command += ["main.c", *(["-x", "none"] if "-x" in options else []), "gemm.o", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_permission_is_asked_for_tiles_alone(xetl: Any, tmp_path: Path) -> None:
    compiled(
        xetl,
        tmp_path,
        f"{FILE}:scale",
        "f32[M,16] f64 i64 i1 f32[M,16]",
        "--target",
        "amx",
    )
    header = (tmp_path / "scale.h").read_text()
    assert "return XETL_ERROR_TILES" not in header
    assert "XETL_NEEDS_TILES" not in header.split("typedef")[0]


def test_small_floats_are_bytes(xetl: Any, tmp_path: Path) -> None:
    words = (f"{FILE}:gemm", "f8e4m3[M,K] f8e5m2[K,N] f32[M,N]", "--target", "avx2")
    facts = compiled(xetl, tmp_path, *words)
    assert [each["dtype"] for each in facts["arguments"]] == ["f8e4m3", "f8e5m2", "f32"]
    header = (tmp_path / "gemm.h").read_text()
    assert "A is float8_e4m3fn, as bits" in header
    assert "const uint8_t *B" in header


def test_calls_of_a_library_are_listed(xetl: Any, tmp_path: Path) -> None:
    words = ("compile", f"{FILE}:gemm", GEMM, "--target", "avx2")
    out = tmp_path / "gemm.o"
    result = xetl(*words, "-o", str(out), XETL_XSMM="recording")
    assert result.exit_code == 0, result.output
    facts = json.loads(out.with_suffix(".json").read_text())
    assert facts["needs"] == ["xsmm_brgemm_dispatch", "xsmm_brgemm_invoke"]
    assert facts["libraries"] == ["m", "xetl_xsmm"]


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        ([f"{FILE}:printing", "f32[1,16]"], 2, "`printing` prints or asserts"),
        (
            [f"{FILE}:gemm", GEMM, "--backend", "reference"],
            2,
            "backend `reference` makes no files",
        ),
        ([f"{FILE}:gemm", GEMM, "--name", "a-b"], 2, "`a-b` is no name in C"),
        (
            [f"{FILE}:gemm", GEMM, "--wheel", "--name", "class"],
            2,
            "`class` is a word of Python",
        ),
        (
            [f"{FILE}:gemm", GEMM, "--wheel", "--name", "numpy"],
            2,
            "would hide Python's or NumPy's `numpy`",
        ),
        (
            [f"{FILE}:gemm", GEMM, "--wheel", "--name", "ctypes"],
            2,
            "would hide Python's or NumPy's `ctypes`",
        ),
        ([f"{FILE}:gemm", "f32[M,K]"], 2, "called without `B`, `C`"),
        ([f"{FILE}:gemm", GEMM, "--also", "x"], 2, "are for wheels: add --wheel"),
        ([f"{FILE}:gemm", GEMM, "--target", "avx3"], 2, "did you mean `avx2`?"),
    ],
)
def test_wrong_command_lines(
    xetl: Any, tmp_path: Path, words: list[str], code: int, answer: str
) -> None:
    result = xetl("compile", *words, "-o", str(tmp_path / "k.o"))
    assert result.exit_code == code
    assert answer in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("target", "name"),
    [("pvc", "k.so"), ("pvc", "k.txt"), ("avx2", "k.spv"), ("avx2", "k.txt")],
)
def test_files_of_another_kind(
    xetl: Any, tmp_path: Path, target: str, name: str
) -> None:
    words = ("compile", f"{FILE}:scale", SCALE, "--target", target)
    result = xetl(*words, "-o", str(tmp_path / name))
    assert result.exit_code == 2
    suffix = Path(name).suffix
    assert f"compiled for `{target}` is no `{suffix}` file: write -o" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_in_place_of_a_file(xetl: Any, tmp_path: Path) -> None:
    words = ("compile", f"{FILE}:scale", SCALE, "--target", "avx2")
    result = xetl(*words, "-o", f"{tmp_path}/")
    assert result.exit_code == 2
    assert f"is a folder: write -o {tmp_path}/scale.o" in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_header_names_no_file_that_is_not_there(xetl: Any, tmp_path: Path) -> None:
    words = ("compile", f"{FILE}:scale", SCALE, "--target", "avx2")
    assert xetl(*words, "-o", str(tmp_path / "other.o")).exit_code == 0
    assert "scale.o" not in (tmp_path / "other.h").read_text()


def test_the_header_checks_what_the_types_of_a_text_say(
    xetl: Any, tmp_path: Path
) -> None:
    (tmp_path / "k.mlir").write_text("func.func @k(%a: memref<8x?xf32>) { return }")
    words = ("compile", str(tmp_path / "k.mlir"), "--target", "avx2")
    assert xetl(*words, "-o", str(tmp_path / "k.o")).exit_code == 0
    header = (tmp_path / "k.h").read_text()
    assert "if (a_shape[0] != 8) return XETL_ERROR_SHAPE;" in header
    assert "if (a_shape[1] > 1 && a_strides[1] != 1) return XETL_ERROR_STRIDE" in header


def test_a_second_file_of_one_package_is_said(xetl: Any, tmp_path: Path) -> None:
    compiler("cc")
    words = ("compile", f"{FILE}:scale", SCALE, "--target", "avx2", "-o")
    assert not xetl(*words, str(tmp_path / "a.o")).stderr
    result = xetl(*words, str(tmp_path / "b.o"))
    assert result.exit_code == 0
    assert "scale.pc` was for a.o and is for b.o now; --name" in result.stderr
    assert "}/b.o" in (tmp_path / "scale.pc").read_text()
    assert not xetl(*words, str(tmp_path / "c.o"), "--name", "c").stderr
    assert not xetl(*words, str(tmp_path / "b.so")).stderr


def test_a_folder_that_is_not_there(xetl: Any, tmp_path: Path) -> None:
    out = tmp_path / "nowhere" / "k.o"
    result = xetl("compile", f"{FILE}:gemm", GEMM, "-o", str(out))
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr


def test_a_tuned_kernel_is_compiled_with_its_first_config(
    xetl: Any, tmp_path: Path
) -> None:
    tuned = str(Path(__file__).parent / "tuned_for_commands.py")
    words = (tuned, "f32[M,16] f64", "--target", "avx2", "-o", str(tmp_path / "k.o"))
    assert xetl("compile", *words).exit_code == 0
    first = json.loads((tmp_path / "k.json").read_text())["constants"]
    assert xetl("compile", tuned, words[1], "BM=4", *words[2:]).exit_code == 0
    given = json.loads((tmp_path / "k.json").read_text())["constants"]
    assert (first["BM"], given["BM"]) == ("8", "4")
