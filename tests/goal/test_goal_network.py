"""`spinloom goal --network`: closed forms through networks, and what is no network."""

from __future__ import annotations

import json

import pytest

LATENCY, OVERHEAD, BYTE, HOP = 2_500_000, 1_500_000, 6000, 100_000  # ps


def run(spinloom, path, *words):
    ran = spinloom("goal", str(path), *words, "--json")
    assert ran.code == 0, ran.err
    return [row["finish_ps"] for row in json.loads(ran.out)]


def write(tmp_path, ranks, messages):
    """Messages (from, to, bytes), all at once."""
    path = tmp_path / "messages.goal"
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        lines += [f"send {size}b to {to}" for source, to, size in messages if source == rank]
        lines += [f"recv {size}b from {source}" for source, to, size in messages if to == rank]
        lines.append("}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("network", "ranks", "hops"),
    [
        ("crossbar", 64, 0),
        ("fat-tree:radix=64", 64, 0),
        ("fat-tree:radix=16", 64, 2),
        ("fat-tree:radix=16,levels=3,oversubscription=2", 128, 4),
        ("torus:4x4x4", 64, 3),  # (3, 3, 3): one step back along each ring
        ("torus:8x8", 64, 2),
        ("torus:64", 64, 1),
        ("torus:8x8,hosts=2", 128, 2),
        ("dragonfly:hosts=2,routers=4,globals=2", 72, 3),
    ],
)
@pytest.mark.parametrize("packet", ["0", "1kB", "4KiB"])
@pytest.mark.parametrize("routing", ["fixed", "adaptive"])
def test_one_message_needs_its_hops(spinloom, tmp_path, network, ranks, hops, packet, routing):
    """T = o + L + h hop + (s - 1) G + o, from the first rank to the last one, however it is cut."""
    size = 9000
    path = write(tmp_path, ranks, [(0, ranks - 1, size)])
    if network != "crossbar":
        network += f"{',' if ':' in network else ':'}packet={packet},routing={routing}"
    expected = OVERHEAD + LATENCY + hops * HOP + (size - 1) * BYTE + OVERHEAD
    assert run(spinloom, path, "--network", network)[-1] == expected
    if hops:
        expected += hops * (7_500 - HOP)
        assert run(spinloom, path, "--network", f"{network},hop=7.5ns")[-1] == expected


@pytest.mark.parametrize("network", ["torus:4x4x4", "torus:64", "dragonfly:hosts=2,routers=4,globals=2"])
def test_ugal_takes_no_detour_for_a_message_alone(spinloom, tmp_path, network):
    path = write(tmp_path, 64, [(0, 63, 9000)])
    times = [
        run(spinloom, path, "--network", f"{network},routing={way},packet=1kB") for way in ("fixed", "ugal")
    ]
    assert times[0] == times[1]


def test_detours_share_the_links_that_minimal_paths_leave_idle(spinloom, tmp_path):
    """Groups of a = 4 routers with p = 2 hosts and h = 2 links; each host sends s to the next group: minimal
    paths put a p s = 8 s on one link, detours 2 p s / h = 2 s on each on average."""
    size, routers, hosts = 200_000, 4, 2
    group = routers * hosts
    ranks = 9 * group
    path = write(tmp_path, ranks, [(rank, (rank + group) % ranks, size) for rank in range(ranks)])
    times = {
        way: max(run(spinloom, path, "--network", f"dragonfly:hosts=2,routers=4,globals=2,routing={way}"))
        for way in ("fixed", "adaptive", "valiant", "ugal")
    }
    assert times["fixed"] > group * size * BYTE
    assert times["adaptive"] > group * size * BYTE
    assert 2 * size * BYTE < times["valiant"] < times["fixed"] / 2
    assert times["ugal"] < times["fixed"] / 1.5
    seeds = {
        seed: run(
            spinloom, path, "--network", f"dragonfly:hosts=2,routers=4,globals=2,routing=valiant,seed={seed}"
        )
        for seed in (1, 2)
    }
    assert max(seeds[1]) == times["valiant"]
    assert seeds[1] != seeds[2]


