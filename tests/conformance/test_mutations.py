"""Texts with a mistake somewhere: each one is read, or an `IRError` with a place."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import xetl
from xetl.errors import IRError

MODULES = sorted(Path(__file__).parent.glob("*.mlir"))
TOKEN = re.compile(r'"[^"\n]*"|[%#!@^]?[\w.$-]+|\s+|.', re.DOTALL)
ODD = (
    *("", " ", "<", ">", "(", "{", "}", "[", ",", ":", "=", "->", "%0", "#m", "!t"),
    *("0", "-1", "99999999999999999999", "1.5", "0x", '"', "é", "?", "f16", "index"),
    *("vector<4xf32>", "memref<?xf32>", "true", "dense<1>", "@f", "^bb0", "loc("),
)


def kind_of(token: str) -> str:
    """Whether it is a number, a value, a type, ..."""
    first = token[:1]
    return "digit" if first.isdigit() else first if first in "%#!@^" else "word"


def mutated(rng: random.Random, text: str) -> str:
    """The text with one to three changes of tokens or characters."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.randint(1, 3)):
        place, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        change = rng.randrange(9)
        if change == 0:
            del tokens[place]
        elif change == 1:
            tokens.insert(place, tokens[other])
        elif change == 2:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif change == 3:
            tokens[place] = rng.choice(ODD)
        elif change == 4:
            tokens = tokens[:place] + tokens[place + rng.randint(1, 30) :]
        elif change == 5:
            token = tokens[place]
            cut = rng.randrange(len(token) + 1)
            tokens[place] = token[:cut] + chr(rng.randrange(32, 400)) + token[cut:]
        else:  # another number, value, word or type: what only rules forbid
            alike = [t for t in tokens if kind_of(t) == kind_of(tokens[place])]
            tokens[place] = rng.choice(alike)
        tokens = tokens or [" "]
    return "".join(tokens)


def error_of(text: str) -> IRError | None:
    try:
        library = xetl.load_mlir(text)
        for kernel in library.values():
            kernel.ir("xetile", backend="reference")
    except IRError as error:
        return error
    return None


def try_to_load(seed: int, count: int) -> None:
    rng = random.Random(seed)
    texts = [path.read_text("utf-8") for path in MODULES]
    for _ in range(count):
        text = mutated(rng, rng.choice(texts))
        error = error_of(text)
        assert error is None or error.message
        assert error is None or (error.line or 0) <= text.count("\n") + 1


def test_a_mutated_text_is_read_or_refused() -> None:
    try_to_load(seed=1, count=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
def test_many_mutated_texts_are_read_or_refused(seed: int) -> None:
    try_to_load(seed, count=250)
