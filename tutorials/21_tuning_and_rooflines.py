"""21  Tuning and rooflines.  You will: let xetl choose tile sizes, and plot the gain.

Needs 03.  Runs on any CPU in about ten seconds; the second time in two.  `--plot` as
well draws 21_tuning_and_rooflines.png.
"""

# %% [markdown]
# ## Which tile size is best?
# It depends on the processor, the dtype and the shapes, so it is measured.  `autotune`
# times each config at the first launch with a new *key*, here a new shape of C, on
# copies of what the kernel writes.  The best is kept in a JSON file of the cache's
# folder; with `XETL_TUNED_DIR` it is a folder of your own, which can be checked in.
#
# `heuristics` computes a constant from the arguments: here, whether K is a multiple of
# the tile, so that no element has to be left out.

# %%
import os
import sys

os.environ.pop("OPENBLAS_CORETYPE", None)  # lets NumPy use all of this CPU

import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32


@xetl.autotune(BM=[32, 64, 128], BN=[64, 128], key=["C"], budget_s=8)
@xetl.heuristics({"BK": lambda args: 64 if args["A"].shape[1] % 64 == 0 else 32})
@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)))
def gemm(A, B, C, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def matrices(size):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    return a, b, np.zeros((size, size), np.float32)


a, b, c = matrices(256)
gemm(a, b, c)
assert np.allclose(c, a @ b, atol=1e-3)
print("best:", gemm.best_config)
for trial in gemm.trials:  # none if the best was remembered
    print(f"  {trial.config}: {trial.milliseconds or 0:.3f} ms {trial.problem or ''}")

# %% [markdown]
# ## Is it fast?
# `do_bench` times one function, or several in turns; then it says when the noise is
# larger than the difference.

# %%
print(xetl.do_bench({
    "xetl": lambda: gemm(a, b, c),
    "NumPy": lambda: np.matmul(a, b, out=c),
}))  # fmt: skip

# %% [markdown]
# ## The roofline
# How fast could it be?  Two limits are known before any kernel is written: operations
# per second, and bytes per second that come from memory.  The *intensity* of a function
# is its operations per byte.  What it can reach at most is a roof with a slope:
#
#     GFLOP/s
#        |              ______________   limit of arithmetic
#        |            /   x                  x  GEMM of a large size
#        |          /
#        |        /  <- limit of memory: bytes per second * intensity
#        |      / x                          x  adding vectors
#        +-------------------------- operations per byte
#
# A point close to the roof is done.  Under the slope, only moving fewer bytes helps:
# fuse, or use a smaller dtype.
#
# `perf_report` measures many sizes.  `csv=` and `png=` write files, and `roofline=`
# compares with what this machine can do, measured at once; a path draws it.


# %%
@xetl.perf_report(
    xetl.Benchmark(
        x="N",
        values=[64, 128, 256],
        lines={"xetl": "tuned kernel", "numpy": "NumPy"},
        unit="GFLOP/s",
        name="f32 GEMM",
        flops=lambda N: 2.0 * N**3,
        bytes=lambda N: 12.0 * N**2,
    )
)
def products(N, provider):
    a, b, c = matrices(N)
    call = lambda: gemm(a, b, c)
    if provider == "numpy":
        call = lambda: np.matmul(a, b, out=c)
    call()
    return 2e-6 * N**3 / xetl.do_bench(call, warmup=5, rep=20)


if "--plot" in sys.argv:
    products.run(roofline="21_tuning_and_rooflines.png")
else:
    products.run(roofline=True)

# %% [markdown]
# **Try it:** the same for the kernel of 01.  At which size does it leave the cache?
