"""Studies of a station with FPsPIN's NIC: their numbers, their measured points, their pictures."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import csv_text
from spinloom.papers import station_rows, studies, study_plots
from spinloom.papers.lab import Lab

pytestmark = needs_engine

ROOT = Path(__file__).resolve().parents[2]
STUDIES = {name: study for name, study in studies.studies().items() if study.station}
LABELS = {
    "ping": ["round trip (µs)", "payload (B), ICMP", "payload (B), UDP", "host", "nic", "both"],
    "slmp-types": ["goodput (Mbit/s)", "complex, measured", "a file, measured", "window (packets)"],
    "slmp-overlap": ["overlap (%)", "message (MB), complex", "the paper, shortest"],
    "slmp-window": ["smallest window with a loss (packets)", "formula (3)", "a message of 8 windows"],
}


@pytest.fixture(scope="module")
def rows():
    laboratory = Lab(2)
    laboratory.run([probe for study in STUDIES.values() for probe in studies.probes(study)])
    return {name: studies.rows(study, laboratory) for name, study in STUDIES.items()}


@pytest.mark.parametrize("name", STUDIES)
def test_every_number_is_as_it_was(rows, name):
    """The golden tables, each of `spinloom paper study NAME --csv`."""
    expected = (ROOT / f"tests/golden/{name}.csv").read_text(encoding="utf-8")
    assert csv_text.as_csv(rows[name], STUDIES[name].columns) == expected


def test_every_measured_point_stands_beside_a_modelled_one(rows):
    pings = [row["measured_ps"] for row in rows["ping"] if row["measured_ps"]]
    assert len(pings) == sum(map(len, station_rows.MEASURED_PINGS.values()))
    types = rows["slmp-types"]
    measured = {name: {} for name in station_rows.MEASURED_TYPES}
    for row in types:
        if row["measured_mbit_s"]:
            measured[row["type"]][row["messages"]] = row["measured_mbit_s"]
    assert measured == station_rows.MEASURED_TYPES
    files = {row["window"]: row["file_mbit_s"] for row in types if row["file_mbit_s"]}
    assert files == station_rows.MEASURED_FILES


def test_goodput_follows_from_the_senders_packet_and_sleep(rows):
    """16 messages, a packet each in one sleep; or one thread that never sleeps: T = send + k sleep."""
    for row in rows["slmp-types"]:
        packet_ps = 3_130_000 + row["sleeps_a_packet"] * 150_000_000
        assert row["packet_ps"] == pytest.approx(packet_ps, rel=0.06)
        payload_bits = 8 * row["message_bytes"] * row["messages"]
        assert row["mbit_s"] == pytest.approx(payload_bits * 1e6 / row["time_ps"], rel=1e-4)


@pytest.mark.parametrize("name", STUDIES)
def test_the_picture_says_what_it_shows(rows, name, tmp_path):
    drawn = [tmp_path / "first.svg", tmp_path / "second.svg"]
    for path in drawn:
        study_plots.draw(STUDIES[name], rows[name], path)
    assert drawn[0].read_bytes() == drawn[1].read_bytes()
    text = drawn[0].read_text(encoding="utf-8")
    assert [label for label in LABELS[name] if label not in text] == []
    shown = ROOT / f"docs/img/{name}.svg"
    assert not shown.exists() or shown.read_text(encoding="utf-8") == text, "make picture"


def test_the_command_prints_and_writes_the_same(spinloom, tmp_path):
    ran = spinloom("paper", "study", "ping", "--json", "--out", str(tmp_path), "--quiet")
    assert ran.code == 0, ran.err
    written = list(csv.DictReader((tmp_path / "ping.csv").open(encoding="utf-8")))
    printed = [
        {key: "" if value is None else str(value) for key, value in row.items()}
        for row in json.loads(ran.out)
    ]
    assert printed == written
    table = spinloom("paper", "study", "ping", "--quiet").out
    assert "42 us" in table
    assert "43.7 us" in table
