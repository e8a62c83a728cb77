"""spinloom.simulate(): grids, frames, the same numbers as the verb."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import spinloom as package
from conftest import needs_engine
from spinloom import Frame, layout, simulate
from spinloom.common.errors import Trouble
from spinloom.nics import sweep

pytestmark = needs_engine
VECTOR = "vector(512, 16, 32, double)"


def test_gives_what_the_verb_gives(spinloom):
    table = simulate("MILC:16^4", ["rw-cp", "seek"])
    document = json.loads(spinloom("simulate", "MILC:16^4", "--strategies", "rw-cp,seek", "--json", "-q").out)
    columns = ("strategy", "time_ps", "speedup", "checked", "nic_memory_bytes")
    assert [[row[name] for name in columns] for row in table] == [
        [row[name] for name in columns] for row in document["rows"]
    ]
    assert table[0]["nic"] == "sc19-slingshot"
    assert table[0]["host"] == "i7-4770"


def test_a_grid_has_a_row_for_every_combination():
    table = simulate(
        VECTOR, "seek", hpus=[4, 16], set={"hpu.clock": ["800 MHz", "1.5 GHz"]}, order=["in", "window:8"]
    )
    assert len(table) == 2 * 2 * 2 * 2  # one factor is for the baseline
    seek = table.where(strategy="seek")
    assert [row["hpus"] for row in seek] == [4] * 2 + [16] * 2 + [4] * 2 + [16] * 2
    slow = seek.where(lambda row: row["hpu.clock"] == "800 MHz", hpus=4, order="in")[0]
    fast = seek.where(lambda row: row["hpu.clock"] == "1.5 GHz", hpus=4, order="in")[0]
    assert slow["time_ps"] > fast["time_ps"]
    assert len(table.where(lambda row: row["strategy"] == "seek" and row["speedup"] > 0)) == 8


@pytest.mark.parametrize(
    "described",
    [
        layout.from_text(VECTOR),
        np.zeros((512, 32))[:, :16],
        {"rows": VECTOR},
        [VECTOR],
    ],
)
def test_takes_whatever_describes_data(described):
    reference = simulate(VECTOR, "seek").one(strategy="seek")
    assert simulate(described, "seek").one(strategy="seek")["time_ps"] == reference["time_ps"]


USES = """
from __future__ import annotations

from pathlib import Path

import numpy as np

import spinloom
from spinloom import layout

