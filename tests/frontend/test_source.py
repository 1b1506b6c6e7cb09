"""Finding the syntax tree of a function, wherever it was written."""

import linecache

import pytest

from xetl.errors import SyntaxNotSupportedError
from xetl.frontend.source import find_source


def decorate(fn):
    return fn


@decorate
@decorate
def decorated(x):
    return x


def under_indented():
    return (
1 + 2)  # fmt: skip


def test_decorated_function():
    node = find_source(decorated).node
    assert node.name == "decorated"
    assert node.lineno == decorated.__code__.co_firstlineno + 2


def test_under_indented_lines():
    assert find_source(under_indented).node.name == "under_indented"


def test_nested_function():
    def inner():
        return 3

    assert find_source(inner).node.name == "inner"


def test_lambdas_of_one_line():
    pair = (lambda a: a + 1), (lambda a: a * (lambda b: b - 1)(a))
    found = [find_source(function).node for function in pair]
    assert found[0] is not found[1]
    assert [type(node.body.op).__name__ for node in found] == ["Add", "Mult"]


def test_files_are_parsed_once():
    assert find_source(decorated).file is find_source(under_indented).file


def test_exec_with_linecache():
    text = "def generated(x):\n    return x + 1\n"
    name = "<generated 1>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {}
    exec(compile(text, name, "exec"), namespace)
    assert find_source(namespace["generated"]).node.name == "generated"


def test_exec_without_source():
    namespace = {}
    exec("def lost(x):\n    return x\n", namespace)
    with pytest.raises(SyntaxNotSupportedError) as caught:
        find_source(namespace["lost"])
    assert caught.value.code == "X0401"
    assert "linecache" in caught.value.help


def test_columns_count_characters():
    def inner():
        return "ä", 1

    source = find_source(inner)
    one = source.node.body[0].value.elts[1]
    assert one.col_offset == 21
    assert source.file.column(one.lineno, one.col_offset) == 21
