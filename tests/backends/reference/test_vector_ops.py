"""`vector` operations against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_harness import FLOATS, INTEGERS, evaluate

from xetl_reference.floats import widen

few = settings(max_examples=20)
sizes = st.integers(1, 12)


def numbers(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape).astype(dtype)


def test_shapes():
    x = numbers(2, 3)
    cast = evaluate("vector.shape_cast {0} : {t0} to {r}", x, shape=(3, 2))
    assert (cast == x.reshape(3, 2)).all()
    turned = evaluate("vector.transpose {0}, [1, 0] : {t0} to {r}", x, shape=(3, 2))
    assert (turned == x.T).all()
    y = numbers(2, 3, 4)
    turned = evaluate(
        "vector.transpose {0}, [2, 0, 1] : {t0} to {r}", y, shape=(4, 2, 3)
    )
    assert (turned == y.transpose(2, 0, 1)).all()


def test_broadcast_and_step():
    wide = evaluate("vector.broadcast {0} : {t0} to {r}", np.float32(7), shape=(2, 3))
    assert (wide == 7).all()
    row = numbers(3)
    wide = evaluate("vector.broadcast {0} : {t0} to {r}", row, shape=(2, 3))
    assert (wide == row).all()
    column = numbers(2, 1)
    wide = evaluate("vector.broadcast {0} : {t0} to {r}", column, shape=(2, 3))
    assert (wide == column).all()
    steps = evaluate(
        "vector.step : {r}", shape=(5,), dtype=np.int64, like=1, index=True
    )
    assert steps.tolist() == [0, 1, 2, 3, 4]


def test_parts():
    x = numbers(3, 4)
    assert evaluate("vector.extract {0}[1, 2] : f32 from {t0}", x, shape=()) == 6
    row = evaluate("vector.extract {0}[2] : {r} from {t0}", x, shape=(4,))
    assert (row == x[2]).all()
    one = evaluate(
        "vector.insert {0}, {1}[0, 3] : f32 into {t1}", np.float32(9), x, like=x
    )
    assert one[0, 3] == 9
    assert (one.ravel()[[0, 1, 2, 4]] == x.ravel()[[0, 1, 2, 4]]).all()
    rows = evaluate("vector.insert {0}, {1}[1] : {t0} into {t1}", -x[0], x, like=x)
    assert (rows[1] == -x[0]).all()


def test_strided_slices():
    x = numbers(4, 6)
    part = evaluate(
        "vector.extract_strided_slice {0} {{offsets = [1, 2], sizes = [2, 3], "
        "strides = [1, 1]}} : {t0} to {r}",
        x,
        shape=(2, 3),
    )
    assert (part == x[1:3, 2:5]).all()
    whole = evaluate(
        "vector.insert_strided_slice {0}, {1} {{offsets = [1, 2], strides = [1, 1]}} "
        ": {t0} into {t1}",
        -part,
        x,
        like=x,
    )
    wanted = x.copy()
    wanted[1:3, 2:5] *= -1
    assert (whole == wanted).all()
    mixed = evaluate(
        "vector.shuffle {0}, {1} [0, 7, -1, 3] : {t0}, {t1}", x[0], x[1], shape=(4,)
    )
    assert mixed[[0, 1, 3]].tolist() == [0, 7, 3]


@few
@given(m=sizes, n=sizes, a=st.integers(-3, 15), b=st.integers(-3, 15))
def test_masks(m, n, a, b):
    found = evaluate(
        "vector.create_mask {0}, {1} : {r}",
        np.int64(a),
        np.int64(b),
        shape=(m, n),
        dtype=bool,
        index=True,
    )
    rows, columns = np.indices((m, n))
    assert (found == ((rows < a) & (columns < b))).all()
    a, b = min(max(a, 0), m), min(max(b, 0), n)
    found = evaluate(
        f"vector.constant_mask [{a}, {b}] : {{r}}", shape=(m, n), dtype=bool, like=1
    )
    assert (found == ((rows < a) & (columns < b))).all()


FLOAT_KINDS = {
    "add": np.add,
    "mul": np.multiply,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
    "minnumf": np.fmin,
    "maxnumf": np.fmax,
}
INTEGER_KINDS = {
    "add": np.add,
    "mul": np.multiply,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
UNSIGNED_KINDS = {"minui": np.minimum, "maxui": np.maximum}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", FLOAT_KINDS)
@few
@given(n=st.integers(1, 70), m=st.integers(1, 70), seed=st.integers(0, 99))
def test_float_reductions(kind, dtype, n, m, seed):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((m, n)) + (1.0 if kind == "mul" else 0.0)).astype(dtype)
    ufunc = FLOAT_KINDS[kind]
    with np.errstate(all="ignore"):
        total = ufunc.reduce(x.astype(np.float64), axis=1)
        if dtype != np.float64:
            total = total.astype(np.float32).astype(dtype)
    text = f"vector.multi_reduction <{kind}>, {{0}}, {{1}} [1] : {{t0}} to {{r}}"
    start = np.zeros(m, dtype) if kind == "add" else np.ones(m, dtype)
    found = evaluate(text, x, start, shape=(m,))
    with np.errstate(all="ignore"):
        wanted = ufunc(widen(total), widen(start)).astype(dtype)
    assert np.array_equal(found, wanted)
    line = evaluate(
        f"vector.reduction <{kind}>, {{0}} : {{t0}} into {{r}}", x[0], shape=()
    )
    assert line == total[0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_reductions(dtype):
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (5, 9), dtype, endpoint=True)
    unsigned = x.view(np.dtype(f"uint{8 * x.itemsize}"))
    for kinds, values in ((INTEGER_KINDS, x), (UNSIGNED_KINDS, unsigned)):
        for kind, ufunc in kinds.items():
            wanted = ufunc.reduce(values, axis=0, dtype=values.dtype).view(dtype)
            start = np.full(9, ufunc.reduce(values[:, 0], dtype=values.dtype)).view(
                dtype
            )
            text = (
                f"vector.multi_reduction <{kind}>, {{0}}, {{1}} [0] : {{t0}} to {{r}}"
            )
            found = evaluate(text, x, start, shape=(9,))
            both = ufunc(wanted.view(values.dtype), start.view(values.dtype))
            assert (found == both.view(dtype)).all(), kind


def test_reductions_of_bits():
    x = np.array([1, 0, 1, 1], bool)
    for kind, wanted in {"and": False, "or": True, "xor": True}.items():
        text = f"vector.reduction <{kind}>, {{0}} : {{t0}} into {{r}}"
        assert evaluate(text, x, shape=()) == wanted


def test_a_sum_in_bf16_rounds_once():
    x = np.ones(1000, ml_dtypes.bfloat16)  # step by step it would stop at 256
    found = evaluate("vector.reduction <add>, {0} : {t0} into {r}", x, shape=())
    assert found == np.float32(1000).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32])
def test_contract(dtype):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, s).astype(dtype) for s in ((3, 5), (5, 4)))
    c = rng.integers(-4, 5, (3, 4)).astype(dtype)
    maps = (
        "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> "
        "(k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = "
        '["parallel", "parallel", "reduction"], kind = #vector.kind<add>'
    )
    text = f"vector.contract {{{{{maps}}}}} {{0}}, {{1}}, {{2}} "
    text += ": {t0}, {t1} into {r}"
    found = evaluate(text, a, b, c, like=c)
    wide = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    assert (found.astype(np.float64) == wide).all()
    fused = (
        evaluate("vector.fma {0}, {1}, {2} : {t0}", c, c, c) if dtype != np.int32 else c
    )
    if dtype != np.int32:
        assert (fused.astype(float) == c.astype(float) ** 2 + c.astype(float)).all()
