"""The planner of `spinloom run`: its prices, `calibrate peers`, `explain --live`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess

import pytest

from layer_programs import BIN, TIME_LIMIT_S
from spinloom.accelerate import live_ways, peer_pair, peer_prices
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics.workloads import Row
from spinloom.verbs import explain_live

HUGE = Row("custom", "", "vector(32768, 4096, 8192, byte)", 1)  # more than a rank's room for messages
LONG = Row("custom", "", "vector(16, 65536, 131072, byte)", 1)
SHORT = Row("custom", "", "vector(4096, 8, 64, byte)", 1)


def spinloom(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "spinloom"), *words],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def pair():
    with peer_pair.pair() as timed:
        yield timed


@pytest.mark.parametrize("way", peer_prices.WAYS)
@pytest.mark.parametrize(
    ("text", "count"),
    [(SHORT.type, 1), ("contig(5000, int)", 3), ("resized(-8B, 64B, hindexed([8Bx3, -8Bx5], byte))", 999)],
)
def test_two_processes_time_messages_whose_bytes_they_have_compared(pair, way, text, count):
    times = pair(text, count, way, True, 5)
    assert len(times) == 5
    assert all(time > 0 for time in times)


def test_what_cannot_be_timed_is_a_sentence_and_the_pair_goes_on(pair):
    for arguments, words in (
        (("nonsense", 1, "staged", True, 1), "nonsense"),
        (("byte", 0, "staged", True, 1), "zero bytes"),
        (("byte", 100, "pass", True, 1), "no MPI"),
        ((SHORT.type, 1, "mapped", False, 1), "memory that peers map"),
        ((SHORT.type, 1, "sideways", True, 1), "no way called"),
    ):
        with pytest.raises(Trouble, match=words):
            pair(*arguments)
    assert pair(SHORT.type, 1, "staged", True, 1)


def test_the_planner_follows_its_prices():
    engine = core.load()
    cheap = {name: float(price) for name, price in engine.peer_prices().items()}
    for way in ("staged", "mapped", "joint", "cma"):
        dear = {other: 1e6 for other in ("staged", "mapped", "joint", "cma") if other != way}
        prices = peer_prices.PeerPrices({**cheap, **dear})
        assert engine.peer_choice(prices.as_setting(), LONG.type, 1, True, True, True)[0] == way
    works = peer_prices.PeerPrices({**cheap, "staged": 1e6, "cma": 1e6})
    assert engine.peer_choice(works.as_setting(), LONG.type, 1, True, False, False)[0] == "mapped"
    costs = engine.peer_costs(peer_prices.PeerPrices(cheap).as_setting(), engine.peer_work(SHORT.type, 1))
    assert costs["staged"] < costs["cma"]
    with pytest.raises(Trouble, match="no list of prices"):
        engine.peer_choice("staged=x", LONG.type, 1, True, True, True)


def test_prices_are_fitted_to_samples_that_the_model_explains():
    engine = core.load()
    made = {"staged": 700.0, "mapped": 900.0, "joint": 1200.0, "cma": 4000.0, "block": 0.4, "near_line": 2.0,
            "far_line": 5.0, "far_jump": 12.0, "deep_line": 3.0, "cma_block": 250.0,
            "cma_line": 6.0}  # fmt: skip
    prices = peer_prices.PeerPrices(made).as_setting()
    samples = []
    for text in peer_prices.texts():
        work = engine.peer_work(text, 1)
        costs = engine.peer_costs(prices, work)
        samples += [peer_prices.Sample(text, way, work, costs[way]) for way in peer_prices.WAYS]
    assert peer_prices.fit(samples).error < 1.15


def test_prices_are_kept_and_others_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "calibrate peers" in peer_prices.load().remark
    ns = {name: float(price) + 1 for name, price in core.load().peer_prices().items()}
    peer_prices.save(peer_prices.PeerPrices(ns, "today", 1.1), peer_prices.path())
    assert peer_prices.load() == peer_prices.PeerPrices(ns, "today", 1.1)
    document = json.loads(peer_prices.path().read_text(encoding="utf-8"))
    wrong = [{"identity": {}}, {"format": 0}, {"prices_ns": {}}, {"prices_ns": dict.fromkeys(ns, -1)}]
    texts = [json.dumps({**document, **part}) for part in wrong]
    texts += ["", "[" * 200_000, json.dumps({**document, "prices_ns": dict.fromkeys(ns, 10**400)})]
    for text in texts:
        peer_prices.path().write_text(text, encoding="utf-8")
        found = peer_prices.load()
        assert not found.measured
        assert "calibrate peers" in found.remark
    monkeypatch.setenv("XDG_CACHE_HOME", "/" + "x" * 10_000)
    assert not peer_prices.load().measured


def test_one_core_gets_no_prices(tmp_path):
    words = [
        "taskset",
        "-c",
        str(min(os.sched_getaffinity(0))),
        str(BIN / "spinloom"),
        "calibrate",
        "peers",
    ]
    ran = subprocess.run(
        [*words, "--out", str(tmp_path / "peers.json")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 3
    assert "two cores" in ran.stderr
    assert not (tmp_path / "peers.json").exists()


def test_calibrated_prices_reach_the_ranks(tmp_path):
    kept = tmp_path / "cache" / "spinloom" / "peers.json"
    calibrated = spinloom(
        "calibrate", "peers", "--passes", "1", "--quiet", "--out", str(tmp_path / "peers.json")
    )
    assert calibrated.returncode == 0, calibrated.stderr
    assert "the model misses what was measured by a factor of" in calibrated.stderr
    document = json.loads((tmp_path / "peers.json").read_text(encoding="utf-8"))
    assert set(document["prices_ns"]) == set(core.load().peer_prices())
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps(document), encoding="utf-8")
    words = ("run", "--", "sh", "-c", "echo prices=$SPINLOOM_MPI_PRICES")
    ran = spinloom(*words, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert ran.stdout.startswith("prices=staged="), ran.stdout
    assert spinloom(*words, XDG_CACHE_HOME=str(tmp_path / "none")).stdout == "prices=\n"
    own = spinloom(*words, XDG_CACHE_HOME=str(tmp_path / "cache"), SPINLOOM_MPI_PRICES="staged=1")
    assert own.stdout == "prices=staged=1\n"


def test_explain_live_says_which_way_and_how_long(tmp_path):
    ran = spinloom(
        "explain", SHORT.type, "--strategies", "none", "--live", "--json", XDG_CACHE_HOME=str(tmp_path)
    )
    assert ran.returncode == 0, ran.stderr
    live = json.loads(ran.stdout)["live"]
    assert {way["way"] for way in live["ways"]} == set(peer_prices.WAYS)
    assert all(way["predicted_ns"] > 0 for way in live["ways"])
    assert all(way["measured_ns"] > 0 for way in live["ways"] if way["way"] != "cma")
    assert [choice["memory"] for choice in live["choices"]] == [name for name, *_ in live_ways.MEMORY]
    shown = spinloom("explain", SHORT.type, "--strategies", "none", "--live", XDG_CACHE_HOME=str(tmp_path))
    assert "in large blocks of malloc, by MPI_Send: " in shown.stdout
    assert "calibrate peers" in shown.stderr
    table = spinloom("explain", SHORT.type, "--strategies", "none", "--live", "--csv")
    assert "live staged,host," in table.stdout


def faked(monkeypatch, times_ns: dict[str, list[float]]) -> None:
    """Two processes that take these times for a message."""

    @contextlib.contextmanager
    def pair():
        yield lambda text, count, way, in_heap, samples: times_ns[way]

    monkeypatch.setattr(peer_pair, "pair", pair)


def test_measurements_that_scatter_are_told_in_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    quiet, slow, disturbed = ([start + number for number in range(61)] for start in (1e3, 1e4, 1e9))
    noisy = [1000.0] * 40 + [9000.0] * 21
    faked(monkeypatch, {way: noisy if way == "joint" else quiet for way in peer_prices.WAYS})
    live = explain_live.Live.of(SHORT)
    assert live.noise == (
        "the measurements scatter: the slowest tenth of the messages by 'joint' took 9 times as long as the "
        "fastest; other work runs here, so the medians say little"
    )
    assert capsys.readouterr().err == f"spinloom: {live.noise}\n"
    assert live.document()["live"]["noise"] == live.noise
    assert {way.way: way.scatter > 2 for way in live.ways} == {
        way: way == "joint" for way in peer_prices.WAYS
    }
    faked(monkeypatch, dict.fromkeys(peer_prices.WAYS, disturbed))
    assert "times what the model says; other work runs here" in explain_live.Live.of(SHORT).noise
    capsys.readouterr()
    faked(monkeypatch, dict.fromkeys(peer_prices.WAYS, slow))
    assert explain_live.Live.of(SHORT).noise == ""
    assert capsys.readouterr().err == ""


def test_prices_that_were_fitted_to_scattered_measurements_are_told():
    prices = core.load().peer_prices()
    bad = peer_prices.PeerPrices(prices, "today", 2.5)
    assert "it misses them by a factor of 2.5 in the mean" in live_ways.noise([], bad)
    assert live_ways.noise([], peer_prices.PeerPrices(prices, "today", 1.2)) == ""


def test_short_messages_are_left_to_the_mpi_wherever_they_lie():
    prices = peer_prices.PeerPrices(core.load().peer_prices())
    for choice in live_ways.choices(Row("custom", "", "vector(16, 8, 64, byte)", 1), prices, True):
        assert (choice.way, choice.why) == ("pass", "short")


def test_messages_beyond_a_ranks_room_are_timed_and_left_to_the_mpi(pair, monkeypatch):
    for way in peer_prices.WAYS:
        assert len(pair(HUGE.type, 1, way, True, 2)) == 2
    prices = peer_prices.PeerPrices(core.load().peer_prices())
    ways = {"mapped": 16, "staged": 1}  # times the room for packed messages
    for dear, (way, times) in zip(reversed(ways), ways.items(), strict=True):
        one_way = peer_prices.PeerPrices({**prices.ns, dear: 1e9, "joint": 1e9, "cma": 1e9})
        monkeypatch.setenv("SPINLOOM_MPI_STAGING_BYTES", f"{128 // times}M")
        assert live_ways.choices(HUGE, one_way, True)[1].way == way
        monkeypatch.setenv("SPINLOOM_MPI_STAGING_BYTES", f"{128 // times // 2}M")
        choice = live_ways.choices(HUGE, one_way, True)[1]
        assert choice.way == "pass"
        assert "SPINLOOM_MPI_STAGING_BYTES" in choice.why


def test_a_message_for_which_there_is_no_memory_is_not_tried(tmp_path):
    words = ["explain", LONG.type, "--count", str(1 << 20), "--strategies", "none", "--live"]
    ran = spinloom(*words, "--json", XDG_CACHE_HOME=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert "the message of 1 TiB is not timed: it would take " in ran.stderr
    live = json.loads(ran.stdout)["live"]
    assert [way["measured_ns"] for way in live["ways"]] == [None] * len(peer_prices.WAYS)
    assert all(way["predicted_ns"] > 0 for way in live["ways"])


def test_the_end_of_a_process_is_told_at_once():
    with peer_pair.pair() as timed:
        children = subprocess.run(
            ["pgrep", "--parent", str(os.getpid()), "--full", "spinloom.accelerate.peer_pair"],
            capture_output=True,
            text=True,
            check=True,
        )
        timed(SHORT.type, 1, "staged", True, 1)
        os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
        with pytest.raises(
            peer_pair.ProcessEnded, match="SIGKILL, which the system sends where memory is short"
        ):
            timed(SHORT.type, 1, "staged", True, 1)
