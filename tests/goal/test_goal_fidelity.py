"""`spinloom goal --fidelity`: three fidelities of one meaning, by command."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from spinloom.nics import machines, profiles
from spinloom.predict import goal_fidelity

ONE = "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n"
NIC = ("--nic", "sc19-slingshot")


@pytest.fixture
def one(tmp_path):
    path = tmp_path / "one.goal"
    path.write_text(ONE)
    return str(path)


@pytest.fixture
def rounds(spinloom, tmp_path):
    path = tmp_path / "rounds.bin"
    assert spinloom("goal", "make", "dissemination", "--ranks", "16", "-o", str(path)).code == 0
    return str(path)


def test_one_byte_takes_the_same_at_each_fidelity(spinloom, one):
    # T = o + L + o. L was found with a streaming put of one byte, which crosses PCIe as a packet of its
    # own; the hosts of schedules put at once, and the NIC reads at line rate.
    ran = spinloom("goal", one, *NIC, "--fidelity", "message,nic,full", "--json")
    rows = json.loads(ran.out)
    assert [row["fidelity"] for row in rows] == ["message", "nic", "full"]
    found = goal_fidelity.parameters(machines.machine("sc19-slingshot"))
    profile = profiles.load("sc19-slingshot")
    call_ps = int(profile["host.call"])
    assert found["o_ps"] == call_ps
    of_model = found["L_ps"] + 2 * call_ps
    crossing = math.ceil((1 + profile["pcie.write_overhead"]) * Fraction(profile["pcie.byte_time"]))
    assert [row["makespan_ps"] for row in rows] == [of_model, of_model - crossing, of_model - crossing]
    assert [row["difference_ps"] for row in rows] == [0, -crossing, -crossing]


SLOW_PORTS = "fpspin-vcu1525"


def test_a_nic_that_is_slower_inside_than_its_link_is_simulated_whole(spinloom, one):
    ran = spinloom("goal", one, "--nic", SLOW_PORTS, "--fidelity", "nic")
    assert ran.code == 2
    assert "use --fidelity full" in ran.err
    assert spinloom("goal", one, "--nic", SLOW_PORTS, "--fidelity", "full").code == 0


@pytest.mark.parametrize("nic", [name for name in profiles.names() if name != SLOW_PORTS])
@pytest.mark.parametrize("size", [0, 1, 2048, 5000, 100_000])
def test_a_lone_message_takes_the_same_on_nics_and_nodes_of_every_profile(spinloom, tmp_path, nic, size):
    path = tmp_path / "one.goal"
    path.write_text(ONE.replace("1b", f"{size}b"))
    ran = spinloom("goal", str(path), "--nic", nic, "--fidelity", "nic,full", "--json")
    nics, nodes = json.loads(ran.out)
    assert nics["makespan_ps"] == nodes["makespan_ps"]


def test_each_rank_s_times_on_nodes(spinloom, rounds):
    ran = spinloom("goal", rounds, *NIC, "--fidelity", "full", "--json", "--overhead", "1us")
    rows = json.loads(ran.out)
    assert [row["rank"] for row in rows] == list(range(16))
    assert len({row["finish_ps"] for row in rows}) == 1
    assert {row["overhead_ps"] for row in rows} == {8_000_000}  # 4 rounds, a send and a receive each
    again = spinloom("goal", rounds, *NIC, "--fidelity", "full", "--json", "--overhead", "1us")
    assert again.out == ran.out
    table = spinloom("goal", rounds, *NIC, "--fidelity", "nic")
    assert "the last rank ends" in table.out


def test_a_network_is_between_nodes_as_between_messages(spinloom, rounds):
    # Short messages: hops make both later by the same time.
    far = ("--network", "torus:4x4,hop=100ns")
    ran = spinloom("goal", rounds, *NIC, "--fidelity", "message,full", "--json")
    near_message, near_full = (row["makespan_ps"] for row in json.loads(ran.out))
    ran = spinloom("goal", rounds, *NIC, "--fidelity", "message,full", "--json", *far)
    message, full = (row["makespan_ps"] for row in json.loads(ran.out))
    assert message - near_message == full - near_full > 0


def test_several_are_a_table(spinloom, rounds):
    ran = spinloom("goal", rounds, *NIC, "--fidelity", "full,message")
    assert ran.code == 0
    assert "from message" in ran.out
    assert "+0 ps (+0.0 %)" in ran.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fidelity", "nic"), "name the NIC"),
        ((*NIC, "--fidelity", "nick"), "'nick' is none of message, nic, full"),
        ((*NIC, "-L", "3us"), "-L: with --nic it is the profile's"),
        (
            (*NIC, "--fidelity", "nic", "--network", "torus:4x4,routing=adaptive"),
            "choose fixed routing",
        ),
        ((*NIC, "--fidelity", "message,nic", "--critical-path"), "--critical-path: --fidelity nic has none"),
        ((*NIC, "--dialect", "loggopsim"), "--nic"),
        (("--nic", "none-such", "--fidelity", "nic"), "none-such"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(spinloom, rounds, options, said):
    ran = spinloom("goal", rounds, *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


@pytest.mark.parametrize("fidelity", ["nic", "full"])
def test_a_put_on_nics_is_counted(spinloom, tmp_path, fidelity):
    path = tmp_path / "put.goal"
    path.write_text("num_ranks 2\nrank 0 {\na: put 8b to 1\n}\nrank 1 {\nb: arrived 1\n}\n")
    ran = spinloom("goal", "run", str(path), *NIC, "--fidelity", fidelity, "--json")
    assert ran.code == 0, ran.err
    put, arrived = json.loads(ran.out)
    assert put["finish_ps"] > 0
    assert arrived["finish_ps"] > 0


def test_a_sample_of_all_is_that_fidelity_and_one_of_few_lies_near(spinloom, rounds):
    def ends(*options):
        ran = spinloom("goal", rounds, *NIC, *options, "--json")
        assert ran.code == 0, ran.err
        return [row["finish_ps"] for row in json.loads(ran.out)]

    for fidelity in ("nic", "full"):
        all_of_them = ends("--fidelity", fidelity)
        ranks = f"0-{len(all_of_them) - 1}"
        assert ends(f"--{fidelity}-ranks", ranks) == all_of_them
        few = ends(f"--{fidelity}-ranks", "0,2-3")
        message = ends()
        assert abs(max(few) - max(message)) < max(message) // 100


@pytest.mark.parametrize("fidelity", ["nic", "full"])
def test_cpus_on_nics_have_a_timeline(spinloom, rounds, tmp_path, fidelity):
    path = tmp_path / f"{fidelity}.perfetto"
    ran = spinloom("goal", rounds, *NIC, "--fidelity", fidelity, "--timeline", str(path))
    assert ran.code == 0, ran.err
    content = path.read_bytes()
    assert b"send of 8 B" in content
    assert b"receive of 8 B" in content


def test_a_sample_is_named_in_the_table(spinloom, rounds):
    ran = spinloom("goal", rounds, *NIC, "--full-ranks", "0,2-3")
    assert ran.code == 0, ran.err
    assert "message; 3 ranks full" in ran.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--full-ranks", "1"), "name the NIC"),
        ((*NIC, "--full-ranks", "1", "--nic-ranks", "2"), "a sample has one fidelity"),
        ((*NIC, "--full-ranks", "1", "--fidelity", "nic"), "the others are at --fidelity message, not nic"),
        ((*NIC, "--full-ranks", "1-x"), "write ranks as 0,17,64-71"),
        ((*NIC, "--full-ranks", "7-3"), "7-3 are no ranks"),
        ((*NIC, "--full-ranks", "4000"), "rank 4000 is none"),
        ((*NIC, "--full-ranks", "1", "--network", "torus:4x4"), "leave out --full-ranks"),
        ((*NIC, "--full-ranks", "1", "--critical-path"), "--critical-path: --fidelity full has none"),
        ((*NIC, "--full-ranks", "1", "--timeline", "t.perfetto"), "--timeline: --fidelity full has none"),
    ],
)
def test_a_sample_that_makes_no_sense_is_one_sentence(spinloom, rounds, options, said):
    ran = spinloom("goal", rounds, *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("fidelity", ["nic", "full"])
def test_a_stall_says_what_the_model_says(spinloom, tmp_path, fidelity):
    path = tmp_path / "both.goal"
    path.write_text(
        "num_ranks 2\nrank 0 {\nr: recv 8b from 1\ns: send 8b to 1\ns requires r\n}\n"
        "rank 1 {\nr: recv 8b from 0\ns: send 8b to 0\ns requires r\n}\n"
    )
    ran = spinloom("goal", str(path), *NIC, "--fidelity", fidelity)
    assert ran.code == 1
    assert ran.err == spinloom("goal", str(path)).err
    assert "waits for a message" in ran.err
