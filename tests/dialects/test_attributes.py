"""Attributes that are a word of a list, or ``<name = value, ...>``."""

import pytest
from xdsl.dialects.builtin import IntAttr, NoneAttr, StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from xetl.dialects.attributes import (
    IntList,
    StructAttr,
    WordAttr,
    int_field,
    int_list,
    list_field,
)
from xetl.dialects.parser import make_context


@irdl_attr_definition
class ColorAttr(WordAttr):
    name = "test.color"
    WORDS = ("red", "blue")
    PROBLEM = "no color {word}, one of {known}"
    IS_IN_BRACKETS = True
    text: StringAttr = param_def()

    def __init__(self, word: str) -> None:
        super().__init__(word)


@irdl_attr_definition
class BoxAttr(StructAttr):
    name = "test.box"
    FIELDS = {  # noqa: RUF012
        "sizes": list_field(None),
        "count": int_field("{} : i64", 1),
        "steps": list_field(),
    }
    OTHER_NAMES = {"number": "count"}  # noqa: RUF012
    sizes: IntList = param_def()
    count: IntAttr = param_def()
    steps: IntList | NoneAttr = param_def()


def parse(text: str):
    context = make_context()
    context.load_dialect(Dialect("test", [], [ColorAttr, BoxAttr]))
    return Parser(context, text).parse_attribute()


@pytest.mark.parametrize(
    "text",
    [
        "#test.color<blue>",
        "#test.box<sizes = [1, 2]>",
        "#test.box<sizes = [1], count = 3 : i64, steps = [4]>",
    ],
)
def test_texts_come_back(text: str) -> None:
    assert str(parse(text)) == text


def test_fields_in_any_order_by_any_name() -> None:
    found = parse("#test.box<number = 2, sizes = [1]>")
    assert found == BoxAttr.new([int_list([1]), IntAttr(2), NoneAttr()])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#test.color<green>", "no color green, one of red, blue"),
        ("#test.box<count = 2>", "test.box needs `sizes`"),
        ("#test.box<sizes = [1], count = 1, number = 2>", "are the same"),
        ("#test.box<size = [1]>", "unknown parameter `size`"),
    ],
)
def test_problems_are_named(text: str, problem: str) -> None:
    with pytest.raises(ParseError, match=problem):
        parse(text)
