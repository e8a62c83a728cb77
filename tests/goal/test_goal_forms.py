"""Forms of schedules: what each holds, `spinloom goal convert`, what our own words cost, drawings."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from spinloom.common import core
from spinloom.predict import goal_drawing

WORDS = """num_ranks 2
rank 0 {
put 1000b to 1 tag 3
get 8b from 1 tag 3
}
rank 1 {
l0: arrived 2 tag 3
l1: calc 5000 cpu 1
l2: calc 7
l2 anyof l0
l2 anyof l1
}
"""
RING = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"


def with_checksum(content):
    """As docs/formats/schedule.md says."""
    content[56:64] = bytes(8)
    total = 0xCBF29CE484222325
    for at in range(0, len(content), 8):
        word = int.from_bytes(content[at : at + 8], "little")
        total = (total ^ word) * 0x100000001B3 % 2**64
        total ^= total >> 32
    content[56:64] = total.to_bytes(8, "little")
    return bytes(content)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.goal"
    path.write_text(WORDS)
    return path


def test_our_own_form_and_text_are_read_again(spinloom, words, tmp_path):
    ran = spinloom("goal", "convert", str(words), str(tmp_path / "words.spl"))
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "words.spl").read_bytes().startswith(b"SPLSCHED")
    ran = spinloom("goal", "convert", str(tmp_path / "words.spl"), str(tmp_path / "again.goal"))
    assert "has words that LogGOPSim does not know: anyof, put, get, arrived" in ran.err
    assert (tmp_path / "again.goal").read_text() == WORDS
    rows = [spinloom("goal", str(tmp_path / name), "--csv").out for name in ("words.spl", "again.goal")]
    assert rows[0] == rows[1]


def test_nothing_is_overwritten_or_written_in_part(spinloom, words, tmp_path):
    out = tmp_path / "words.bin"
    ran = spinloom("goal", "convert", str(words), str(out))
    assert ran.code == 2
    assert "words.bin: rank 0, operation 0: GOAL's binary form has no put" in ran.err
    assert not out.exists()
    out.write_bytes(b"mine")
    ring = tmp_path / "ring.goal"
    ring.write_text(RING)
    ran = spinloom("goal", "convert", str(ring), str(out))
    assert (ran.code, out.read_bytes()) == (2, b"mine")
    assert "--force overwrites" in ran.err
    assert spinloom("goal", "convert", str(ring), str(out), "--force").code == 0
    assert core.load().read_goal(out.read_bytes()).text().decode() == RING
    assert "end the name in .goal" in spinloom("goal", "convert", str(ring), str(tmp_path / "x.txt")).err


def test_a_damaged_file_is_an_error_with_its_place(spinloom, words, tmp_path):
    path = tmp_path / "words.spl"
    spinloom("goal", "convert", str(words), str(path))
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    ran = spinloom("goal", str(path))
    assert ran.code == 2
    assert "words.spl: byte 56: the file is damaged" in ran.err


def test_the_table_says_what_is_one_sided(spinloom, words):
    """The get asks behind the bytes of the put: it is served at o + n G + g + L + 7 G, and there L later."""
    ran = spinloom("goal", str(words))
    assert "1 puts, 1 gets of 1008 B in all" in " ".join(ran.out.split())
    rows = json.loads(spinloom("goal", str(words), "--json").out)
    put_has_left = 1_500_000 + 999 * 6000
    get_is_there = put_has_left + 1_000_000 + 2 * 2_500_000 + 7 * 6000
    assert [row["finish_ps"] for row in rows] == [
        get_is_there,
        put_has_left + 1_000_000 + 2_500_000 + 7 * 6000,
    ]
    checked = json.loads(spinloom("goal", "check", str(words), "--json").out)[0]
    assert [checked[name] for name in ("puts", "gets", "atomics", "arrivals")] == [1, 1, 0, 1]


def test_the_rules_of_loggopsim_refuse_our_words(spinloom, words):
    ran = spinloom("goal", str(words), "--dialect", "loggopsim")
    assert ran.code == 2
    assert (
        "operation 0 of rank 0 is a put of 1000 B to 1 with tag 3, which LogGOPSim does not know" in ran.err
    )


def test_a_price_of_layouts_is_one_of_our_model(spinloom, words):
    assert "layouts" not in spinloom("goal", str(words), "--layout", "50ps/B").out
    ran = spinloom("goal", str(words), "--layout", "fast")
    assert ran.code == 2
    assert "--layout fast" in ran.err


def test_layouts_are_kept_priced_and_validated(spinloom, tmp_path):
    """Two ranks swap every other one of 100 doubles: o + L + 799 G + o, and each CPU 800 B of work twice."""
    step = {"kind": "alltoall", "types": [("vector(100, 1, 2, double)", "vector(50, 2, 4, double)")]}
    costs = {"messages": [], "layouts": [], "host_layouts": [], "scale": (1, 1), "unit_ps": 1000}
    schedule, _ = core.load().skeleton_recording(2, [step], 1, []).schedule(costs)
    path = tmp_path / "swap.spl"
    path.write_bytes(schedule.own())
    free, priced = (spinloom("goal", str(path), *price) for price in ([], ["--layout", "1ns/B"]))
    assert "which cost nothing: --layout is their price" in " ".join(free.out.split())
    assert "ends, 1ns/B" in " ".join(priced.out.split())
    ends = schedule.count()["layout_ends"]
    assert ends > 0
    text = tmp_path / "swap.goal"
    said = spinloom("goal", "convert", str(path), str(text)).err
    assert f"does not hold the layouts of {ends} ends of transfers; FILE.spl does" in said
    counted = core.load().read_goal(text.read_bytes()).count()
    assert (counted["layouts"], counted["sends"]) == (0, schedule.count()["sends"])
    rows = [
        json.loads(spinloom("goal", str(path), *price, "--json").out) for price in ([], ["--layout", "1ns/B"])
    ]
    more = sum(row["overhead_ps"] for row in rows[1]) - sum(row["overhead_ps"] for row in rows[0])
    assert more == ends * 800 * 1000
    # The magic number of a blob, and not the file's checksum only.
    content = bytearray(path.read_bytes())
    content[content.index(b"SPLB")] ^= 1
    path.write_bytes(with_checksum(content))
    ran = spinloom("goal", "check", str(path))
    assert ran.code == 2
    assert "layout 0: " in ran.err


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_small_schedule_is_drawn(spinloom, words, tmp_path, form):
    pytest.importorskip("matplotlib")
    out = tmp_path / f"words.{form}"
    assert spinloom("goal", str(words), "--plot", str(out)).code == 0
    content = out.read_bytes()
    if form == "png":
        assert content.startswith(b"\x89PNG")
        return
    texts = [
        "".join(one.itertext()).strip() for one in ElementTree.fromstring(content).iter() if "text" in one.tag
    ]
    for said in ("rank 0", "rank 1", "computation of 7", "or"):
        assert said in texts
    assert spinloom("goal", str(words), "--plot", str(out)).code == 0
    assert out.read_bytes() == content


def test_arrows_go_down_and_messages_meet(words):
    graph = core.load().read_goal(words.read_bytes()).graph()
    arrows = goal_drawing.waits(graph) + goal_drawing.messages(graph)
    assert {(one.before, one.after, one.is_message) for one in arrows} == {
        ((0, 0), (1, 0), True),
        ((0, 1), (1, 0), True),
        ((1, 0), (1, 2), False),
        ((1, 1), (1, 2), False),
    }
    places = goal_drawing.lay_out(graph, arrows)
    assert len(set(places.values())) == len(places)
    assert all(places[one.before][1] < places[one.after][1] for one in arrows)


def test_receives_of_any_take_what_is_left_in_a_drawing():
    text = (
        "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 7\nsend 2b to 1 tag 8\n}\n"
        "rank 1 {\nrecv 1b from -1 tag -1\nrecv 1b from 0 tag 7\n}\n"
    )
    arrows = goal_drawing.messages(core.load().read_goal(text.encode()).graph())
    assert {(one.before, one.after) for one in arrows} == {((0, 0), (1, 1)), ((0, 1), (1, 0))}


def test_a_large_schedule_is_not_drawn(spinloom, tmp_path):
    path = tmp_path / "d.spl"
    assert spinloom("goal", "make", "dissemination", "--ranks", "64", "-o", str(path)).code == 0
    ran = spinloom("goal", str(path), "--plot", str(tmp_path / "d.svg"))
    assert ran.code == 2
    assert "the schedule has 768 operations, and a drawing of more than 300 cannot be read" in ran.err
    assert not (tmp_path / "d.svg").exists()
    assert "end the name in .svg" in spinloom("goal", str(path), "--plot", str(tmp_path / "d.txt")).err
