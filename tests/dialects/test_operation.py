"""Operations by class statements: constructors, inferred types, formats."""

import pytest
from xdsl.dialects.builtin import IndexType, IntegerType, f32, i1, i32
from xdsl.ir import Block
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, result_def

from xetl.dialects.assembly import FORMATS, format_of
from xetl.dialects.operation import XetlOp, operations_of
from xetl.dialects.parser import DIALECTS
from xetl.dialects.type_rules import like
from xetl.dialects.upstream import arith


class PairOp(XetlOp, name="test.pair"):
    """All that a constructor distinguishes."""

    left = operand_def()
    right = opt_operand_def(like("left"))
    flag = opt_prop_def(IntegerType, prop_name="theFlag")
    number = result_def(IndexType)
    other = result_def()
    same = result_def(like("left"))

    assembly_format = "$left (`,` $right^)? attr-dict `:` type($left) `,` type($other)"


def test_types_follow_from_operands_constraints_and_arguments() -> None:
    (x,) = Block(arg_types=[f32]).args
    op = PairOp(x, i32)
    assert op.right is None
    assert list(op.result_types) == [IndexType(), i32, f32]
    assert PairOp(x, x, i32).right is x
    assert PairOp(x, i32, flag=i1).properties == {"theFlag": i1}
    assert PairOp(x, i32, flag=None).properties == {}


def test_wrong_arguments_are_told() -> None:
    (x,) = Block(arg_types=[f32]).args
    with pytest.raises(TypeError, match="expected 1 types, found 0"):
        PairOp(x)
    with pytest.raises(ValueError, match="wrong number of operands"):
        PairOp([x, x], i32)
    with pytest.raises(TypeError, match="`flags` cannot be"):
        PairOp(x, i32, flags=i1)


def test_a_class_without_a_name_is_no_operation() -> None:
    assert "test.pair" in [op.name for op in operations_of(__name__)]
    assert arith.AddiOp in operations_of(arith.__name__)
    assert all(op.name.startswith("arith.") for op in operations_of(arith.__name__))


def test_all_formats_compile() -> None:
    known = {op for dialect in DIALECTS for op in dialect.operations}
    by_format = [op for op in known if any(base in FORMATS for base in op.mro())]
    assert len(by_format) > 100
    for op in by_format:
        format_of(op)
