"""What modules of the corpus compute, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def softmax(x: Any, axis: int = 1) -> Any:
    """exp(x) / sum(exp(x)) along an axis."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def attention(q: Any, k: Any, v: Any, scale: float) -> Any:
    """softmax(q k^T scale) v."""
    return softmax(scale * (q @ k.T)) @ v


erf = np.vectorize(math.erf)
