"""The driver of intel-opencl-rt is found, and nobody's choice is overridden."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.backends.xegpu import device
from xetl import opencl_driver
from xetl_xegpu.launch import devices


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver below another prefix."""
    driver = tmp_path / "lib" / devices.LIBRARY
    driver.parent.mkdir()
    driver.touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return driver


def test_it_is_made_known(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    assert devices.set_up() == installed
    assert os.environ[devices.VARIABLE] == str(installed)


def test_a_users_choice_stays(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.VARIABLE, "/opt/mine.so")
    assert devices.set_up() is None
    assert os.environ[devices.VARIABLE] == "/opt/mine.so"


def test_elsewhere_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "deep" / devices.LIBRARY
    driver.parent.mkdir()
    driver.touch()
    files = [
        SimpleNamespace(name="other.so", locate=lambda: tmp_path / "other.so"),
        SimpleNamespace(name=devices.LIBRARY, locate=lambda: driver),
    ]
    hide(monkeypatch, tmp_path)
    monkeypatch.setattr(metadata, "files", lambda package: files)
    assert devices.installed_driver() == driver


def test_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> Any:
        raise metadata.PackageNotFoundError(package)

    hide(monkeypatch, tmp_path)
    monkeypatch.setattr(metadata, "files", missing)
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    assert devices.set_up() is None
    assert devices.VARIABLE not in os.environ


def run_anew(script: str) -> str:
    """What a process of its own prints that was told of no driver."""
    known = {k: v for k, v in os.environ.items() if k != devices.VARIABLE}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=known, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


def test_importing_makes_it_known_to_whoever_asks() -> None:
    device.require()
    script = "import xetl, dpctl; print(dpctl.SyclQueue().sycl_device.backend.name)"
    assert run_anew(script).strip() in ("opencl", "level_zero")


def test_whoever_asks_too_early_is_told() -> None:
    device.require()
    if devices.installed_driver() is None:
        pytest.skip("the driver was not installed by pip")
    script = """
import dpctl
if dpctl.get_devices():  # another driver is known to the system
    print("import xetl before")
    raise SystemExit
import xetl
from xetl_xegpu.launch import devices
try:
    devices.default_queue()
except xetl.errors.LaunchError as error:
    print(error)
"""
    assert "import xetl before" in run_anew(script)


def hide(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No driver where pip puts it."""
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(opencl_driver.site, "getuserbase", lambda: str(folder))
