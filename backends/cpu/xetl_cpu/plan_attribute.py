"""``#xsmm.plan``: the blocking of a product, as an attribute of its operations.

    #xsmm.plan<dtype = f32, instruction = fma, ..., mr = 8, nr = 32, mc = 64>

It holds numbers and names, which `microkernels/blocking.py` chooses and explains. What
is not written is 0: the signs of f32, for example.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition

from xetl_cpu.microkernels.arithmetic import Arithmetic
from xetl_cpu.microkernels.blocking import Blocking

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

__all__ = ["PlanAttr"]

_NAMES = ("dtype", "instruction", "compute", "accumulator")
_SIGNS = ("a_unsigned", "b_unsigned")
_NUMBERS = tuple(
    each.name for each in fields(Blocking) if each.name not in ("dtype", "arithmetic")
)
_FLAGS = (*_SIGNS, "is_called")
_KEYS = (*_NAMES, "k_pack", *_SIGNS, *_NUMBERS)


@irdl_attr_definition
class PlanAttr(Data[Blocking]):
    """See the module docstring."""

    name = "xsmm.plan"

    def print_parameter(self, printer: Printer) -> None:
        """Write what is not 0."""
        plan, how = self.data, self.data.arithmetic
        values: dict[str, Any] = {key: getattr(plan, key) for key in _NUMBERS}
        values |= dict(zip(_SIGNS, how.unsigned, strict=True))
        values |= {"dtype": plan.dtype, "k_pack": how.k_pack}
        values |= {key: getattr(how, key) for key in _NAMES[1:]}
        entries = (
            f"{key} = {values[key] if key in _NAMES else int(values[key])}"
            for key in _KEYS
            if values[key]
        )
        with printer.in_angle_brackets():
            printer.print_string(", ".join(entries))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Blocking:
        """Read what `print_parameter` writes, in any order."""

        def entry() -> tuple[str, Any]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            if key in _NAMES:
                return key, parser.parse_identifier()
            if key not in _KEYS:
                parser.raise_error(f"a plan has no `{key}`")
            number = parser.parse_integer()
            return key, bool(number) if key in _FLAGS else number

        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry)
        values: dict[str, Any] = (
            dict.fromkeys(_NUMBERS, 0) | dict.fromkeys(_FLAGS, False) | dict(pairs)
        )
        missing = [key for key in (*_NAMES, "k_pack") if key not in values]
        if missing:
            parser.raise_error(f"a plan needs {', '.join(missing)}")
        how = {key: values.pop(key) for key in (*_NAMES[1:], "k_pack")}
        signs = (values.pop(_SIGNS[0]), values.pop(_SIGNS[1]))
        return Blocking(arithmetic=Arithmetic(**how, unsigned=signs), **values)
