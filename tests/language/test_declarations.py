"""An operation is declared once: lists, methods and builders follow from that."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import xetl.frontend
from tests.frontend.building import build
from xetl import xetile
from xetl.errors import LaunchError, TileShapeError
from xetl.frontend.arguments import OPERATIONS
from xetl.language import ops
from xetl.language.operation import body_of, composite, operation_name
from xetl.language.values import Vector
from xetl.transforms.diagnostics import positions_of

FOLDER = Path(ops.__file__).parent
OF_COMPOSITES = {"interleave_rows", "scan_by", "slice_matrix"}
"""Operations that only those made of others use."""
GROUPS = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


@pytest.mark.parametrize("group", GROUPS)
def test_each_file_lists_what_it_declares(group: str) -> None:
    module = import_module(f"xetl.language.ops.{group}")
    declared = [
        name
        for name, value in vars(module).items()
        if operation_name(value) is not None and value.__module__ == module.__name__
    ]
    listed = module.__all__
    constants = [n for n in listed if isinstance(getattr(module, n), float)]
    # What is made of others may have helpers, which are made of others as well.
    others = [n for n in declared if n not in listed]
    helpers = [n for n in others if body_of(getattr(module, n)) or n in OF_COMPOSITES]
    assert sorted([*listed, *helpers]) == sorted([*declared, *constants])
    assert set(module.__all__) <= set(ops.__all__)


def test_each_operation_has_one_meaning() -> None:
    assert xetl.frontend
    for name in ops.__all__:
        operation = getattr(ops, name)
        if operation_name(operation) is not None:
            assert (name in OPERATIONS) != (body_of(operation) is not None), name
            assert operation.__doc__


def test_methods_are_operations() -> None:
    for name, value in vars(Vector).items():
        if operation_name(value) is not None:
            assert value is getattr(ops, name)


@composite
def twice_the_sum(v, axis=0):
    """Written with an operation, a constant branch and a default."""
    if axis < 0:
        axis = axis + 2
    return 2 * xetile.sum(v, axis, keepdims=True)


@xetile.kernel
def sums(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 8)))
    y = twice_the_sum(x, axis=-1)
    xetile.store_tile(y, xetile.init_tile(Y, [0, 0], (4, 1)))


@xetile.kernel
def wrong(X):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 8)))
    twice_the_sum(x, 5)


def test_an_operation_made_of_others() -> None:
    x, y = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 1), np.float32)
    sums[1](x, y, backend="reference")
    np.testing.assert_array_equal(y[:, 0], 2 * x.sum(1))


def test_its_errors_are_at_the_call() -> None:
    with pytest.raises(TileShapeError, match="dimension 5 does not exist") as caught:
        wrong[1](np.ones((4, 8), np.float32), backend="reference")
    assert caught.value.source_line is not None
    assert caught.value.source_line.strip() == "twice_the_sum(x, 5)"
    assert not caught.value.frames


def test_its_operations_are_at_the_call() -> None:
    module = build(sums.fn, X="f32 2", Y="f32 2")
    places = [place for op in module.walk() for place in positions_of(op.location)]
    lines = {place.line.data for place in places}
    start = sums.fn.__code__.co_firstlineno
    assert lines <= set(range(start, start + 6))
    assert {place.filename.data for place in places} == {__file__}


def test_on_the_host_it_is_refused() -> None:
    with pytest.raises(LaunchError, match="belongs in a kernel"):
        twice_the_sum(1)
