"""18  Ahead of time.  You will: ship kernels to machines that have no compiler.

Needs 02.  Runs on any CPU in about ten seconds.  The part in C needs `cc`.
"""

# %% [markdown]
# ## Two ways to run a kernel
#
#     here                                          there
#     kernel(x, y)  --> compile --> cache --> run
#
#     xetl compile  --> softmax-0.1.0.whl  -------> import softmax     NumPy, no xetl
#                   --> softmax.o, softmax.h  ----> cc main.c          no Python
#                   --> softmax.spv  -------------> SYCL, Level Zero   Intel GPUs
#
# When a kernel is called, it is compiled for the types of its arguments.  Ahead of time
# a *signature* gives the types: "f32[M,N] f32[M,N]" is two matrices of any size, whose
# rows are contiguous.  Any machine can make the files for any target.

# %%
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
(folder / "rows.py").write_text("""
from xetl import xetile

@xetile.kernel(grid=lambda a: a.X.shape[0])
def softmax(X, Y):
    row = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, 512)), padding=-xetile.inf)
    e = xetile.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    xetile.store_tile(y, xetile.init_tile(Y, [row, 0], (1, 512)))
""")


def run(*command):
    """Run a command in the folder; return its output."""
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


KERNEL = ("rows.py:softmax", "f32[M,N] f32[M,N]")


def compile_kernel(*options):
    """As `xetl compile rows.py:softmax "f32[M,N] f32[M,N]" ...` in a shell."""
    return run(sys.executable, "-m", "xetl", "compile", *KERNEL, *options)


# %% [markdown]
# ## A wheel
# It has code for each kind of CPU and takes the best that runs.

# %%
(folder / "dist").mkdir()
print(compile_kernel("--wheel", "-o", "dist"))
(wheel,) = folder.glob("dist/*.whl")
print(wheel.name, wheel.stat().st_size, "bytes")
shutil.unpack_archive(wheel, folder / "installed", "zip")  # as pip install does

# %% [markdown]
# Another process imports it.  It has NumPy, and neither xetl nor LLVM.

# %%
(folder / "installed" / "use.py").write_text("""
import sys
from time import perf_counter
import numpy as np

start = perf_counter()
import softmax
x = np.random.default_rng(0).standard_normal((1000, 500), np.float32)
y = np.empty_like(x)
softmax.softmax(x, y)
print(f"import and first call: {(perf_counter() - start) * 1e3:.1f} ms")

e = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-4)
assert not {"xetl", "llvmlite", "numba"} & set(sys.modules)
print("the wheel: equal to NumPy's, and xetl was not loaded")
""")
print(run(sys.executable, "installed/use.py"))

# %% [markdown]
# ## For C
# An object file, a header, and a JSON file that says all that the code relies on.

# %%
compile_kernel("--target", "avx2", "-o", "softmax.o")
header = (folder / "softmax.h").read_text()
begin = header.index("int softmax(")
print(header[begin : header.index("{", begin)])

(folder / "main.c").write_text("""
#include "softmax.h"
#include <stdio.h>

enum { M = 3, N = 4 };
static float x[M * N], y[M * N];

int main(void)
{
    const int64_t grid[3] = {M, 1, 1}, shape[2] = {M, N}, strides[2] = {N, 1};
    xetl_workspace workspace = {NULL, NULL, 0};

    if (softmax(grid, x, shape, strides, y, shape, strides, &workspace))
        return 1;
    xetl_workspace_free(&workspace);
    printf("from C: %g %g %g %g\\n", y[0], y[1], y[2], y[3]);
    return 0;
}
""")
if shutil.which("cc"):
    run("cc", "-O2", "-fopenmp", "main.c", "softmax.o", "-lm", "-o", "main")
    said = run("./main")
    print(said)
    assert said.strip() == "from C: 0.25 0.25 0.25 0.25"
else:
    print("there is no C compiler here")

# %% [markdown]
# ## Look inside
# Which instructions did each target get?  The same command, other targets.

# %%
for target in ("avx2", "avx512"):
    name = f"softmax_{target}.o"
    compile_kernel("--target", target, "-o", name)
    print(f"{target:7} {(folder / name).stat().st_size:6} bytes")

# %% [markdown]
# ## Measure
# What does it cost to start?  With xetl: import it, compile or find the code on disk,
# and call.

# %%
first = """
from time import perf_counter
import numpy as np
start = perf_counter()
from rows import softmax
x = np.zeros((1000, 500), np.float32)
softmax(x, x.copy())
print(f"{(perf_counter() - start) * 1e3:.0f} ms")
"""
(folder / "first.py").write_text(first)
for what in ("compiled, or found on disk", "found on disk"):
    print(f"xetl, {what}: {run(sys.executable, 'first.py').strip()}")

# %%
shutil.rmtree(folder)

# %% [markdown]
# **Try it:** `--also` puts a second kernel into the wheel.  `--target pvc -o k.spv`
# makes SPIR-V for a GPU.
