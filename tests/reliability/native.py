"""Native code under valgrind and the sanitizers of gcc.

Kernels are compiled ahead of time, and called by a C program whose arrays are pieces of
memory of their own, exactly as long as they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.reliability.checks import ROOT, has
from tests.reliability.kernels import Case, cases

SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
_SANITIZED = ("tests/native", "tests/backends/cpu/test_libxsmm_2.py")

_MAIN = """
#include "{name}.h"
#include <stdio.h>

static void *kept[16];

static void *read_array(const char *path, size_t bytes)
{{
    static int count;
    char *found = kept[count++] = malloc(bytes);
    FILE *file = fopen(path, "rb");

    if (!found || !file || fread(found, 1, bytes, file) != bytes)
        exit(3);
    fclose(file);
    return found;
}}

int main(void)
{{
    const int64_t grid[3] = {{{x}, {y}, 1}};
{arrays}
    void *expected = read_array("expected", {bytes});
    if ({name}(grid, {arguments}, NULL))
        return 1;
    return memcmp({result}, expected, {bytes}) ? 2 : 0;
}}
"""


def valgrind(scale: float) -> str:
    """Ten kernels read and write nothing but their arrays, and nothing unset."""
    if not has("valgrind"):
        return "left out: valgrind is not installed"
    command = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=no"]
    for name, case in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            _run([*command, str(_program(Path(folder), case, []))], folder, name)
    return f"{len(cases())} kernels for avx2, no error"


def sanitizers(scale: float) -> str:
    """The C program that the header is for, our shim and our emulator: no report."""
    if not has("gcc"):
        return "left out: gcc is not installed"
    for name, case in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            _run([str(_program(Path(folder), case, SANITIZERS.split()))], folder, name)
    preload = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "CFLAGS": SANITIZERS,
        "LD_PRELOAD": preload,
        "ASAN_OPTIONS": "detect_leaks=0:handle_sigill=0:allow_user_segv_handler=1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    _run([*command, *_SANITIZED], str(ROOT), "pytest", environment)
    return f"{len(cases())} programs in C, emulator and shim: no report"


def _program(folder: Path, case: Case, flags: list[str]) -> Path:
    """A C program that launches a case, and compares."""
    name = case.kernel.fn.__name__
    source = f"{Path(__file__).parent / 'kernels.py'}:{name}"
    command = [sys.executable, "-m", "xetl", "compile", source, case.signature]
    output = ["--target", "avx2", "-o", str(folder / f"{name}.o")]
    _run([*command, *output], str(ROOT), name)
    lines, arguments = [], []
    for label, array in case.arrays.items():
        (folder / label).write_bytes(array.tobytes())
        shape = ", ".join(map(str, array.shape))
        strides = ", ".join(str(s // array.itemsize) for s in array.strides)
        lines += [
            f'void *{label} = read_array("{label}", {array.nbytes});',
            f"const int64_t {label}_shape[] = {{{shape}}};",
            f"const int64_t {label}_strides[] = {{{strides}}};",
        ]
        arguments += [label, f"{label}_shape", f"{label}_strides"]
    (folder / "expected").write_bytes(case.expected.tobytes())
    text = _MAIN.format(
        name=name,
        x=case.grid[0],
        y=case.grid[1],
        arrays="\n".join(f"    {line}" for line in lines),
        arguments=", ".join(arguments),
        result=[*case.arrays][-1],
        bytes=case.expected.nbytes,
    )
    (folder / "main.c").write_text(text)
    program = folder / "program"
    strict = ["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]
    parts = [str(folder / "main.c"), str(folder / f"{name}.o")]
    build = ["gcc", *strict, *flags, *parts, "-lm", "-o", str(program)]
    _run(build, str(folder), name)
    return program


def _run(
    command: list[str], folder: str, what: str, env: dict[str, str] | None = None
) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=env, check=False
    )
    said = f"{what}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert done.returncode == 0, said
