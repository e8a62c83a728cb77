"""Which cells a sweep has: axes from a file and a command, templates, exclusions, keys."""

from __future__ import annotations

import re

import pytest

from conftest import needs_engine
from spinloom.common.errors import Trouble
from spinloom.predict.grid import axes, cells, log, one, template
from studies import VECTOR

pytestmark = needs_engine

FILE = """
[ddt]
datatype = ["vector({n}, {b}, {2*b}, double)", "MILC:16^4"]
n = ["8..32*2"]
b = [1, 2]
strategy = ["host-mpitypes", "seek"]
hpus = [4, 16]
hpu.clock = ["800 MHz", "1.5 GHz"]

[goal]
pattern = ["dissemination", "linear_gather"]
ranks = "4..16*2"
L = [1000, 2000]

[[exclude]]
strategy = "seek"
hpus = 4

[[exclude]]
pattern = "linear_gather"
ranks = "> 8"
"""


def made(*texts, file=""):
    spec = axes.Spec()
    if file:
        spec = axes.read(file)
    return cells.cells(axes.with_arguments(spec, texts))


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_the_cells_are_the_cross_product_without_what_is_excluded(study):
    """ddt: (3 n x 2 b + MILC) x 2 clocks x (2 hpus x 2 strategies - 1); goal: (2 x 3 - 1) x 2."""
    found = made(file=study)
    ddt = [cell for cell in found if cell.kind == "ddt"]
    assert len(ddt) == (3 * 2 + 1) * 2 * (2 * 2 - 1)
    assert len(found) - len(ddt) == (2 * 3 - 1) * 2
    assert len({cell.key for cell in found}) == len(found)
    first = ddt[0]
    assert first.inputs["type"] == "vector(8, 1, 2, double)"
    assert first.columns["datatype"] == "vector({n}, {b}, {2*b}, double)"
    assert (first.columns["n"], first.columns["b"], first.columns["hpu.clock"]) == (8, 1, "800 MHz")
    milc = next(cell for cell in ddt if cell.columns["application"] == "MILC")
    assert (milc.columns["datatype"], milc.columns["n"]) == ("16^4", None)
    goal = found[-1]
    assert goal.columns["L_ns"] == 2000
    assert goal.columns["message_bytes"] == 8


def test_a_command_takes_the_place_of_the_file(study):
    found = made("n=64", "ranks=4", file=study)
    assert {cell.columns["n"] for cell in found if cell.columns.get("application") == "custom"} == {64}
    assert {cell.columns["ranks"] for cell in found if cell.kind == "goal"} == {4}


def test_the_key_is_of_what_the_result_depends_on():
    """Names are not in it; every number of the profile is."""
    (plain,) = made("datatype=vector(8, 1, 2, double)", "strategy=seek")
    (filled,) = made(VECTOR, "n=8", "strategy=seek")
    assert plain.key == filled.key
    others = ["hpus=4", "seed=2", "count=2", "mtu=1KiB", "order=window:4", "pcie.latency=1 ns", "host=zen5"]
    keys = {made(VECTOR, "n=8", "strategy=seek", other)[0].key for other in others}
    assert len(keys | {plain.key}) == len(others) + 1


def test_the_key_is_of_version_and_images(monkeypatch):
    (cell,) = made(VECTOR, "n=8", "strategy=seek")
    (goal,) = made("pattern=dissemination", "ranks=4")
    monkeypatch.setattr(one, "image_hashes", lambda: {"seek": "0"})
    assert one.key_of(cell.inputs) != cell.key
    assert one.key_of(goal.inputs) == goal.key
    monkeypatch.setattr(one, "__version__", "0.0.0")
    assert one.key_of(goal.inputs) != goal.key


def test_another_spinloom_on_a_worker_gives_no_result(monkeypatch):
    (goal,) = made("pattern=dissemination", "ranks=4")
    monkeypatch.setattr(one, "__version__", "0.0.0")
    answer = one.computed(goal.inputs, goal.key)
    assert answer["status"] == "environment"
    assert "has another Spinloom (0.0.0)" in answer["message"]
    assert not one.is_lasting(answer)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8", [8]),
        ("1..4", [1, 2, 3, 4]),
        ("0..10+4", [0, 4, 8]),
        ("8..100*3", [8, 24, 72]),
        ("4,8..16*2,4", [4, 8, 16]),
    ],
)
def test_spans_are_written_out(text, values):
    assert axes.values("hpus", axes.split(text)) == values


