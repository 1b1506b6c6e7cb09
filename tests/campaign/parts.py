"""Statements on parts of values: slices, lines put together, bits, extremes."""

from __future__ import annotations

from math import prod

from tests.campaign.edges import Edges
from tests.campaign.values import FLOAT_BITS, INTEGERS, SIGNED

BITS = ("popcount({a})", "clz({a})", "ctz({a})", "umulhi({a}, {b})")
SIGNS = (
    "copysign({a}, {b})",
    "trunc({a} * 0.5)",
    "fmod({a}, xetile.abs({b}) + 1)",
    "clamp({a}, -3, 4)",
)
SCANS = (
    "lambda p, q: p * q",
    "lambda p, q: xetile.minimum(p, q)",
    "lambda p, q: p + q",
)


class Parts(Edges):
    """What moves or combines lines of a value."""

    def span(self, extent: int) -> tuple[str, int]:
        """The text of a slice, and how many elements it takes."""
        step = self.random.choice((1, 1, 1, 2, 2, 3))
        first = self.random.randrange(extent)
        if self.random.random() < 0.3:
            first = min(self.random.choice((0, extent // 2)), extent - 1)
        end = self.random.randrange(first + 1, extent + 1)
        if self.random.random() < 0.4:
            end = extent
        shown = "" if end == extent else str(end)
        text = f"{first or ''}:{shown}" + (f":{step}" if step > 1 else "")
        return text, len(range(first, end, step))

    def sliced(self) -> None:
        """Some rows, some columns, or some of both; halves put together again."""
        a = self.any_value()
        if self.mode == "subgroups":
            return
        spans = [self.span(extent) for extent in a.shape]
        kept = self.random.randrange(len(spans) + 1)
        texts = [":" if d == kept else text for d, (text, _) in enumerate(spans)]
        shape = tuple(
            extent if d == kept else count
            for d, (extent, (_, count)) in enumerate(zip(a.shape, spans))
        )
        if len(texts) == 2 and texts[1] == ":" and self.random.random() < 0.5:
            texts.pop()
        part = self.define(f"{a.name}[{', '.join(texts)}]", shape, a.dtype)
        if part.dtype != "i1" and self.random.random() < 0.5:
            self.computed(part)

    def scalar_of(self) -> None:
        """One element of a row."""
        a = self.number()
        if len(a.shape) != 1 or self.mode == "subgroups":
            return
        name = self.name("q")
        self.write(f"{name} = {a.name}[{self.random.randrange(a.shape[0])}]")
        self.result(f"{a.name} - {name}", a.shape, a.dtype)

    def woven(self) -> None:
        """Two values interleaved; one, or one joined from two, split."""
        a = self.number()
        if self.mode == "subgroups" or max(a.shape) > self.most:
            return
        shape = (*a.shape[:-1], 2 * a.shape[-1])
        b = self.any_value(a.shape, a.dtype)
        whole = self.define(f"xetile.interleave({a.name}, {b.name})", shape, a.dtype)
        if self.random.random() < 0.5:
            c = self.computed(whole)
            odd = self.random.randrange(2)
            if c.shape[-1] == shape[-1]:
                place = ":, " if len(shape) == 2 else ""
                self.define(f"{c.name}[{place}{odd}::2]", a.shape, a.dtype)

    def bits(self) -> None:
        a = self.any_value(None, self.random.choice(INTEGERS))
        b = self.partner(a)
        text = self.random.choice(BITS).format(a=a.name, b=b.name)
        self.define(f"xetile.{text}.to(xetile.{a.dtype})", a.shape, a.dtype)

    def signed(self) -> None:
        a = self.any_value(None, self.random.choice(("f32", "f64", "f16", "bf16")))
        b = self.partner(a)
        text = self.random.choice(SIGNS).format(a=a.name, b=b.name)
        self.result(f"xetile.{text}", a.shape, a.dtype)

    def drawn(self) -> None:
        """Random numbers, of places that are any."""
        a = self.any_value(None, self.random.choice(("i32", "i64", "u32")))
        if self.random.random() < 0.5:
            self.define(f"xetile.randint(n, {a.name})", a.shape, "u32")
            return
        dtype = self.random.choice(("f32", "f16"))
        text = f"xetile.rand(n, {a.name}, dtype=xetile.{dtype})"
        self.define(f"xetile.floor({text} * 8)", a.shape, dtype)

    def joined(self) -> None:
        """Two rows as columns, and columns as rows."""
        a = self.any_value(self.random.choice(self.shapes)[:1])
        b = self.any_value(a.shape, a.dtype)
        if self.mode == "subgroups":
            return
        whole = self.define(f"xetile.join({a.name}, {b.name})", (*a.shape, 2), a.dtype)
        if self.random.random() < 0.6:
            whole = self.computed(whole)
            if whole.shape == (*a.shape, 2):
                names = [self.name() for _ in range(2)]
                self.write(f"{', '.join(names)} = xetile.split({whole.name})")
                for name in names:
                    self.define(name, a.shape, whole.dtype)

    def hinted(self) -> None:
        """What is promised, or asserted, and holds."""
        self.write(
            self.random.choice(
                (
                    "xetile.assume(n < 8)",
                    "xetile.device_assert(n >= 0, 'negative')",
                    "xetile.static_assert(xetile.cdiv(7, 2) == 4, 'rounded down')",
                )
            )
        )

    def scaled(self) -> None:
        """A product of numbers of four bits with scales."""
        blocks = self.random.choice((1, 2))
        m, n = self.random.choice(self.shapes)[0], self.random.choice((1, 8, 17))
        a = self.any_value((m, 16 * blocks), "u8").name
        b = self.any_value((16 * blocks, n), "u8").name
        scales = "None", "None"
        if self.random.random() < 0.7:
            values = (self.any_value((k, blocks), "u8").name for k in (m, n))
            first, second = (f"({v} & 1) + 127" for v in values)
            scales = first, second
        text = f"xetile.dot_scaled({a}, {scales[0]}, 'e2m1', {b}, {scales[1]}, 'e2m1')"
        self.result(text, (m, n), "f32")

    def seen_as(self) -> None:
        """Bits of another type of the width, and back."""
        a = self.any_value(None, self.random.choice(("f32", "f16", "bf16")))
        to = {32: "u32", 16: "i16"}[FLOAT_BITS[a.dtype]]
        word = self.define(f"{a.name}.to(xetile.{to}, bitcast=True)", a.shape, to)
        self.define(
            f"({word.name} ^ 0).to(xetile.{a.dtype}, bitcast=True)", a.shape, a.dtype
        )

    def extreme(self) -> None:
        """The greatest or least with its index."""
        a = self.number()
        if len(a.shape) != 2:
            return
        dim, word = self.random.randrange(2), self.random.choice(("max", "min"))
        best, at = self.name(), self.name()
        call = f"xetile.{word}({a.name}, {dim}, return_indices=True)"
        self.write(f"{best}, {at} = {call}")
        left = (a.shape[1 - dim],)
        self.define(best, left, a.dtype)
        self.define(at, left, "i32")

    def combined(self) -> None:
        """Scans and reductions by a function, of integers, which wrap."""
        a = self.any_value(None, self.random.choice(INTEGERS))
        if self.mode == "subgroups" or self.indent > 2:
            return
        dim, kind = self.random.randrange(len(a.shape)), self.random.randrange(4)
        if kind == 0:
            self.define(f"xetile.cumprod({a.name}, {dim})", a.shape, a.dtype)
        elif kind == 1 and a.dtype in SIGNED:
            pair = f"({a.name} * 0 + 3, {a.name})"
            step = "lambda f, x, g, y: (f * g, x * g + y)"
            text = f"xetile.associative_scan({pair}, {dim}, {step})[1]"
            self.define(text, a.shape, a.dtype)
        elif kind == 2 and len(a.shape) == 2:
            text = f"xetile.reduce({a.name}, {dim}, {self.random.choice(SCANS)})"
            self.define(text, (a.shape[1 - dim],), a.dtype)
        else:
            backward = self.random.choice(("", ", reverse=True"))
            scan = f"{a.name}, {dim}, {self.random.choice(SCANS)}{backward}"
            self.define(f"xetile.associative_scan({scan})", a.shape, a.dtype)

    def binned(self) -> None:
        a = self.any_value(None, self.random.choice(("i32", "u8", "i64")))
        if self.mode == "subgroups" or self.indent > 1 or prod(a.shape) > self.most:
            return
        bins = self.random.choice((4, 8, 17))
        rank1 = f"({a.name} & 31).reshape(({prod(a.shape)},)).to(xetile.i32)"
        self.define(f"xetile.histogram({rank1}, {bins})", (bins,), "i32")
