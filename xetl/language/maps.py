"""Maps: which subgroup, and which work item, owns which part of a tile.

Plain hashable objects, so that they can be defaults, constants of a module and keys
of a cache.  Source: XeTile RFC, "wg_map" and "sg_map".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xetl.errors import TileMapError
from xetl.language.distribution import spreads


@dataclass(frozen=True)
class WgMap:
    """How the subgroups of a workgroup share a tile; see :func:`wg_map`."""

    sg_layout: tuple[int, int]
    sg_data: tuple[int, int]

    def __repr__(self) -> str:
        return f"wg_map(sg_layout={list(self.sg_layout)}, sg_data={list(self.sg_data)})"


@dataclass(frozen=True)
class SgMap:
    """How the work items of a subgroup share its part; see :func:`sg_map`."""

    wi_layout: tuple[int, int]
    wi_data: tuple[int, int]

    def __repr__(self) -> str:
        return f"sg_map(wi_layout={list(self.wi_layout)}, wi_data={list(self.wi_data)})"


@dataclass(frozen=True)
class XeMap:
    """Both maps in one; see :func:`xe_map`."""

    wg: WgMap | None = None
    sg: SgMap | None = None

    def __repr__(self) -> str:
        return f"xe_map(wg={self.wg}, sg={self.sg})"


def wg_map(sg_layout: Sequence[int], sg_data: Sequence[int]) -> WgMap:
    """Spread a tile over subgroups.

    Args:
        sg_layout: subgroups as [rows, columns]; their ids count row by row.
        sg_data: elements one subgroup owns at a time, as [height, width].

    Raises:
        TileMapError: a list is not two positive integers.
    """
    return WgMap(
        _pair("wg_map", "sg_layout", sg_layout), _pair("wg_map", "sg_data", sg_data)
    )


def sg_map(wi_layout: Sequence[int], wi_data: Sequence[int]) -> SgMap:
    """Spread the part of one subgroup over its work items.

    Args:
        wi_layout: work items as [rows, columns].
        wi_data: elements one work item owns at a time, as [height, width].

    Raises:
        TileMapError: a list is not two positive integers.
    """
    return SgMap(
        _pair("sg_map", "wi_layout", wi_layout), _pair("sg_map", "wi_data", wi_data)
    )


def xe_map(wg: WgMap | None = None, sg: SgMap | None = None) -> XeMap:
    """Join a workgroup's map and a subgroup's map.

    Raises:
        TileMapError: an argument is a map of the other level.
    """
    _check_level("wg", wg, WgMap)
    _check_level("sg", sg, SgMap)
    return XeMap(wg, sg)


def _check_level(name: str, value: object, wanted: type) -> None:
    if value is not None and not isinstance(value, wanted):
        raise TileMapError(
            f"`{name}` of `xe_map` must be a {name}_map, not {value!r}", code="X0501"
        )


def _pair(op: str, name: str, values: Sequence[int]) -> tuple[int, int]:
    listed: list[object] = list(values) if _is_sequence(values) else [values]
    if len(listed) != 2 or not all(_is_extent(value) for value in listed):
        raise TileMapError(
            f"`{name}` of `{op}` must be two positive integers, not {values!r}",
            code="X0501",
            help=f"write {name}=[rows, columns]",
        )
    return (values[0], values[1])


def _is_sequence(values: object) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str)


def _is_extent(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def check_wg_map(mapping: WgMap, shape: tuple[int, int]) -> None:
    """Check that ``mapping`` can spread a tile of ``shape``.

    Raises:
        TileMapError: ``sg_data`` does not divide an extent, or neither of
            ``sg_layout * sg_data`` and the extent divides the other.
    Source: XeTile RFC, "wg_map".
    """
    for dim, extent in enumerate(shape):
        layout, data = mapping.sg_layout[dim], mapping.sg_data[dim]
        if not spreads(extent, layout, data):
            raise TileMapError(
                f"this wg_map cannot spread {shape}: dimension {dim} has {extent}"
                f" elements for {layout} subgroups of {data}",
                code="X0502",
                notes=[f"the map is {mapping!r}"],
                help=f"{data} must divide {extent}, and one of {layout * data} and"
                f" {extent} the other",
            )
