"""What takes registers, and how much: values that share them count once.

A message brings its pieces to registers side by side, which stay taken until the last
piece was read; seeing a value as another type takes none.
"""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from xetl.dialects.upstream import arith, vector
from xetl_xegpu import simt
from xetl_xegpu.lowering.register_need import bytes_of, values_of_lanes


class Held:
    """The registers of a kernel's values; sizes are bytes of a lane.

    Args:
        kernel: at stage ``lanes``.
    """

    def __init__(self, kernel: simt.FuncOp) -> None:
        self._of_lanes = values_of_lanes(kernel)
        self._roots: dict[SSAValue, SSAValue] = {}
        self._bytes: dict[SSAValue, int] = {}

    def root_of(self, value: SSAValue) -> SSAValue:
        """The value whose registers this one shares; itself, if it has its own."""
        found = self._roots.get(value)
        if found is None:
            found = self._roots[value] = self._root_of(value)
        return found

    def bytes_of(self, root: SSAValue) -> int:
        """What a value takes with all that share its registers."""
        found = self._bytes.get(root)
        if found is None:
            together = [root]
            if isinstance(root.owner, simt.BlockLoadOp):
                together = list(root.owner.results)
            found = sum(bytes_of(v) for v in together if v in self._of_lanes)
            self._bytes[root] = found
        return found

    def _root_of(self, value: SSAValue) -> SSAValue:
        if isinstance(value, OpResult):
            if isinstance(value.op, simt.BlockLoadOp):
                return value.op.results[0]
            if isinstance(value.op, arith.BitcastOp | vector.BitcastOp):
                return self.root_of(value.op.operands[0])
        return value
