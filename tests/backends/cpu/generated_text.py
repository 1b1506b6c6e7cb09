"""Random kernels as text: vectors of any rank and type, moved about and combined.

Floats are small whole numbers, clamped after each step: every sum is exact, so backends
can be asked for equal results.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import prod

import numpy as np
from generated_text_steps import STEPS, WITH_REGIONS
from texts import DTYPES, some

FLOATS = ["f32", "f32", "f32", "f16", "bf16", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64"]
EXTENTS = [1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33]


def typed(kind, shape, dtype):
    """The name of a type: ``vector<2x3xf32>``."""
    return f"{kind}<{''.join(f'{n}x' for n in shape)}{dtype}>"


@dataclass(frozen=True)
class Value:
    """A vector in the text."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def type(self):
        return typed("vector", self.shape, self.dtype)

    @property
    def memory(self):
        return typed("memref", self.shape, self.dtype)

    @property
    def is_float(self):
        return self.dtype in FLOATS


class Text:
    """A kernel that grows line by line."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.arguments: list[Value] = []
        self.depth = 0
        self._names = 0

    def name(self):
        self._names += 1
        return f"%v{self._names}"

    def line(self, text):
        self.lines.append(text)

    def add(self, op, shape, dtype):
        """A line that makes a vector; ``{}`` is its type."""
        value = Value(self.name(), tuple(shape), dtype)
        self.line(f"{value.name} = {op.replace('{}', value.type)}")
        self.values.append(value)
        return value

    def scalar(self, op):
        """A line that makes something else."""
        name = self.name()
        self.line(f"{name} = {op}")
        return name

    def index(self, number):
        """An index that the compiler knows, or does not."""
        known = self.scalar(f"arith.constant {number} : index")
        if self.random.random() < 0.4:
            return known
        return self.scalar(f"arith.addi %dynamic, {known} : index")

    def pick(self, wanted=lambda value: True):
        """One of the vectors so far; None if no one is wanted."""
        found = [value for value in self.values if wanted(value)]
        return self.random.choice(found) if found else None

    def twin(self, value):
        """A vector of the same type."""
        return self.pick(lambda other: other.type == value.type)

    def shape(self, most=400):
        while True:
            rank = self.random.choice([1, 2, 2, 2, 3, 3, 4])
            shape = tuple(self.random.choices(EXTENTS, k=rank))
            if prod(shape) <= most:
                return shape

    def number(self, dtype):
        if dtype == "i1":
            return self.random.choice(["true", "false"])
        number = self.random.randint(-4, 4)
        return f"{number}.0" if dtype in FLOATS else str(number)

    def constant(self, shape, dtype):
        """Equal or different elements."""
        count = prod(shape)
        if count > 64 or self.random.random() < 0.5:
            return self.add(
                f"arith.constant dense<{self.number(dtype)}> : {{}}", shape, dtype
            )
        row = ", ".join(self.number(dtype) for _ in range(count))
        flat = self.add(f"arith.constant dense<[{row}]> : {{}}", (count,), dtype)
        return self.add(
            f"vector.shape_cast {flat.name} : {flat.type} to {{}}", shape, dtype
        )

    def clamp(self, value):
        """Between -8 and 8, if it is of floats."""
        for op, limit in ("maximumf", "-8.0"), ("minimumf", "8.0"):
            if value.is_float:
                bound = self.scalar(f"arith.constant dense<{limit}> : {value.type}")
                op = f"arith.{op} {value.name}, {bound} : {{}}"
                value = self.add(op, value.shape, value.dtype)
        return value

    def zeros(self, value):
        return ", ".join(["%zero"] * len(value.shape))

    def argument(self, value):
        self.arguments.append(value)
        return f"%a{len(self.arguments) - 1}"

    def load(self):
        dtype = self.random.choice([*FLOATS, *INTEGERS, "i1"])
        made = Value("", self.shape(), dtype)
        place = f"{self.argument(made)}[{self.zeros(made)}] : {made.memory}"
        self.add(f"vector.load {place}, {{}}", made.shape, dtype)

    def store(self, value):
        place = f"{self.argument(value)}[{self.zeros(value)}] : {value.memory}"
        self.line(f"vector.store {value.name}, {place}, {value.type}")

    def step(self):
        self.depth += 1
        steps = STEPS if self.depth > 2 else STEPS + WITH_REGIONS
        self.random.choice(steps)(self)
        self.depth -= 1


def random_text(seed, steps=12):
    """A module with the kernel ``k``, and arguments for it."""
    text = Text(seed)
    for _ in range(text.random.randint(1, 3)):
        text.load()
    inputs = len(text.arguments)
    for _ in range(steps):
        text.step()
    chosen = text.random.sample(text.values, min(2, len(text.values)))
    for value in [text.values[-1], *chosen]:
        text.store(value)
    head = [f"%a{i}: {value.memory}" for i, value in enumerate(text.arguments)]
    lines = [
        f"func.func @k({', '.join([*head, '%dynamic: index'])}) {{",
        "%zero = arith.constant 0 : index",
        *text.lines,
        "return",
        "}",
    ]
    rng = np.random.default_rng(seed)
    arrays = [some(rng, v.shape, DTYPES[v.dtype]) for v in text.arguments]
    for array in arrays[inputs:]:
        array[...] = 0
    return "\n".join(lines), [*arrays, 0]
