"""``ir("asm")`` shows machine code where Intel's compiler is."""

from typing import Any

import pytest

from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import xetile
from xetl.errors import LaunchError
from xetl_xegpu.offline import isa


@xetile.kernel(grid=lambda a: (1, 1))
def doubled(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
    xetile.store_tile(x + x, xetile.init_tile(Y, [0, 0], (8, 16)))


@xetile.kernel(grid=lambda a: (1, 1))
def filled(Y):
    v = xetile.full((16, 16), 2.0, xetile.f32)
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (16, 16)))


TYPES = "f32[M,N] f32[M,N]"


@pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_machine_code_of_a_gpu(target: str) -> None:
    text = doubled.ir("asm", TYPES, backend="xegpu", target=target)
    assert text.startswith("// doubled: ")
    assert "0 bytes spilled; 0 dpas, 1 block loads, 0 prefetches, 1 block st" in text
    assert "load_block2d.ugm.d32" in text
    assert "// doubled_unaligned: " in text


@pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize(("kernel", "types"), [(doubled, TYPES), (filled, "f32[M,N]")])
def test_some_argument_is_a_pointer(
    kernel: Any, types: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Level Zero would keep no memory resident that is given by its address."""
    seen: list[bytes] = []
    compile_ = isa.compile_spirv

    def kept(*args: Any, **options: Any) -> Any:
        found = compile_(*args, **options)
        seen.append(found.binary)
        return found

    monkeypatch.setattr(isa, "compile_spirv", kept)
    kernel.ir("asm", types, backend="xegpu", target=target)
    notes = seen[0][seen[0].index(b"kernels:\n") : seen[0].index(b"kernels_misc")]
    first, second = notes.split(b"- name: ")[1:]
    assert b"is_ptr" in first
    assert b"is_ptr" in second


def test_the_emulated_device_has_none() -> None:
    with pytest.raises(LaunchError, match="target `opencl`") as caught:
        doubled.ir("asm", TYPES, backend="xegpu", target="opencl")
    assert caught.value.code == "X0812"
    assert "'pvc'" in (caught.value.help or "")
