"""Targets: names, features, and what this machine is."""

import subprocess
import sys

import pytest

from xetl.ops.indexing_kernels import gather_rows
from xetl_cpu import BACKEND, targets
from xetl_cpu.targets import (
    TARGETS,
    UnknownTargetError,
    find_target,
    host_features,
    host_fingerprint,
    target_machine,
)


@pytest.mark.parametrize("name", ["host", *TARGETS])
def test_every_target_can_be_compiled_for(name):
    target = find_target(name)
    assert target.name == name
    machine = target_machine(target)
    assert machine is target_machine(find_target(name))
    assert "x86_64" in machine.triple


def test_host_is_the_best_that_runs_here():
    host = find_target("host")
    assert host.runs_here
    runnable = [target for target in TARGETS.values() if target.runs_here]
    assert host.requires == runnable[-1].requires
    assert host.vector_bytes == max(target.vector_bytes for target in runnable)


def test_lanes():
    assert find_target("avx2").lanes("f32") == 8
    assert find_target("avx512").lanes("f32") == 16
    assert find_target("avx512").lanes("bf16") == 32
    assert find_target("avx512").lanes("f64") == 8


def test_linux_names_are_llvm_names(monkeypatch):
    real = targets._cpuinfo()
    host_features.cache_clear()
    monkeypatch.setattr(
        targets, "_cpuinfo", lambda: {**real, "flags": "avx512_bf16 fma"}
    )
    assert host_features() == {"avx512bf16", "fma"}
    assert not TARGETS["avx512_bf16"].runs_here
    host_features.cache_clear()


def test_without_cpuinfo_llvm_is_asked(monkeypatch):
    host_features.cache_clear()
    monkeypatch.setattr(targets, "_cpuinfo", dict)
    assert "avx2" in host_features()
    host_features.cache_clear()


@pytest.fixture
def new_host(monkeypatch):
    """A processor with tiles; whether Linux grants them is asked of ``permitted``."""

    def host(permitted):
        real = targets._cpuinfo()
        caches = (host_features, targets._host_target)
        for cached in caches:
            cached.cache_clear()
        flags = " ".join(sorted(TARGETS["amx"].requires))
        monkeypatch.setattr(targets, "_cpuinfo", lambda: {**real, "flags": flags})
        monkeypatch.setattr("xetl_cpu.targets.tiles_are_permitted", lambda: permitted)
        return BACKEND

    yield host
    host_features.cache_clear()
    targets.host_machine.cache_clear()
    targets.host_fingerprint.cache_clear()
    targets._host_target.cache_clear()


def test_code_with_tiles_is_for_processes_that_may_use_them(new_host):
    """One without the permission would die of SIGILL by the code of another."""
    keys = {}
    for permitted in (True, False):
        backend = new_host(permitted)
        keys[permitted] = backend.cache_key("host")
        assert find_target("host").has_amx == permitted
    assert keys[True] != keys[False]
    assert new_host(True).cache_key("host") == keys[True]


def test_an_unknown_target_is_refused():
    with pytest.raises(UnknownTargetError, match="no target `z80`"):
        find_target("z80")


def test_tiles_are_used_where_linux_permits_them_or_somebody_emulates_them(monkeypatch):
    amx = find_target("amx")
    monkeypatch.setattr(targets, "host_features", lambda: amx.requires)
    monkeypatch.setattr(targets, "tiles_are_permitted", lambda: True)
    assert amx.runs_here
    monkeypatch.setattr(targets, "tiles_are_permitted", lambda: False)
    assert not amx.runs_here
    monkeypatch.setattr(targets, "tiles_are_emulated", lambda: True)
    assert amx.runs_emulated
    without = {name for name in amx.requires if not name.startswith("amx")}
    monkeypatch.setattr(targets, "host_features", lambda: without)
    assert amx.runs_emulated
    monkeypatch.setattr(targets, "host_features", lambda: {"avx2"})
    assert not amx.runs_emulated


def test_who_handles_illegal_instructions():
    code = (
        "import faulthandler; from xetl_cpu.targets import tiles_are_emulated; "
        "before = tiles_are_emulated(); faulthandler.enable(); "
        "print(before, tiles_are_emulated())"
    )
    path = [str(p) for p in sys.path if p]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["False", "True"]


def test_the_fingerprint_needs_no_llvm():
    code = (
        "import sys; from xetl_cpu.targets import find_target, host_fingerprint; "
        "find_target('host'); print(host_fingerprint(), 'llvmlite' in sys.modules)"
    )
    path = [str(p) for p in sys.path if p]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [host_fingerprint(), "False"]


def test_elements_are_gathered_one_by_one_where_that_is_faster():
    """On Zen 4 an instruction that gathers takes twice as long as loads."""
    signature = "f32[M,N] i64[M,N] f32[M,N]"
    constants = {"ALONG": True, "WIDTH": 64, "ROWS": 1}
    text = gather_rows.ir("asm", signature, target="host", **constants)
    host = find_target("host")
    if host.has_masks:
        assert ("vgather" in text) == (host.machine.family != "zen4")
