"""`spinloom predict`: recorded programs under other ways.

jacobi/ was recorded: programs/jacobi.c with 64 cells and 10 steps on 4 ranks.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from layer_programs import BIN, TIME_LIMIT_S, compile_for, every_mpi
from spinloom.accelerate import calibration, mpi_layout_prices, mpi_pair_prices
from spinloom.accelerate.mpi_layout_prices import LayoutTimes
from spinloom.accelerate.mpi_pair_prices import Exchange, Pair
from spinloom.bench import jobs, mpi_parameters, peers
from spinloom.bench.mpi_parameters import MpiParameters, Size
from spinloom.common.errors import EXIT_ENVIRONMENT, EXIT_OK, EXIT_USAGE
from spinloom.nics import deliveries, layout_prices, machines
from spinloom.nics.layout_prices import Price, Prices, ResultStore, Use
from spinloom.predict import predict, predict_ways
from spinloom.traces import recorded

HERE = Path(__file__).parent
JACOBI = HERE / "jacobi"
HALO_BYTES = 64 * 8


def rows(spinloom, *arguments):
    ran = spinloom("predict", str(JACOBI), "--json", "-q", *arguments)
    assert ran.code == EXIT_OK, ran.err
    return {row["way"]: row for row in json.loads(ran.out)}


@pytest.fixture
def parameters(tmp_path):
    """100 ns to send, 200 ns to receive, 50 ns between; a byte beyond 4 KiB takes 1 ns to receive."""
    table = tuple(
        Size(bytes_, 350 + extra, 300 + extra, 100, 200 + extra, 0.0)
        for bytes_, extra in ((1, 0), (4096, 0), (1 << 20, (1 << 20) - 4096))
    )
    made = MpiParameters(
        50, 150, 100, 200, 300, 1, 1, 4096, 4096, table, about={"mpi": "No MPI", "host": "none"}
    )
    path = tmp_path / "mpi.json"
    mpi_parameters.write(made, path)
    return path


def test_ways_are_rows_beside_what_was_measured(spinloom):
    found = rows(spinloom, "--strategies", "rw-cp")
    assert list(found) == ["measured", "host-mpi", "rdma-unpack", "offload-matching", "offload-rw-cp"]
    facts = predict.load(JACOBI).facts()
    measured = found["measured"]
    assert measured["times"] == "host"
    assert measured["time_ps"] == 1000 * max(rank["total_ns"] for rank in facts["recorded"])
    for name, row in found.items():
        if name == "measured":
            continue
        assert row["times"] == "modelled"
        # The replay computes as long as the recording did, and its parts are the whole.
        assert row["compute_ps"] == measured["compute_ps"]
        parts = sum(row[f"{part}_ps"] for part in predict.PARTS)
        assert parts == pytest.approx(row["compute_ps"] + row["communication_ps"], abs=len(predict.PARTS))
        assert row["speedup"] == pytest.approx(found["host-mpi"]["time_ps"] / row["time_ps"], abs=1e-4)
    assert found["host-mpi"]["layouts_ps"] > 0
    # Late receives are the CPU's, with the others' layouts on the NIC.
    assert found["offload-rw-cp"]["late_receives"] > 0
    assert found["offload-rw-cp"]["nic_ps"] > found["offload-matching"]["nic_ps"]
    assert found["offload-rw-cp"]["nic_ps"] > 0


def test_messages_are_those_of_the_program(spinloom):
    # 10 steps on 2 x 2 ranks without wrapping: 2 neighbours of 4 ranks; an allreduce over 4 ranks is 8
    # messages of 8 B; making the grid is a barrier: 8 messages of nothing
    host = rows(spinloom)["host-mpi"]
    assert host["messages"] == 10 * 2 * 4 + 8 + 8
    assert host["bytes"] == 10 * 2 * 4 * HALO_BYTES + 8 * 8


def test_computation_is_scaled(spinloom):
    one, third = rows(spinloom)["host-mpi"], rows(spinloom, "--scale-compute", "1/3")["host-mpi"]
    assert third["compute_ps"] == pytest.approx(one["compute_ps"] / 3, rel=1e-6)
    assert third["of_measured"] is None
    assert rows(spinloom, "--scale-compute", "0")["host-mpi"]["compute_ps"] == 0


def test_the_same_input_gives_the_same_hash_and_prices_are_remembered(spinloom, tmp_path):
    for folder in ("a", "b"):
        assert spinloom("predict", str(JACOBI), "--out", str(tmp_path / folder), "-q").code == EXIT_OK
    again = spinloom("predict", str(JACOBI), "--out", str(tmp_path / "a"), "--force", "-q")
    assert "0 cells simulated, 10 remembered" in again.err
    documents = [json.loads((tmp_path / name / "predict.json").read_text()) for name in ("a", "b")]
    assert documents[0] == documents[1]
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert manifest["result_hash"] == documents[0]["result_hash"]
    assert manifest["trace"]["program"] == "./jacobi 64 10"
    lines = list(csv.DictReader((tmp_path / "a" / "predict.csv").open()))
    assert list(lines[0]) == list(predict.COLUMNS)
    refused = spinloom("predict", str(JACOBI), "--out", str(tmp_path / "a"))
    assert refused.code == EXIT_USAGE
    assert "--force overwrites" in refused.err


def test_more_ranks_are_a_larger_grid(spinloom):
    # 4 x 4 ranks: 24 pairs of neighbours, each both ways; an allreduce and a barrier of 16 ranks, 4 rounds
    # each
    ran = spinloom("predict", str(JACOBI), "--ranks", "16", "--csv", "-q")
    host = next(row for row in csv.DictReader(ran.out.splitlines()) if row["way"] == "host-mpi")
    assert host["ranks"] == "16"
    assert int(host["messages"]) == 10 * 24 * 2 + 2 * 16 * 4
    assert rows(spinloom, "--ranks", "16", "--network", "torus:4x4")["host-mpi"]["time_ps"] > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ranks", "3"], "it grows to more, not to 3"),
        (["--ranks", "7"], "7 ranks make no grid of 2 dimensions that is at least 2 x 2"),
        (["--collective", "allreduce=fast"], "allreduce has no algorithm 'fast'"),
        (["--scale-compute", "-1"], "give a number such as 0.5"),
        (["--eager", "much"], "--eager much"),
        (["--network", "ring"], "networks are crossbar"),
        (["--goal", "a.txt"], "end the name in .goal for text"),
    ],
)
def test_what_cannot_be_is_one_sentence(spinloom, arguments, sentence):
    ran = spinloom("predict", str(JACOBI), *arguments)
    assert ran.code == EXIT_USAGE
    assert sentence in ran.err


def test_a_folder_without_a_trace_says_what_makes_one(spinloom, tmp_path):
    ran = spinloom("predict", str(tmp_path))
    assert ran.code != EXIT_OK
    assert "spinloom record" in ran.err


def test_a_rank_is_missing(spinloom, tmp_path):
    shutil.copytree(JACOBI, tmp_path / "some")
    (tmp_path / "some" / "rank-3.trace").unlink()
    ran = spinloom("predict", str(tmp_path / "some"))
    assert ran.code == EXIT_USAGE
    assert "all of them are needed" in ran.err


def test_the_schedule_is_a_file_that_goal_runs(spinloom, tmp_path):
    path = tmp_path / "jacobi.goal"
    assert spinloom("predict", str(JACOBI), "--goal", str(path)).code == EXIT_OK
    counted = json.loads(spinloom("goal", "check", str(path), "--json").out)[0]
    assert counted["ranks"] == 4
    assert counted["sends"] == counted["receives"] == 10 * 2 * 4 + 8 + 8
    assert spinloom("goal", "run", str(path), "-L", "2500").code == EXIT_OK
    assert spinloom("predict", str(JACOBI), "--goal", str(path)).code == EXIT_USAGE  # it is there


def test_the_recorded_host_is_a_row_where_its_mpi_is_known(spinloom, parameters):
    modelled = ("--layout-prices", "modelled")
    ran = spinloom("predict", str(JACOBI), "--parameters", str(parameters), *modelled, "--csv", "-q")
    found = {row["way"]: row for row in csv.DictReader(ran.out.splitlines())}
    assert list(found)[:2] == ["measured", "recorded-host"]
    # every end of a message: 100 ns to send, 200 ns to receive, 24 of each a rank; combined: 16 B, 1 ns each
    assert int(found["recorded-host"]["overhead_ps"]) == pytest.approx(
        (24 * (100 + 200) + 16) * 1000, rel=1e-3
    )
    table = spinloom("predict", str(JACOBI), "--parameters", str(parameters), *modelled)
    assert "No MPI was not asked for its layouts: recorded-host has modelled times" in table.err


def of_mpi(parameters, path, **about):
    """The file of parameters with other facts about its MPI."""
    document = json.loads(parameters.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **about}), encoding="utf-8")
    return path


def test_layouts_without_a_price_are_an_error_that_says_how_to_get_one(spinloom, parameters, tmp_path):
    """Halos of 64 rows in columns are layouts, which no price of our own copies stands for unasked."""
    for about, said in (
        ({}, ("only No MPI on none can be asked", "predict there, or --layout-prices modelled")),
        (
            {"host": platform.node(), "compiler": "/nowhere/mpicc", "launcher": "/nowhere/mpiexec"},
            ("/nowhere/mpicc is not here", "spinloom calibrate mpi MPICC", "--layout-prices modelled"),
        ),
    ):
        ran = spinloom(
            "predict", str(JACOBI), "--parameters", str(of_mpi(parameters, tmp_path / "of.json", **about))
        )
        assert ran.code == EXIT_ENVIRONMENT
        assert ran.out == ""
        for part in said:
            assert part in ran.err


@every_mpi
def test_layouts_are_priced_by_the_mpi_that_the_file_names(mpi, spinloom, parameters, tmp_path, monkeypatch):
    """It lies where no PATH leads, and another one comes first there."""
    if not mpi.present:
        pytest.skip(f"{mpi.name} is not here")
    compiler, launcher = Path(shutil.which(mpi.compiler)), Path(shutil.which(mpi.launcher))
    named = peers.start(compiler, tmp_path / "name")
    named.close()
    asked = tmp_path / "asked"
    for folder, body in (("first", f"echo first >> {asked}\nexit 1"), ("named", f'exec {compiler} "$@"')):
        (tmp_path / folder / "bin").mkdir(parents=True)
        wrapper = tmp_path / folder / "bin" / "mpicc"
        wrapper.write_text(f"#!/bin/sh\n{body}\n")
        wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SPINLOOM_BENCH_MPICC", "")
    libraries = f"{compiler.parent.parent / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    monkeypatch.setenv("LD_LIBRARY_PATH", libraries)
    about = {
        "mpi": named.name,
        "host": platform.node(),
        "compiler": str(tmp_path / "named" / "bin" / "mpicc"),
        "launcher": str(launcher),
    }
    out = tmp_path / "out"
    words = ("--strategies", "rw-cp", "-q", "--out", str(out))
    given = of_mpi(parameters, tmp_path / "of.json", **about)
    ran = spinloom("predict", str(JACOBI), "--parameters", str(given), *words)
    assert ran.code == EXIT_OK, ran.err
    assert not asked.exists()
    kept = json.loads((out / "prices.json").read_text(encoding="utf-8")).values()
    assert [price["pack_ns"] > 0 for price in kept if "pack_ns" in price] == [True]
    assert [price["layouts_ns"] > 0 for price in kept if "layouts_ns" in price] == [True]
    assert "modelled times" not in ran.err
    given = of_mpi(parameters, tmp_path / "of.json", **{**about, "mpi": "An MPI 1.0"})
    ran = spinloom("predict", str(JACOBI), "--parameters", str(given), "-q")
    assert ran.code == EXIT_USAGE
    assert "the parameters are of An MPI 1.0, but " in ran.err


def test_layouts_that_were_not_measured_cost_by_the_byte(parameters):
    made = mpi_parameters.read(parameters)
    heavy, light, empty = (
        Use(layout=number, count=1, side="send", type="", bytes=size, messages=1, copies=0)
        for number, size in enumerate((1000, 10, 0))
    )
    measured = {heavy: LayoutTimes(pack_ns=5000, unpack_ns=0, memcpy_ns=1000)}
    way = predict_ways.recorded_host(made, [heavy, light, empty], measured, {}, calibration.load()[0])
    assert [price[3] for price in way.costs["layouts"]] == [4_000_000, 40_000, 0]
    assert way.remarks == ("recorded-host: 1 of 3 layouts cost by the byte, as the others",)


def test_a_way_differs_from_the_one_before_it_by_one_thing():
    use = Use(
        layout=0, count=1, side="receive", type="vector(8, 1, 2, double)", bytes=64, messages=1, copies=0
    )
    prices = Prices(host_ps={use: 9000}, nic={"seek": {use: Price(0, 5000)}})
    network = predict_ways.Network(L_ps=100, g_ps=0, G=Fraction(37), call_ps=65_000, copy=Fraction(100))
    asked = deliveries.AskingPrices(hop_ps=40, answer_ps=500, find_ps=300)
    host, rdma, matching, seek = predict_ways.ways(network, prices, ["seek"], eager_bytes=1024, asking=asked)
    # a short message is copied, or unpacked in place of that
    assert [point[2] for point in host.costs["messages"][:3]] == [65_000, 65_000 + 1024 * 100, 65_000]
    assert host.costs["layouts"] == [(0, 1, "receive", 9000 - 6400, 0, 0)]
    assert [point[2] for point in rdma.costs["messages"]] == [65_000] * 4
    assert rdma.costs["layouts"] == [(0, 1, "receive", 9000, 0, 0)]
    assert host.costs["handshake_bytes"] == rdma.costs["handshake_bytes"] == 1024
    # NICs ask and answer in 40 ps; a message takes 60 more until its program has it
    assert (matching.costs["handshake_bytes"], matching.costs["nic_answers"]) == (1024, True)
    assert "nic_answers" not in rdma.costs
    assert (matching.model["L_ps"], rdma.model["L_ps"]) == (40, 100)
    assert [point[3] for point in matching.costs["messages"]] == [60] * 4
    assert (rdma.costs["late"], matching.costs["late"]) == ((300, 0), (300, 500))
    assert "late" not in host.costs  # its CPUs copy in any case
    # two ways that together take longer than the network's: the rest is on the way of long messages only
    slow = deliveries.AskingPrices(hop_ps=110, answer_ps=0, find_ps=0)
    (*_, ways_of_seek) = predict_ways.ways(network, prices, ["seek"], eager_bytes=1024, asking=slow)
    assert [point[3] for point in ways_of_seek.costs["messages"]] == [0, 0, 20, 20]
    assert seek.costs["layouts"] == [(0, 1, "receive", 0, 5000, 0)]


def test_a_message_of_layouts_takes_what_exchanges_of_them_take_more():
    types = ("vector(8, 1, 2, double)", "vector(4, 2, 4, double)")
    uses = [
        Use(layout=number, count=1, side=side, type=types[number], bytes=64, messages=1, copies=0)
        for number, side in enumerate(("send", "receive"))
    ]
    both = Pair(64, (0, 1), (1, 1), *types, messages=1, copies=1)
    half = Pair(64, None, (1, 1), "contig(64, byte)", types[1], messages=1, copies=1)
    moved = {
        uses[0]: LayoutTimes(pack_ns=30, unpack_ns=0, memcpy_ns=10),
        uses[1]: LayoutTimes(pack_ns=0, unpack_ns=90, memcpy_ns=10),
    }
    # 1000 ns for both ends, 30 : 90; 500 ns where one is a block, 10 : 90
    assert predict_ways.pair_ps(both, Exchange(1400, 400, 70), moved) == (
        *(64, (0, 1), (1, 1)),
        *(250_000, 750_000, 70_000),
    )
    assert predict_ways.pair_ps(half, Exchange(900, 400, 70), moved)[3:] == (50_000, 450_000, 70_000)
    # a layout that is quicker than a block costs nothing; one of which nothing else is known has halves
    assert predict_ways.pair_ps(both, Exchange(300, 400, 70), moved)[3:] == (0, 0, 70_000)
    assert predict_ways.pair_ps(both, Exchange(1400, 400, 70), {})[3:] == (500_000, 500_000, 70_000)


def test_pairs_are_what_messages_have_at_both_ends():
    recording = predict.load(JACOBI)
    found = predict.pairs_of(recording, predict.uses_of(recording))
    # 4 ranks in a row of 2 x 2: each has one neighbour by columns, 10 times; rows are blocks
    assert [(pair.bytes, pair.messages) for pair in found] == [(HALO_BYTES, 4 * 10)]
    assert found[0].sent == found[0].received
    assert found[0].sent_type == found[0].received_type


@every_mpi
def test_an_mpi_is_asked_for_each_pair_once(mpi, tmp_path):
    if not mpi.present:
        pytest.skip(f"{mpi.name} is not here")
    types = ("vector(64, 1, 2, double)", "vector(32, 2, 4, double)")
    pairs = [
        Pair(512, (0, 1), (1, 1), *types, messages=1, copies=0),
        Pair(512, None, (1, 1), "contig(512, byte)", types[1], messages=1, copies=0),
    ]
    tools = jobs.Mpi(Path(mpi.compiler), Path(mpi.launcher))
    place = mpi_pair_prices.MeasuredMpi("an MPI", "a host", tools, 1 << 16)
    asked = []
    memory = ResultStore(tmp_path / "prices.json")
    found = mpi_pair_prices.measure(pairs, place, memory, lambda: asked.append(1))
    assert list(found) == pairs
    assert all(min(took.layouts_ns, took.blocks_ns, took.own_ns) > 0 for took in found.values())
    again = mpi_pair_prices.measure(
        pairs, place, ResultStore(tmp_path / "prices.json"), lambda: asked.append(1)
    )
    assert again == found
    assert len(asked) == 2


def test_light_layouts_are_priced_by_the_byte():
    heavy, light = (
        Use(layout=number, count=1, side="receive", type="", bytes=size, messages=1, copies=0)
        for number, size in enumerate((1000, 10))
    )
    prices = Prices(host_ps={heavy: 5000}, nic={"seek": {heavy: Price(0, 2000)}}, by_rate=[light])
    layout_prices.add_by_rate(prices, [heavy])
    assert prices.host_ps[light] == 50
    assert prices.nic["seek"][light] == Price(0, 20)


def test_the_memory_of_messages_is_counted_once():
    # a rank has two arrays of 66 x 66 doubles: rows and columns of their edges lie in less than both
    for trace in recorded.read(JACOBI):
        assert 64 * 66 * 8 < mpi_layout_prices.memory_of(trace) <= 2 * 66 * 66 * 8 + 64


@every_mpi
def test_a_program_is_recorded_and_predicted(spinloom, mpi, tmp_path):
    program, trace = tmp_path / "fft2d", tmp_path / "trace"
    compile_for(mpi, [HERE / "programs" / "fft2d.c"], program, libraries=("-lm",))
    words = [
        BIN / "spinloom",
        "record",
        "-o",
        trace,
        "--",
        mpi.launcher,
        *mpi.options,
        "-n",
        "2",
        program,
        "64",
        "2",
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S)
    assert done.returncode == 0, done.stderr
    ran = spinloom("predict", str(trace), "--json", "-q")
    found = {row["way"]: row for row in json.loads(ran.out)}
    # 2 times 2 all-to-alls of 2 ranks, one message each; a reduction of 8 B
    assert found["host-mpi"]["messages"] == 4 * 2 + 1
    assert found["host-mpi"]["bytes"] == 4 * 2 * 32 * 32 * 16 + 8
    assert (
        found["host-mpi"]["layouts_ps"] > found["offload-rw-cp"]["layouts_ps"] > 0
    )  # a rank's own block stays


# ---- messages that ask first, late receives ----


def delivered(machine, **changes):
    message = {**deliveries.contiguous(64 << 10), "asks": True, "late": False, **changes}
    return deliveries.deliver(machine.setup(), message)


def test_prices_of_asking_are_those_of_simulated_messages():
    machine = machines.machine()
    asked = deliveries.asking_prices(machine, ResultStore(None), 64 << 10, 65_000)
    plain, asks, late = (
        delivered(machine, asks=False),
        delivered(machine),
        delivered(machine, late=True),
    )
    # T(asks) = T(does not) + 2 hops; T(late) = answer + hop + T(does not) - the sender's call
    assert asks["time_ps"] - plain["time_ps"] in (2 * asked.hop_ps, 2 * asked.hop_ps + 1)
    assert late["time_ps"] == asked.answer_ps + asked.hop_ps + plain["time_ps"] - 65_000
    assert asks["receiver_busy_ps"] == 0
    assert late["receiver_busy_ps"] > 0
    wire = int(machine.profile["link.switch"]) + int(machine.profile["link.wire"])
    assert asked.hop_ps > wire


def test_any_source_and_layouts_at_both_ends_ask_as_others_do():
    machine = machines.machine()
    asks = delivered(machine)
    assert delivered(machine, any_source=True)["time_ps"] == asks["time_ps"]
    layout = "vector(4096, 2, 4, double)"
    moved = {"sent": layout, "received": layout, "send": "outbound-specialised", "strategy": "rw-cp"}
    found = delivered(machine, **moved)
    assert found["by"] == "nic"
    assert found["sender_busy_ps"] == asks["sender_busy_ps"]  # its call
    assert found["receiver_busy_ps"] == 0


def test_what_lies_between_polls_and_how_ranks_grow_are_options(spinloom):
    assert rows(spinloom, "--polls", "work")["host-mpi"]["time_ps"] > 0
    weak, strong = (
        rows(spinloom, "--ranks", "16", "--scaling", scaling)["host-mpi"] for scaling in ("weak", "strong")
    )
    # 2 x 2 ranks became 4 x 4: a quarter of the computation, faces of half as many cells
    assert strong["compute_ps"] == pytest.approx(weak["compute_ps"] / 4, rel=1e-3)
    assert strong["messages"] == weak["messages"]
    assert weak["bytes"] - strong["bytes"] == 10 * 24 * 2 * HALO_BYTES // 2
    refused = spinloom("predict", str(JACOBI), "--scaling", "strong")
    assert refused.code == EXIT_USAGE
    assert "say on how many ranks" in refused.err
