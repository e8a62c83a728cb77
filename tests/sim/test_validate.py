"""`spinloom paper validate` claim by claim: each is told and kept as it comes, and a run goes on."""

from __future__ import annotations

import json

import pytest

from conftest import FakeError, fake_claim_cell
from spinloom.papers import claims, lab
from spinloom.papers.lab import Reading
from spinloom.verbs import paper_validate as validate

CLAIMS = ("DDT-2", "DDT-7")
OPTIONS = ("paper", "validate", "--only", ",".join(CLAIMS), "--workers", "1", "--json")


def cells_of(*names: str) -> int:
    """What claims that hold simulate."""
    probes = set()
    for claim in map(claims.claims().get, names):
        others = [each.changes for each in claims.alternatives() if each.concerns(claim.nic)]
        for changes in ((), *others):
            probes |= set(claims.probes_of(claims.Trial(claim.nic, changes), claim.holds))
        probes |= set(claims.further_probes(claim))
    return len(probes)


class Engine:
    """Answers so many cells and is broken then."""

    def __init__(self, fake_engine) -> None:
        self.answered, self.limit = 0, 10**9
        fake_engine.run_cell = self.run_cell

    def run_cell(self, config: dict) -> dict:
        self.answered += 1
        if self.answered > self.limit:
            raise FakeError("fault", "it is broken")
        under_way = {"specialised": 100, "rw-cp": 90, "hpu-local": 50, "ro-cp": 120}.get(
            config["strategy"], 1
        )
        counts = dict.fromkeys(
            ("dma_queue_peak", "writes_under_way_peak", "writes_under_way_mean"), under_way
        )
        return {**fake_claim_cell(config), **counts}


@pytest.fixture
def engine(fake_engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no checked-in table here
    return Engine(fake_engine)


def test_each_claim_is_told_when_it_is_done_in_their_order(spinloom, engine):
    ran = spinloom(*OPTIONS)
    assert ran.code == 0, ran.err
    told = [line for line in ran.err.splitlines() if " of 2, " in line]
    rows = json.loads(ran.out)
    assert [row["id"] for row in rows] == list(CLAIMS)
    assert [line.split(" s): ")[1] for line in told] == [f"{row['verdict']}: {row['ours']}" for row in rows]
    assert [line.split(",")[0] for line in told] == ["spinloom: DDT-2 (1 of 2", "spinloom: DDT-7 (2 of 2"]
    assert " of 2, " not in spinloom(*OPTIONS, "--quiet").err


def broken_off(spinloom, engine, out) -> None:
    """A run that ends in the second claim."""
    engine.limit = cells_of("DDT-2") + 1
    ran = spinloom(*OPTIONS, "--out", str(out))
    assert (ran.code, ran.out) == (1, ""), ran.err
    assert "DDT-2 (1 of 2, " in ran.err
    assert [path.name for path in out.iterdir()] == [validate.KEPT]
    engine.answered, engine.limit = 0, 10**9


def test_a_run_goes_on_where_another_ended(spinloom, engine, tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    broken_off(spinloom, engine, out)
    ran = spinloom(*OPTIONS, "--out", str(out))
    assert ran.code == 0, ran.err
    assert engine.answered == cells_of("DDT-7")
    assert "DDT-2 (1 of 2, of the run before): holds" in ran.err
    assert sorted(path.name for path in out.iterdir()) == sorted(validate.FILES)
    assert spinloom(*OPTIONS, "--out", str(whole)).out == ran.out
    for name in validate.FILES:
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def test_the_tables_beside_a_claim_are_kept_too(spinloom, engine, tmp_path):
    options = [option for option in OPTIONS if option != "--json"]
    options[3] = "DDT-7,DDT-2"
    engine.limit = cells_of("DDT-7") + 1
    assert spinloom(*options, "--out", str(tmp_path / "out")).code == 1
    engine.limit = 10**9
    again, whole = (spinloom(*options, "--out", str(tmp_path / name)) for name in ("out", "whole"))
    assert "by what is counted" in whole.out
    assert again.out.splitlines()[:-1] == whole.out.splitlines()[:-1]  # the last line tells cells and time


@pytest.mark.parametrize("what", ["version", "profile", "claims"])
def test_other_inputs_begin_anew(spinloom, engine, tmp_path, monkeypatch, what):
    out = tmp_path / "out"
    broken_off(spinloom, engine, out)
    if what == "version":
        monkeypatch.setattr(validate, "__version__", "another")
    else:  # a file of the installation has changed
        changed = {"profile": "nics/sc19-slingshot.toml", "claims": "claims.toml"}[what]
        read = validate.data.Path.read_bytes
        monkeypatch.setattr(
            validate.data.Path,
            "read_bytes",
            lambda path: read(path) + b"#" * str(path).endswith(changed),
        )
    ran = spinloom(*OPTIONS, "--out", str(out))
    assert ran.code == 0, ran.err
    assert engine.answered == cells_of(*CLAIMS)
    assert "of the run before" not in ran.err


def test_what_could_not_be_tried_is_tried_again(spinloom, engine, tmp_path, fake_engine):
    def lacks(config):
        raise FakeError("unsupported", "not in this engine")

    fake_engine.run_cell = lacks
    out = tmp_path / "out"
    assert "DDT-2 (1 of 2, 0 s): not available" in spinloom(*OPTIONS, "--out", str(out)).err
    assert (out / validate.KEPT).read_bytes() == b""
    fake_engine.run_cell = engine.run_cell
    ran = spinloom(*OPTIONS, "--out", str(out))
    assert [row["verdict"] for row in json.loads(ran.out)] == [claims.HOLDS, claims.HOLDS]


def test_two_runs_do_not_share_a_folder(spinloom, engine, tmp_path):
    with validate.grid_log.opened(tmp_path, name=validate.KEPT, verb="validate"):
        ran = spinloom(*OPTIONS, "--out", str(tmp_path))
    assert ran.code == 3
    assert "another validate is at work in" in ran.err


def test_outside_of_a_checkout_it_says_where_the_table_is(spinloom, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for options in (["--last"], ["--update"]):
        ran = spinloom("paper", "validate", *options)
        assert ran.code == 2
        assert f"there is no {validate.TABLE} in this folder; go to a checkout" in ran.err
    assert not any(tmp_path.iterdir())


# ---- cells of later claims, begun by threads that have nothing to do ----


def test_idle_threads_begin_what_comes_later(fake_engine, monkeypatch):
    laboratory = lab.Lab(2)
    read = []
    monkeypatch.setattr(lab.Lab, "read", lambda self, probe: read.append(probe) or Reading({"of": probe}))
    first, second, third = (lab.Probe("int", "seek", count=count) for count in (1, 2, 3))
    laboratory.run([first], meanwhile=[first, second, second])
    laboratory.run([second, first], meanwhile=[third])
    assert [laboratory[probe]["of"] for probe in (first, second)] == [first, second]
    laboratory.run([third])
    assert sorted(read, key=lambda probe: probe.count) == [first, second, third]
    assert laboratory.begun == {}


def test_one_thread_begins_nothing_else(fake_engine, monkeypatch):
    laboratory = lab.Lab(1)
    read = []
    monkeypatch.setattr(lab.Lab, "read", lambda self, probe: read.append(probe) or Reading({}))
    first, second = (lab.Probe("int", "seek", count=count) for count in (1, 2))
    laboratory.run([first], meanwhile=[second])
    assert (read, laboratory.begun) == ([first], {})
