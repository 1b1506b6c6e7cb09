"""What maps show of themselves: tables and pictures, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from xetl import xetile
from xetl.errors import TileMapError
from xetl.language.map_picture import ids

SVG = "{http://www.w3.org/2000/svg}"


def shown(
    capsys: pytest.CaptureFixture[str], mapping: object, shape: tuple[int, int]
) -> list[str]:
    mapping.show(shape)
    return capsys.readouterr().out.splitlines()


def test_the_table_of_the_rfc(capsys) -> None:
    """Rounds down the rows, sharing along the columns."""
    assert shown(capsys, xetile.wg_map([2, 2], [32, 128]), (128, 128)) == [
        "128 x 128 over 4 subgroups as [2, 2]: each holds 2 sub-tiles of 32 x 128",
        "  rows   | 0-127",
        "  0-31   |   0-1",
        "  32-63  |   2-3",
        "  64-95  |   0-1",
        "  96-127 |   2-3",
        "shared: every sub-tile is held by 2 subgroups, the first one stores",
    ]


def test_nothing_is_shared(capsys) -> None:
    assert shown(capsys, xetile.wg_map([2, 2], [2, 1]), (4, 2)) == [
        "4 x 2 over 4 subgroups as [2, 2]: each holds 1 sub-tile of 2 x 1",
        "  rows | 0  1",
        "  0-1  | 0  1",
        "  2-3  | 2  3",
    ]


def test_the_middle_of_a_large_table_is_left_out(capsys) -> None:
    lines = shown(capsys, xetile.wg_map([2, 2], [8, 8]), (512, 512))
    assert len(lines) == 1 + 1 + 32
    assert lines[-2].split() == ["...", "|", *["..."] * 12]
    assert lines[-1].split() == ["504-511", "|", *"2323232323", "...", "3"]


def test_a_joined_map_goes_down_to_work_items(capsys) -> None:
    lanes = xetile.sg_map([1, 4], [2, 1])
    joined = xetile.xe_map(xetile.wg_map([2, 1], [4, 8]), lanes)
    lines = shown(capsys, joined, (8, 8))
    assert lines[:4] == [
        "8 x 8 over 2 subgroups as [2, 1]: each holds 1 sub-tile of 4 x 8",
        "  rows | 0-7",
        "  0-3  |   0",
        "  4-7  |   1",
    ]
    assert lines[4:] == shown(capsys, lanes, (4, 8))
    assert lines[4:] == [
        "4 x 8 over 4 work items as [1, 4]: each holds 4 sub-tiles of 2 x 1",
        "  rows | 0  1  2  3  4  5  6  7",
        "  0-1  | 0  1  2  3  0  1  2  3",
        "  2-3  | 0  1  2  3  0  1  2  3",
    ]


@pytest.mark.parametrize(
    ("numbers", "short"),
    [
        ([4], "4"),
        ([4, 5], "4-5"),
        ([0, 8], "0,8"),
        ([0, 4, 8, 12], "0,4,..,12"),
        ([2, 5, 6], "2,5,6"),
    ],
)
def test_ids_in_short(numbers, short) -> None:
    assert ids(numbers) == short


# Pictures ---------------------------------------------------------------------------


def drawn(text: str) -> tuple[list[str], list[str], int]:
    """The labels of the sub-tiles, their colours, and how many are striped."""
    root = ElementTree.fromstring(text)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("x")]
    fills = [box.get("fill") or "" for box in boxes]
    colours = [fill for fill in fills if fill.startswith("hsl")]
    dark = [t.text or "" for t in root.iter(f"{SVG}text") if t.get("fill") == "#111"]
    return dark[1 : 1 + len(colours)], colours, fills.count("url(#shared)")


def test_a_picture_has_a_box_for_each_sub_tile(tmp_path: Path, capsys) -> None:
    xetile.wg_map([2, 2], [64, 64]).show((256, 256), path=tmp_path / "map.svg")
    labels, colours, striped = drawn((tmp_path / "map.svg").read_text())
    assert labels == [*"0101", *"2323"] * 2
    of_one = {label: colour for label, colour in zip(labels, colours)}
    assert [of_one[label] for label in labels] == colours
    assert len(set(colours)) == 4
    assert striped == 0
    assert capsys.readouterr().out == ""


def test_shared_data_is_striped(tmp_path: Path) -> None:
    path = str(tmp_path / "map.SVG")
    xetile.wg_map([8, 4], [32, 64]).show((32, 256), path=path)
    labels, _, striped = drawn(Path(path).read_text())
    assert labels == ["0,4,..,28", "1,5,..,29", "2,6,..,30", "3,7,..,31"]
    assert striped == 4


def test_a_large_picture_says_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "map.svg"
    xetile.wg_map([2, 2], [1, 8]).show((128, 16), path=path)
    text = path.read_text()
    assert len(drawn(text)[1]) == 64 * 2
    assert "drawn: the first 64 x 2 sub-tiles" in text


def test_notebooks_draw_one_round() -> None:
    labels, _, _ = drawn(xetile.wg_map([2, 3], [8, 8])._repr_html_())
    assert labels == [*"012345"]


# What is refused --------------------------------------------------------------------


def test_a_map_that_cannot_spread_the_shape() -> None:
    with pytest.raises(TileMapError, match="96 elements for 2 subgroups") as caught:
        xetile.wg_map([2, 2], [32, 32]).show((96, 64))
    assert caught.value.code == "X0502"


def test_work_items_split_evenly() -> None:
    with pytest.raises(TileMapError, match="8 elements for 16 work items") as caught:
        xetile.sg_map([1, 16], [1, 1]).show((8, 8))
    assert (caught.value.code, caught.value.help) == ("X0502", "16 must divide 8")


@pytest.mark.parametrize("shape", [(4,), (4, 0), 16, "64", (4, 4, 4)])
def test_shapes_that_are_none(shape) -> None:
    with pytest.raises(TileMapError, match="two positive integers") as caught:
        xetile.wg_map([1, 1], [4, 4]).show(shape)
    assert caught.value.code == "X0501"


def test_only_svg_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(TileMapError, match=r"not as `\.png`") as caught:
        xetile.wg_map([1, 1], [4, 4]).show((4, 4), path=tmp_path / "map.png")
    assert caught.value.code == "X0506"
    assert not list(tmp_path.iterdir())


def test_a_joined_map_without_subgroups_shows_nothing() -> None:
    with pytest.raises(TileMapError, match="says nothing about subgroups") as caught:
        xetile.xe_map(sg=xetile.sg_map([1, 16], [1, 1])).show((16, 16))
    assert caught.value.code == "X0501"
