"""The harness sees what changes, and nothing else."""

import pytest

from tests.same_code.__main__ import compare, digests, first_difference
from tests.same_code.corpus import of_seeds


@pytest.mark.parametrize(
    "target", ["avx2", pytest.param("pvc", marks=pytest.mark.slow)]
)
def test_compiling_twice_is_no_change(target: str) -> None:
    entries = of_seeds(range(3))
    before, found = (dict(digests(entries, [target])) for _ in range(2))
    assert len(before) == len(entries) >= 3  # runs may need codes of their own
    assert compare(before, found) == 0


def test_changes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"avx2\tk": "cse 1\tllvm 2", "avx2\tgone": "cse 1"}
    assert compare(before, {"avx2\tk": "cse 1\tllvm 3"}) == 1
    printed = capsys.readouterr().out
    assert "only before: avx2\tgone" in printed
    assert "llvm 3: avx2\tk" in printed


def test_a_pass_that_changes_nothing_may_be_new() -> None:
    before = {"avx2\tk": "cse 1\tloops 2\tllvm 3"}
    assert compare(before, {"avx2\tk": "cse 1\tnew 1\tloops 2\tllvm 3"}) == 0
    assert compare(before, {"avx2\tk": "cse 1\tnew 4\tloops 2\tllvm 3"}) == 1


def test_the_first_difference_is_named() -> None:
    assert first_difference("a 1\tb 2\tc 3", "a 1\tb 4\tc 5") == "b 4"
    assert first_difference("a 1", "a 1\tb 2") == "number of stages"
