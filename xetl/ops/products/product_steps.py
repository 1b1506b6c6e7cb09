"""Steps that multiply matrices: operands, and their views in a launch."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xetl.ops.calling.calls import View, chain, itself, transposed
from xetl.ops.calling.declarations import Operand, Step
from xetl.ops.calling.operands import Shape
from xetl.ops.calling.views import array_of, sums_of
from xetl.ops.products.plans import choose_method


class Seen(NamedTuple):
    """An operand, and its view in a launch."""

    operand: Operand
    view: View = itself

    def turned(self) -> Seen:
        """Return the transpose."""
        return Seen(self.operand, chain(self.view, transposed))


def each_row(bias: Operand | None, shape: Shape) -> Seen | None:
    """Return a bias (m,) as `multiply` adds it to the rows of matrices (..., m, n)."""
    view: View = lambda a: np.broadcast_to(a[:, None], shape, subok=True)
    return None if bias is None else Seen(bias, view)


def multiply(
    a: Seen,
    b: Seen,
    to: Seen,
    added: Seen | None = None,
    scales: tuple[float, float] | None = None,
) -> Step:
    """``to = a @ b + added``, or ``scales[0] * a @ b + scales[1] * added``.

    Args:
        a: (..., m, k).
        b: (..., k, n).
        to: (..., m, n).
        added: (n,), or the shape of ``to``, or None. With scales it may be ``to``
            itself.
        scales: the factors of the product and of ``added``, or None.

    Returns:
        The launch.
    """
    left, right, out = (x.view(array_of(x.operand)) for x in (a, b, to))
    sums, is_scaled = sums_of(a.operand.dtype), scales is not None
    method = choose_method(left, right, out, None, sums, False, is_scaled=is_scaled)
    ends = (b, a, to) if method.swaps else (a, b, to)
    of_launch = method.launch.views[:3]
    views = [chain(x.view, then or itself) for x, then in zip(ends, of_launch)]
    last, operand = None, None
    if added is not None:
        operand = added.operand
        if added.view(array_of(operand)).ndim > 1:
            last = chain(added.view, of_launch[2] or itself)
    launch = replace(method.launch, views=[*views, last])
    return Step(launch, (*(x.operand for x in ends), operand), scales or ())
