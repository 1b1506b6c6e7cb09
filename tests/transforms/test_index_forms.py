"""All of `index` is known as `arith`; the reference tests that the names agree."""

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import IndexType

from xetl.dialects.operation import operations_of
from xetl.dialects.upstream import index
from xetl.transforms.legalize_text.numbers import INDEX_OPERATIONS, as_arith

OTHER = {"add": "addi", "sub": "subi", "mul": "muli", "and": "andi", "or": "ori"}
OTHER |= {"xor": "xori", "shl": "shli"}


def test_nothing_is_left_out():
    assert set(INDEX_OPERATIONS) == set(index.Index.operations)


BINARY_OPS = [
    op for op in operations_of(index.__name__) if issubclass(op, index.BinaryOp)
]


@pytest.mark.parametrize("cls", BINARY_OPS, ids=lambda cls: cls.name)
def test_binary(cls):
    values = test.TestOp(result_types=[IndexType(), IndexType()]).results
    short = cls.name.removeprefix("index.")
    new = as_arith(cls(*values))
    assert new.name == f"arith.{OTHER.get(short, short + 'i')}"
    assert list(new.operands) == list(values)
