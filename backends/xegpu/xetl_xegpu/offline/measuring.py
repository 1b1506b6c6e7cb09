"""What Intel's offline compiler makes of an artifact: for `Kernel.stats` and tuning."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xetl.backend import Artifact
from xetl.devices import find_device
from xetl_xegpu.launch.facts import facts_of
from xetl_xegpu.offline.isa import count
from xetl_xegpu.offline.ocloc import DEVICES, compile_spirv
from xetl_xegpu.offline.tools import find_ocloc


def measure(artifact: Artifact) -> Mapping[str, object]:
    """What the compiler says of the kernel that aligned arrays are launched with.

    ``spill_bytes`` of a thread, ``instructions`` of the code, how many ``subgroups``
    run it; nothing where the target has no compiler here.
    """
    facts = facts_of(artifact.meta)
    if facts.target not in DEVICES or find_ocloc() is None:
        return {}
    fast = facts.kernels[0]
    device = find_device(facts.target)
    is_large = facts.grf > min(device.registers)
    spirv = artifact.payload[fast.spirv]
    compiled = compile_spirv(spirv, facts.target, large_registers=is_large)
    return {
        "spill_bytes": compiled.kernels[fast.name].spill_bytes,
        "instructions": count(compiled.assembly[fast.name]).instructions,
        "subgroups": prod(fast.lanes) // device.subgroup_size,
    }
