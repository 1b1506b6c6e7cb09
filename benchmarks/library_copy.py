"""The most that memory gives: a copy, on all threads."""

import torch
from harness import Job


def softmax(rows: int, columns: int) -> Job:
    """No softmax moves its data faster than a copy does."""
    x = torch.ones(rows, columns)
    y = torch.empty_like(x)
    return Job([lambda: y.copy_(x)], 2e-9 * x.nbytes)