def test_expressions_in_braces():
    assert template.names("vector({n}, {b}, {2*b + n}, int)") == ["n", "b"]
    filled = template.filled("vector({n}, {b}, {2*(b + 1) - n//3}, int)", {"n": 9, "b": 4})
    assert filled == "vector(9, 4, 7, int)"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "nothing to do"),
        (["hpus=4"], "no datatype"),
        (["datatype=MILC", "hpsu=4"], "did you mean 'hpus'"),
        (["datatype=MILC", "n=4"], r"no datatype has \{n\}"),
        ([VECTOR], r"give it values, such as n=1,2"),
        ([VECTOR, "n=1..x"], "accepted forms"),
        ([VECTOR, "n=4..1"], "never comes from 4 to 1"),
        (["datatype=vector({n/2}, 1, 2, int)", "n=4"], r"in \{n/2\} may stand"),
        (["datatype=vector({4//n}, 1, 2, int)", "n=0"], "divides by zero"),
        (["datatype=MILC", "strategy=seeek"], "did you mean 'seek'"),
        (["datatype=MILC", "nic=nothing"], "no NIC profile 'nothing'"),
        (["datatype=MILC", "hpu.clocks=1GHz"], "did you mean 'hpu.clock'"),
        (["datatype=MILC", "hpus"], "accepted form: NAME=VALUE"),
        (["pattern=dissemination"], "no ranks"),
        (["pattern=disemination", "ranks=4"], "did you mean 'dissemination'"),
        (["pattern=dissemination", "ranks=0"], "at least one"),
        (["pattern=dissemination", "ranks=4294967296"], "at most 2,147,483,647"),
    ],
)
def test_what_is_wrong_is_one_sentence(texts, said):
    with pytest.raises(Trouble, match=said) as trouble:
        made(*texts)
    assert "\n" not in trouble.value.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[dtd]\n", r"unknown table \[dtd\]; did you mean 'ddt'"),
        ("ddt = 1\n", r"must be a table: \[ddt\]"),
        ("[exclude]\n", r"must be a table: \[\[exclude\]\]"),
        ("[goal]\nhpus = 4\n", "goal has no axis 'hpus'"),
        ("[ddt]\ndatatype = []\n", "the list is empty"),
        ("[ddt]\ndatatype = [1.5]\n", "accepted form"),
        ('[goal]\npattern="dissemination"\nranks=4\n[[exclude]]\nrank = 4\n', "did you mean 'ranks'"),
        ('[goal]\npattern="dissemination"\nranks=4\n[[exclude]]\nranks = 4\n', "leaves none of 1 cells"),
        ("[ddt\n", "cannot be read"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, content, said):
    path = tmp_path / "wrong.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(Trouble, match=said) as trouble:
        made(file=path)
    assert "\n" not in trouble.value.message


# ---- what is kept ----


def test_the_log_keeps_every_line_and_takes_half_a_line_away(tmp_path):
    with log.opened(tmp_path) as kept:
        kept.keep("a", {"status": "ok"})
        kept.keep("b", {"status": "ok"})
    path = tmp_path / log.NAME
    whole = path.read_bytes()
    path.write_bytes(b"no line\n" + whole[:-9])
    with log.opened(tmp_path) as kept:
        assert kept.results == {"a": {"status": "ok"}}
        kept.keep("c", {"status": "fault"})
    assert re.findall(rb'"key":"(.)"', path.read_bytes()) == [b"a", b"c"]
    with log.opened(tmp_path, fresh=True) as kept:
        assert kept.results == {}
    assert path.read_bytes() == b""


def test_one_sweep_at_a_time_has_a_folder(tmp_path):
    with (
        log.opened(tmp_path),
        pytest.raises(Trouble, match="another sweep is at work"),
        log.opened(tmp_path),
    ):
        pass
