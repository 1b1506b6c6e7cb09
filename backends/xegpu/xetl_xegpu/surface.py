"""What a matrix in memory must be so that block messages may move parts of it.

The driver checks none of it: a message about another matrix reads and writes elsewhere.
Source: the verifier of 2-D block operations in Intel's Triton backend
(``TritonGENOps.cpp``, "2D block operation"); sizes in bytes unless they say elements.
"""

from __future__ import annotations

BASE_ALIGNMENT = 64
LEAST_WIDTH = 64
WIDTH_STEP = 4
LEAST_PITCH = 64
PITCH_STEP = 16
LIMIT = 1 << 24
"""Width, height (rows) and pitch must be below."""

MOST_PROGRAMS = 1 << 21
"""Programs along each axis of the grid, where a kernel moves blocks by messages.

Offsets that follow from the number of a program then fit 32 bits as they are.
"""


def why_no_blocks(
    base: int, width: int, height: int, pitch: int, leading: tuple[int, ...] = ()
) -> str | None:
    """What keeps block messages from a matrix; None: nothing does.

    Args:
        base: address of its first element.
        width: bytes of a row.
        height: number of rows.
        pitch: bytes from a row to the next.
        leading: bytes from a matrix to the next, where there are several.
    """
    if base % BASE_ALIGNMENT:
        return f"its address is no multiple of {BASE_ALIGNMENT} bytes"
    if width < LEAST_WIDTH or width % WIDTH_STEP:
        return (
            f"its rows have {width} bytes, not {LEAST_WIDTH} or more "
            f"in steps of {WIDTH_STEP}"
        )
    if pitch < max(LEAST_PITCH, width) or pitch % PITCH_STEP:
        return f"its rows are {pitch} bytes apart, not a multiple of {PITCH_STEP}"
    if max(width, height, pitch) >= LIMIT:
        return f"it has {height} rows, {pitch} bytes apart: one of both is too much"
    if any(step % BASE_ALIGNMENT for step in leading):
        return f"its matrices are not a multiple of {BASE_ALIGNMENT} bytes apart"
    return None
