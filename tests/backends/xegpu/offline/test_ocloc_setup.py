"""The command that fetches the offline compiler."""

import shutil
from pathlib import Path

import pytest

from xetl.errors import LaunchError
from xetl_xegpu.offline import ocloc, setup

FETCHED = ocloc.default_folder() / "packages"
needs_packages = pytest.mark.skipif(
    not FETCHED.is_dir(), reason="nothing was fetched: " + ocloc.SETUP
)


@pytest.mark.slow
@needs_packages
def test_kept_packages_are_used_again_without_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_download(*_: object) -> None:
        raise AssertionError("nothing is to be downloaded")

    monkeypatch.setattr(setup, "_download", no_download)
    shutil.copytree(FETCHED, tmp_path / "first" / "packages")
    assert setup.main([str(tmp_path / "first")]) == 0
    # The tools are found wherever the folder is.
    shutil.move(tmp_path / "first", tmp_path / "moved")
    compiler = tmp_path / "moved" / "ocloc"
    done = ocloc.run([compiler, "--version"], tmp_path)
    assert done.returncode == 0
    assert f"XETL_OCLOC={tmp_path / 'first' / 'ocloc'}" in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["apt-get", "dpkg-deb"])
def test_other_systems_are_told_what_they_lack(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(
        setup.shutil, "which", lambda name: None if name == missing else name
    )
    with pytest.raises(LaunchError, match=f"no {missing}") as caught:
        setup.set_up(tmp_path)
    assert caught.value.code == "X0842"
    assert "XETL_OCLOC" in (caught.value.help or "")


def test_other_processors_are_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup.platform, "machine", lambda: "aarch64")
    assert setup.main([str(tmp_path)]) == 1
    assert "x86-64 only" in capsys.readouterr().err


def test_a_failed_download_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bin" / "apt-get"
    broken.parent.mkdir()
    broken.write_text('#!/bin/sh\necho "E: no route to the mirror"; exit 100\n')
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(broken.parent), prepend=":")
    monkeypatch.setattr(setup, "_check_machine", lambda: None)
    monkeypatch.setattr(setup, "_mirror", lambda: "file:/nowhere")
    folder = tmp_path / "tools"
    folder.mkdir()
    with pytest.raises(LaunchError, match="no route to the mirror") as caught:
        setup.set_up(folder)
    assert caught.value.code == "X0842"
    assert not list(folder.iterdir())
