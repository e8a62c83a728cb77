"""`spinloom simulate` over a stand-in engine: tables, files, hashes, exit codes, interruption."""

from __future__ import annotations

import csv
import json
import time

import pytest

from conftest import FakeError, fake_run_cell
from spinloom.common.data import folder

pytestmark = pytest.mark.usefixtures("fake_engine")
DEMO_CELLS = 13 * 5


def test_table_shows_speedups_and_checks(spinloom):
    ran = spinloom("simulate", "MILC:16^4", "--quiet")
    assert ran.code == 0
    (line,) = [line for line in ran.out.splitlines() if "16^4" in line and "checked" in line]
    # (8 us + 250 ns) over (4 us + 250 ns), (1 us + 250 ns) and (2 us + 250 ns) and (1.25 us + 250 ns)
    assert line.split()[-6:] == ["us", "1.94x", "6.60x", "3.67x", "5.50x", "checked"]
    assert "Modelled time" in ran.out
    assert "host time of this run" in ran.out


@pytest.mark.parametrize(
    ("source", "final"), [("not measured yet", False), ("a loop on a quiet machine", True)]
)
def test_a_number_that_was_never_measured_is_pointed_out(spinloom, tmp_path, source, final):
    cost = f'{{ value = "3", label = "measured", source = "{source}" }}'
    other = tmp_path / "other.toml"
    other.write_text(f'from = "sc19-slingshot"\n[host]\nsegment_block_cycles = {cost}\n')
    assert ("Not final" in spinloom("simulate", "MILC:8^4", "--nic", str(other)).out) is not final


def test_json_has_a_row_a_cell(spinloom):
    ran = spinloom("simulate", "--demo", "--json")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert len(document["rows"]) == DEMO_CELLS
    assert document["partial"] is False
    first = document["rows"][0]
    assert (first["application"], first["strategy"], first["speedup"]) == ("COMB", "host-mpitypes", 1.0)
    assert first["checked"] is True
    assert first["dma_queue_max"] == 17  # a column that only the engine knows
    assert not {"destination", "event_log"} & set(first)


def test_csv_is_long_format(spinloom):
    rows = list(csv.DictReader(spinloom("simulate", "WRF_y:2x2", "--csv").out.splitlines()))
    assert [row["strategy"] for row in rows] == ["host-mpitypes", "host-warm", "specialised", "rw-cp", "seek"]
    assert rows[2]["time_ps"] == ""
    assert rows[2]["status"] == "unsupported"
    assert rows[4]["checked"] == "true"


def test_an_unsupported_type_is_a_footnote(spinloom):
    ran = spinloom("simulate", "WRF_y:2x2")
    assert ran.code == 0
    assert "n/a [1]" in ran.out
    assert "[1] no specialised handler takes a struct" in ran.out


@pytest.mark.parametrize("kind", ["flip", "skip", "stray"])
def test_wrong_bytes_fail_the_command(spinloom, kind):
    ran = spinloom("simulate", "MILC:16^4", "--inject", kind, "--json")
    assert ran.code == 1
    for row in json.loads(ran.out)["rows"]:
        assert row["checked"] is False
        assert row["time_ps"] is None
        assert row["speedup"] is None
    assert "offset 4096" in ran.err
    assert "block 7" in ran.err


