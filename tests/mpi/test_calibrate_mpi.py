"""`spinloom calibrate mpi`: the algebra on exact times, the file, and a short run under every MPI here."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs_engine
from patience import seconds
from spinloom.bench import jobs, mpi_fit, mpi_parameters, parameters
from spinloom.bench.parameters_found import BARRIER, FLOOD_MESSAGES, STREAM_MESSAGES, MeasuredTimes, Question
from spinloom.common import core
from spinloom.common.bar import Bar
from spinloom.common.errors import Trouble
from spinloom.predict import goal_model
from spinloom.verbs.calibrate_mpi import options

# A library that is what LogGOPS says, in ns; each value a whole number of ps.
L, O_SEND, O_RECEIVE, G_FIRST, G, BIG_O = 700.0, 90.0, 130.0, 240.0, 0.125, 0.0625
EAGER, POLLED = 1000, 4096
SIZES = (1, 8, 64, 1024, 4096, 65536, 1 << 20)


def exact(asked: Question) -> float:
    """PRTT(n, d, s) = 2 (L + o_send + o_receive + (s - 1) G) + (n - 1) max(o_send + d, g + (s - 1) G),
    and the rest of the questions likewise."""
    more = max(0, asked.size - 1)
    one_way = L + O_SEND + O_RECEIVE + more * G
    clock = 25.0
    if asked.kind in ("prtt", "flood"):
        gap = max(G_FIRST + more * G, O_SEND + asked.work_ns if asked.work_ns else 0.0)
        answer = one_way if asked.kind == "prtt" else L + O_SEND + O_RECEIVE
        return one_way + (asked.messages - 1) * gap + answer
    if asked.kind in ("late", "polled"):
        waits = asked.size > (EAGER if asked.kind == "late" else POLLED)
        return asked.work_ns + one_way if waits else O_SEND
    return {
        "send": clock + O_SEND + more * BIG_O,
        "receive": clock + O_RECEIVE + more * BIG_O,
        "clock": clock,
        "work": asked.work_ns,
        "barrier": one_way,
        "allreduce": one_way,
        "bcast": one_way + (L + O_SEND + O_RECEIVE),  # the second term is a barrier
    }[asked.kind]


def disturbed(asked: Question, samples: int, calls: int) -> list[float]:
    """Most samples are far too long."""
    return [exact(asked), *(exact(asked) * (1 + i) for i in range(1, samples))]


def measured(timer=lambda asked, samples, calls: [exact(asked)] * samples, passes: int = 3) -> MeasuredTimes:
    return parameters.Questioner(timer, 2, SIZES).run("An MPI 1.0", passes, Bar())


@pytest.mark.parametrize("timer", [lambda asked, samples, calls: [exact(asked)] * samples, disturbed])
def test_exact_times_give_the_exact_parameters(timer):
    found = replace_limits(measured(timer)) if timer is disturbed else measured(timer)
    fitted = found.parameters()
    assert fitted.L_ns == pytest.approx(L)
    assert fitted.o_send_ns == pytest.approx(O_SEND)
    assert fitted.o_receive_ns == pytest.approx(O_RECEIVE)
    assert fitted.o_ns == pytest.approx((O_SEND + O_RECEIVE) / 2)
    assert fitted.g_ns == pytest.approx(G_FIRST)
    assert fitted.G_ns_per_byte == pytest.approx(G)
    assert fitted.O_ns_per_byte == pytest.approx(BIG_O)
    assert fitted.about["o_send_by_delay_ns"] == pytest.approx(O_SEND)
    assert [regime.name for regime in fitted.regimes] == ["eager", "rendezvous"]
    for regime in fitted.regimes:
        assert regime.base_ns == pytest.approx(L + O_SEND + O_RECEIVE)
        assert regime.G_one_way_ns_per_byte == pytest.approx(G)
        assert regime.g_ns == pytest.approx(G_FIRST)
        assert regime.G_ns_per_byte == pytest.approx(G)
    # T(s) + (n - 1) I(s) + T(1); o < g and O < G, so I(s) = g + (s - 1) G
    for row in found.comparisons(fitted):
        assert row.model_ns == pytest.approx(row.measured_ns), row
        assert row.table_ns == pytest.approx(row.measured_ns), row
    assert found.warnings(fitted) == []


def replace_limits(found: MeasuredTimes) -> MeasuredTimes:
    """Limits are medians of single calls, which most samples of `disturbed` spoil."""
    return replace(found, eager_bytes=EAGER, polled_bytes=POLLED)


def test_limits_are_found_and_both_sides_of_them_are_measured():
    found = measured()
    fitted = found.parameters()
    assert (fitted.S_bytes, fitted.S_polled_bytes) == (EAGER, POLLED)
    sizes = [row.size_bytes for row in fitted.table]
    assert sizes == sorted({*SIZES, EAGER, EAGER + 1, POLLED, POLLED + 1})
    assert fitted.regimes[0].to_bytes == POLLED
    assert fitted.regimes[1].from_bytes == POLLED + 1


@pytest.mark.parametrize("limit", [0, 1, 2, 511, 512, 4039, 9999, 10000])
def test_the_bisection_finds_every_limit(limit):
    asked = []

    def waits(size: int) -> bool:
        asked.append(size)
        return size > limit

    assert mpi_fit.eager_limit(waits, 10000) == limit
    assert len(asked) <= 2 + math.ceil(math.log2(10000))


def test_lines_through_exact_points():
    points = [(size, 300 + 0.25 * (size - 1)) for size in SIZES]
    assert mpi_fit.line(points) == pytest.approx((300, 0.25))
    assert mpi_fit.through_first(points) == pytest.approx(0.25)
    assert mpi_fit.line([(8, 50.0)]) == pytest.approx((50, 0))
    assert mpi_fit.line([(1, 10.0), (100, 5.0)])[1] == 0  # never below 0
    assert mpi_fit.through_first([(1, 10.0), (100, 5.0)]) == 0


def test_a_slope_is_the_best_of_relative_errors():
    points = [(1, 100.0), (1025, 400.0), (4097, 1200.0)]
    best = mpi_fit.through_first(points)

    def errors(slope: float) -> float:
        return sum(((100 + (size - 1) * slope - t) / t) ** 2 for size, t in points)

    assert errors(best) < min(errors(best * 0.999), errors(best * 1.001))


def test_what_is_doubtful_is_said():
    found = measured()
    fitted = found.parameters()
    found.times[BARRIER] = [1.0, 5.0, 9.0]
    for complete in (1, 3):
        with pytest.raises(Trouble, match=f"{complete} of 12 passes"):
            replace(found, wanted=12, passes=complete).fastest_half()
    crowded = replace(found, ranks=4, cores=2, passes=2)
    said = " ".join(crowded.warnings(replace(fitted, L_ns=0.0, S_bytes=1 << 20)))
    for part in ("4 ranks share 2 cores", "1 of ", "L is set to 0", "S is at least that", "2 of 3 passes"):
        assert part in said
    assert "share one core" in " ".join(replace(found, cores=1).warnings(fitted))


def test_a_wrong_search_for_a_limit_is_outvoted():
    """The first search finds that no sender waits; then two agree, with all tries at the largest size."""
    at_most = 0

    def timer(asked: Question, samples: int, calls: int) -> list[float]:
        nonlocal at_most
        wrong = asked.kind == "late" and at_most == 0
        at_most += asked.kind == "late" and asked.size == max(SIZES)
        return [O_SEND if wrong else exact(asked)] * samples

    assert measured(timer).eager_bytes == EAGER
    assert at_most == 1 + 2 * parameters.LATE_TRIES


def test_a_sender_that_sleeps_is_not_taken_for_one_that_waits():
    """Of the tries of each size only the last 5 of 25 are undisturbed."""
    tries: dict[Question, int] = {}

    def timer(asked: Question, samples: int, calls: int) -> list[float]:
        tries[asked] = tries.get(asked, 0) + 1
        asleep = asked.kind in ("late", "polled") and tries[asked] % parameters.LATE_TRIES
        return [exact(asked) + (2 * asked.work_ns if asleep else 0)] * samples

    found = measured(timer)
    assert (found.eager_bytes, found.polled_bytes) == (EAGER, POLLED)


def test_a_receive_that_takes_longer_alone_leaves_the_time_of_a_byte():
    """PRTT(1, 0, 1) / 2 - o_send - o_receive < 0: L = 0, and T(1) = 2 o = PRTT(1, 0, 1) / 2 all the same."""

    def timer(asked: Question, samples: int, calls: int) -> list[float]:
        return [exact(asked) + (1000 if asked.kind == "receive" else 0)] * samples

    found = measured(timer)
    fitted = found.parameters()
    assert (fitted.L_ns, fitted.o_ns) == (0, (L + O_SEND + O_RECEIVE) / 2)
    assert fitted.o_receive_ns == O_RECEIVE + 1000
    assert "L is set to 0" in " ".join(found.warnings(fitted))


def test_slow_passes_are_left_out():
    """The machine is three times as slow from the third pass on: of four passes the first two count."""
    asks = 0

    def timer(asked: Question, samples: int, calls: int) -> list[float]:
        nonlocal asks
        asks += asked == BARRIER
        slow = 3 if asks > 3 else 1  # the first asks how many calls make a sample
        return [exact(asked) * (slow if asked.kind not in ("late", "polled") else 1)] * samples

    found = measured(timer, passes=4)
    assert found.passes == 4
    assert {len(times) for times in found.times.values()} == {2}
    assert found.ns(BARRIER) == exact(BARRIER)


def test_a_noisy_machine_gets_no_parameters():
    asks = 0

    def timer(asked: Question, samples: int, calls: int) -> list[float]:
        nonlocal asks
        asks += asked == BARRIER
        return [exact(asked) * (1 if asked.kind in ("late", "polled") else 3**asks)] * samples

    with pytest.raises(Trouble, match="too noisy") as told:
        measured(timer, passes=8)
    assert told.value.exit_code == 1


def test_ranks_that_are_too_slow_are_refused(monkeypatch):
    monkeypatch.setattr(parameters, "TIME_S", -1.0)
    with pytest.raises(Trouble, match="are too slow here"):
        measured()


@needs_engine
def test_the_model_is_that_of_the_engine():
    """T(s) = o + L + o + (s - 1) max(O, G); I(s) = max(o + (s - 1) max(O, G), g + (s - 1) G); n messages and
    an answer: T(s) + (n - 1) I(s) + T(1); a collective operation of k rounds: k T(s)."""
    fitted = measured().parameters()
    for parameters_ in (fitted, replace(fitted, O_ns_per_byte=0.5, o_ns=300.0, g_ns=10.0)):
        model, prices = mpi_fit.Model(parameters_), parameters_.as_goal() | {"S": 1 << 30}
        for size in (1, 8, 1000):
            assert dialect_ps(message(size), prices) == pytest.approx(model.one_way_ns(size) * 1000)
            assert dialect_ps(flood(size), prices) == pytest.approx(
                mpi_fit.flood_ns(model, FLOOD_MESSAGES, size) * 1000
            )
        engine = core.load()
        for ranks in (2, 4, 8, 16):
            barrier = engine.goal_pattern("dissemination", ranks, 1).run_loggopsim(**prices)["makespan"]
            assert barrier == pytest.approx(mpi_fit.barrier_ns(model, ranks) * 1000)
            tree = engine.goal_pattern("binomial_broadcast", ranks, 8).run_loggopsim(**prices)["makespan"]
            assert tree == pytest.approx(mpi_fit.broadcast_ns(model, ranks, 8) * 1000)
            assert mpi_fit.allreduce_ns(model, ranks, 8) == mpi_fit.broadcast_ns(model, ranks, 8)
    assert mpi_fit.allreduce_ns(model, 6, 8) == 4 * model.one_way_ns(
        8
    )  # 2 rounds of 4 ranks, 1 before, 1 after


def message(size: int) -> str:
    return f"num_ranks 2\nrank 0 {{\nsend {size}b to 1\n}}\nrank 1 {{\nrecv {size}b from 0\n}}\n"


def flood(size: int) -> str:
    sends = "".join(f"send {size}b to 1\n" for _ in range(FLOOD_MESSAGES))
    receives = "".join(f"r{i}: recv {size}b from 0\n" for i in range(FLOOD_MESSAGES))
    return (
        f"num_ranks 2\nrank 0 {{\n{sends}recv 1b from 1 tag 1\n}}\n"
        f"rank 1 {{\n{receives}a: send 1b to 0 tag 1\na requires r{FLOOD_MESSAGES - 1}\n}}\n"
    )


def dialect_ps(text: str, prices: dict[str, int]) -> int:
    return core.load().read_goal(text.encode()).run_loggopsim(**prices)["makespan"]


@needs_engine
@pytest.mark.parametrize("big_o", [0.0, 0.5, 1.0])
def test_our_own_rules_have_rates_of_their_own(big_o):
    """T(s) = o + L + o + (s - 1) (2 O + G); I(s) = max(o + (s - 1) O, g + (s - 1) G); a stream and its answer
    T(s) + (n - 1) I(s) + T(1). With G = 1 every O up to 1 is found again."""
    fitted = measured().parameters()
    first = L + O_SEND + O_RECEIVE
    table = tuple(
        replace(
            row,
            one_way_ns=first + (row.size_bytes - 1) * (2 * big_o + 1),
            interval_ns=G_FIRST + row.size_bytes - 1,
        )
        for row in fitted.table
    )
    own = mpi_fit.with_own_rates(replace(fitted, table=table, S_bytes=1 << 30))
    model = mpi_fit.OwnRulesModel(own)
    words = iter(options(own, "ps").split())
    names = {spelled[0]: name for name, spelled in goal_model.OPTIONS.items()}
    prices = goal_model.parse({names[word]: value for word, value in zip(words, words, strict=True)}, "1ps")
    engine = core.load()
    for size in (1, 8, 1000):
        assert model.one_way_ns(size) == pytest.approx(first + (size - 1) * (2 * big_o + 1))
        assert model.interval_ns(size) == pytest.approx(G_FIRST + size - 1)
        for text, ns in (
            (message(size), model.one_way_ns(size)),
            (flood(size), mpi_fit.flood_ns(model, FLOOD_MESSAGES, size)),
        ):
            assert max(engine.read_goal(text.encode()).run(**prices)["finish_ps"]) == pytest.approx(ns * 1000)


@pytest.mark.parametrize(
    ("one_way", "stream"), [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.5, 1.0), (0.0, 0.0)]
)
def test_slopes_that_no_rates_have_get_the_nearest(one_way, stream):
    """2 O + G = one_way and max(O, G) = stream, where stream <= one_way <= 3 stream."""
    big_o, g = mpi_fit.own_rates(one_way, stream)
    assert min(big_o, g) >= 0
    assert 2 * big_o + g == pytest.approx(max(one_way, stream))
    assert max(big_o, g) == pytest.approx(max(stream, one_way / 3))


def test_the_table_is_read_between_its_sizes():
    fitted = measured().parameters()
    for size in (1, 5, 64, 300, 5000, 1 << 20, 1 << 22):
        assert fitted.at("one_way_ns", size) == pytest.approx(mpi_fit.Model(fitted).one_way_ns(size))


# ---- the file ----


def test_what_is_written_is_read(tmp_path):
    fitted = measured().parameters()
    where = tmp_path / "parameters.json"
    mpi_parameters.write(fitted, where)
    again = mpi_parameters.read(where)
    assert again.about == fitted.about
    assert again.S_bytes == EAGER
    assert again.L_ns == pytest.approx(fitted.L_ns, abs=1e-6)
    assert [row.size_bytes for row in again.table] == [row.size_bytes for row in fitted.table]
    assert again.as_goal() == {"L": 700_000, "o": 110_000, "g": 240_000, "G": 125, "O": 62, "S": EAGER}


def without_g(document: dict) -> None:
    del document["parameters"]["g_ns"]


def negative(document: dict) -> None:
    document["parameters"]["L_ns"] = -1.0


def not_whole(document: dict) -> None:
    document["parameters"]["S_bytes"] = 1.5


def disordered(document: dict) -> None:
    document["table"].reverse()


def of_later(document: dict) -> None:
    document["format"] = 99


def unknown_column(document: dict) -> None:
    document["table"][0]["colour"] = 1


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (without_g, "'g_ns' is missing"),
        (negative, "L_ns is -1.0"),
        (not_whole, "S_bytes is 1.5"),
        (disordered, "do not ascend"),
        (of_later, "format 99, not 1"),
        (unknown_column, "colour"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, spoil, complaint):
    where = tmp_path / "parameters.json"
    mpi_parameters.write(measured().parameters(), where)
    document = json.loads(where.read_text(encoding="utf-8"))
    spoil(document)
    where.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(Trouble, match=complaint):
        mpi_parameters.read(where)


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(Trouble, match="spinloom calibrate mpi"):
        mpi_parameters.read(tmp_path / "none.json")


# ---- the verb ----


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["mpi", "no-such-mpicc"], 3, "there is no MPI compiler 'no-such-mpicc'"),
        (["--ranks", "4"], 2, "No such option '--ranks'"),
        (["pears"], 2, "did you mean 'peers'"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(spinloom, words, code, complaint):
    ran = spinloom("calibrate", *words)
    assert ran.code == code
    assert complaint in ran.err


def program(where: Path, text: str) -> Path:
    where.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    where.chmod(0o755)
    return where


@pytest.mark.parametrize(
    ("compiler", "launcher", "short", "complaint"),
    [
        ("echo no header >&2; exit 1", "exit 0", None, "no header"),
        ("exit 0", "echo no slots; exit 1", None, "rank 0 does not answer. no slots"),
        (
            "exit 0",
            'test "$1" = --version || exec sleep 600',
            (parameters, "ANSWER_S"),
            "rank 0 does not answer",
        ),
        ("exit 0", "exec sleep 600", (jobs, "START_S"), "--version' does not end within 0.5 s"),
    ],
)
def test_an_mpi_that_does_not_work_is_a_sentence(
    spinloom, tmp_path, monkeypatch, compiler, launcher, short, complaint
):
    """`short`: the limit of what never ends here; the others stay as long as they are, for busy machines."""
    if short is not None:
        monkeypatch.setattr(*short, 0.5)
    mpicc = program(tmp_path / "mpicc", compiler)
    program(tmp_path / "mpiexec", launcher)
    ran = spinloom("calibrate", "mpi", str(mpicc), "--out", str(tmp_path / "out.json"))
    assert ran.code == 3
    assert complaint in ran.err
    assert not (tmp_path / "out.json").exists()


@pytest.mark.skipif(not jobs.mpis(), reason="no MPI is here")
@pytest.mark.parametrize("mpi", [str(found.compiler) for found in jobs.mpis()])
def test_every_mpi_is_measured(spinloom, tmp_path, monkeypatch, mpi):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in {"TIME_S": seconds(240), "LOOKS_MAX": 1, "LATE_TRIES": 1, "SAMPLES": 1}.items():
        monkeypatch.setattr(parameters, name, value)
    monkeypatch.setattr(parameters, "SAMPLE_NS", 1000)
    ran = spinloom("calibrate", "mpi", mpi, "--passes", "1", "--ranks", "3", "--json", "--quiet")
    assert ran.code == 0, ran.err
    (where,) = (tmp_path / "cache" / "spinloom").glob("mpi-*.json")
    read = mpi_parameters.read(where)
    assert read.about["compiler"] == mpi
    assert read.about["command"] == f"spinloom calibrate mpi {mpi} --ranks 3 --passes 1"
    assert read.about["passes"] == 1
    assert mpi_parameters.path(read.about["mpi"]) == where
    assert {*parameters.SIZES} <= {row.size_bytes for row in read.table}
    assert max(read.S_bytes, read.S_polled_bytes) <= max(parameters.SIZES)
    assert all(row.one_way_ns > 0 for row in read.table)
    assert 2 * read.o_ns + read.L_ns == pytest.approx(read.table[0].one_way_ns, abs=1e-5)  # T(1)
    rows = json.loads(ran.out)
    names = [row["what"] for row in rows]
    assert names[:8] == ["L", "o", "o send", "o receive", "g", "G", "O", "S"]
    assert {
        "one way",
        "interval",
        f"stream of {FLOOD_MESSAGES}",
        "MPI_Barrier",
        "MPI_Allreduce",
        "MPI_Bcast",
    } <= {*names}
    for row in rows[8:]:
        assert row["model_ns"] >= 0
        assert row["ranks"] == (3 if row["what"].startswith("MPI_") else 2)
    assert (
        STREAM_MESSAGES < FLOOD_MESSAGES
    )  # streams are compared with more messages than they were fitted to
