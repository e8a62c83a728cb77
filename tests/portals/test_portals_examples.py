"""The examples of Portals programs: in modelled time as the studies say, between processes the same lines."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import launchers
from c_programs import EXAMPLES, NIC, compile_with, needs_compiler
from conftest import needs_engine
from spinloom.nics import jobs, profiles
from spinloom.papers import studies
from spinloom.papers.lab import Lab

pytestmark = [needs_engine, needs_compiler]


@pytest.mark.parametrize("size_bytes", [8, 4096, 65536])
def test_a_ping_pong_takes_what_the_study_says_and_half_a_call(sim, size_bytes):
    """The program's clock starts before its put, whose call costs o; the study's starts after that."""
    code, ran, said = sim(2, EXAMPLES / "pingpong.c", size_bytes)
    assert code == 0, said
    measured_ns = float(re.fullmatch(r"\d+ B: ([\d.]+) ns\n", ran["output"])[1])
    expected_ps = Lab(1)[studies.probe("pingpong", NIC, "portals4", size_bytes)]["time_ps"]
    call_ps = profiles.load(NIC)["host.call"]
    assert measured_ns == pytest.approx((expected_ps + call_ps / 2) / 1000, abs=0.5)  # its clock counts ns


def test_a_broadcast_reaches_every_rank(sim):
    code, ran, said = sim(13, EXAMPLES / "broadcast.c", 1000)
    assert code == 0, said
    assert re.fullmatch(r"1000 B to 13 ranks: \d+ ns\n", ran["output"])


def test_a_broadcast_to_one_rank_takes_what_the_study_says(sim):
    """The study's ranks are one wire further apart, those of a fat tree; the program's first call costs o."""
    code, ran, said = sim(2, EXAMPLES / "broadcast.c", 8)
    assert code == 0, said
    profile = profiles.load(NIC)
    study_ps = Lab(1)[studies.probe("broadcast", NIC, "portals4", 8)]["time_ps"]
    expected_ps = study_ps - profile["link.wire"] + profile["host.call"]
    took_ns = int(ran["output"].split()[-2])
    # Both readings of its clock are whole ns, and a counter is posted before.
    assert took_ns == pytest.approx(expected_ps / 1000, abs=2.5)


def test_unexpected_messages_wait_for_their_entries(sim):
    code, ran, said = sim(4, EXAMPLES / "unexpected.c")
    assert code == 0, said
    early = [f"PUT of rank {rank}, 8 B, entry overflow" for rank in (1, 2, 3)]
    each = [
        (f"PUT_OVERFLOW of rank {rank}, 'early {rank}'", f"PUT of rank {rank}, 'late {rank}'")
        for rank in (1, 2, 3)
    ]
    assert ran["output"].splitlines() == early + [line for pair in each for line in pair]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", ["pingpong.c", "handlers.c"])
def test_an_example_of_two_ranks_says_so(name, ranks):
    command = [sys.executable, "-m", "spinloom.cli", "sim", "-n", str(ranks), str(EXAMPLES / name)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"this program is for 2 ranks, not {ranks}: -n 2\n")


@pytest.mark.parametrize(
    ("name", "words", "what"),
    [
        *(
            ("pingpong.c", (word,), f"BYTES is '{word}', not a number from 0 to 1073741824")
            for word in ("eight", "8B", "-8", "0x8", "1073741825", "99999999999999999999999")
        ),
        ("pingpong.c", ("8", "0"), "ROUNDS is '0', not a number from 1 to 1024"),
        ("broadcast.c", ("all",), "BYTES is 'all', not a number from 0 to 1073741824"),
        ("handlers.c", ("0",), "BYTES is '0', not a number from 1 to 1073741824"),
    ],
)
def test_an_example_takes_no_other_word_for_a_number(name, words, what):
    command = [sys.executable, "-m", "spinloom.cli", "sim", "-n", "2", str(EXAMPLES / name), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"{what}\n" in ran.stderr


@pytest.mark.parametrize("name", ["pingpong.c", "broadcast.c"])
def test_an_example_moves_no_bytes_too(sim, name):
    code, ran, said = sim(2, EXAMPLES / name, 0)
    assert code == 0, said
    assert ran["output"].startswith("0 B"), ran


LIVE_EXAMPLES = {
    # program: (ranks, argument, what each line is)
    "pingpong.c": (2, "5000", [r"5000 B: [\d.]+ ns"]),
    "broadcast.c": (5, "5000", [r"5000 B to 5 ranks: \d+ ns"]),
    "handlers.c": (2, "5000", [r"5000 B: [\d.]+ ns"]),
    "unexpected.c": (
        3,
        "",
        [
            *(rf"PUT of rank {rank}, 8 B, entry overflow" for rank in (1, 2)),
            *(
                rf"{kind} of rank {rank}, '{when} {rank}'"
                for kind, when in (("PUT", "late"), ("PUT_OVERFLOW", "early"))
                for rank in (1, 2)
            ),
        ],
    ),
}


@pytest.mark.parametrize("launcher", launchers.available())
@pytest.mark.parametrize("name", LIVE_EXAMPLES)
def test_an_example_does_the_same_between_processes(tmp_path, name, launcher):
    """The bytes are compared by the programs; here their lines, but for times and for who came first."""
    ranks, argument, expected = LIVE_EXAMPLES[name]
    program = tmp_path / "program"
    compile_with("cc", EXAMPLES / name, "-o", program, *jobs.compile_options(), *jobs.link_options())
    ran = launchers.run(launcher, ranks, program, *argument.split())
    assert ran.returncode == 0, ran.stderr
    lines = sorted(ran.stdout.splitlines())
    assert len(lines) == len(expected), ran.stdout
    for line, pattern in zip(lines, sorted(expected), strict=True):
        assert re.fullmatch(pattern, line)
