"""`spinloom goal`: the examples to the unit, files that are wrong, patterns as files."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.predict import goal_model

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"
LOGGOPSIM = ("--dialect", "loggopsim")


def test_the_time_of_each_rank_by_command_is_that_of_loggopsim(spinloom):
    values = tomllib.loads((HERE / "examples.toml").read_text(encoding="utf-8"))["parameters"]["D"]
    options = [word for name in "LogGOS" for word in (goal_model.OPTIONS[name][0], str(values[name]))]
    ran = spinloom("goal", str(EXAMPLES / "ping_pong.goal"), *options, *LOGGOPSIM, "--json")
    assert [row["time"] for row in json.loads(ran.out)] == [1763760, 1398460]
    ran = spinloom("goal", "run", str(EXAMPLES / "ping_pong.goal"), *options, *LOGGOPSIM, "--csv")
    assert [row["time"] for row in csv.DictReader(ran.out.splitlines())] == ["1763760", "1398460"]
    ran = spinloom("goal", str(EXAMPLES / "ping_pong.goal"), *options, *LOGGOPSIM)
    assert "1,763,760 (rank 0)" in ran.out
    assert "host time" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num_ranks 2\nrank 0 {\nsend 8b to 5\n}\nrank 1 {\n}\n", "line 3"),
        ("num_ranks 1\nrank 0 {\nb requires a\n}\n", "line 3"),
        ("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n", "rank 1"),
        ("", "line 1"),
    ],
)
def test_what_is_wrong_is_one_sentence(spinloom, tmp_path, text, said):
    path = tmp_path / "wrong.goal"
    path.write_text(text)
    for verb in (["goal"], ["goal", "check"]):
        ran = spinloom(*verb, str(path))
        assert ran.code in (1, 2)
        assert said in ran.err
        assert ran.err.count("\n") == 1
        assert ran.out == ""


def test_messages_that_nobody_wants_are_found_before_the_run(spinloom):
    ran = spinloom("goal", str(EXAMPLES / "deadlock.goal"))
    assert ran.code == 2
    assert "rank 0 sends rank 1 1 message with tag 1, but rank 1 has 0 receives" in ran.err
    assert ran.out == ""


def test_a_schedule_that_stalls_says_who_waits(spinloom, tmp_path):
    path = tmp_path / "both.goal"
    ranks = [
        f"rank {rank} {{\nr: recv 8b from {1 - rank}\ns: send 8b to {1 - rank}\ns requires r\n}}\n"
        for rank in (0, 1)
    ]
    path.write_text("num_ranks 2\n" + "".join(ranks))
    assert spinloom("goal", "check", str(path)).code == 0
    ran = spinloom("goal", str(path))
    assert ran.code == 1
    assert "rank 0" in ran.err
    assert "rank 1" in ran.err
    assert ran.out == ""


# Rank 1 reports twice to rank 0, which takes anybody's message, before a barrier. Rank 2 has sent its part
# of the barrier long before.
REPORTS = """num_ranks 3
rank 0 {
a: recv 8b from -1 tag -1
b: recv 8b from -1 tag -1
b irequires a
c: recv 1b from 2 tag 1000003
c requires a
c requires b
}
rank 1 {
a: calc 90000
b: send 8b to 0 tag 5
b requires a
c: send 8b to 0 tag 6
c requires b
}
rank 2 {
send 1b to 0 tag 1000003
}
"""


def test_options_stand_before_or_behind_the_file(spinloom):
    path = str(EXAMPLES / "ping_pong.goal")
    behind = spinloom("goal", path, "-L", "1000", "--csv")
    assert behind.code == 0
    for words in (
        ["-L", "1000", path, "--csv"],
        ["--csv", "-L1000", path],
        ["run", "-L", "1000", path, "--csv"],
    ):
        assert spinloom("goal", *words).out == behind.out
    assert "Missing argument 'FILE'" in spinloom("goal", "-L", "1000").err
    assert "convert" in spinloom("goal", "--help").out


@pytest.mark.parametrize("dialect", [(), LOGGOPSIM])
def test_receives_of_any_tag_leave_messages_of_collective_operations(spinloom, tmp_path, dialect):
    path = tmp_path / "reports.goal"
    path.write_text(REPORTS)
    assert spinloom("goal", str(path), *dialect).code == 1  # rank 0 takes the barrier's message
    ran = spinloom("goal", str(path), *dialect, "--collective-tags", "1000000-", "--json")
    assert ran.code == 0, ran.err
    ends = [row["finish_ps"] if not dialect else 1000 * row["time"] for row in json.loads(ran.out)]
    assert ends[0] > 90_000_000
    exact = spinloom("goal", str(path), *dialect, "--collective-tags", "1000003", "--json")
    assert exact.out == ran.out
    assert spinloom("goal", str(path), *dialect, "--collective-tags", "1-1000002").code == 1


def test_tags_that_are_none_are_named(spinloom, tmp_path):
    path = one_message(tmp_path)
    for text in ("-", "x-", "9-3", "1-4294967295", "-5", "1-2-3"):
        ran = spinloom("goal", path, f"--collective-tags={text}")
        assert ran.code == 2
        assert f"--collective-tags {text}: " in ran.err
    ran = spinloom("goal", path, "--collective-tags", "7-", "--nic", "sc19-slingshot", "--fidelity", "full")
    assert ran.code == 2
    assert "--collective-tags: --fidelity full has none" in ran.err


def test_a_file_that_is_not_there(spinloom, tmp_path):
    ran = spinloom("goal", str(tmp_path / "none.goal"))
    assert ran.code == 2
    assert "none.goal: No such file" in ran.err


def test_a_folder_is_no_schedule(spinloom, tmp_path):
    for verb in ("run", "check", "compare"):
        assert f"{tmp_path} is a folder; name a schedule in it" in spinloom("goal", verb, str(tmp_path)).err
    (tmp_path / "rank-0.trace").touch()
    ran = spinloom("goal", str(tmp_path))
    assert ran.code == 2
    assert f"'spinloom predict {tmp_path}' replays it, and with --goal FILE.goal" in ran.err


@pytest.mark.parametrize("ending", [".goal", ".bin"])
def test_a_pattern_in_a_file_is_the_pattern(spinloom, tmp_path, ending):
    lines = spinloom("goal", "make").out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == list(core.load().goal_patterns())
    assert all(len(line.split(maxsplit=1)[1]) > 10 for line in lines)
    for name in names:
        path = tmp_path / f"{name}{ending}"
        assert spinloom("goal", "make", name, "--ranks", "8", "--size", "100", "-o", str(path)).code == 0
        read, made = core.load().read_goal(path.read_bytes()), core.load().goal_pattern(name, 8, 100)
        assert read.text() == made.text()
        read.check()
        values = {"L": 7, "o": 3, "g": 2, "G": 1, "O": 0, "S": 1000}
        assert read.run_loggopsim(**values) == made.run_loggopsim(**values)


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["dissemination", "--ranks", "27", "--radix", "3"], 27 * 3 * 2),
        (["chain_broadcast", "--ranks", "5", "--size", "9000", "--segment", "1KiB"], 4 * 9),
        (["chain_broadcast", "--ranks", "5", "--size", "9000"], 4 * 2),
        (["halo_2d", "--ranks", "12", "--grid", "1x12"], 24),
        (["halo_3d", "--ranks", "27"], 27 * 6),
    ],
)
def test_options_of_patterns(spinloom, tmp_path, words, messages):
    path = tmp_path / "made.bin"
    assert spinloom("goal", "make", *words, "-o", str(path)).code == 0
    assert core.load().read_goal(path.read_bytes()).count()["sends"] == messages


def test_a_dissemination_has_its_closed_form(spinloom, tmp_path):
    """k rounds of 2 o + L + (s - 1) G, where a rank's overhead is at least its gap."""
    rounds, size = 10, 64
    path = tmp_path / "d.bin"
    spinloom("goal", "make", "dissemination", "--ranks", str(2**rounds), "--size", str(size), "-o", str(path))
    ends = rounds * (2 * 1500 + 2500 + (size - 1) * 6)
    rows = json.loads(spinloom("goal", str(path), "--json").out)
    assert {row["finish_ps"] for row in rows} == {1000 * ends}
    assert {row["overhead_ps"] for row in rows} == {1000 * rounds * 2 * 1500}
    assert {row["waiting_ps"] for row in rows} == {1000 * rounds * (2500 + (size - 1) * 6)}
    rows = json.loads(spinloom("goal", str(path), *LOGGOPSIM, "--json").out)
    assert {row["time"] for row in rows} == {ends}


