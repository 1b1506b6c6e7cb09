"""The offline compiler, on a kernel written by hand."""

from pathlib import Path

import pytest

from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, KERNEL, MISSPELT, REASON
from tests.backends.xegpu.spirv_tools import find_spirv_tool, validate
from xetl.errors import LaunchError
from xetl.settings import config
from xetl_xegpu.emit.spirv import to_spirv
from xetl_xegpu.offline import isa, ocloc
from xetl_xegpu.offline.ocloc import KernelFacts, compile_spirv, read_ze_info

needs_ocloc = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)


@needs_ocloc
@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("large", [False, True])
def test_facts_and_code_of_a_kernel(target: str, large: bool) -> None:
    found = compile_spirv(to_spirv(KERNEL), target, large_registers=large)
    assert list(found.kernels) == list(found.assembly) == ["product"]
    facts = found.kernels["product"]
    assert facts == KernelFacts(256 if large else 128, 0, 0, 0, 0, 16)
    counts = isa.count(found.assembly["product"])
    assert (counts.dpas, counts.calls) == (1, 0)
    assert (counts.block_loads, counts.block_stores, counts.prefetches) == (2, 1, 1)
    assert 20 < counts.instructions < 80


@needs_ocloc
def test_a_builtin_that_is_not_known_is_a_call() -> None:
    found = compile_spirv(to_spirv(MISSPELT), "pvc")
    assert list(found.kernels) == ["product"]
    assert found.kernels["product"].private_bytes > 0
    assert isa.count(found.assembly["product"]).calls == 1


@needs_ocloc
def test_what_is_no_spirv_is_refused_by_an_error_of_ours() -> None:
    with pytest.raises(LaunchError, match="refused a kernel for `bmg`") as caught:
        compile_spirv(b"no SPIR-V at all", "bmg")
    assert caught.value.code == "X0841"
    assert any("magic number" in note for note in caught.value.notes)


@needs_ocloc
def test_the_validator_looks_at_modules() -> None:
    if find_spirv_tool("spirv-val") is None:
        pytest.skip("spirv-val is not installed: apt-get install spirv-tools")
    spirv = to_spirv(KERNEL)
    assert validate(spirv) is None
    assert "OpFunctionEnd" in (validate(spirv[:-4]) or "")


def test_without_a_compiler_the_error_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("XETL_OCLOC", raising=False)
    assert ocloc.find_ocloc() is None
    assert find_spirv_tool("spirv-val") is None
    for ask in (lambda: compile_spirv(b"", "pvc"), lambda: validate(b"")):
        with pytest.raises(LaunchError, match="not installed") as caught:
            ask()
        assert caught.value.code == "X0840"
        assert ocloc.SETUP in (caught.value.help or "")


def test_the_setting_comes_first_and_must_name_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ocloc"
    monkeypatch.setenv("XETL_OCLOC", str(program))
    with pytest.raises(LaunchError, match="names no program"):
        ocloc.find_ocloc()
    program.write_text("#!/bin/sh\necho broken; exit 3\n")
    program.chmod(0o755)
    assert ocloc.find_ocloc() == program == config.ocloc
    with pytest.raises(LaunchError, match="refused a kernel") as caught:
        compile_spirv(b"", "pvc")
    assert caught.value.notes == ("broken",)


def test_a_compiler_that_dies_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ocloc"
    program.write_text("#!/bin/sh\necho 'malloc(): invalid size'; kill -ABRT $$\n")
    program.chmod(0o755)
    monkeypatch.setenv("XETL_OCLOC", str(program))
    with pytest.raises(LaunchError, match="was ended by SIGABRT on") as caught:
        compile_spirv(b"", "pvc")
    assert caught.value.notes == ("malloc(): invalid size",)


def test_a_program_that_cannot_be_started_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ocloc"
    program.write_text("#!/no/such/shell\n")
    program.chmod(0o755)
    monkeypatch.setenv("XETL_OCLOC", str(program))
    with pytest.raises(LaunchError, match="does not work") as caught:
        compile_spirv(b"", "pvc")
    assert caught.value.code == "X0840"
    assert ocloc.SETUP in (caught.value.help or "")


def test_a_program_that_hangs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ocloc"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("XETL_OCLOC", str(program))
    monkeypatch.setattr(ocloc, "_SECONDS", 0.2)
    with pytest.raises(LaunchError, match="timed out") as caught:
        compile_spirv(b"", "pvc")
    assert "less busy" in (caught.value.help or "")


ZE_INFO = """\
---
version:         '1.73'
kernels:
  - name:            one
    user_attributes:
      intel_reqd_sub_group_size: 16
    execution_env:
      grf_count:       256
      barrier_count:   1
      required_work_group_size: [ 16, 1, 1 ]
      simd_size:       16
      slm_size:        4096
      spill_size:      7680
      private_size:    7680
    payload_arguments:
      - arg_type:        arg_byvalue
        size:            8
  - name:            'two'
    execution_env:
      grf_count:       128
      simd_size:       32
  - name:            Intel_Symbol_Table_Void_Program
    execution_env:
      grf_count:       128
kernels_misc_info:
  - name:            one
    args_info:
      - index:           0
"""


def test_the_notes_of_a_binary_are_read() -> None:
    assert read_ze_info(ZE_INFO) == {
        "one": KernelFacts(256, 7680, 7680, 4096, 1, 16),
        "two": KernelFacts(128, 0, 0, 0, 0, 32),
    }
