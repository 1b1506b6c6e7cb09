"""Softmax of rows against NumPy and torch, and against the copy of an array.

Rates count the bytes that must move: each element is read once and written once.
"""

from harness import compare

SHAPES = ((4096, 4096), (4096, 1024), (4096, 1000), (256, 1024))

if __name__ == "__main__":
    compare(
        "softmax",
        [{"rows": rows, "columns": columns} for rows, columns in SHAPES],
        unit="GB/s",
        limit="copy",
    )