@pytest.mark.parametrize("dialect", [(), LOGGOPSIM])
def test_the_times_of_each_rank_in_a_file(spinloom, tmp_path, dialect):
    path = str(EXAMPLES / "binomial_8.goal")
    table = spinloom("goal", path, *dialect, "--csv").out
    rows = json.loads(spinloom("goal", path, *dialect, "--json").out)
    made = tmp_path / "ranks.csv"
    ran = spinloom("goal", path, *dialect, "--per-rank", str(made))
    assert ran.code == 0
    assert "the last rank ends" in ran.out
    assert made.read_text() == table
    polars = pytest.importorskip("polars")
    made = tmp_path / "ranks.parquet"
    assert spinloom("goal", path, *dialect, "--per-rank", str(made)).code == 0
    frame = polars.read_parquet(made)
    assert frame.to_dicts() == rows
    assert set(frame.dtypes) == {polars.Int64}


def test_times_that_wrap_are_whole_in_a_file(spinloom, tmp_path):
    """A computation of 2^64 - 1 in the dialect's integers."""
    polars = pytest.importorskip("polars")
    (tmp_path / "long.goal").write_text(f"num_ranks 1\nrank 0 {{\ncalc {2**64 - 1}\n}}\n")
    made = tmp_path / "ranks.parquet"
    ran = spinloom("goal", str(tmp_path / "long.goal"), *LOGGOPSIM, "--per-rank", str(made))
    assert ran.code == 0, ran.err
    assert polars.read_parquet(made).to_dicts() == [{"rank": 0, "time": 2**64 - 1}]


