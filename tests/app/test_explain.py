"""`spinloom explain` and `spinloom calibrate`: targets, facts, ways, the cost model, the calibration file."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conftest import needs_engine
from spinloom import layout
from spinloom.accelerate import calibration, copy_model
from spinloom.accelerate.copy_model import Counts, Prices, Sample
from spinloom.common.errors import Trouble
from spinloom.layout import picture, picture_grid
from spinloom.nics import targets, workloads

pytestmark = needs_engine
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No calibration of this machine, unless a test makes one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def explained(spinloom, *arguments: str) -> dict:
    ran = spinloom("explain", "--json", *arguments)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# ---- facts ----


def test_facts_of_a_type(spinloom):
    known = explained(spinloom, "resized(-4B, 40B, vector(3, 2, 5, int))", "--strategies", "none")
    assert (known["size_bytes"], known["lb_bytes"], known["extent_bytes"]) == (24, -4, 40)
    assert (known["true_lb_bytes"], known["true_extent_bytes"]) == (0, 48)
    assert (known["blocks"], known["block_bytes_min"], known["block_bytes_max"]) == (3, 8, 8)
    assert known["normal_form"] == "0 + vector(3, 8 B, stride 20 B)"
    assert (
        known["passes"] == {"levels of count 1 dropped": 1, "runs that touch collapsed": 1} or known["passes"]
    )
    assert known["blob_bytes"] == 112
    assert known["density"] == 0.5
    assert known["histogram"] == [{"bytes_from": 8, "blocks": 3, "bytes": 24}]
    assert known["kernel"]


def test_every_workload_is_explained(spinloom):
    for row in workloads.demo():
        known = explained(spinloom, f"{row.application}:{row.datatype}", "--strategies", "none")
        assert known["message_bytes"] == row.size_bytes
        assert sum(found["bytes"] for found in known["histogram"]) == row.size_bytes
        assert sum(leaf["bytes"] for leaf in known["leaves"]) == row.size_bytes


def test_every_way_has_a_time_and_a_bound(spinloom):
    ways = {way["path"]: way for way in explained(spinloom, "MILC:8^4")["ways"]}
    assert list(ways)[:4] == ["pack", "unpack", "single copy", "pack + send"]
    assert {"host-mpitypes", "iovec", "specialised", "rw-cp", "seek"} <= set(ways)
    for way in ways.values():
        assert way["time_ps"] > 0, way
        assert way["bound"], way
    wire_ps = 12288 * 37.25
    alone_ps = ways["pack"]["time_ps"] + ways["unpack"]["time_ps"] + wire_ps
    assert ways["pack + send"]["time_ps"] == pytest.approx(alone_ps, abs=2)  # three roundings
    assert ways["seek"]["time_ps"] > wire_ps
    assert ways["seek"]["kind"] == "modelled"
    assert ways["pack"]["kind"] == "host"


def test_a_strategy_that_does_not_take_the_type_says_so(spinloom):
    huge = explained(spinloom, "hvector(2000000, 8, 16B, byte)", "--strategies", "seek")
    seek = next(way for way in huge["ways"] if way["path"] == "seek")
    assert seek["time_ps"] is None
    assert "spinloom simulate" in seek["about"]


def test_nothing_to_move_has_no_ways(spinloom):
    assert explained(spinloom, "contig(0, int)")["ways"] == []
    assert explained(spinloom, "int", "--count", "0")["ways"] == []


def test_the_table_says_the_same(spinloom):
    ran = spinloom("explain", "hindexed([0B x 4, 8B x 4, 100B x 64], byte)", "--strategies", "seek")
    assert ran.code == 0, ran.err
    for words in (
        "normal form",
        "0 + runs(3, 72 B)",
        "block size",
        "4 to 7 B",
        "single copy",
        "host time",
        "modelled",
    ):
        assert words in ran.out
    assert "calibrate" in ran.err


def test_csv_has_a_row_for_each_way(spinloom):
    ways = explained(spinloom, "MILC:8^4", "--strategies", "seek")["ways"]
    ran = spinloom("explain", "MILC:8^4", "--strategies", "seek", "--csv")
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [(row["path"], int(row["time_ps"])) for row in rows] == [
        (way["path"], way["time_ps"]) for way in ways
    ]
    assert spinloom("explain", "contig(0, int)", "--csv").out == "path,kind,time_ps,bound,about\n"


# ---- targets ----


@pytest.mark.parametrize(
    ("name", "size"), [("face", 64 * 64 * 8), ("particle", 24 + 1 + 4), ("every_other_row", 33 * 66 * 66 * 8)]
)
def test_an_object_of_a_python_file(spinloom, name, size):
    known = explained(spinloom, f"{ROOT}/examples/explain_me.py:{name}", "--strategies", "none")
    assert known["size_bytes"] == size


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("vector(3, 2", "column 12"),
        ("MLIC", "did you mean 'MILC'"),
        ("MILC", "say which: 'MILC:16^4'"),
        ("MILC:17^4", "did you mean"),
        ("nowhere.py:x", "there is no file 'nowhere.py'"),
        (f"{ROOT}/examples/explain_me.py:fase", "has no 'fase'"),
        (f"{ROOT}/examples/explain_me.py:np", "is a module"),
    ],
)
def test_what_cannot_be_found_is_told(spinloom, target, sentence):
    ran = spinloom("explain", target)
    assert ran.code == 2
    assert sentence in ran.err


def test_a_file_that_fails_is_told(spinloom, tmp_path):
    (tmp_path / "bad.py").write_text("1 / 0\n")
    ran = spinloom("explain", f"{tmp_path}/bad.py:x")
    assert ran.code == 2
    assert "ZeroDivisionError" in ran.err


# ---- the picture ----


def rectangles(text: str) -> int:
    return sum(element.tag.endswith("rect") for element in ElementTree.fromstring(text).iter())


def test_the_picture_shows_every_block_of_two_elements():
    made = picture.draw(layout.from_text("resized(-8B, 56B, vector(3, 2, 5, int))"))
    # page, three of the legend, six blocks, a gap before the first, two between three, one between elements
    assert rectangles(made) == 1 + 3 + 6 + 1 + 2 + 1 + 2
    for words in ("lb = -8", "address = 0", "ub = 48", "ub of element 1 = 104", ">12<"):
        assert words in made


def test_the_picture_names_what_is_written_twice():
    assert "0+1" in picture.draw(layout.from_text("hvector(2, 4, 3B, byte)"))
    assert "written twice" not in picture.draw(layout.from_text("hvector(2, 4, 4B, byte)"))


def polygons(text: str) -> int:
    return sum(element.tag.endswith("polygon") for element in ElementTree.fromstring(text).iter())


def test_the_picture_of_a_subarray_shows_its_array_and_the_plane():
    plane = picture.draw(layout.from_text("subarray([6, 8, 10], [6, 1, 10], [0, 3, 0], C, double)"))
    assert polygons(plane) == 3  # top, side, front
    assert "taken: [0:6, 3:4, 0:10] of an array of 6 x 8 x 10, order C" in plane
    assert (
        polygons(picture.draw(layout.from_text("resized(0B, 8B, subarray([6, 8], [6, 1], [0, 3], F, int))")))
        == 1
    )
    for text in (
        "subarray([9], [2], [1], C, int)",
        "subarray([2, 2, 2, 2], [1, 1, 1, 1], [0, 0, 0, 0], C, int)",
    ):
        assert polygons(picture.draw(layout.from_text(text))) == 0


def test_the_plane_lies_where_it_is_in_the_array():
    grid = picture_grid.grid_of(layout.from_text("subarray([4, 100], [4, 25], [0, 50], C, int)"))
    front = next(line for line in picture_grid.draw(grid, 0, 0) if "polygon" in line)
    right, down = picture_grid.EDGE_MAX, picture_grid.EDGE_MIN + 80 * 4 / 100
    corners = [tuple(map(float, each.split(","))) for each in front.split('"')[1].split()]
    assert corners[0] == pytest.approx((right / 2, 24), abs=0.1)
    assert corners[2] == pytest.approx((right * 3 / 4, 24 + down), abs=0.1)


@pytest.mark.parametrize(
    "text", ["contig(0, int)", "vector(1000, 1, 100, double)", "hvector(3, 1, -64B, int)"]
)
def test_any_type_has_a_picture(text):
    made = layout.from_text(text)
    assert rectangles(made._repr_svg_()) > 1


def test_svg_is_written(spinloom, tmp_path):
    ran = spinloom("explain", "MILC:8^4", "--strategies", "none", "--plot", str(tmp_path / "a.svg"))
    assert ran.code == 0, ran.err
    assert rectangles((tmp_path / "a.svg").read_text()) > 16
    assert spinloom("explain", "int", "--plot", str(tmp_path / "no/a.svg")).code == 3


@pytest.mark.parametrize(
    ("option", "ending", "named"), [("--plot", ".png", ".svg"), ("--page", ".svg", ".html")]
)
def test_a_picture_is_named_as_what_it_is(spinloom, tmp_path, option, ending, named):
    path = tmp_path / f"face{ending}"
    ran = spinloom("explain", "int", option, str(path))
    assert (ran.code, ran.out) == (2, "")
    assert f"{option} {path}: end the name in {named}" in ran.err
    assert not path.exists()


def test_a_report_without_a_number_is_answered_with_its_numbers(spinloom, tmp_path):
    derived = {"kind": "derived", "whole": True, "text": "vector(4, 1, 2, int)", "count": 1}
    file = tmp_path / "report.json"

    def said(types: list[dict], target: str) -> str:
        file.write_text(json.dumps({"format": targets.REPORT_FORMAT, "types": types}))
        ran = spinloom("explain", target, "--strategies", "none")
        assert ran.code == 2
        return ran.err

    plain = {"kind": "contiguous", "whole": True}
    assert f"say which datatype of {file}: {file}:1 or {file}:2" in said([plain, derived, derived], str(file))
    assert f"say which datatype of {file}: {file}:0\n" in said([derived], str(file))
    many = said([derived] * 9, f"{file}:x")
    assert f"has no datatype x whose text is known; there is {file}:0, " in many
    assert f", ... or {file}:8" in many
    assert "has no datatype whose text is known" in said([plain], str(file))
    said([derived], f"{file}:1")
    assert spinloom("explain", f"{file}:0", "--strategies", "none").code == 0


def test_blocks_in_another_order_are_counted(spinloom):
    ran = spinloom("explain", "idxblock(1, [8, 4, 0], int)", "--strategies", "none")
    assert "3 of 4 B, 2 of them before the end of the one before" in ran.out
    assert "in the order of memory" in spinloom("explain", "vector(4, 1, 2, int)", "--strategies", "none").out


# ---- the cost model ----


def priced(**terms: float) -> Prices:
    by_size = [(4, 1.0), (16, 4.0), (64, 4.0)]
    return Prices(
        10.0, dict.fromkeys(copy_model.SHAPES, by_size), {**dict.fromkeys(copy_model.TERMS, 0.0), **terms}
    )


@pytest.mark.parametrize(("length", "price"), [(1, 1), (4, 1), (8, 2), (16, 4), (32, 4), (64, 4), (640, 40)])
def test_prices_between_measured_sizes(length, price):
    assert priced().block("vector", length) == pytest.approx(price)
    assert priced().block("single", length) == pytest.approx(price)


def test_a_prediction_overlaps_its_parts_and_names_its_bound():
    """T = 10 + sqrt(W^2 + L^2): W = 100 * 4 + 2 * 50 (turns), L = 50 * 3 (L2 next) + 200 * 5 (memory)."""
    terms = dict.fromkeys(copy_model.TERMS, 0.0) | {"L2 next": 50.0, "memory scattered": 200.0, "turns": 2.0}
    counts = Counts((("vector", 16, 100),), tuple(terms.values()))
    prices = priced(**{"L2 next": 3.0, "memory scattered": 5.0, "turns": 50.0})
    found = copy_model.predict(prices, counts)
    assert found.time_ns == pytest.approx(10 + (500**2 + 1150**2) ** 0.5)
    assert found.bound == "lines from memory"
    assert found.parts_ns["blocks"] == 400
    assert found.parts_ns["lines from L2"] == 150


def test_the_fit_finds_prices_that_make_the_times():
    true = priced(**{"L2 next": 0.5, "L3 strided": 2.0, "walked pages": 7.0, "nodes": 3.0})
    samples = []
    for i in range(60):
        terms = tuple(float((i * 7 + 13 * k) % 11 * (k + 1)) for k in range(len(copy_model.TERMS)))
        counts = Counts((("list", 8, 10 + i),), terms)
        samples.append(Sample(counts, copy_model.predict(true, counts).time_ns))
    found = copy_model.fit_terms(true.call_ns, true.block_ns, samples)
    for sample in samples:
        assert copy_model.predict(found, sample.counts).time_ns == pytest.approx(sample.time_ns, rel=0.1)
    assert all(price >= 0 for price in found.term_ns.values())


# ---- the calibration file ----


def test_the_shipped_prices_are_used_and_named():
    found, remark = calibration.load()
    assert found.origin == str(calibration.SHIPPED)
    assert "spinloom calibrate" in remark


def test_a_calibration_is_found_again_on_its_machine_only(monkeypatch):
    shipped, _ = calibration.load()
    calibration.save(dataclasses.replace(shipped, identity=calibration.identity()), calibration.path())
    found, remark = calibration.load()
    assert remark == ""
    assert found.origin == str(calibration.path())
    assert found.prices == shipped.prices
    monkeypatch.setattr(calibration, "processor", lambda: "another")
    assert "another machine" in calibration.load()[1]
    calibration.path().write_text("{}")
    assert "is no calibration" in calibration.load()[1]
    with pytest.raises(Trouble, match="is no calibration"):
        calibration.read(calibration.path())


@pytest.fixture
def few_benches(monkeypatch):
    """Enough datatypes for a calibration of a second."""
    every = list(calibration.benches(calibration.caches()))
    chosen = [bench for bench in every if bench.price is not None and bench.price[1] in (8, 64, 1024, 16)]
    monkeypatch.setattr(calibration, "benches", lambda levels: iter(chosen))


def test_calibrate_measures_and_explain_uses_it(spinloom, few_benches):
    ran = spinloom("calibrate", "--passes", "1", "--json")
    assert ran.code == 0, ran.err
    prices = json.loads(ran.out)
    assert {row["movement"] for row in prices} == {"pack", "unpack", "copy"}
    assert all(row["ns"] >= 0 for row in prices)
    assert calibration.load()[1] == ""
    known = explained(spinloom, "MILC:8^4", "--strategies", "none")
    assert known["calibration"] == str(calibration.path())


def test_compare_and_the_page(spinloom, few_benches, tmp_path, monkeypatch):
    monkeypatch.setattr("spinloom.verbs.calibrate_copies.catalogue", workloads.demo)
    page = tmp_path / "page.md"
    page.write_text(
        f"before\n{'<!-- begin: spinloom calibrate copies --compare -->'}\nold\n<!-- end -->\nafter\n"
    )
    ran = spinloom("calibrate", "copies", "--passes", "1", "--compare", "--json", "--docs", str(page))
    assert ran.code == 0, ran.err
    table = json.loads(ran.out)
    assert [row["datatype"] for row in table] == [row.datatype for row in workloads.demo()]
    for row in table:
        ratio = row["predicted_ns"] / row["measured_ns"]
        assert row["predicted_over_measured"] == pytest.approx(ratio, abs=0.01)
        assert row["within"] == (abs(ratio - 1) <= 0.2) or ratio == pytest.approx(1.2, abs=0.001)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert text.count("\n| ") == 1 + len(table)


def test_the_page_in_the_docs_has_its_table():
    text = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") == 8]
    assert len(rows) == 1 + sum(len(application.rows) for application in workloads.applications())


# ---- what people give it ----

GIVEN = """
from __future__ import annotations
import dataclasses, sys
import numpy as np
print("printed while it ran")

