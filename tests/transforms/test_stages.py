"""Wrong modules are found where a stage begins, and the pass is named."""

from __future__ import annotations

import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp, i32

from xetl.errors import InternalError
from xetl.pipeline import verify_step
from xetl.transforms.stages import find_stage

WRONG = ModuleOp([ConstantOp.create(result_types=[i32])])  # of which value?


@pytest.mark.parametrize("stage", ["xetile", "loops"])
def test_operations_are_verified(stage: str) -> None:
    with pytest.raises(InternalError, match="pass `some` left a wrong module"):
        verify_step(WRONG, stage, "some")


def test_near_the_next_stage_only_if_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XETL_VERIFY", raising=False)
    verify_step(WRONG, "xsmm", "some")
    verify_step(WRONG, None, "some")
    monkeypatch.setenv("XETL_VERIFY", "1")
    for stage in ("xsmm", None):
        with pytest.raises(InternalError, match="pass `some` left a wrong module"):
            verify_step(WRONG, stage, "some")


def test_what_may_stand_there_is_checked_even_so() -> None:
    module = ModuleOp([ModuleOp([])])
    module.body.block.first_op.name = "other.op"
    with pytest.raises(InternalError, match=r"`other\.op` may not stand at stage"):
        verify_step(module, "xsmm", "some")


def test_unknown_stages_are_named() -> None:
    with pytest.raises(ValueError, match="no stage is called `xsm`; there are: xetile"):
        find_stage("xsm")