def test_a_file_of_ranks_has_a_form(spinloom, tmp_path, monkeypatch):
    monkeypatch.setattr(core.load().Schedule, "run", None)  # it is refused before the run
    ran = spinloom("goal", str(EXAMPLES / "ring_5.goal"), "--per-rank", str(tmp_path / "ranks.txt"))
    assert ran.code == 2
    assert "ranks.txt: end the name in .csv or in .parquet" in ran.err


@pytest.mark.parametrize("dialect", [False, True])
def test_progress_goes_to_all_operations_and_can_end_the_run(dialect):
    """Looks are 65,536 events apart; 300 ranks have 358,800 operations and half as many messages."""
    schedule = core.load().goal_pattern("ring_allreduce", 300, 8)
    values = {"L": 7, "o": 3, "g": 2, "G": 1, "O": 0, "S": 1000}

    def run(progress):
        if dialect:
            return schedule.run_loggopsim(**values, progress=progress)
        return schedule.run(7, 3, 2, (1, 1), progress=progress)

    begun = []
    outcome = run(begun.append)
    assert begun == sorted(begun)
    assert len(begun) >= 5
    assert begun[-1] <= schedule.count()["operations"]
    assert begun[-1] > schedule.count()["operations"] * 0.8
    assert run(None) == outcome

    def interrupt(_):
        calls.append(1)
        raise KeyboardInterrupt

    calls = []
    with pytest.raises(KeyboardInterrupt):
        run(interrupt)
    assert len(calls) == 1


