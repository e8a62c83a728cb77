"""The live library over UDP: on a loopback with faults, and between network namespaces joined by veth."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

import launchers
from test_live import LIMIT_S, answers_of, build, nothing_runs, run

__all__ = ["build"]
pytestmark = pytest.mark.usefixtures("build")

namespaces_made = itertools.count()
LOSSY = "drop=0.01,duplicate=0.01,reorder=0.02,corrupt=0.005,seed=3"


@pytest.mark.parametrize("faults", ["", LOSSY])
@pytest.mark.parametrize(("launcher", "ranks"), [("mpich", 2), ("mpich", 4), ("openmpi", 2)])
def test_all_pairs_exchange_bytes_over_udp(build, launcher, ranks, faults):
    settings = {"SPINLOOM_TRANSPORT": "udp"} | ({"SPINLOOM_UDP_FAULTS": faults} if faults else {})
    output = run(launcher, ranks, build("live_traffic.c"), 50_000 if faults else 300_000, **settings)
    assert set(answers_of(output)) == set(range(ranks))


@pytest.mark.parametrize("faults", ["", "drop=0.01,seed=5"])
def test_many_ranks_put_to_one(build, faults):
    """The receiver's socket is shared by those that send; each rank's bytes come."""
    settings = {"SPINLOOM_TRANSPORT": "udp"} | ({"SPINLOOM_UDP_FAULTS": faults} if faults else {})
    output = run("mpich", 8, build("live_incast.c"), 60, 100_000, **settings)
    assert set(answers_of(output)) == set(range(8))


def test_waiting_over_udp_costs_no_processor_time(build):
    run("mpich", 2, build("live_idle.c"), 2000, SPINLOOM_TRANSPORT="udp")


@contextmanager
def joined_namespaces(count: int):
    """Names of network namespaces on one bridge, addresses 10.77.0.1 on; all is gone afterwards."""
    made = f"{os.getpid() % 100000}x{next(namespaces_made)}"
    names = [f"spinloom{made}-{i}" for i in range(count)]
    bridge = f"spl{made}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
        for i, name in enumerate(names):
            outside = f"{bridge}v{i}"
            ip("netns", "add", name)
            ip("link", "add", outside, "type", "veth", "peer", "name", "veth0", "netns", name)
            ip("link", "set", outside, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "veth0")
            ip("-n", name, "link", "set", "veth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True)


@contextmanager
def namespaces_with_a_router(near_mtu: int, far_mtu: int):
    """Names of two network namespaces; a third one is between them, and its links have different MTUs."""
    made = f"{os.getpid() % 100000}x{next(namespaces_made)}"
    names = [f"spinloom{made}-{i}" for i in range(2)]
    router = f"spinloom{made}-r"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    try:
        for name in (*names, router):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for i, (name, mtu) in enumerate(zip(names, (near_mtu, far_mtu), strict=True)):
            far_end = ("peer", "name", f"to{i}", "netns", router)
            ip("link", "add", "veth0", "netns", name, "type", "veth", *far_end)
            for place, device, address in ((name, "veth0", 2), (router, f"to{i}", 1)):
                ip("-n", place, "addr", "add", f"10.78.{i}.{address}/24", "dev", device)
                ip("-n", place, "link", "set", device, "mtu", str(mtu), "up")
            ip("-n", name, "route", "add", "default", "via", f"10.78.{i}.1")
        ip("netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        yield names
    finally:
        for name in (*names, router):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def may_make_namespaces() -> str:
    """Why not; empty: it works."""
    if os.geteuid() != 0:
        return "not root"
    if shutil.which("ip") is None:
        return "there is no ip (iproute2)"
    try:
        with joined_namespaces(1):
            return ""
    except subprocess.CalledProcessError as trouble:
        return f"no network namespaces here: {trouble.stderr.strip()}"


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize(("faults", "longest"), [("", 100_000), ("drop=0.01,seed=5", 10_000)])
def test_namespaces_are_as_good_as_machines(build, ranks, faults, longest):
    if why := may_make_namespaces():
        pytest.skip(why)
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    settings = {"SPINLOOM_TRANSPORT": "udp"} | ({"SPINLOOM_UDP_FAULTS": faults} if faults else {})
    with joined_namespaces(ranks) as names:
        exchange_between(names, build("live_traffic.c"), longest, settings)


def test_a_path_may_carry_less_than_the_interface(build):
    """Nothing tells the sender that the router takes its datagrams apart."""
    if why := may_make_namespaces():
        pytest.skip(why)
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    with namespaces_with_a_router(9000, 1500) as names:
        exchange_between(names, build("live_traffic.c"), 300_000, {"SPINLOOM_TRANSPORT": "udp"})


def exchange_between(names, program, longest, settings):
    prefix = names[0].rsplit("-", 1)[0]
    inside = f'exec ip netns exec {prefix}-$PMI_RANK "{program}" {longest}'
    done = subprocess.run(
        [*launchers.available()["mpich"], "-n", str(len(names)), "sh", "-c", inside],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **settings},
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(answers_of(done.stdout)) == set(range(len(names)))
    assert nothing_runs(program)
