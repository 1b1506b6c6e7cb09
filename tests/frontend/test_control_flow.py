"""Loops, branches, functions: what is decided when compiling and what is carried."""

from building import build, names, ops

from xetl import xetile
from xetl.xetile import constexpr, f16, f32

STEP = 4


@xetile.function
def clamp(v, *, low=0.0, high=1.0):
    if low is None:
        return v
    return xetile.minimum(xetile.maximum(v, low), high)


square = xetile.function(lambda v: v * v)


def body_of(module):
    (loop,) = ops(module, "scf.for")
    return [op.name for op in loop.body.block.ops]


def test_carried_numbers_and_tuples():
    def kernel(X, n):
        total, state = 0.0, (0, xetile.zeros((4, 4), f32))
        for i in range(n):
            total = total + i
            state = (state[0] + 1, state[1] + total)
        xetile.store_tile(state[1] + state[0], xetile.init_tile(X, [0, 0], (4, 4)))

    (loop,) = ops(build(kernel, X="f32 2", n="i64"), "scf.for")
    types = [str(result.type) for result in loop.results]
    assert types == ["f64", "index", "vector<4x4xf32>"]


def test_a_temporary_may_change_its_kind():
    def kernel(X, n):
        tmp = xetile.zeros((4, 4), f32)
        for i in range(n):
            tmp = xetile.zeros((4, 4), f16)
            tmp = tmp + i

    build(kernel, X="f32 2", n="i64")


def test_negative_steps_count_down():
    def kernel(X):
        for k in range(X.shape[1] - STEP, -1, -STEP):
            t = xetile.init_tile(X, [0, k], (4, STEP))
            xetile.store_tile(xetile.load_tile(t) + 1, t)

    assert body_of(build(kernel, X="f32 2"))[0] == "arith.subi"


def test_a_step_of_the_run_is_guarded():
    def kernel(X, n):
        for k in range(0, X.shape[1], n):
            xetile.prefetch_tile(xetile.init_tile(X, [0, k], (4, 4)))

    module = build(kernel, X="f32 2", n="i64")
    assert "arith.select" in names(module)
    assert "arith.maxsi" in names(module)


def test_static_range_unrolls():
    def kernel(X):
        v = xetile.zeros((4, 4), f32)
        for i in xetile.static_range(1, 6, 2):
            v = v * i
        for factor in (2.0, 3.0):
            v = v * factor

    module = build(kernel, X="f32 2")
    assert "scf.for" not in names(module)
    assert names(module).count("arith.mulf") == 5


def test_conditions_known_when_compiling_prune():
    def kernel(X, bias=None, MODE: constexpr = "a"):
        if bias is not None and MODE == "a":
            undefined_name  # noqa: B018, F821
        elif MODE == "a":
            v = xetile.zeros((4, 4), f32)
        w = v if MODE == "a" else undefined_name  # noqa: F821, F841

    assert "scf.if" not in names(build(kernel, X="f32 2"))


def test_branches_of_the_run():
    def kernel(X, n):
        v, count, same = xetile.zeros((4, 4), f32), 0, 7
        if n > 3 and n != 5:
            v, count = v + 1, count + n
        elif not n:
            v = -v
        xetile.static_assert(same == 7)
        xetile.store_tile(v + count, xetile.init_tile(X, [0, 0], (4, 4)))

    module = build(kernel, X="f32 2", n="i64")
    outer, inner = ops(module, "scf.if")
    assert len(outer.results) == 2
    assert len(inner.results) == 1


def test_ternary_joins_int_and_float():
    def kernel(X, flag):
        _ = xetile.zeros((4, 4), f32) + (1 if flag else 2.5)

    (branch,) = ops(build(kernel, X="f32 2", flag="i1"), "scf.if")
    assert str(branch.results[0].type) == "f64"


def test_functions_are_inlined():
    def kernel(X, F: constexpr = clamp):
        scale = 3.0

        def local(v, by=scale):
            def twice(w):
                return w * 2 * by

            return twice(v)

        v = xetile.zeros((4, 4), f32)
        v = F(local(v), high=2.0)
        v = clamp(square(v), low=None)
        v = (lambda w: w - scale)(v)

    assert [name for name in names(build(kernel, X="f32 2")) if "arith.m" in name] == [
        "arith.mulf",
        "arith.mulf",
        "arith.maximumf",
        "arith.minimumf",
        "arith.mulf",
    ]


def test_lambda_as_an_argument():
    def kernel(X, F):
        _ = F(xetile.zeros((4, 4), f32))

    module = build(kernel, X="f32 2", F=lambda v: v - 1)
    assert "arith.subf" in names(module)


def test_a_chain_of_comparisons_and_a_walrus():
    def kernel(X, n):
        if 0 < (m := n + 1) <= 5:
            xetile.prefetch_tile(xetile.init_tile(X, [m, 0], (4, 4)))

    assert names(build(kernel, X="f32 2", n="i64")).count("arith.cmpi") == 2


def test_static_print(capsys):
    def kernel(X, B: constexpr = 4):
        v = xetile.zeros((B, B), f32)
        xetile.static_print("v is", v, f"{B:03d}")

    build(kernel, X="f32 2")
    assert capsys.readouterr().out == "v is f32 (4, 4) 004\n"
