"""Costs of instructions that were measured here, in place of those of `machine.py`.

`xetl tune --cpu` measures multiply-adds, dot products and loads, in cycles, and writes
them to the folder of tuned configs; `host_machine` reads them. The overheads of a step
and of a run of steps remain those of the family: they are fitted to whole products.

A cycle is a quarter of a dependent integer multiplication and `xor`: 3 cycles and 1 on
all x86-64 of the last fifteen years.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, cast

from xetl.imports import import_whole
from xetl.runtime.cache import tuned_folder, write_whole
from xetl_cpu.machine import FAMILIES, PAGE, Costs, Machine

_MEASURED = ("fma", "dot", "load", "latency", "dot_latency", "l2_bytes")
_ROUNDS = 2
_BUSY = 0.5
"""The highest load average (of Linux) for measurements: other programs on the same core
make it look slower."""
_SECONDS = 0.2
_TRIPS = 1 << 14
_SUMS = 1 << 21
"""Iterations of a loop of sums in a call: a few milliseconds, for any number of
sums."""
_IN_A_TRIP = 16
_LINK_CYCLES = 4
_FACTOR = 8
"""A cost that differs from the family's by a larger factor was measured wrongly."""


# The file -----------------------------------------------------------------------------


def path_of(model: str) -> Path:
    """Return the file of a processor, by its model name."""
    name = re.sub(r"[^\w.-]+", "-", model)
    return tuned_folder() / f"cpu-{name}.json"


def read_costs(model: str, family: Costs) -> Costs:
    """Return the measured costs of a processor; ``family`` if none are plausible."""
    try:
        found: object = json.loads(path_of(model).read_text())
    except (OSError, ValueError):
        return family
    return _checked(found, family) or family


def _checked(found: object, family: Costs) -> Costs | None:
    names = {each.name for each in fields(Costs)}
    if not isinstance(found, dict):
        return None
    given = cast("Mapping[str, object]", found)
    costs: dict[str, float] = {}
    for name, cost in given.items():
        if name not in names or not isinstance(cost, int | float):
            return None
        known: float = getattr(family, name)
        if not known / _FACTOR <= cost <= known * _FACTOR:
            return None
        costs[name] = float(cost)
    return replace(family, **costs)