def test_flows_over_fewer_links_take_longer(spinloom, tmp_path):
    """Eight hosts of a switch send s bytes to another switch over 8 / q links, q to each: the last byte has
    crossed after q s G. Fixed paths go by the destination's number, one of every eight to each link."""
    size = 100_000
    path = write(tmp_path, 128, [(k, 64 + k, size) for k in range(8)])
    for q in (1, 2, 4, 8):
        for routing in ("fixed", "adaptive"):
            network = f"fat-tree:radix=16,levels=2,oversubscription={q},routing={routing},hop=0,packet=1kB"
            last = max(run(spinloom, path, "--network", network, "-S", "1MB"))
            assert last == OVERHEAD + LATENCY + q * size * BYTE - BYTE + OVERHEAD, (q, routing)


def test_a_sink_takes_its_bytes_one_after_the_other(spinloom, tmp_path):
    """k senders, of the same switch or not: (k - 1) ((s - 1) G + g) + (s - 1) G after the first byte."""
    size, senders = 50_000, 7
    path = write(tmp_path, 8, [(k, 0, size) for k in range(1, senders + 1)])
    slot = (size - 1) * BYTE + 1_000_000
    expected = OVERHEAD + LATENCY + (senders - 1) * slot + (size - 1) * BYTE + OVERHEAD
    for network in ("crossbar", "fat-tree:radix=16", "fat-tree:radix=16,packet=0"):
        assert run(spinloom, path, "--network", network)[0] == expected, network


def test_the_same_seed_shuffles_the_same_way(spinloom, tmp_path):
    path = tmp_path / "ring.bin"
    spinloom("goal", "make", "ring_allreduce", "--ranks", "64", "--size", "64000", "-o", str(path))
    ends = {
        name: max(run(spinloom, path, "--network", f"torus:8x8{name}"))
        for name in ("", ",shuffle=1", ",shuffle=2", ",shuffle=1,hop=100ns")
    }
    assert ends[""] < ends[",shuffle=1"]
    assert ends[",shuffle=1"] != ends[",shuffle=2"]
    assert ends[",shuffle=1"] == ends[",shuffle=1,hop=100ns"]


def test_the_table_names_the_network(spinloom, tmp_path):
    path = write(tmp_path, 64, [(0, 1, 8)])
    ran = spinloom("goal", str(path), "--network", "fat-tree:radix=16")
    # 8 leaves of 8 hosts, and 8 switches above, each wired to each, both ways
    assert "fat-tree:radix=16: 16 switches, 128 links between them" in ran.out
    assert "crossbar" in spinloom("goal", str(path)).out


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("fat-three", "networks are crossbar, fat-tree, dragonfly, torus; did you mean fat-tree?"),
        ("fat-tree:radius=4", "'radius=4' is none of radix=, levels="),
        ("fat-tree:radix=4,levels=2,radix=8", "'radix' is given twice"),
        (
            "fat-tree:radix=4,levels=2",
            "a fat tree of 2 levels and radix 4 has 8 hosts, and there are 64 ranks",
        ),
        ("fat-tree:radix=7", "even radix of 4 to 65536, and 7 is none"),
        ("fat-tree:radix=x", "radix=x: it must begin with a number"),
        ("fat-tree:radix=16,oversubscription=3", "does not divide the 8 links up"),
        ("fat-tree:routing=best", "routing=best: accepted forms: fixed, adaptive, valiant, ugal"),
        ("fat-tree:routing=ugal", "a fat tree has minimal paths only"),
        ("fat-tree:hop=5 miles", "hop=5 miles: accepted forms"),
        ("fat-tree:packet=-1", "packet=-1: it must begin with a number"),
        ("torus", "its sizes come first, such as torus:8x8x8"),
        ("torus:8x", "its sizes come first, such as torus:8x8x8"),
        ("torus:4x4", "a torus of 4x4 with 1 at each switch has 16 hosts, and there are 64 ranks"),
        ("torus:99999999999", "its sizes come first"),
        ("torus:65536x65536", "a torus has at most"),
        ("dragonfly:hosts=1,routers=2,globals=1", "has 6 hosts, and there are 64 ranks"),
        ("dragonfly:groups=99", "has links to 32 other groups, and there are 99 groups"),
        ("crossbar:radix=4", "a crossbar has no numbers"),
        ("", "networks are crossbar"),
    ],
)
def test_what_is_no_network_is_named(spinloom, tmp_path, network, said):
    path = write(tmp_path, 64, [(0, 1, 8)])
    ran = spinloom("goal", str(path), "--network", network)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_the_dialect_has_no_network(spinloom, tmp_path):
    ran = spinloom("goal", str(write(tmp_path, 4, [])), "--dialect", "loggopsim", "--network", "torus:2x2")
    assert ran.code == 2
    assert "--network: the rules of loggopsim have none" in ran.err
