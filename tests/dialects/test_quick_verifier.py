"""The quick verifier takes what xDSL's takes, and refuses what that refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from xdsl.dialects.builtin import StringAttr, TensorType, UnitAttr, i1
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Operation
from xdsl.irdl import OpDef
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.operation import XetlOp
from xetl.dialects.parser import parse_module
from xetl.dialects.quick_verifier import quick_verifier

MODULES = sorted(Path(__file__).parents[1].glob("conformance/*.mlir"))
ODD = TensorType(i1, [3])


def wrong(op: Operation) -> Iterator[Operation]:
    """Copies of an operation, each with something else changed."""
    odd = AnyOp(result_types=[ODD]).results[0]
    for index in range(len(op.operands)):
        for others in ([], [odd], [op.operands[index]] * 2):
            left = op.clone()
            left.operands = [
                *op.operands[:index],
                *others,
                *op.operands[index + 1 :],
            ]
            yield left
    more = op.clone()
    more.operands = [*op.operands, odd]
    yield more
    for name in [*op.properties, "odd"]:
        changed, without = op.clone(), op.clone()
        changed.properties[name] = StringAttr("odd")
        without.properties.pop(name, None)
        yield from (changed, without)
    marked = op.clone()
    marked.attributes["odd"] = UnitAttr()
    yield marked
    if op.results:
        typed = op.clone()
        typed.results[0]._type = ODD
        yield typed


def complaint(verify: Callable[[Operation], None], op: Operation) -> str | None:
    try:
        verify(op)
    except VerifyException as error:
        return str(error)
    return None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_it_agrees_with_xdsl(path: Path) -> None:
    seen: set[type[Operation]] = set()
    for op in parse_module(path.read_text(), path.name).walk():
        if not isinstance(op, XetlOp) or type(op) in seen:
            continue
        seen.add(type(op))
        definition = op.get_irdl_definition()
        quick = quick_verifier(definition)
        if quick is None:
            continue
        assert quick._is_right(op)
        slow = partial(OpDef.verify, definition)
        for other in wrong(op):
            assert complaint(quick, other) == complaint(slow, other)
    assert seen
