"""What is read of a machine, and what stands for what the system does not say."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from xetl.settings import config
from xetl_cpu import doctor, measured_costs, targets
from xetl_cpu.machine import FAMILIES, Cache, Machine, find_family, read_machine
from xetl_cpu.targets import TARGETS, find_target, host_fingerprint, host_machine

KB, MB = 1 << 10, 1 << 20
ZEN4 = FAMILIES["zen4"]
AVX512 = frozenset({"avx2", "avx512f"})


def described(root: Path, caches: list[tuple[str, ...]], **files: str) -> Path:
    """A folder like /sys: (level, type, size, ways, shared by) of each cache."""
    names = ("level", "type", "size", "ways_of_associativity", "shared_cpu_list")
    for number, facts in enumerate(caches):
        folder = root / f"devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        for name, fact in zip(names, facts):
            (folder / name).write_text(f"{fact}\n")
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_sizes_are_those_of_the_system(tmp_path: Path) -> None:
    root = described(
        tmp_path,
        [
            ("1", "Data", "48K", "12", "0"),
            ("1", "Instruction", "32K", "8", "0"),
            ("2", "Unified", "2048K", "16", "0"),
            ("3", "Unified", "107520K", "15", "0-55,112-167"),
        ],
        kernel__mm__transparent_hugepage__enabled="always [madvise] never",
        kernel__mm__transparent_hugepage__hpage_pmd_size="2097152",
        devices__system__node__node0__meminfo="",
        devices__system__node__node1__meminfo="",
    )
    found = read_machine(FAMILIES["sapphire_rapids"], root)
    assert found.l1 == Cache(48 * KB, 12)
    assert found.l2 == Cache(2 * MB, 16)
    assert found.l3 == Cache(105 * MB, 15, 112)
    assert (found.nodes, found.huge_page) == (2, 2 * MB)


def test_without_sys_the_family_stands_for_it(tmp_path: Path) -> None:
    found = read_machine(ZEN4, tmp_path / "nothing")
    assert (found.l1, found.l2, found.l3) == (ZEN4.l1, ZEN4.l2, ZEN4.l3)
    assert (found.nodes, found.huge_page) == (1, 0)


def test_a_virtual_machine_without_the_leaf_of_caches(tmp_path: Path) -> None:
    root = described(
        tmp_path,
        [("1", "Data", "0K", "0", "0"), ("2", "Unified", "512K", "0", "0-1"), ("3",)],
    )
    found = read_machine(ZEN4, root)
    assert found.l1 == ZEN4.l1
    assert found.l2 == Cache(512 * KB, ZEN4.l2.ways)
    assert found.l3 == ZEN4.l3


def test_cores_that_a_virtual_machine_does_not_show_share_the_cache(
    tmp_path: Path,
) -> None:
    root = described(tmp_path, [("3", "Unified", "32768K", "16", "0-1")])
    assert read_machine(ZEN4, root).l3_of_core == 4 * MB


def test_results_that_are_kept_in_the_caches(tmp_path: Path) -> None:
    """All that L3 holds, or less where it is written slowly."""
    root = described(tmp_path, [("3", "Unified", "491520K", "15", "0-1")])
    assert read_machine(ZEN4, root).most_kept == 480 * MB
    assert read_machine(FAMILIES["sapphire_rapids"], root).most_kept == 32 * MB
    assert FAMILIES["zen5"].most_kept == FAMILIES["zen5"].l3.size


@pytest.mark.parametrize(
    ("vendor", "family", "model", "expected"),
    [
        ("AuthenticAMD", 25, 17, "zen4"),
        ("AuthenticAMD", 26, 2, "zen5"),
        ("GenuineIntel", 6, 143, "sapphire_rapids"),
        ("GenuineIntel", 6, 173, "sapphire_rapids"),
        ("GenuineIntel", 6, 106, "skylake"),
        ("GenuineIntel", 6, 85, "skylake"),
        ("GenuineIntel", 6, 9999, "skylake"),
        ("", "?", "", "skylake"),
    ],
)
def test_families(vendor: str, family: object, model: object, expected: str) -> None:
    numbers = {"cpu family": str(family), "model": str(model)}
    info = {"vendor_id": vendor, **numbers}
    assert find_family(info, AVX512).family == expected


def test_what_nobody_has_listed_is_told_by_its_features() -> None:
    assert find_family({}, AVX512 | {"amxtile"}).family == "sapphire_rapids"
    assert find_family({}, AVX512 | {"avx512bf16"}).family == "zen4"
    assert find_family({}, frozenset({"avx2"})).family == "avx2"
    zen3 = {"vendor_id": "AuthenticAMD", "cpu family": "25", "model": "1"}
    assert find_family(zen3, frozenset({"avx2"})).family == "avx2"


def test_fixed_targets_do_not_depend_on_the_machine() -> None:
    assert all(target.machine in FAMILIES.values() for target in TARGETS.values())
    assert find_target("host").machine == host_machine()


def test_the_key_of_host_code_holds_the_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    here = host_fingerprint()
    other = FAMILIES["avx2" if host_machine().family == "zen5" else "zen5"]
    monkeypatch.setattr(targets, "host_machine", lambda: other)
    host_fingerprint.cache_clear()
    assert host_fingerprint() != here
    host_fingerprint.cache_clear()


@pytest.mark.parametrize("machine", FAMILIES.values())
def test_doctor_names_caches_and_pages(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr(doctor, "host_machine", lambda: machine)
    (found,) = [each for each in doctor.examine() if each.topic == "caches"]
    assert f"costs of `{machine.family}`; huge pages of 2 MB" in found.text
    assert "L1 " in found.text


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    config.tuned_dir = tmp_path
    yield tmp_path
    del config.tuned_dir


def test_costs_are_measured_and_kept(folder: Path) -> None:
    machine = replace(host_machine(), costs=FAMILIES[host_machine().family].costs)
    found = measured_costs.measure_costs(machine)
    names = ("l3_latency", "step", "loop", "prologue")
    fitted = {each: getattr(machine.costs, each) for each in names}
    costs = asdict(found)
    assert {each: costs.pop(each) for each in fitted} == fitted
    assert all(cost > 0 for cost in costs.values())
    kept = replace(machine.costs, load=0.5 * machine.costs.load)
    path = measured_costs.write_costs("A (R) cpu / 3 GHz", kept)
    assert [*folder.iterdir()] == [path]
    assert measured_costs.read_costs("A (R) cpu / 3 GHz", machine.costs) == kept
    assert measured_costs.read_costs("another", machine.costs) == machine.costs


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"fma": 100}', '{"fma": NaN}', '{"fma": "1"}', '{"other": 1}'],
)
def test_costs_that_are_nonsense_do_not_count(folder: Path, text: str) -> None:
    measured_costs.path_of("model").write_text(text)
    assert measured_costs.read_costs("model", ZEN4.costs) == ZEN4.costs


def test_a_table_says_what_was_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = replace(ZEN4.costs, fma=0.9, l2_bytes=40)
    monkeypatch.setattr("os.getloadavg", lambda: (0.1, 2.0, 2.0))
    monkeypatch.setattr(measured_costs, "measure_costs", lambda _: costs)
    head, *rows, end = measured_costs.tune(ZEN4, "model")
    assert head.split() == ["measured", "zen4"]
    assert ["fma", "0.90", "1"] in [row.split() for row in rows]
    assert end == f"kept in {folder / 'cpu-model.json'}"
    assert measured_costs.read_costs("model", ZEN4.costs) == costs
    strange = replace(costs, fma=50)
    monkeypatch.setattr(measured_costs, "measure_costs", lambda _: strange)
    assert measured_costs.tune(ZEN4, "other")[-1].startswith("not kept: they differ")
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 0.0, 0.0))
    end = "not kept: other programs run (load 1.5)"
    assert measured_costs.tune(ZEN4, "other")[-1] == end
    assert not measured_costs.path_of("other").exists()


def test_doctor_says_that_costs_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(ZEN4, costs=replace(ZEN4.costs, fma=0.9))
    monkeypatch.setattr(doctor, "host_machine", lambda: machine)
    (found,) = [each for each in doctor.examine() if each.topic == "caches"]
    assert "costs measured here;" in found.text