def one_message(tmp_path, size=1000):
    path = tmp_path / "one.goal"
    path.write_text(
        f"num_ranks 2\nrank 0 {{\nsend {size}b to 1\n}}\n"
        f"rank 1 {{\nr: recv {size}b from 0\nc: calc 3\nc requires r\n}}\n"
    )
    return str(path)


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        # T = o + L + (s - 1) G + o + computation
        ([], 1_500_000 + 2_500_000 + 999 * 6000 + 1_500_000 + 3000),
        (
            ["-L", "2.5us", "--overhead", "1500ns", "-G", "6 ns/B"],
            1_500_000 + 2_500_000 + 999 * 6000 + 1_500_000 + 3000,
        ),
        (
            ["-L", "0.5", "--overhead", "65.25", "-G", "20ps/B", "--unit", "2us"],
            2 * 65_250 + 500 + 999 * 20 + 6_000_000,
        ),
        (["-L", "0", "--overhead", "0", "-G", "400Gbit/s", "--unit", "0"], 999 * 20),
        (["-L", "0", "--overhead", "0", "-G", "0.02", "-O", "0ps/B", "--unit", "0"], 999 * 20),
        # 1000/3 ps for each byte, rounded up once
        (["-L", "0", "--overhead", "0", "-G", "3GB/s", "--unit", "0"], 333_000),
        (["-L", "0", "--overhead", "0", "-G", "7GB/s", "--unit", "0"], 142_715),
        # T = o + L + L + L + (s - 1) G + o: a rendezvous
        (["-S", "999", "--unit", "0"], 3 * 2_500_000 + 999 * 6000 + 2 * 1_500_000),
        (["-S", "1kB", "-O", "2", "--unit", "0"], 2_500_000 + 999 * 6000 + 2 * (1_500_000 + 999 * 2000)),
    ],
)
def test_parameters_have_units(spinloom, tmp_path, words, ends):
    rows = json.loads(spinloom("goal", one_message(tmp_path), *words, "--json").out)
    assert rows[1]["finish_ps"] == ends
    assert sum(rows[1][f"{part}_ps"] for part in ("compute", "overhead", "waiting")) == ends


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-L", "5 parsecs"], "-L 5 parsecs: accepted forms"),
        (["-L", "0.0001"], "-L 0.0001: it is not a whole number of picoseconds"),
        (["--overhead", "-1"], "--overhead -1: it must begin with a number"),
        (["-G", "5 s"], "-G 5 s: accepted forms"),
        (["-G", "0 GB/s"], "-G 0 GB/s: a bandwidth of zero"),
        (["-S", "x"], "-S x: it must begin with a number"),
        (["-L", "100000000s"], "it is at most"),
        (["-L", "4000000s", "--overhead", "4000000s"], "passes 4611686018427387904 ps"),
        (["--noise", "5us"], "--noise 5us: accepted form: 10us/1ms"),
        (["--noise", "5us/5us"], "5us in each 5us leaves a CPU no time"),
        (["--noise", "5us/1ms,loud"], "'loud' is neither seed=N nor together"),
        (["--noise", "5 x/1ms"], "--noise 5 x: accepted forms"),
        ([*LOGGOPSIM, "--noise", "1us/1ms"], "--noise: the rules of loggopsim have none"),
        ([*LOGGOPSIM, "-L", "2.5us"], "-L 2.5us: the rules of LogGOPSim take whole numbers"),
        ([*LOGGOPSIM, "-G", "18446744073709551616"], "it is at most 18446744073709551615"),
    ],
)
def test_parameters_that_are_none_are_named(spinloom, tmp_path, words, said):
    ran = spinloom("goal", one_message(tmp_path), *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_noise_is_that_of_its_seed(spinloom, tmp_path):
    """A computation of 3 ms ends at 4 ms if the CPU is away for 0.25 ms of each 1 ms, from the start on. If
    it is away for all but 1 us of each 1 ms, a seed says when 10 ns are done."""

    def ends(computation_ns, noise):
        path = tmp_path / "calc.goal"
        path.write_text(f"num_ranks 1\nrank 0 {{\ncalc {computation_ns}\n}}\n")
        (row,) = json.loads(spinloom("goal", str(path), "--noise", noise, "--json").out)
        return row["finish_ps"]

    assert ends(3_000_000, "250us/1ms,together") == 4_000_000_000
    seeds = [ends(10, f"999us/1ms,seed={seed}") for seed in range(1, 5)]
    assert len(set(seeds)) == 4
    assert seeds[0] == ends(10, "999us/1ms")
    assert all(10_000 <= time <= 999_010_000 for time in seeds)


def test_the_table_says_what_cpus_do(spinloom, tmp_path):
    """A sender for 1500 ns; a receiver for 1500 + 3 ns of 5.5 us + 5994 ns + 3 ns."""
    ran = spinloom("goal", one_message(tmp_path))
    assert "11.5 us (rank 1, 11,497,000 ps)" in ran.out
    assert "1.5 us (rank 0, 1,500,000 ps)" in ran.out
    assert f"{100 * 3000 / 12_997_000:.1f} %" in ran.out
    assert f"{100 * 3_000_000 / 12_997_000:.1f} %" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no_such"], "no_such"),
        (["dissemination"], "--ranks"),
        (["recursive_doubling_allgather", "--ranks", "6"], "6"),
        (["linear_gather", "--ranks", "6", "--radix", "3"], "has no radix"),
        (["chain_reduce", "--ranks", "6", "--segment", "3 parsecs"], "--segment 3 parsecs: accepted forms"),
        (["halo_2d", "--ranks", "6", "--grid", "3 by 2"], "--grid 3 by 2: write it as 8x8"),
        (["halo_2d", "--ranks", "6", "--grid", "3x3"], "the grid needs 2 numbers whose product is 6"),
        (["dissemination", "--ranks", "4", "-o", "d.txt"], ".goal"),
    ],
)
def test_make_says_what_it_lacks(spinloom, words, said):
    if words[0] == "no_such":
        words = [*words, "--ranks", "4"]
    ran = spinloom("goal", "make", *words)
    assert ran.code == 2
    assert said in ran.err


def test_the_engine_from_python_refuses_what_is_no_schedule():
    with pytest.raises(Trouble, match="line 1"):
        core.load().read_goal(b"hello")