def write_costs(model: str, costs: Costs) -> Path:
    """Write costs to the file; a reader sees the old file or the new one.

    Raises:
        OSError: the folder cannot be written.
    """
    path = path_of(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole({path: json.dumps(asdict(costs), indent=1).encode()})
    return path


# Measuring ----------------------------------------------------------------------------


def tune(machine: Machine, model: str) -> list[str]:
    """Measure and write the costs of this machine; return the lines of a table.

    Raises:
        OSError: the folder cannot be written.
    """
    busy = os.getloadavg()[0]
    rounds = [measure_costs(machine) for _ in range(_ROUNDS)]
    least = {name: min(getattr(each, name) for each in rounds) for name in _MEASURED}
    least["l2_bytes"] = max(each.l2_bytes for each in rounds)
    family = FAMILIES[machine.family]
    costs = _checked(least, family.costs)
    if costs is not None and busy < _BUSY:
        return [*_table(costs, family), f"kept in {write_costs(model, costs)}"]
    why = f"other programs run (load {busy:.1f})"
    if busy < _BUSY:
        why = "they differ too much from the family's"
    return [*_table(replace(machine.costs, **least), family), f"not kept: {why}"]


def _table(costs: Costs, family: Machine) -> Iterator[str]:
    yield f"{'':12}  {'measured':>8}  {family.family}"
    for name, measured in asdict(costs).items():
        if name in _MEASURED:
            yield f"{name:12}  {measured:8.2f}  {getattr(family.costs, name)}"


def measure_costs(machine: Machine) -> Costs:
    """Measure one core; other programs that run meanwhile make it look slower."""
    cycle = _seconds(_MULTIPLIES, "chain") / (_TRIPS * _IN_A_TRIP * _LINK_CYCLES)
    fma, lanes, _ = _product("f32", None, cycle)
    dot, _, has_dot = _product("bf16", None, cycle)
    width, of_a_load = 4 * lanes, 1 / (_TRIPS * _IN_A_TRIP * cycle)
    # About half of a cache, a power of 2.
    sizes = [1 << ((machine.l1.size // 8).bit_length() - 1)]
    sizes += [1 << ((machine.l2.size // 2).bit_length() - 1)]
    loads = _loads(width)
    in_l1, in_l2 = (of_a_load * _seconds(loads, "read", size) for size in sizes)
    found = {
        "fma": fma,
        "latency": _product("f32", 1, cycle)[0],
        "load": in_l1,
        "l2_bytes": width / in_l2,
    }
    if has_dot:
        found |= {"dot": dot, "dot_latency": _product("bf16", 1, cycle)[0]}
    rounded = {name: round(cost, 2) for name, cost in found.items()}
    return replace(machine.costs, **rounded)


def _product(dtype: str, chains: int | None, cycle: float) -> tuple[float, int, bool]:
    """Return cycles of a multiply-add, f32 per register, whether it is a dot."""
    peak = _peak()
    loop = peak.register_loop(dtype, chains)
    of_one = (4 if loop.is_dot else 2) * loop.lanes
    rate = 1e9 * peak.Products(loop, 1, _SUMS * loop.operations).measure()
    return of_one / rate / cycle, loop.lanes, loop.is_dot


def _peak() -> Any:
    """Import the module that measures peak rates; it loads LLVM."""
    return import_whole("xetl_cpu.peak")


def _seconds(text: str, name: str, size: int = 1) -> float:
    """Return the least time of a call with a buffer of ``size`` bytes."""
    timing: Any = import_whole("xetl.runtime.measure")
    run = _peak().compiled(text, name, 2)
    memory = ctypes.create_string_buffer(size + PAGE)
    start = -(-ctypes.addressof(memory) // PAGE) * PAGE

    def call() -> None:
        run(start, _TRIPS, size - 1)

    return min(timing.time_calls(call, _SECONDS))


def _loop(name: str, carried: str, body: str, result: str) -> str:
    return f"""
define void @{name}(ptr %memory, i64 %trips, i64 %mask) {{
entry:
  %unknown = ptrtoint ptr %memory to i64
  br label %loop
loop:
  %trip = phi i64 [ 0, %entry ], [ %next, %loop ]
  {carried}
  {body}
  %next = add i64 %trip, 1
  %again = icmp slt i64 %next, %trips
  br i1 %again, label %loop, label %end
end:
  {result}
  ret void
}}
"""


_MULTIPLIES = _loop(
    "chain",
    f"%m0 = phi i64 [ %mask, %entry ], [ %m{_IN_A_TRIP}, %loop ]",
    "\n  ".join(
        # LLVM would rearrange a chain of multiplications only to a tree.
        f"%x{i} = xor i64 %m{i}, %unknown\n  %m{i + 1} = mul i64 %x{i}, %unknown"
        for i in range(_IN_A_TRIP)
    ),
    f"%slot = alloca i64\n  store volatile i64 %m{_IN_A_TRIP}, ptr %slot",
)


def _loads(width: int) -> str:
    """Return LLVM IR that reads vectors of ``width`` bytes over and over."""
    vector, step = f"<{width // 4} x float>", width * _IN_A_TRIP
    body = [f"%far = mul i64 %trip, {step}", "%at = and i64 %far, %mask"]
    for i in range(_IN_A_TRIP):
        body += [
            f"%o{i} = add i64 %at, {i * width}",
            f"%p{i} = getelementptr i8, ptr %memory, i64 %o{i}",
            f"%v{i} = load volatile {vector}, ptr %p{i}, align {width}",
        ]
    return _loop("read", "", "\n  ".join(body), "")
