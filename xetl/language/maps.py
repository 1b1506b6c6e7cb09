"""Maps: which subgroup, and which work item, owns which part of a tile.

Maps are plain hashable objects, so they can be defaults, module constants and cache
keys. Source: XeTile RFC, "wg_map" and "sg_map".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from xetl.errors import TileMapError
from xetl.imports import late
from xetl.language.distribution import Layout, spreads
from xetl.records import record

_picture = late("xetl.language.map_picture", "picture")
_show_layout = late("xetl.language.map_picture", "show_layout")


@record(frozen=True)
class WgMap:
    """How the subgroups of a workgroup share a tile; see :func:`wg_map`."""

    sg_layout: tuple[int, int]
    sg_data: tuple[int, int]

    def __repr__(self) -> str:
        return f"wg_map(sg_layout={list(self.sg_layout)}, sg_data={list(self.sg_data)})"

    def show(self, shape: Sequence[int], path: str | Path | None = None) -> None:
        """Print which subgroup owns which part of a tile, or draw it.

        Args:
            shape: of the tile, [rows, columns] in elements.
            path: of an ``.svg`` file to write; nothing is printed then.

        Raises:
            TileMapError: the map cannot spread the shape, or the path is of another
                kind of file.

        >>> wg_map([2, 2], [32, 128]).show([128, 128])
        128 x 128 over 4 subgroups as [2, 2]: each holds 2 sub-tiles of 32 x 128
          rows   | 0-127
          0-31   |   0-1
          32-63  |   2-3
          64-95  |   0-1
          96-127 |   2-3
        shared: every sub-tile is held by 2 subgroups, the first one stores
        """
        rows, columns = _pair("show", "shape", shape)
        check_wg_map(self, (rows, columns))
        _show_layout(self._layout, (rows, columns), repr(self), path)

    def _repr_html_(self) -> str:
        """Return a picture for notebooks, of a tile that takes one round."""
        rows, columns = (n * d for n, d in zip(self.sg_layout, self.sg_data))
        return _picture((rows, columns), self._layout, repr(self))

    @property
    def _layout(self) -> Layout:
        return Layout(self.sg_layout, self.sg_data)


@record(frozen=True)
class SgMap:
    """How the work items of a subgroup share its part; see :func:`sg_map`."""

    wi_layout: tuple[int, int]
    wi_data: tuple[int, int]

    def __repr__(self) -> str:
        return f"sg_map(wi_layout={list(self.wi_layout)}, wi_data={list(self.wi_data)})"

    def show(self, shape: Sequence[int], path: str | Path | None = None) -> None:
        """Print which work item holds which elements of a subgroup's part, or draw it.

        Args:
            shape: of the part, [rows, columns] in elements.
            path: of an ``.svg`` file to write; nothing is printed then.

        Raises:
            TileMapError: the work items cannot split the shape evenly, or the path is
                of another kind of file.
        """
        rows, columns = _pair("show", "shape", shape)
        for dim, extent in enumerate((rows, columns)):
            unit = self.wi_layout[dim] * self.wi_data[dim]
            if extent % unit:
                raise TileMapError(
                    f"this sg_map cannot split {(rows, columns)}: dimension {dim} has"
                    f" {extent} elements for {self.wi_layout[dim]} work items of"
                    f" {self.wi_data[dim]}",
                    code="X0502",
                    notes=[f"the map is {self!r}"],
                    help=f"{unit} must divide {extent}",
                )
        layout = Layout(self.wi_layout, self.wi_data)
        _show_layout(layout, (rows, columns), repr(self), path, "work item")


@record(frozen=True)
class XeMap:
    """Both maps in one; see :func:`xe_map`."""

    wg: WgMap | None = None
    sg: SgMap | None = None

    def __repr__(self) -> str:
        return f"xe_map(wg={self.wg}, sg={self.sg})"

    def show(self, shape: Sequence[int], path: str | Path | None = None) -> None:
        """As `WgMap.show`; what is printed goes down to work items where they are said.

        Raises:
            TileMapError: the map has no part for subgroups, or as in `WgMap.show`.
        """
        if self.wg is None:
            problem = "this xe_map says nothing about subgroups"
            help_ = "write xe_map(wg=wg_map(...), sg=...), or show its sg_map"
            raise TileMapError(problem, "X0501", help_)
        self.wg.show(shape, path)
        if self.sg is not None and path is None:
            self.sg.show(self.wg.sg_data)


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
        problem = f"`{name}` of `xe_map` must be a {name}_map, not {value!r}"
        raise TileMapError(problem, code="X0501")


def _pair(op: str, name: str, values: Sequence[int]) -> tuple[int, int]:
    given = cast("object", values)
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    listed: list[object] = list(values) if is_list else [values]
    are_right = [isinstance(n, int) and n is not True and n > 0 for n in listed]
    if are_right != [True, True]:
        problem = f"`{name}` of `{op}` must be two positive integers, not {values!r}"
        raise TileMapError(problem, "X0501", f"write {name}=[rows, columns]")
    return (values[0], values[1])


def check_wg_map(mapping: WgMap, shape: tuple[int, int]) -> None:
    """Check that ``mapping`` can distribute a tile of ``shape``.

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
