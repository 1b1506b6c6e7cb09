"""``ir("asm")`` shows machine code where Intel's compiler is."""

import pytest

from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import xetile
from xetl.errors import LaunchError


@xetile.kernel(grid=lambda a: (1, 1))
def doubled(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)))
    xetile.store_tile(x + x, xetile.init_tile(Y, [0, 0], (8, 16)))


TYPES = "f32[M,N] f32[M,N]"


@pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_machine_code_of_a_gpu(target: str) -> None:
    text = doubled.ir("asm", TYPES, backend="xegpu", target=target)
    assert text.startswith("// doubled: ")
    assert "0 bytes spilled; 0 dpas, 1 block loads, 0 prefetches, 1 block st" in text
    assert "load_block2d.ugm.d32" in text
    assert "// doubled_unaligned: " in text


def test_the_emulated_device_has_none() -> None:
    with pytest.raises(LaunchError, match="target `opencl`") as caught:
        doubled.ir("asm", TYPES, backend="xegpu", target="opencl")
    assert caught.value.code == "X0812"
    assert "'pvc'" in (caught.value.help or "")