@dataclasses.dataclass
class Point:
    x: float

face = np.zeros((4, 4))[:, ::2]
twice = np.broadcast_to(np.zeros(3), (4, 3))
kind = np.float64
def made(): return "double"
def needs(more): return more
def leaves(): sys.exit(3)
"""


@pytest.fixture
def given_file(tmp_path):
    path = tmp_path / "given.py"
    path.write_text(GIVEN, encoding="utf-8")
    return path


def test_objects_of_a_file_with_dataclasses_and_prints(spinloom, given_file):
    assert explained(spinloom, f"{given_file}:face", "--strategies", "none")["size_bytes"] == 64
    assert explained(spinloom, f"{given_file}:made", "--strategies", "none")["text"] == "double"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (":needs", "ends with TypeError"),
        (":leaves", "ends with SystemExit: 3"),
        (":kind", "is a type; it must be"),
        (":nope", "has no 'nope'"),
        ("", "say which object of"),
    ],
)
def test_objects_that_are_no_datatype(spinloom, given_file, name, sentence):
    ran = spinloom("explain", f"{given_file}{name}")
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err


def test_a_type_that_overlaps_itself_can_be_packed_only(spinloom, given_file):
    known = explained(spinloom, f"{given_file}:twice", "--strategies", "seek")
    assert "both land at offset 0" in known["no_receive"]
    assert {way["path"]: way["time_ps"] is not None for way in known["ways"]} == {
        "pack": True,
        "unpack": False,
        "single copy": False,
        "pack + send": False,
        "host-mpitypes": False,
        "seek": False,
        "gpu pack": True,
        "gpu unpack": False,
    }
    assert "no defined result" in spinloom("explain", f"{given_file}:twice").out


def test_huge_messages_are_answered_at_once(spinloom):
    """What cannot be followed line by line in seconds is refused by name, or left out with a reason."""
    ran = spinloom("explain", "vector(4, 1, 2, double)", "--count", "1000000000")
    assert ran.code != 0
    assert "message_blocks_max" in ran.err
    whole = explained(spinloom, "contig(1099511627776, byte)", "--strategies", "none")
    assert whole["blocks"] == 1
    host = [way for way in whole["ways"] if way["kind"] == "host"]
    assert all(way["time_ps"] is None and "not predicted" in way["about"] for way in host)


def test_brackets_of_a_type_are_printed(spinloom):
    text = "darray(2, 1, [4, 6], [block, cyclic], [default, 2], [2, 1], F, int)"
    assert text in spinloom("explain", text, "--strategies", "none").out


def test_warm_host_times_and_cold_modelled_ones_are_two_tables(spinloom):
    ran = spinloom("explain", "vector(512, 16, 32, double)", "--host", "zen5", "--strategies", "seek")
    host, modelled = ran.out.split("in modelled time on sc19-slingshot, host zen5", 1)
    assert "unpack" in host.split("in host time", 1)[1]
    assert "seek" not in host.split("in host time", 1)[1]
    assert "seek" in modelled
    assert "pack + send" not in modelled
