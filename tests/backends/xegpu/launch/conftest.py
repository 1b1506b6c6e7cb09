"""Devices that lack something, made of the one there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.backends.xegpu import device
from xetl.settings import config
from xetl_xegpu.launch import devices, places

Pretend = Callable[..., None]


@pytest.fixture(autouse=True)
def xegpu() -> Iterator[None]:
    """Launches go to the device of the backend, and compile anew."""
    device.require()
    config.backend, config.cache = "xegpu", False
    yield
    del config.backend, config.cache


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pretend]:
    """Call it with fields of `Device`: all devices are so from then on."""
    real = devices.facts_of

    def change(**fields: Any) -> None:
        monkeypatch.setattr(
            places, "facts_of", lambda device: replace(real(device), **fields)
        )
        places.place_of.cache_clear()

    yield change
    places.place_of.cache_clear()
