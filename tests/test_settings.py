"""Environment variables of xetl are read in one file, `xetl/settings.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import xetl
from xetl import settings
from xetl.errors import LaunchError, SettingWarning
from xetl.runtime import executables
from xetl.settings import Config, config

ROOT = Path(__file__).parents[1]


def reads_of_the_environment(tree: ast.AST) -> Iterator[str]:
    """The names of variables in `os.environ[...]`, `os.environ.get(...)`, `getenv`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            owner, keys = node.value, [node.slice]
        elif isinstance(node, ast.Call):
            owner, keys = node.func, node.args[:1]
        else:
            continue
        if "environ" in ast.unparse(owner) or "getenv" in ast.unparse(owner):
            yield from (ast.unparse(key) for key in keys)


def test_settings_alone_reads_our_variables() -> None:
    files = [*ROOT.glob("xetl/**/*.py"), *ROOT.glob("backends/*/xetl_*/**/*.py")]
    assert len(files) > 100
    found: list[str] = []
    for path in files:
        if path == ROOT / "xetl/settings.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        ours = (key for key in reads_of_the_environment(tree) if "XETL_" in key)
        found += [f"{path.relative_to(ROOT)}: {key}" for key in ours]
    assert found == []


def test_a_text_is_read_as_the_variable_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "assigned", {})
    settings: Any = config
    settings.cache_dir, settings.prefetch = "/tmp/kernels", "3"
    assert (config.cache_dir, config.prefetch) == (Path("/tmp/kernels"), 3)
    with pytest.raises(LaunchError, match=r"`xetl.config.verify` is 'maybe': it must"):
        settings.verify = "maybe"


@pytest.mark.parametrize("value", [3, 1.5, b"x", [1], object(), ("a", 1, 2)])
@pytest.mark.parametrize("name", settings._fields())
def test_a_value_of_a_wrong_type(name: str, value: Any) -> None:
    """Python's own errors came at the next launch."""
    own: Any = Config()
    if value == 3 and (name == "prefetch" or type(getattr(own, name)) is int):
        value = 3.0
    with pytest.raises(LaunchError, match=rf"`xetl.config.{name}` is "):
        setattr(own, name, value)
    assert own.assigned == {}


def test_the_home_in_the_name_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of settings, unlike shells, keep ``~``; a folder of that name was made."""
    monkeypatch.setattr(config, "assigned", {})
    monkeypatch.setenv("HOME", "/home/of_somebody")
    monkeypatch.setenv("XETL_CACHE_DIR", "~/kernels")
    monkeypatch.setenv("XETL_TUNED_DIR", "~nobody_here/tuned")
    assert config.cache_dir == Path("/home/of_somebody/kernels")
    with pytest.raises(LaunchError, match=r"XETL_TUNED_DIR is .* it must be a folder"):
        _ = config.tuned_dir


def test_a_misspelt_field_is_not_taken() -> None:
    settings: Any = config
    with pytest.raises(LaunchError, match="has no field `bakend`") as caught:
        settings.bakend = "cpu"
    assert caught.value.help == "did you mean `backend`?"


def test_all_settings_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XETL_TARGET", "avx2")
    printed = repr(Config())
    assert printed.startswith("Config(backend=")
    assert "target='avx2', " in printed
    assert "reuse_constants=False" in printed


def test_settings_that_held_before_are_the_same_object_again() -> None:
    own = Config()
    before = own.assigned
    for count in range(50):
        own.max_unrolled = 1 + count
        del own.max_unrolled
        assert own.assigned is before  # native calls compare no more than that


def test_a_first_launch_warns_of_misspelt_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XETL_BACKENDS", "cpu")
    monkeypatch.setenv("XETL_OF_A_PROGRAM", "1")
    executables._warn_of_settings.cache_clear()
    kernel = xetl.load_mlir("func.func @k() { return }")["k"]
    with pytest.warns(SettingWarning) as caught:
        kernel[1]()
    assert [str(each.message) for each in caught] == [
        "the variable XETL_BACKENDS is no setting of xetl: did you mean `XETL_BACKEND`?"
    ]
    assert caught[0].filename == __file__
    kernel[1](backend="reference")
