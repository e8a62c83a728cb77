"""Hosts beside a NIC, and profiles that inherit."""

from __future__ import annotations

import csv

import pytest

from conftest import needs_engine
from spinloom.accelerate import measured_host
from spinloom.common import data
from spinloom.common.errors import Trouble
from spinloom.nics import profiles

RATES = {
    "start_ns": 100.0,
    "streamed_line_ns": 4.0,
    "strided_line_ns": 8.0,
    "scattered_line_ns": 20.0,
    "refilled_line_ns": 2.0,
    "vector_block_ns": 1.0,
    "list_block_ns": 3.0,
    "best_vector_block_ns": 0.5,
    "best_list_block_ns": 0.75,
    "segment_block_ns": 0.25,
}


@pytest.mark.parametrize("host", profiles.hosts())
def test_every_host_fits_every_nic(host):
    for nic in profiles.names():
        alone, beside = profiles.load(nic), profiles.load(nic, host)
        assert str(beside) == f"{nic}, host {host}"
        assert list(beside.native()) == list(alone.native())
        other = {field for field in alone.entries if alone[field] != beside[field]}
        assert all(field.startswith("host.") for field in other)
        assert "host.command_latency" not in other  # the way to the NIC is the NIC's


def test_the_papers_host_is_a_profile_of_its_own():
    assert profiles.load("sc19-slingshot").host == "i7-4770"
    assert profiles.load("sc19-slingshot", "i7-4770").native() == profiles.load("sc19-slingshot").native()


def test_there_is_a_current_host_and_it_says_where_it_was_measured():
    name, about, entries = profiles.load_host("zen5")
    assert name == "zen5"
    assert "EPYC" in about
    measured = [entry for entry in entries.values() if entry.label == "measured"]
    assert len(measured) == len(profiles.HOST_FIELDS) - 1  # all are measured but host.call
    assert all("spinloom calibrate host" in entry.source for entry in measured)
    assert (
        profiles.load("sc19-slingshot", "zen5")["host.memory_byte_time"]
        < (profiles.load("sc19-slingshot")["host.memory_byte_time"])
    )


def test_what_was_measured_becomes_a_profile(tmp_path):
    call = profiles.load("sc19-slingshot").entries["host.call"]
    path = tmp_path / "mine.toml"
    path.write_text(measured_host.text("mine", RATES, call))
    _, _, entries = profiles.load_host(path)
    assert {field: entries[field].value for field in list(entries)[1:5]} == {
        "host.memory_latency": 100_000,
        "host.streamed_in_flight": 25,  # 100 ns / 4 ns
        "host.strided_in_flight": 12,
        "host.scattered_in_flight": 5,
    }
    clock = entries["host.clock"].value
    assert float(entries["host.best_list_cycles"].value) / clock == pytest.approx(0.75e-9, rel=0.02)
    assert profiles.load("sc17-discrete", path).host == "mine"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '[host]\nclock = { value = "1 GHz", label = "given", source = "x" }',
            "keys host.memory_latency, .* are missing",
        ),
        ('[link]\ngap = { value = "0 ns", label = "given", source = "x" }', r"section \[host\] only"),
    ],
)
def test_a_wrong_host_is_refused(tmp_path, text, complaint):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(Trouble, match=complaint):
        profiles.load("sc19-slingshot", path)


def test_an_unknown_host_is_answered_with_the_nearest():
    with pytest.raises(Trouble, match="no host profile 'zen6'; did you mean 'zen5'"):
        profiles.load("sc19-slingshot", "zen6")


@pytest.mark.parametrize("name", ['""', '" "', "3", "[1]"])
@pytest.mark.parametrize(("option", "shipped"), [("--host", "hosts/zen5"), ("--nic", "nics/sc19-slingshot")])
def test_a_name_must_be_a_text(spinloom, tmp_path, name, option, shipped):
    folder, _, stem = shipped.partition("/")
    text = (data.folder(folder) / f"{stem}.toml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("name = ")]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([f"name = {name}", *lines]), encoding="utf-8")
    ran = spinloom("simulate", "MILC:8^4", option, str(path))
    assert ran.code == 2
    assert f"{path}: name = " in ran.err
    assert 'it must be a text, such as "my-cluster"' in ran.err


def test_hosts_are_shown_as_nics_are(spinloom):
    ran = spinloom("info", "hosts", "zen5", "--csv")
    assert ran.code == 0, ran.err
    assert {row["field"] for row in csv.DictReader(ran.out.splitlines())} == set(profiles.HOST_FIELDS)
    assert "no host profile 'zen6'; did you mean 'zen5'" in spinloom("info", "hosts", "zen6").err


HALF = """
name = "half"
from = "sc19-slingshot"
about = "half the clock"

[hpu]
clock = { value = "400 MHz", label = "proposed", source = "what if" }
"""


def test_a_profile_inherits_what_it_does_not_say(tmp_path):
    path = tmp_path / "half.toml"
    path.write_text(HALF)
    half, whole = profiles.load(path), profiles.load("sc19-slingshot")
    assert str(half) == "half, host i7-4770"
    assert {field for field in whole.entries if whole[field] != half[field]} == {"hpu.clock"}
    assert half.entries["link.gap"].source == whole.entries["link.gap"].source
    quarter = tmp_path / "quarter.toml"
    quarter.write_text('from = "half.toml"\nhost_profile = "zen5"\n')  # a file named lies beside it
    assert str(profiles.load(quarter)) == "quarter, host zen5"
    assert profiles.load(quarter)["hpu.clock"] == 400_000_000


def test_a_base_that_does_not_exist_or_is_the_file_itself(tmp_path):
    path = tmp_path / "round.toml"
    path.write_text('from = "round.toml"\n')
    with pytest.raises(Trouble, match="the file itself"):
        profiles.load(path)
    path.write_text('from = "sc19-slingsho"\n')
    with pytest.raises(Trouble, match="did you mean 'sc19-slingshot'"):
        profiles.load(path)


def test_another_core_needs_its_fields(tmp_path):
    path = tmp_path / "other.toml"
    path.write_text(
        'from = "sc19-slingshot"\n[hpu]\ncore = { value = "pulp", label = "given", source = "x" }\n'
    )
    with pytest.raises(Trouble, match=r"27 keys pulp\.clusters, .* are missing"):
        profiles.load(path)


@needs_engine
@pytest.mark.parametrize(
    ("section", "line", "complaint"),
    [
        ("host", 'cache = { value = "1 MB", label = "proposed", source = "x" }', "does not divide"),
        ("memory", 'packet_buffer_bytes = { value = "1 B", label = "proposed", source = "x" }', "packet"),
    ],
)
def test_nics_refuses_a_profile_that_cannot_run(spinloom, tmp_path, section, line, complaint):
    path = tmp_path / "odd.toml"
    path.write_text(f'from = "sc19-slingshot"\n[{section}]\n{line}\n')
    ran = spinloom("info", "nics", str(path))
    assert ran.code == 2
    assert "odd cannot run" in ran.err
    assert complaint in ran.err
    assert not ran.out


@needs_engine
@pytest.mark.parametrize("name", profiles.names())
def test_every_shipped_profile_runs(spinloom, name):
    assert spinloom("info", "nics", name).code == 0