table: spinloom.Frame = spinloom.simulate("vector(8, 1, 2, double)", "seek")
spinloom.simulate(["MILC", np.zeros((4, 4))[:, 0], np.dtype("f8")], ["seek"], hpus=[4, 16], seed=range(3))
spinloom.simulate({"a": layout.from_text("int"), "b": ["int"]}, count=np.array([1, 2]), host=[None, "zen5"])
spinloom.simulate("double", nic=Path("mine.toml"), set={"hpu.clock": ["1 GHz"], "hpu.count": 4}, mtu="2 KiB")
time: int = spinloom.exchange(layout.from_text("double"), 20, nic="sc19-slingshot").time_ps
"""


def test_uses_are_clean_under_a_strict_type_checker(tmp_path):
    pytest.importorskip("mypy")
    wrong = (
        'spinloom.simulate(3)\nspinloom.simulate("double", hpus="4")\nx: int = spinloom.simulate("double")\n'
    )
    (tmp_path / "uses.py").write_text(USES)
    (tmp_path / "wrong.py").write_text(USES + wrong)
    check = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--cache-dir", "cache"]
    clean = subprocess.run([*check, "uses.py"], cwd=tmp_path, capture_output=True, text=True)
    assert clean.returncode == 0, clean.stdout
    found = subprocess.run([*check, "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.count("error:") == 3, found.stdout


def test_the_help_names_every_argument():
    text = inspect.getdoc(simulate)
    for name in inspect.signature(simulate).parameters:
        assert re.search(rf"^[a-z, ]*\b{name}\b[a-z, ]*:", text, re.MULTILINE), name
    for word in ("picoseconds", "Raises Trouble", "SC'19", "Returns a Frame"):
        assert word in text


def test_names_of_datatypes_are_kept():
    table = simulate({"small": "vector(8, 1, 2, double)", "large": VECTOR}, "seek")
    assert list(dict.fromkeys(table.column("datatype"))) == ["small", "large"]


def test_frames():
    table = simulate(VECTOR, "seek", hpus=[4, 16])
    frame = table.to_pandas()
    assert list(frame.columns) == table.columns
    assert frame["time_ps"].tolist() == table.column("time_ps")
    polars = table.to_polars()
    assert polars["hpus"].to_list() == table.column("hpus")
    assert table.to_csv().splitlines()[0].startswith("nic,host,hpus,mtu_bytes,order,seed,count,application")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Trouble, match="pip install pandas") as caught:
        Frame([{"time_ps": 1}]).to_pandas()
    assert caught.value.code == "environment"


def test_a_plot_names_its_machine(tmp_path):
    table = simulate(VECTOR, "seek", hpus=[4, 16], host=["zen5"])
    figure = table.plot("hpus", path=tmp_path / "plot.svg")
    assert figure.axes[0].get_xlabel() == "hpus"
    assert "sc19-slingshot, host zen5" in (tmp_path / "plot.svg").read_text()


def test_prints_what_varies():
    text = repr(simulate(VECTOR, "seek", hpus=[4, 16]))
    assert text.splitlines()[0].split() == ["hpus", "datatype", "strategy", "status", "time_ps", "speedup"]
    assert simulate(VECTOR, "seek")._repr_html_().count("<tr>") == 3


def test_several_seeds_become_a_mean_with_its_interval():
    rows = [
        {"seed": n, "strategy": "seek", "time_ps": value, "speedup": 2.0}
        for n, value in enumerate((8, 10, 12))
    ]
    (row,) = Frame(rows).over("seed")
    assert (row["runs"], row["time_ps"], row["speedup_ci95"]) == (3, 10, 0)
    assert row["time_ps_ci95"] == pytest.approx(4.303 * 2 / 3**0.5)  # Student's t with 2 degrees of freedom
    table = simulate("vector(4096, 4, 8, double)", "hpu-local", order="window:16", seed=range(4)).over("seed")
    assert [row["runs"] for row in table] == [4, 4]
    assert table.one(strategy="hpu-local")["time_ps_ci95"] > 0


def test_ctrl_c_keeps_what_was_computed(monkeypatch):
    whole = sweep.run_all

    def interrupted(jobs, threads):
        yield next(iter(whole(jobs[:1], 1)))
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "run_all", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        simulate(VECTOR, "seek")
    assert stopped.value.table.partial
    assert [row["strategy"] for row in stopped.value.table] == ["host-mpitypes"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"nic": "sc19"}, "no NIC profile 'sc19'"),
        ({"strategies": ["sek"]}, "did you mean 'seek'"),
        ({"set": {"hpu.clok": "1 GHz"}}, r"did you mean 'hpu\.clock'"),
        ({"hpus": []}, "the list is empty"),
        ({"hpus": 0}, "0 HPUs"),
        ({"order": "sideways"}, "accepted forms"),
        ({"type": 7}, "must be a Layout, a text form"),
        ({"type": "vector(1"}, "line 1"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(options, complaint):
    with pytest.raises(Trouble, match=complaint):
        simulate(**{"type": VECTOR, **options})


def test_importing_the_package_imports_nothing_else():
    assert package.simulate is simulate
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = package.simulat


def test_types_that_look_alike_stay_apart():
    layouts = [
        layout.from_text(f"hvector(8, 1, 640000B, hvector(64, 1, {gap}B, double))") for gap in (16, 128)
    ]
    table = simulate(layouts, "host-mpitypes", seed=[1, 2]).over("seed")
    assert len(table) == 2
    assert table.column("time_ps_ci95") == [0.0, 0.0]
    assert len(set(table.column("datatype"))) == 2
    named = simulate({"mine": "MILC"}, "host-mpitypes")
    assert len(set(named.column("datatype"))) == len(named) == 4


def test_count_and_set_are_columns_as_they_were_given():
    table = simulate(
        "contig(64, vector(4, 1, 2, double))",
        "host-mpitypes",
        count=[1, 2],
        set={"checkpoint.epsilon": [0.1, 0.2]},
    )
    assert len(table.where(count=2)) == 2
    assert len(table.where(**{"checkpoint.epsilon": 0.1, "count": 1})) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"hpus": "8"}, "hpus is '8', not a whole number"),
        ({"hpus": 8, "set": {"hpu.count": [4, 16]}}, "hpus and hpu.count say the same thing"),
        ({"mtu": 1024, "set": {"link.payload": "2 KiB"}}, "mtu and link.payload say the same thing"),
        ({"seed": -1}, "seed -1"),
        ({"count": 1.5}, "count is 1.5, not a whole number"),
        ({"set": "hpu.clock=1GHz"}, "give a dictionary"),
        ({"set": {3: 4}}, "3"),
        ({"strategies": b"seek"}, "named by text"),
        ({"strategies": None}, "named by text"),
        ({"threads": -1}, "threads is -1"),
        ({"order": "window:²"}, "accepted forms"),
    ],
)
def test_an_argument_that_cannot_be_is_named(arguments, said):
    with pytest.raises(Trouble, match=said):
        simulate("vector(4, 1, 2, double)", **{"strategies": "seek", **arguments})


def test_arrays_are_axes():
    table = simulate("vector(4, 1, 2, double)", "seek", hpus=np.array([4, 8]))
    assert sorted(set(table.column("hpus"))) == [4, 8]


def test_a_plot_has_one_row_for_each_place():
    pytest.importorskip("matplotlib")
    table = simulate(["vector(4, 1, 2, double)", "vector(9, 1, 2, double)"], "seek", hpus=[16, 4, 8])
    with pytest.raises(Trouble, match="several rows for one hpus, which differ in datatype"):
        table.plot("hpus", "time_ps")
    line = table.where(datatype=table[0]["datatype"]).plot("hpus", "time_ps").axes[0].lines[0]
    assert list(line.get_xdata()) == [4, 8, 16]
    with pytest.raises(Trouble, match="no numbers to plot"):
        table.plot("hpus", "status")
    with pytest.raises(Trouble, match="no numbers to average"):
        table.over("seed", values="status")
