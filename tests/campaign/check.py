"""Whether a case does on its backend what it does on the reference backend."""

from __future__ import annotations

import re
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaign.cases import ML_TYPES, Case

_ROOT = str(Path(__file__).parents[2])
"""The clone: a folder of any name."""
_OURS = re.compile("/xetl(_[a-z]+)?/")


@dataclass(frozen=True)
class Fault:
    """Something that must not happen; ``kind`` says which of them are alike."""

    kind: str
    text: str = ""


def check(case: Case, strict: bool = False) -> Fault | None:
    """Run a case here, in this process, which a fault may end.

    Args:
        case: what to run.
        strict: a kernel in which the interpreter's checks find something is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _check(case, strict)


def _check(case: Case, strict: bool) -> Fault | None:
    from xetl.settings import config  # noqa: PLC0415 -- loaded where kernels run

    config.assigned = {"cache": False}
    who = "reference"
    try:
        kernel = case.kernel()
        for run in case.runs:
            ours, theirs, checked = (case.arguments(run) for _ in range(3))
            who, config.assigned = "reference", {"cache": False}
            if strict:
                kernel.interpret(*checked, grid=case.grid, check="uninit,race")
            kernel[case.grid](*theirs, backend="reference")
            who = case.backend
            config.assigned = {"cache": False, "target": case.target}
            kernel[case.grid](*ours, backend=case.backend)
            for name, one, other in zip(case.parameters(), ours, theirs):
                if text := difference(one, other):
                    return Fault("wrong number", f"run {run}, array {name}: {text}")
    except Exception as error:
        return Fault(f"{who}: {kind_of(error)}", f"{type(error).__name__}: {error}")
    finally:
        config.assigned = {}
    return None


def difference(one: Any, other: Any) -> str:
    """Where two arguments differ; NaN equals NaN."""
    if isinstance(one, int):
        return ""
    if one.dtype in ML_TYPES.values():  # NumPy does not know their NaN
        one, other = one.astype(np.float32), other.astype(np.float32)
    floats = one.dtype.kind == "f"
    if np.array_equal(one, other, equal_nan=floats):
        return ""
    unlike = (one != other) & ~((one != one) & (other != other))
    places = np.argwhere(unlike)
    place = tuple(int(each) for each in places[0])
    return f"{len(places)} elements, at {place} {one[place]} instead of {other[place]}"


def kind_of(error: Exception) -> str:
    """The code of our own errors; of others, where they come from as well."""
    from xetl.errors import XetlError  # noqa: PLC0415 -- loaded where kernels run

    if isinstance(error, XetlError) and error.code != "X0900":
        return error.code
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if _OURS.search(f.filename.removeprefix(_ROOT))]
    at = f" in {Path(ours[-1].filename).name}:{ours[-1].name}" if ours else ""
    return type(error).__name__ + at
