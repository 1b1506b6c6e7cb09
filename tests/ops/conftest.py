"""Fixtures; and functions are operators of torch, whichever test comes first."""

from contextlib import suppress

import pytest

from xetl.ops.calling.repeated import Recorder

with suppress(ImportError):
    from xetl.ops.calling import torch_library

    torch_library.register()


@pytest.fixture
def records_first_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record the first call of each form, however many calls came before."""
    monkeypatch.setattr(Recorder, "_is_due", lambda *_: True)