@pytest.mark.parametrize(
    ("code", "exits"), [("stalled", 1), ("fault", 1), ("overflow", 2), ("environment", 3)]
)
def test_an_engine_error_has_its_exit_code(spinloom, fake_engine, code, exits):
    def fail(config):
        raise FakeError(code, "packet 3 waits for an HPU; hpu.count enlarges it")

    fake_engine.run_cell = fail
    ran = spinloom("simulate", "MILC:16^4")
    assert ran.code == exits
    assert "packet 3 waits for an HPU" in ran.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["simulate"], "nothing to do"),
        (["simulate", "MLIC"], "did you mean 'MILC'"),
        (["simulate", "MILC:16^5"], "did you mean '16^4'"),
        (["simulate", "MILC", "--strategies", "sek"], "did you mean 'seek'"),
        (["simulate", "MILC", "--nic", "sc19-sling"], "did you mean 'sc19-slingshot'"),
        (["simulate", "MILC", "--order", "windw:4"], "'window:N', 'all:N'"),
        (["simulate", "MILC", "--order", "all:0"], "'all:N' with N at least 1"),
        (["simulate", "MILC", "--mtu", "2 parsecs"], "'64 KiB'"),
        (["simulate", "MILC", "--mtu", "4GiB"], "1 B to 64 KiB"),
        (["simulate", "MILC", "--set", "hpu.clok=1GHz"], "has no hpu.clok; did you mean 'hpu.clock'"),
        (["simulate", "MILC", "--set", "hpu.clock=fast"], "hpu.clock = 'fast': it must begin with a number"),
        (["simulate", "MILC", "--set", "hpu.clock=1s"], "accepted forms: '800 MHz'"),
        (["simulate", "MILC", "--set", "hpu.clock"], "accepted form: FIELD=VALUE"),
        (["simulate", "MILC", "--set", "hpu.core=pulp"], "hpu.core decides which fields"),
        (["simulate", "MILC", "--set", "pulp.jump=2"], "sc19-slingshot has no pulp.jump"),
        (["simulate", "MILC", "--count", "3"], "--count"),
        (["simulate", "MILC", "--json", "--csv"], "one form at a time"),
        (["simulate", "MILC", "--mtu", "0"], "1 B to 64 KiB"),
        (["simulate", "MILC", "--seeds", "9..3"], "accepted form: A..B"),
        (["simulate", "MILC", "--seeds", "10"], "one seed has no interval; ten of them are --seeds 1..10"),
        (["simulate", "MILC", "--seeds", "0..1000"], "at most 1,000 at a time"),
        (["simulate", "MILC", "--seeds", "1..3", "--seed", "2"], "one of them says"),
        (["simulate", "MILC", "--seeds", "1..3", "--send", "all"], "--seeds is about receiving"),
        (["simulate", "--type", "vectr(1, 2, 3, int)"], "is not a datatype"),
    ],
)
def test_usage_errors_exit_with_2(spinloom, arguments, complaint):
    ran = spinloom(*arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert ran.out == ""


def test_the_engine_is_given_what_was_asked(spinloom, fake_engine):
    seen = []

    def remember(config):
        seen.append(config)
        return fake_run_cell(config)

    fake_engine.run_cell = remember
    options = ["--hpus", "16", "--mtu", "4KiB", "--order", "window:8", "--seed", "7", "--strategies", "seek"]
    assert spinloom("simulate", "--type", "vector(4, 1, 2, int)", "--count", "3", *options).code == 0
    assert [config["strategy"] for config in seen] == ["host-mpitypes", "rdma-direct", "seek"]
    for config in seen:
        assert (config["type"], config["count"]) == ("vector(4, 1, 2, int)", 3)
        assert (config["hpus"], config["mtu"], config["order"], config["seed"]) == (16, 4096, 8, 7)
        assert config["inject"] == "none"
        assert config["profile"]["hpu.count"] == 32
        assert set(config["images"]) == {"seek", "rw_cp"}


def result_hash(spinloom, *arguments):
    return json.loads(spinloom("simulate", "MILC:16^4", "--json", *arguments).out)["result_hash"]


def test_the_hash_does_not_depend_on_threads_or_order_of_ending(spinloom, fake_engine):
    alone = result_hash(spinloom, "--workers", "1")

    def later_first(config):
        time.sleep(0.05 if config["strategy"] == "host-mpitypes" else 0)
        return fake_run_cell(config)

    fake_engine.run_cell = later_first
    assert result_hash(spinloom, "--workers", "4") == alone


@pytest.mark.parametrize(
    ("column", "value"), [("destination", b"other"), ("event_log", b"other"), ("dma_queue_max", 18)]
)
def test_the_hash_covers_bytes_events_and_columns(spinloom, fake_engine, column, value):
    before = result_hash(spinloom)
    fake_engine.run_cell = lambda config: {**fake_run_cell(config), column: value}
    assert result_hash(spinloom) != before


def test_one_picosecond_of_the_profile_changes_the_hash(spinloom, tmp_path):
    text = (folder("nics") / "sc19-slingshot.toml").read_text()
    other = tmp_path / "sc19-slingshot.toml"
    other.write_text(text)
    before = result_hash(spinloom)
    assert result_hash(spinloom, "--nic", str(other)) == before
    other.write_text(text.replace('wire = { value = "33.4 ns"', 'wire = { value = "33.401 ns"'))
    assert result_hash(spinloom, "--nic", str(other)) != before


def test_a_number_of_the_profile_may_be_another_one(spinloom, fake_engine, tmp_path):
    seen = []

    def remember(config):
        seen.append(config["profile"])
        return fake_run_cell(config)

    fake_engine.run_cell = remember
    changes = [
        "--set",
        "checkpoint.epsilon=0.1",
        "--set",
        "memory.state_bytes = 64KiB",
        "--set",
        "hpu.count=8",
    ]
    ran = spinloom("simulate", "MILC:16^4", *changes, "--out", str(tmp_path))
    assert ran.code == 0
    for profile in seen:
        assert profile["checkpoint.epsilon"] == [1, 10]
        assert profile["memory.state_bytes"] == 65536
    said = "with checkpoint.epsilon = 0.1, hpu.count = 8, memory.state_bytes = 64KiB, 8 HPUs"
    assert said in " ".join(ran.out.split())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["profile"] == "sc19-slingshot"
    assert manifest["profile_changes"] == {
        "checkpoint.epsilon": "0.1",
        "hpu.count": "8",
        "memory.state_bytes": "64KiB",
    }
    assert (manifest["profile_values"]["hpu.count"], manifest["hpus"]) == (8, 8)


def test_a_changed_number_is_part_of_the_hash(spinloom):
    before = result_hash(spinloom)
    assert result_hash(spinloom, "--set", "hpu.clock=800000 kHz") == before
    assert result_hash(spinloom, "--set", "hpu.clock=1GHz", "--set", "hpu.clock=800MHz") == before
    assert result_hash(spinloom, "--set", "link.wire=33.401ns") != before


def by_seed(config):
    """One microsecond for each seed."""
    return {**fake_run_cell(config), "time_ps": config["seed"] * 10**6}


def test_seeds_become_means_with_intervals(spinloom, fake_engine, tmp_path):
    fake_engine.run_cell = by_seed
    arguments = ("simulate", "WRF_y:2x2", "--order", "window:8", "--seeds", "1..3", "--out", str(tmp_path))
    ran = spinloom(*arguments, "--csv")
    assert ran.code == 0, ran.err
    rows = {row["strategy"]: row for row in csv.DictReader(ran.out.splitlines())}
    assert rows["seek"]["runs"] == "3"
    assert float(rows["seek"]["time_ps"]) == 2 * 10**6
    # Student's t with two degrees of freedom, the standard deviation of 1, 2, 3 us
    assert float(rows["seek"]["time_ps_ci95"]) == pytest.approx(4.303 * 10**6 / 3**0.5)
    assert (rows["seek"]["speedup"], rows["seek"]["speedup_ci95"]) == ("1.0", "0.0")
    assert rows["seek"]["checked"] == "true"
    assert (rows["specialised"]["status"], rows["specialised"]["time_ps"]) == ("unsupported", "")
    assert json.loads((tmp_path / "manifest.json").read_text())["seed"] == [1, 2, 3]
    shown = spinloom(*arguments, "--force").out
    assert "means of 3 seeds" in shown
    assert "2 us ± 2.484 us" in shown
    assert "1.00x ± 0.00" in shown
    assert "n/a [1]" in shown


def test_a_seed_with_wrong_bytes_is_named(spinloom, fake_engine):
    def wrong_once(config):
        if config["seed"] == 2 and config["strategy"] == "seek":
            raise FakeError("mismatch", "first difference at offset 4096, in block 7")
        return by_seed(config)

    fake_engine.run_cell = wrong_once
    ran = spinloom("simulate", "MILC:16^4", "--order", "window:8", "--seeds", "1..3")
    assert ran.code == 1
    assert "WRONG: seek" in ran.out
    assert "MILC 16^4, seek, seed 2: mismatch" in ran.err


def test_files_and_manifest(spinloom, tmp_path):
    out = tmp_path / "out"
    ran = spinloom("simulate", "--demo", "--out", str(out), "--seed", "5")
    assert ran.code == 0
    assert f"written: {out}: simulate.csv, simulate.json, manifest.json, speedup.csv, speedup.svg" in ran.err
    assert {path.name for path in out.iterdir()} == {
        "simulate.csv",
        "simulate.json",
        "manifest.json",
        "speedup.csv",
        "speedup.svg",
    }
    manifest = json.loads((out / "manifest.json").read_text())
    document = json.loads((out / "simulate.json").read_text())
    assert manifest["result_hash"] == document["result_hash"]
    assert (manifest["seed"], manifest["profile"], manifest["partial"]) == (5, "sc19-slingshot", False)
    assert manifest["profile_values"]["link.byte_time"] == [149, 4]
    assert len((out / "simulate.csv").read_text().splitlines()) == 1 + DEMO_CELLS
    plotted = list(csv.DictReader((out / "speedup.csv").read_text().splitlines()))
    svg = (out / "speedup.svg").read_text()
    assert svg.lstrip().startswith("<?xml")
    assert "NIC sc19-slingshot, 32 HPUs, host i7-4770" in svg
    for row in plotted:
        assert row["application"] in svg
        assert row["strategy"] in svg
    assert "host-mpitypes" not in {row["strategy"] for row in plotted}


def test_nothing_is_overwritten_unless_forced(spinloom, tmp_path):
    arguments = ("simulate", "MILC:8^4", "--out", str(tmp_path), "--quiet")
    assert spinloom(*arguments).code == 0
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    refused = spinloom(*arguments)
    assert refused.code == 2
    assert "--force" in refused.err
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert spinloom(*arguments, "--force").code == 0


def test_the_same_run_writes_the_same_plot(spinloom, tmp_path):
    for name in ("one", "two"):
        spinloom("simulate", "--demo", "--out", str(tmp_path / name))
    assert (tmp_path / "one/speedup.svg").read_bytes() == (tmp_path / "two/speedup.svg").read_bytes()


def test_a_type_may_be_an_operand(spinloom, tmp_path):
    shape = "vector(64, 2, 8, double)"
    by_option, by_operand = (
        json.loads(spinloom("simulate", *operands, "--count", "3", "--strategies", "seek", "--json").out)
        for operands in (("--type", shape), (shape,))
    )
    assert by_operand["rows"] == by_option["rows"]
    given = tmp_path / "given.py"
    given.write_text(f'shape = "{shape}"\n')
    of_file = json.loads(spinloom("simulate", f"{given}:shape", "--strategies", "seek", "--json").out)
    assert {row["application"] for row in of_file["rows"]} == {f"{given}:shape"}


def test_a_page_goes_into_a_folder_that_is_there(spinloom, tmp_path):
    ran = spinloom("simulate", "vector(4, 1, 2, double)", "--page", str(tmp_path / "none/life.html"))
    assert (ran.code, ran.out) == (2, "")
    assert f"there is no folder {tmp_path / 'none'}" in ran.err
