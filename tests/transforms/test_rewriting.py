"""Locations survive rewriting; stages tell what may stand where."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from xetl.dialects.parser import parse_module
from xetl.dialects.upstream import arith, math
from xetl.ir.builder import Builder
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.rewriting import Values, apply_rules
from xetl.transforms.stages import StageError, StageSpec, check_stage, register_stage


def double_by_adding(b: Builder, op: arith.MulfOp) -> Values:
    """2 * x is x + x: two new operations for one."""
    return [b.insert(arith.SubfOp(op.lhs, b.insert(arith.NegfOp(op.lhs))))]


def exp_to_exp2(b: Builder, op: math.ExpOp) -> Values:
    return [b.insert(math.Exp2Op(op.operand))]


RULES = {arith.MulfOp: double_by_adding, math.ExpOp: exp_to_exp2}


def line_of(op: Operation) -> int:
    assert isinstance(op.location, FileLineColLoc)
    return op.location.line.data


def test_new_operations_take_the_place_of_the_matched_one() -> None:
    module = parse_module(
        "func.func @f(%x: f32) -> (f32, f32) {\n"
        "  %a = arith.mulf %x, %x : f32\n"
        "  %b = math.exp %x : f32\n"
        "  return %a, %b : f32, f32\n}"
    )
    apply_rules(module, RULES)
    lines = {op.name: line_of(op) for op in list(module.walk())[1:]}
    assert lines["arith.negf"] == lines["arith.subf"] == 2
    assert lines["math.exp2"] == 3


def test_folding_keeps_the_line() -> None:
    module = parse_module(
        "func.func @f() -> index {\n  %a = arith.constant 2 : index\n"
        "  %b = arith.addi %a, %a : index\n  return %b : index\n}"
    )
    CanonicalizePass().apply(Context(), module)
    (constant,) = [o for o in module.walk() if isinstance(o, arith.ConstantOp)]
    assert line_of(constant) == 3


def test_stages_refuse_what_is_not_lowered() -> None:
    text = (
        "func.func @f(%t: !xetile.tile<8x8xf32>) {\n"
        "  %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>\n"
        "  return\n}"
    )
    module = parse_module(text, "k.mlir")
    check_stage(module, "xetile")
    with pytest.raises(StageError, match=r"xetile\.load_tile.*loops.*k\.mlir:2:8"):
        check_stage(module, "loops")
    with pytest.raises(ValueError, match="no stage is called `nowhere`"):
        check_stage(module, "nowhere")
    register_stage(StageSpec("test-only", frozenset({"builtin"})))
    with pytest.raises(StageError, match=r"func\.func"):
        check_stage(module, "test-only")


def test_loops_have_no_matrices() -> None:
    module = parse_module(
        "func.func @f(%v: vector<8x8xf32>) {\n"
        "  %w = arith.addf %v, %v : vector<8x8xf32>\n  return\n}"
    )
    with pytest.raises(StageError, match="still works on vector<8x8xf32>"):
        check_stage(module, "loops")


def test_passes_are_fast() -> None:
    lines = [
        f"  %a{i} = arith.addi %{'x' if i == 0 else f'a{i - 1}'}, %c : index\n"
        f"  %b{i} = arith.addi %{'x' if i == 0 else f'a{i - 1}'}, %c : index\n"
        for i in range(1000)
    ]
    module = parse_module(
        "func.func @f(%x: index, %c: index) -> (index, index) {\n"
        + "".join(lines)
        + "  return %a999, %b999 : index, index\n}"
    )
    CSEPass().apply(Context(), module)
    CanonicalizePass().apply(Context(), module)
    assert len(list(module.walk())) == 1003
