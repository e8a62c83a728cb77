"""Jobs on two networks that nothing but gateways joins: machine b is on both, a and c on one of them each.

The launcher has a network of its own, on which our packets do not travel.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from live_programs import over
from machines import OWN_NAMESPACES, Machines, machines, program, why_not
from patience import seconds, until
from pmi_job import Job
from test_live import LIBRARY, answers_of, build, finished, nothing_runs, pytestmark
from test_live_machines import ways_of

__all__ = ["build", "pytestmark"]  # pytest finds them here

HYDRA = Path(sys.executable).parent / "mpiexec.hydra"
BIN = LIBRARY.parent / "bin" if LIBRARY else Path()
LIMIT_S = seconds(120)
NETWORKS = {"SPINLOOM_UDP_ADDRESS": "10.77.1.0/24,10.77.2.0/24"}
FORWARDS = ["1", "store"]
every_gateway = pytest.mark.parametrize("forwards", FORWARDS)


def apart(folder: Path, stack: contextlib.ExitStack, count: int = 3) -> Machines:
    """Machines a and b on network 1, b and c on network 2, and so on."""
    if why := why_not():
        pytest.skip(why)
    there = stack.enter_context(machines(folder, count))
    for network in range(1, count):
        there.cable(network - 1, network)
        there.cable(network, network)
    return there


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Machines]:
    with contextlib.ExitStack() as stack:
        yield apart(tmp_path_factory.mktemp("place"), stack)


@pytest.fixture
def own_place(tmp_path) -> Iterator[Machines]:
    with contextlib.ExitStack() as stack:
        yield apart(tmp_path / "place", stack)


def run(there: Machines, *words: object, hosts: str = "a:2,b:2,c:2", **settings: str):
    if not HYDRA.exists():
        pytest.skip(f"{HYDRA} is not here")
    agent = ["-launcher", "ssh", "-launcher-exec", str(there.remote_shell), "-hosts", hosts]
    return there.run(HYDRA, *agent, *map(str, words), limit_s=LIMIT_S, **{**NETWORKS, **settings})


@every_gateway
def test_programs_are_unchanged_where_ranks_forward_beside_their_program(build, place, forwards):
    exchanges = build("live_traffic.c")
    ran = run(place, "-n", 6, exchanges, 3_000_000, SPINLOOM_GATEWAY=forwards)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(range(6)), ran.stdout
    assert place.nothing_runs(exchanges)


@every_gateway
def test_a_gateway_of_its_own_is_no_rank(build, place, forwards):
    exchanges, gateway = build("live_traffic.c"), BIN / "spinloom-gateway"
    words = ["-n", 2, exchanges, 300_001, ":", "-n", 1, gateway, ":", "-n", 2, exchanges, 300_001]
    ran = run(place, *words, hosts="a:2,b:1,c:2", SPINLOOM_GATEWAY=forwards if forwards == "store" else "0")
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(range(4)), ran.stdout
    assert place.nothing_runs(gateway)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("live_ring.c", [2000]),
        ("live_storm.c", []),
        ("live_incast.c", [50]),
        ("live_chain.c", []),
        ("live_flood.c", []),
    ],
)
def test_other_programs_run_over_a_bridge(build, place, name, arguments):
    ran = run(place, "-n", 6, build(name), *arguments, SPINLOOM_GATEWAY="1")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_lossy_network_on_either_side(build, place):
    faults = "drop=0.03,duplicate=0.03,reorder=0.03,corrupt=0.01,seed=5"
    ran = run(
        place, "-n", 6, build("live_traffic.c"), 65_553, SPINLOOM_GATEWAY="1", SPINLOOM_UDP_FAULTS=faults
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(range(6)), ran.stdout


def test_a_fabric_on_one_side(build, place):
    """The provider tcp uses each machine's first network: b and c share theirs, a and b do not."""
    over("tcp")
    settings = {"SPINLOOM_UDP_ADDRESS": "10.77.2.0/24,10.77.1.0/24", "SPINLOOM_FABRIC": "tcp"}
    ran = run(place, "-n", 6, build("live_traffic.c"), 300_001, SPINLOOM_GATEWAY="1", **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ways = ways_of(run(place, "-n", 6, BIN / "spinloom-info", SPINLOOM_GATEWAY="1", **settings).stdout)
    assert ways[0, 2].startswith("UDP 10.77.1.2:"), ways
    assert re.match(r"libfabric .* tcp.* on net2, 10\.77\.2\.3:", ways[2, 4]), ways
    assert re.match(r"a bridge through rank [23] \(gateway\), libfabric .* tcp", ways[4, 0]), ways


def test_several_nics_of_a_rank_each_have_their_bridge(build, place):
    exchanges, rails = build("live_traffic.c"), {"SPINLOOM_RAILS": "udp,auto"}
    ran = run(place, "-n", 6, exchanges, 65_553, SPINLOOM_GATEWAY="1", **rails)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(range(6)), ran.stdout
    words = [
        "-n",
        2,
        exchanges,
        65_553,
        ":",
        "-n",
        1,
        BIN / "spinloom-gateway",
        ":",
        "-n",
        2,
        exchanges,
        65_553,
    ]
    ran = run(place, *words, hosts="a:2,b:1,c:2", **rails)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    assert set(answers_of(ran.stdout)) == set(range(4)), ran.stdout


def test_spinloom_info_says_through_whom(place):
    ran = run(place, "-n", 6, BIN / "spinloom-info", SPINLOOM_GATEWAY="1")
    assert (ran.returncode, "spinloom" in ran.stderr) == (0, False), ran.stdout + ran.stderr
    ways = ways_of(ran.stdout)
    for rank, peer in ((0, 4), (0, 5), (1, 4), (1, 5), (5, 0)):
        assert re.match(r"a bridge through rank [23] \(gateway\), UDP 10\.77\.[12]\.2:", ways[rank, peer]), (
            ways
        )
    assert ways[0, 2].startswith("UDP 10.77.1.2:"), ways
    assert ways[4, 2].startswith("UDP 10.77.2.2:"), ways
    assert ways[0, 1].startswith("shared memory"), ways
    words = ["-n", 2, BIN / "spinloom-info", ":", "-n", 1, BIN / "spinloom-gateway", ":", "-n", 2]
    ways = ways_of(run(place, *words, BIN / "spinloom-info", hosts="a:2,b:1,c:2").stdout)
    assert set(ways) == {(a, b) for a in range(4) for b in range(4) if a != b}, ways
    assert ways[0, 2].startswith("a bridge through gateway 0, UDP 10.77.1.2:"), ways


def test_a_chain_of_gateways(build, tmp_path):
    """Machines a to d on three networks: what a sends to d passes b and c."""
    chain = {"SPINLOOM_UDP_ADDRESS": "10.77.1.0/24,10.77.2.0/24,10.77.3.0/24", "SPINLOOM_GATEWAY": "1"}
    with contextlib.ExitStack() as stack:
        there = apart(tmp_path / "place", stack, count=4)
        ran = run(there, "-n", 4, build("live_traffic.c"), 1 << 20, hosts="a:1,b:1,c:1,d:1", **chain)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert set(answers_of(ran.stdout)) == set(range(4)), ran.stdout
        ran = run(there, "-n", 4, BIN / "spinloom-info", hosts="a:1,b:1,c:1,d:1", **chain)
    ways = ways_of(ran.stdout)
    assert ways[0, 3].startswith("a bridge through rank 1, then rank 2 (gateway"), ways
    assert ways[3, 0].startswith("a bridge through rank 2, then rank 1 (gateway"), ways


def networks(*lengths: int) -> str:
    """Of the loopback, which differ in their length only: no rank of one sees a way to the other."""
    return ",".join(f"127.0.0.1/{length}" for length in lengths)


@pytest.mark.parametrize("with_programs", [False, True])
def test_ranks_behind_several_gateways_leave_at_once(build, with_programs):
    """Who is missed when all leave together keeps a gateway for ten seconds, and makes it say so."""
    if not HYDRA.exists():
        pytest.skip(f"{HYDRA} is not here")
    program, gateway = build("live_idle.c"), BIN / "spinloom-gateway"
    words: list[object] = []
    for ways in ((31,), (31, 30), (30,), (30, 29), (29,)):
        forwards = len(ways) > 1
        settings = ["-env", "SPINLOOM_UDP_ADDRESS", networks(*ways)]
        settings += ["-env", "SPINLOOM_GATEWAY", str(int(forwards))]
        ran_here = [program, 1] if with_programs or not forwards else [gateway]
        words += [":"] * bool(words) + ["-n", 1, *settings, *ran_here]
    for _ in range(4):
        ran = finished(HYDRA, *words, SPINLOOM_TRANSPORT="udp")
        assert ran.stderr == ""


def test_ranks_that_nothing_joins_are_told_at_the_start(build, place):
    """The gateways are on a and c, which reach nobody else."""
    script = 'case $PMI_RANK in 2 | 3) SPINLOOM_GATEWAY=0 ;; esac; export SPINLOOM_GATEWAY; exec "$0"'
    ran = run(place, "-n", 6, "sh", "-c", script, build("live_idle.c"), SPINLOOM_GATEWAY="1")
    assert ran.returncode != 0
    said = "rank 0 and rank 4 do not reach each other: they share no network, and no gateway joins theirs"
    assert said in ran.stderr, ran.stderr


def test_two_gateways_alone_end():
    """Without programs there is nothing to forward."""
    finished(HYDRA, "-n", 2, BIN / "spinloom-gateway")
    assert nothing_runs(BIN / "spinloom-gateway")


# What starts the ranks 0 and 1 on machine a, a gateway on b, and the ranks 2 and 3 on c.
STARTS = """#!/bin/sh
case $PMI_RANK in
0 | 1) id={a} ;;
2) exec nsenter --target {b} {namespaces} --wd=/ -- {gateway} ;;
*) id={c} ;;
esac
exec nsenter --target "$id" {namespaces} --wd=/ -- "$@"
"""


@pytest.mark.parametrize("how", ["the gateway is killed", "a machine behind it dies"])
def test_both_sides_go_on_when(build, own_place, how):
    a, b, c = own_place.members
    gateway, cut = BIN / "spinloom-gateway", build("live_cut.c")
    text = STARTS.format(
        a=a.first, b=b.first, c=c.first, namespaces=" ".join(OWN_NAMESPACES), gateway=gateway
    )
    mark = own_place.folder / "it-has-happened"
    words = [str(program(own_place.folder / "starts", text)), str(cut), "2", "2", str(mark)]
    with Job(words, 5, env=NETWORKS) as job:
        programs = [rank for number, rank in enumerate(job.ranks) if number != 2]
        job.wait(LIMIT_S, until=lambda job: all(" runs\n" in rank.text for rank in programs))
        assert job.said().count(" runs\n") == 4, job.said()
        if how == "the gateway is killed":
            kill_all(gateway)
            killed = {2}
        else:
            c.die()
            killed = {3, 4}
        mark.touch()
        codes = job.wait(LIMIT_S)
        assert codes == [-signal.SIGKILL if number in killed else 0 for number in range(5)], job.said()
        assert set(answers_of(job.said())) == ({0, 1, 2, 3} if 2 in killed else {0, 1}), job.said()
    assert own_place.nothing_runs(cut)
    assert own_place.nothing_runs(gateway)


def kill_all(program: Path) -> None:
    def running() -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(entry / "exe") == str(program):
                    found.append(int(entry.name))
        return found

    for process in until(running):
        os.kill(process, signal.SIGKILL)
