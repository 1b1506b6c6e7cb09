"""``max`` and ``min`` as torch's: of all elements, or along a dimension with indices.

They hide the builtins of these names, so they have a file of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xetl.errors import LaunchError
from xetl.ops.rows.positions import max_with_indices, min_with_indices
from xetl.ops.rows.reductions import amax, amin
from xetl.runtime.call_site import at_caller


class Extremes(NamedTuple):
    """The results of `max` and `min` along a dimension."""

    values: Any
    indices: Any


def _refuse_another(name: str, dim: Any) -> None:
    """Refuse torch's form that compares two arrays."""
    if hasattr(dim, "shape") and not isinstance(dim, np.generic):
        problem = f"`{name[:3]}` was given two arrays"
        help_ = f"use `torch.{name}` or `numpy.{name}`"
        raise at_caller(LaunchError(problem, code="X0829", help=help_))


def max(
    input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The largest number of all, or (values, indices) along a dimension.

    Args:
        input: any shape; floats or integers.
        dim: the dimension; None: all.
        keepdim: whether the result keeps it, with extent 1.
        out: the array that gets the result; a pair of arrays if ``dim`` is given.

    Raises:
        LaunchError: there is nothing to search (X0827).
    """
    if dim is None:
        return amax(input, out=out)
    _refuse_another("maximum", dim)
    return Extremes(*max_with_indices(input, dim, keepdim, out=out))


def min(
    input: Any, dim: int | None = None, keepdim: bool = False, *, out: Any = None
) -> Any:
    """The least number of all, or (values, indices); arguments as for `max`."""
    if dim is None:
        return amin(input, out=out)
    _refuse_another("minimum", dim)
    return Extremes(*min_with_indices(input, dim, keepdim, out=out))
