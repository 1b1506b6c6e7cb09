import numpy as np

import xetl
from xetl import xetile
from xetl.xetile import Array, Vector, cdiv, constexpr, f32


@xetile.function
def gelu(v: Vector) -> Vector:
    return 0.5 * v * (1.0 + xetile.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)))
def gemm(
    A: Array,
    B: Array,
    C: Array,
    bias: Array | None = None,
    EPILOGUE: constexpr = None,
    BM: constexpr = 256,
    BN: constexpr = 256,
    BK: constexpr = 32,
    WG: constexpr = xetile.wg_map([8, 4], [32, 64]),  # noqa: B008 - a constant
) -> None:
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _k in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if bias is not None:
        acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def softmax(X: Array, Y: Array, BM: constexpr = 8, N: constexpr = 1024) -> None:
    m = xetile.program_id(0) * BM
    x = xetile.load_tile(xetile.init_tile(X, [m, 0], (BM, N)), padding=-xetile.inf)
    e = xetile.exp(x - x.max(axis=1, keepdims=True))
    s = e.sum(1)
    total = s[:, None]
    mask = xetile.arange(N) < X.shape[1]
    e = xetile.where(mask[None, :], e, 0.0)
    xetile.store_tile((e / total).to(Y.dtype), xetile.init_tile(Y, [m, 0], (BM, N)))


@xetile.kernel
def lookup(X: Array, ROWS: Array, Y: Array, n: int) -> None:
    where = xetile.load_tile(xetile.init_tile(ROWS, [0], (16,)))
    v = X[where[:, None], xetile.arange(16)[None, :]]
    Y[where[:8]] = v[n][:8] + v[n, 3] * where[-1] - X[n, 2]
    Y[where[n]] = v[:, n][2]


@xetile.kernel
def rows(X: Array, Y: Array, n: int, scale: float, BM: constexpr = 16) -> None:
    i = xetile.program_id(0)
    local = xetile.slm((BM, 16), xetile.f32)
    t = xetile.init_tile(local, [0, 0], (BM, 16))
    xetile.store_tile(xetile.load_tile(xetile.init_tile(X[i], [0, 0], (BM, 16))), t)
    xetile.barrier()
    y = xetile.load_tile(xetile.init_tile(X.T[i], [0, 0], (BM, 16)))
    s = xetile.init_tile(Y, xetile.arange(16) * 2)
    v = xetile.load_gather(s, None)
    xetile.store_scatter(v + X[0, 1], None, s)
    old = xetile.atomic_rmw_tile("add", y * scale, t)
    k = 0
    while k < n and k < X.stride(0):
        y = -abs(y) + old if k % 2 == 0 else ~(y > 1)
        k += 1
    z = y @ y.T
    z += xetile.maximum(y, 0.0) ** 2
    xetile.static_assert(BM > 0, "BM")
    xetile.device_print("{}", k)
    w = y.to(xetile.i32) % 3 << 1
    xetile.store_tile(w, t)


A = B = C = np.zeros((64, 64), np.float32)
gemm[(16, 16)](A, B, C)
gemm[lambda m: (cdiv(m.A.shape[0], m.BM), 1)](A, B, C, BM=128, BN=128)
gemm(A, B, C, EPILOGUE=gelu)
softmax[8](A, C, BM=4)
plan = gemm.bind(A, B, C)
plan()
text: str = gemm.ir("llvm", A, B, C)
print(gemm.explain(A, B, C).remarks[0].line, gemm.stats(A, B, C).code_bytes)
gemm.warmup("f32[M,K] f32[K,N] f32[M,N]", target="avx2")
with xetl.no_compile():
    gemm(A, B, C)
xetl.config.backend = "cpu"
xetl.ops.matmul(A, xetl.ops.prepack(B), out=C, bias=A[0], activation="relu")
sizes: tuple[int, ...] = xetl.ops.prepack(B).shape
gemm(A, xetl.ops.prepack(B), C)
why: str = gemm.why_recompiled()


@xetl.autotune([xetl.Config(BM=4), {"BM": 8}], key=["X"], budget_s=5)
@xetl.heuristics({"N": lambda args: int(args["X"].shape[1])})
@xetile.kernel(grid=1)
def tuned(X: Array, Y: Array, BM: constexpr, N: constexpr) -> None:
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (BM, N)))
    xetile.store_tile(x, xetile.init_tile(Y, [0, 0], (BM, N)))


tuned(A, C)
best: xetl.Config | None = tuned.best_config
slowest = max(trial.milliseconds or 0.0 for trial in tuned.trials)
ms: float = xetl.do_bench(lambda: tuned(A, C), cache="cold")
low, high = xetl.do_bench([lambda: tuned(A, C), lambda: softmax[8](A, C)])


@xetl.perf_report(xetl.Benchmark(x="N", values=[64, 128], lines=["xetl"], unit="ms"))
def measured(N: int, provider: str) -> float:
    return xetl.do_bench(lambda: tuned(A[:N], C[:N]))


measured.run(csv="times.csv")
