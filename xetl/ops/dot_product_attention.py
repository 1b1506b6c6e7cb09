"""``xetl.ops.scaled_dot_product_attention``."""

from __future__ import annotations

from math import e, log2, prod, sqrt
from typing import Any

import numpy as np

from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.attention_kernel import attention
from xetl.ops.batches import split_batch
from xetl.ops.calls import Launch, Plan, Plans, kind
from xetl.ops.functions import SUMS, checked_place, common_dtype, public, wrong_shape
from xetl.ops.operands import Numbers, as_numpy, new_result
from xetl.ops.rules import Shape
from xetl.runtime.arrays import describe
from xetl.runtime.select_backend import choose_backend
from xetl.runtime.tensors import note_written
from xetl.runtime.usm import DEVICE_BACKEND

_NAME = "scaled_dot_product_attention"

_LEAST_FACTOR = 2.0**-126
"""In place of 0, with which what is masked (minus infinity) would be NaN."""

_QUERIES = (1, 4, 16, 64)
"""Of a program: the first that is enough, else the last. More are no faster on a CPU,
and leave less for other threads."""

_KEYS = (16, 64, 256)
"""Of a block: enough for a product to be one, few enough for scores to stay in L2."""

_CAUSAL_KEYS = (16, 64, 128)
"""Of a block where scores are masked: what is masked of one is computed in vain."""

DEVICE_KEYS = 32
"""Of a block on a GPU: with more its registers spill (with 64 some KB a subgroup)."""

DEVICE_KEYS_OF_F64 = 8
"""The same for f64, of which registers hold half as many (with 16: 8 KB)."""


@public
def scaled_dot_product_attention(
    q: Any,
    k: Any,
    v: Any,
    causal: bool = False,
    scale: float | None = None,
    out: Any = None,
) -> Any:
    """``softmax(q @ k.T * scale) @ v``, shapes as torch's function of this name.

    Leading dimensions are batches (and heads) and broadcast. Scores and sums are f32
    (f64 for f64); what multiplies ``v`` is rounded to its dtype first, as the products
    of 16-bit numbers need. Memory for scores does not grow with s and t. There is no
    automatic derivative.

    Args:
        q: (..., s, d); f16, bf16, f32 or f64. NumPy (bf16 by ml_dtypes), torch,
            memory of a device (USM), anything with ``__dlpack__``.
        k: (..., t, d), dtype of ``q``.
        v: (..., t, e), dtype of ``q``.
        causal: whether query i sees only keys 0 to i.
        scale: what scores are multiplied by; None: 1 / sqrt(d).
        out: (..., s, e), where the result goes, of any float dtype. It must not share
            memory with another argument.

    Returns:
        ``out``, or a new array of the library ``q`` is from: (..., s, e), dtype of
        ``q``. Without keys (t = 0) it is 0.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, ``out`` shares memory
            (X0807) or is read-only (X0806).
    """
    queries, keys, values = map(as_numpy, (q, k, v), "qkv")
    to = None if out is None else as_numpy(out, "out")
    operands = (queries, keys, values)
    is_negative = scale is not None and scale < 0
    backend = choose_backend(values=operands).name
    key = (backend, *map(kind, operands), kind(to), bool(causal), is_negative)
    plan = _plans.find(
        key,
        lambda: _plan(
            backend, operands, to, is_causal=bool(causal), is_negative=is_negative
        ),
    )
    if plan.launch is None and prod(plan.shape):
        result = new_result(q, plan.shape, plan.dtype) if out is None else out
        _fill_with_zeros(result)
        return result
    factor = (1 / sqrt(queries.shape[-1]) if scale is None else scale) * log2(e)
    return plan.run(q, out, to, operands, max(abs(factor), _LEAST_FACTOR))


_plans = Plans[Plan]()


def _fill_with_zeros(result: Any) -> None:
    """The result without keys."""
    to = as_numpy(result, "out")
    describe(to, "out")  # only the host's memory can be written here
    to[...] = 0
    note_written((result,))


def _plan(
    backend: str,
    operands: tuple[Numbers, Numbers, Numbers],
    to: Numbers | None,
    is_causal: bool,
    is_negative: bool,
) -> Plan:
    """Check a call, and decide how calls of its kind are done."""
    shape = _result_shape(*(x.shape for x in operands))
    dtype = common_dtype(_NAME, dict(zip("qkv", operands)))
    place = checked_place(_NAME, to, shape, dtype)
    keys, width = operands[2].shape[-2:]
    if not prod(shape) or keys == 0:
        return Plan(shape, dtype, None)
    views, loops, matrices = split_batch((*operands, place))
    rows = _first(_QUERIES, shape[-2])
    sums = SUMS[dtype]
    columns = _keys_of_block(backend, keys, sums, is_causal=is_causal)
    sizes = (rows, columns, operands[0].shape[-1], width)
    constants = (is_causal, is_negative, sums, *sizes)
    grid = (cdiv(shape[-2], rows), matrices, 1)
    return Plan(shape, dtype, Launch(attention, views, loops, grid, constants))


def _keys_of_block(backend: str, keys: int, sums: DType, *, is_causal: bool) -> int:
    if backend == DEVICE_BACKEND:
        return DEVICE_KEYS_OF_F64 if sums.bits == 64 else DEVICE_KEYS
    return _first(_CAUSAL_KEYS if is_causal else _KEYS, keys)


def _first(sizes: tuple[int, ...], extent: int) -> int:
    return next((size for size in sizes if size >= extent), sizes[-1])


def _result_shape(q: Shape, k: Shape, v: Shape) -> Shape:
    """(..., s, e).

    Raises:
        LaunchError: the shapes do not fit together.
    """
    help_ = "q is (..., s, d), k is (..., t, d), v is (..., t, e), with d at least 1"
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2] or not q[-1]:
        raise wrong_shape(_NAME, f"q is {q}, k is {k} and v is {v}", help_)
    try:
        batch = np.broadcast_shapes(q[:-2], k[:-2], v[:-2])
    except ValueError:
        problem = f"the batches {q[:-2]}, {k[:-2]} and {v[:-2]} do not broadcast"
        raise wrong_shape(_NAME, problem, help_) from None
    return (*batch, q[-2], v[-1])
