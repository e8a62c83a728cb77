"""The live library over libfabric: bytes, order, faults, deaths, farewells; what people see who lack it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from launchers import TIME_LIMIT_S as LIMIT_S
from launchers import finished
from launchers import output as run
from live_programs import LIBRARY, answers_of, build, over
from patience import seconds
from pmi_job import Job
from test_live import DEATHS, HERE, deaths

__all__ = ["build"]
pytestmark = pytest.mark.usefixtures("build")

INFO = LIBRARY.parent / "bin/spinloom-info" if LIBRARY else Path()
SLOW_FABRIC = "refuse=0.05,delay=0.02,seed=3"


@pytest.mark.parametrize("faults", ["", SLOW_FABRIC])
@pytest.mark.parametrize(
    ("launcher", "ranks", "provider"),
    [
        ("mpich", 2, "tcp"),
        ("mpich", 4, "tcp"),
        ("openmpi", 2, "tcp"),
        ("mpich", 2, "shm"),
        ("mpich", 2, "udp"),
    ],
)
def test_all_pairs_exchange_bytes_over_a_fabric(build, launcher, ranks, provider, faults):
    settings = over(provider) | ({"SPINLOOM_FABRIC_FAULTS": faults} if faults else {})
    longest = 30_000 if provider == "udp" else 300_000
    output = run(launcher, ranks, build("live_traffic.c"), longest, **settings)
    assert set(answers_of(output)) == set(range(ranks))


def test_waiting_over_a_fabric_costs_no_processor_time(build):
    run("mpich", 2, build("live_idle.c"), 2000, **over("tcp"))


def test_a_rank_that_calls_nothing_serves_over_a_fabric(build):
    run("mpich", 2, build("live_sleeper.c"), **over("tcp"))


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_lock_is_passed_on_over_a_fabric(build, ranks):
    run("mpich", ranks, build("live_locks.c"), 1000, **over("tcp"))


@pytest.mark.parametrize("bytes_", [64, 1024])
def test_data_keep_their_order_over_a_fabric(build, bytes_):
    output = run(
        "mpich", 2, build("portals_order.c"), bytes_, **over("tcp", SPINLOOM_FABRIC_FAULTS=SLOW_FABRIC)
    )
    assert answers_of(output) == {0: 1, 1: 3}


@pytest.mark.parametrize("what", DEATHS)
def test_the_others_hear_of_a_death_over_a_fabric_and_go_on(build, what):
    deaths(build("live_death.c"), what, **over("tcp"))


def test_a_rank_that_leaves_says_what_a_stopped_peer_has_not_taken_over_a_fabric(build):
    with Job([str(build("live_farewell.c")), "stopped"], 2, env=over("tcp")) as job:
        job.wait(LIMIT_S, until=lambda job: "left after" in job.ranks[0].text)
        said = job.ranks[0].text
    told = re.findall(
        r"^spinloom: PtlFini: lost, for it was not taken: (\d+) packets with (\d+) B to rank 1", said, re.M
    )
    assert len(told) == 1, said
    packets, bytes_ = map(int, told[0])
    assert bytes_ == 8 * packets, said
    assert 0 < packets <= 800, said
    assert float(re.search(r"left after ([\d.]+) s", said)[1]) < seconds(60), said


STRICT_VERSIONS = """
FABRIC_1.0 { global: fi_strerror; fi_version; local: *; };
FABRIC_1.1 { global: fi_fabric; } FABRIC_1.0;
FABRIC_1.3 { global: fi_getinfo; fi_freeinfo; fi_dupinfo; } FABRIC_1.1;
"""


@pytest.fixture(scope="session")
def strict(tmp_path_factory) -> dict[str, str]:
    """The settings for strict_fabric/, which stands for providers that this machine lacks."""
    if "SPINLOOM_TEST_CFLAGS" in os.environ:
        pytest.skip("sanitizers do not see what is loaded later")
    folder = tmp_path_factory.mktemp("strict")
    versions = folder / "versions"
    versions.write_text(STRICT_VERSIONS)
    command = ["cc", "-O1", "-shared", "-fPIC", f"-Wl,--version-script={versions}"]
    command += sorted((HERE / "strict_fabric").glob("*.c"))
    made = subprocess.run([*command, "-o", folder / "libstrict.so"], capture_output=True, text=True)
    if "rdma/fabric.h: No such file" in made.stderr:
        pytest.skip("libfabric's headers are not here (Debian: libfabric-dev)")
    assert made.returncode == 0, made.stderr
    return {"SPINLOOM_TRANSPORT": "fabric", "SPINLOOM_LIBFABRIC": str(folder / "libstrict.so")}


@pytest.mark.parametrize("faults", ["", SLOW_FABRIC])
@pytest.mark.parametrize(
    "wants", ["", "local", "virtual", "provkey", "local,virtual,provkey", "local,endpoint", "noreads", "nofd"]
)
def test_providers_may_ask_for_whatever_the_interface_allows(build, strict, wants, faults):
    settings = strict | ({"SPINLOOM_FABRIC_FAULTS": faults} if faults else {})
    output = run("mpich", 3, build("live_traffic.c"), 100_000, STRICT_FABRIC=wants, **settings)
    assert set(answers_of(output)) == {0, 1, 2}
    said = finished(
        str(INFO),
        STRICT_FABRIC=wants,
        SPINLOOM_LIBFABRIC=strict["SPINLOOM_LIBFABRIC"],
        SPINLOOM_FABRIC="strict",
    ).stdout
    assert re.search(
        r"^between machines +by libfabric 1.99 strict on strict0: SPINLOOM_FABRIC;", said, re.M
    ), said


def refused(**settings: str) -> str:
    """What a job of two ranks that cannot start says."""
    with Job([str(INFO)], 2, env=settings) as job:
        job.wait(LIMIT_S)
        return job.said()


def test_a_job_that_insists_on_a_fabric_it_lacks_says_why():
    said = refused(SPINLOOM_TRANSPORT="fabric", SPINLOOM_LIBFABRIC="/nowhere/libfabric.so.1")
    assert re.search(r"SPINLOOM_TRANSPORT=fabric: rank \d: .*libfabric", said), said
    said = refused(SPINLOOM_TRANSPORT="fabric", SPINLOOM_FABRIC="nosuch")
    assert re.search(r"SPINLOOM_TRANSPORT=fabric: rank \d: .*(nosuch|libfabric is not here)", said), said


def test_values_that_mean_nothing_are_told():
    said = refused(SPINLOOM_FABRIC="tcp:", SPINLOOM_FABRIC_FAULTS="lose=1")
    assert "SPINLOOM_FABRIC=tcp:: it takes auto, none" in said, said
    assert "SPINLOOM_FABRIC_FAULTS=lose=1: it takes refuse=" in said, said


def test_info_says_how_packets_go_between_machines():
    over("tcp")
    asked = {
        "SPINLOOM_FABRIC=none": "by UDP: SPINLOOM_FABRIC=none",
        "SPINLOOM_TRANSPORT=udp": "by UDP: SPINLOOM_TRANSPORT=udp",
        "SPINLOOM_FABRIC=tcp": r"by libfabric [\d.]+ tcp\S* on \S+: SPINLOOM_FABRIC;",
        "SPINLOOM_FABRIC=verbs": r"by UDP: libfabric [\d.]+: it has no verbs here",
        "SPINLOOM_LIBFABRIC=/nowhere": r"by UDP: libfabric is not here: .*/nowhere",
    }
    for setting, answer in asked.items():
        name, value = setting.split("=")
        said = subprocess.run(
            [INFO], env={**os.environ, name: value}, capture_output=True, text=True, check=True
        )
        assert re.search(rf"^between machines +{answer}", said.stdout, re.M), said.stdout
