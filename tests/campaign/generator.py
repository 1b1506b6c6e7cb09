"""Random kernels as source text, one for each seed.

A kernel is of one program, which loads and stores anywhere in all arrays, so that
accesses overlap; or of many, which store only their own part of Z and change U by
atomics; or of many at subgroup level, where subgroups meet in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.campaign.rows import Rows
from tests.campaign.values import ALL_FLOATS, EXTENTS, FLOATS, INTEGERS, Value

MODES = ("one", "programs", "one", "subgroups", "one", "programs")
PLENTY = (*FLOATS, *FLOATS, *FLOATS, *INTEGERS, "i8", "u8")
OF_ALL = (
    *(["elementwise"] * 7),
    *(["loaded", "reduce", "saved", "conversion", "product"] * 2),
    *("mathematics", "integer_mathematics", "mask", "mask", "promotion", "signs"),
    *("scan", "used_up", "transpose", "reshape", "rank", "gather", "scatter"),
    *("atomic", "shared", "moved", "scalar", "shelved", "walked", "packed"),
    *(["direct"] * 5),
    *(["nested", "prefetch", "gemm"] * 2),
    *("far", "scalars", "carries"),
    *(["collective", "neighbours"] * 2),
    *(["sliced"] * 4),
    *(["woven", "signed", "bits", "combined"] * 2),
    *("scalar_of", "seen_as", "extreme", "binned", "drawn", "joined", "hinted"),
    "scaled",
    *(["statistics", "pieces"] * 3),
)
OF_ROWS = (
    *(["statistics", "pieces"] * 3),
    *("loaded", "elementwise", "reduce", "mask", "mathematics", "conversion"),
    *("saved", "direct", "used_up"),
)
"""What kernels for rows consist of: the paths of theirs are left by anything else."""

CONTROL = ("loop", "branch", "repeat")

PLACES = {
    (3, 4): ("xetile.program_id(0)", "xetile.program_id(1)"),
    (12,): ("xetile.program_id(0) // 4", "xetile.program_id(0) % 4"),
    (12, 1): ("xetile.program_id(0) % 3", "xetile.program_id(0) // 3"),
    (3, 2, 2): (
        "xetile.program_id(0)",
        "(xetile.program_id(2) * 2 + xetile.program_id(1))",
    ),
    (12, 1, 1): (
        "(swap * 2 + xetile.program_id(0) % min(3 - swap * 2, 2))",
        "(xetile.program_id(0) % 8 // min(3 - swap * 2, 2))",
    ),
}
"""By grid where a program is among 3 x 4; ``swap`` numbers groups of two rows."""


@dataclass
class Generator(Rows):
    """Writes one kernel; here are its control flow and its frame."""

    extents: Sequence[int] = EXTENTS
    columns: Sequence[int] = EXTENTS
    """The extents of one dim: the last one, or of what is tall the first."""
    tall: bool = False
    statements: Sequence[str] = OF_ALL
    grid: tuple[int, ...] = (1, 1)

    def generate(self, statements: int) -> str:
        r, k = (self.random.choice(self.extents) for _ in range(2))
        c = self.random.choice(self.columns)
        r, c = (c, r) if self.tall else (r, c)
        self.shapes = [(r, c), (r, c), (c, r), (r, 1), (1, c), (r, k), (k, c)]
        self.place(r, c)
        self.load((r, c))
        for number in range(statements):
            self.statement()
            if number == statements // 2 and self.random.random() < 0.1:
                kinds = ["n == 3", "n > 0"]
                if self.mode != "one":
                    kinds.append("xetile.program_id(0) == 1")
                self.write(f"if {self.random.choice(kinds)}:")
                self.write("    return")
        if self.mode == "one":
            for value in self.values[-self.random.randrange(1, 4) :]:
                self.store(value)
        else:
            self.own()
        head = "def generated(X, Y, Z, W, V, U, n):"
        return "\n".join([head, *self.frame(r, c), *self.lines]) + "\n"

    def place(self, r: int, c: int) -> None:
        """Where the program's, or the subgroup's, part of Z begins."""
        if self.mode == "programs":
            self.grid = self.random.choice(((3, 4), *PLACES))
            row, col = PLACES[self.grid]
            if "swap" in row:
                self.write("swap = xetile.program_id(0) // 8")
            self.write(f"row, col = {row} * {r}, {col} * {c}")
        elif self.mode == "subgroups":
            self.grid = (2, 3)
            self.write("me = xetile.subgroup_id()")
            row = f"(xetile.program_id(0) * 4 + me) * {r}"
            self.write(f"row, col = {row}, xetile.program_id(1) * {c}")

    def frame(self, r: int, c: int) -> list[str]:
        """The helpers that the lines call, and the memory they share."""
        chosen = self.random.choice(
            (
                "xetile.where(a < b, a, b)",
                "xetile.maximum(a, b) - xetile.minimum(a, b)",
                "a + b if n > 1 else a - b",
            )
        )
        whole = f"xetile.init_tile(room, [0, 0], {(r, c)})"
        parts = {
            "helper(": ["def helper(a, b):", f"    return {chosen}"],
            "small(": ["small = lambda a: xetile.minimum(xetile.maximum(a, 0), 8)"],
            "room": [
                f"room = xetile.slm({(r, c)}, xetile.f32)",
                f"xetile.store_tile(xetile.zeros({(r, c)}), {whole})",
                "xetile.barrier()",
            ],
        }
        text = "\n".join(self.lines)
        used = [lines for word, lines in parts.items() if word in text]
        return ["    " + line for lines in used for line in lines]

    def statement(self) -> None:
        kinds = list(self.statements)
        if self.indent < 3:
            kinds += CONTROL
        if self.mode == "subgroups":
            kinds += ["exchange"] * 4
        getattr(self, self.random.choice(kinds))()

    def condition(self) -> str:
        """Of the run; of an element or a value, where no barrier may be skipped."""
        kinds = ["n > 1", "n == 0", "n < 2", "not (n > 2) and n != 1", "n % 2 == 1"]
        if self.mode != "subgroups":
            value = self.number()
            kinds += [f"{value.name}.max() > 3", f"{value.name}.min() < n"]
            if self.dtypes["X"] != "i1":
                kinds += ["X[0, n] > 0", "X[1, 1] < n or n > 2"]
        return self.random.choice(kinds)

    def loop(self) -> None:
        counter = self.name("i")
        trips = self.random.choice(
            ("n", "2", "n + 1", "1, n + 2, 2", "n, -1, -1", "X.shape[0] // 16")
        )
        word = f"range({trips})"
        if self.random.random() < 0.15:
            word = "xetile.static_range(2)"
        self.write(f"for {counter} in {word}:")
        leaves = "static" not in word and self.random.random() < 0.3
        self.body(self.random.randrange(1, 4), leaves, counter)

    def repeat(self) -> None:
        counter = self.name("i")
        self.write(f"{counter} = 0")
        self.write(f"while {counter} < n + 1:")
        self.write(f"    {counter} = {counter} + 1")
        self.body(self.random.randrange(1, 3), self.random.random() < 0.5, counter)

    def branch(self) -> None:
        self.write(f"if {self.condition()}:")
        self.body(self.random.randrange(1, 3))
        if self.random.random() < 0.3:
            before = len(self.lines)
            condition = self.condition()
            if len(self.lines) == before:
                self.write(f"elif {condition}:")
                self.body(self.random.randrange(1, 3))
            else:
                return
        if self.random.random() < 0.6:
            self.write("else:")
            self.body(self.random.randrange(1, 3))

    def leave(self, counter: str) -> None:
        word = self.random.choice(("break", "continue"))
        self.write(f"if {self.condition()} and {counter} > 0:")
        self.write(f"    {word}")

    def body(self, statements: int, leaves: bool = False, counter: str = "") -> None:
        """Statements on values of their own, some given to variables from outside."""
        outside = list(self.values)
        was_leaving = self.leaving
        self.indent += 1
        if leaves:
            self.leave(counter)
            self.leaving = True
        for _ in range(statements):
            self.statement()
        given = self.random.sample(outside, min(len(outside), 2))
        pairs = [(v, self.any_value(v.shape, v.dtype)) for v in given]
        names = ", ".join(value.name for value, _ in pairs)
        self.write(f"{names} = {', '.join(value.name for _, value in pairs)}")
        if self.random.random() < 0.3 and counter and given:
            self.carried(given[0], counter)
        self.indent -= 1
        self.values, self.leaving = outside, was_leaving

    def carried(self, value: Value, counter: str) -> None:
        """A variable from outside that the counter changes."""
        if value.dtype != "i1":
            text = f"{value.name} + {counter}"
            if value.dtype in ALL_FLOATS:
                text = self.clamped(text, value.dtype)
            self.write(f"{value.name} = {text}")
