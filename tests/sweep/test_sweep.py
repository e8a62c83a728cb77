"""`spinloom sweep`: the same table wherever and however often it was interrupted; failing cells; plots."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager

import polars
import pytest

from conftest import needs_engine
from patience import seconds, until
from spinloom import simulate
from spinloom.predict.grid import axes, cells, one, workers
from studies import FOUR, GOALS, VECTOR, kept, manifest

pytestmark = needs_engine


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """Unless a test says more: each worker takes a second to start."""
    monkeypatch.setenv("SPINLOOM_WORKERS", "1")


LONG = (VECTOR, "n=150000..172000+2000", "strategy=host-mpitypes,seek")  # seconds


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """LONG by one worker, without a break."""
    folder = tmp_path_factory.mktemp("reference")
    ran = command(*LONG, "--out", str(folder), "--workers", "1")
    assert ran.wait(timeout=seconds(240)) == 0
    return folder


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """A folder that has the cells of FOUR with 4 and 16 HPUs: who uses it runs none."""
    folder = tmp_path_factory.mktemp("four")
    assert command(*FOUR, "hpus=4,16", "--out", str(folder)).wait(timeout=seconds(240)) == 0
    return folder


def command(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "spinloom.cli", "sweep", *arguments, "-q"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def test_a_table_has_what_ddt_says(spinloom, tmp_path):
    ran = spinloom("sweep", *FOUR, "--out", str(tmp_path), "--csv", "--workers", "2")
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert (tmp_path / "sweep.csv").read_text(encoding="utf-8") == ran.out
    said = simulate("vector(16, 1, 2, double)", "seek")
    for name in ("host-mpitypes", "seek"):
        (row,) = [row for row in rows if (row["n"], row["strategy"]) == ("16", name)]
        expected = said.one(strategy=name)
        assert int(row["time_ps"]) == expected["time_ps"]
        assert float(row["speedup"]) == expected["speedup"]
        assert row["checked"] == "true"
    frame = polars.read_parquet(tmp_path / "sweep.parquet")
    assert frame["time_ps"].to_list() == [int(row["time_ps"]) for row in rows]
    assert frame["n"].to_list() == [8, 8, 16, 16]
    about = manifest(tmp_path)
    assert (about["cells"], about["computed_in_this_run"], about["failed"]) == (4, 4, 0)
    assert about["profiles"][0]["nic"] == "sc19-slingshot"
    assert about["images_sha256"] == one.image_hashes()


def test_a_schedule_ends_when_loggops_says(spinloom, tmp_path):
    """dissemination: log2(ranks) rounds of 2 o + L + 7 G."""
    ran = spinloom("sweep", *GOALS, "L=100", "o=10", "g=10", "G=2", "--out", str(tmp_path), "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [row["last_rank_ends_ns"] for row in rows] == [k * (2 * 10 + 100 + 7 * 2) for k in (2, 3, 4, 5)]
    assert [row["sends"] for row in rows] == [ranks * k for k, ranks in ((2, 4), (3, 8), (4, 16), (5, 32))]


def test_only_new_cells_run(spinloom, tmp_path):
    out = ("--out", str(tmp_path))
    spinloom("sweep", *GOALS, *out)
    before = manifest(tmp_path)
    again = spinloom("sweep", *GOALS, *out)
    assert "4 cells, 4 of them kept" in again.err
    assert manifest(tmp_path)["result_hash"] == before["result_hash"]
    spinloom("sweep", "pattern=dissemination", "ranks=4..64*2", *out)
    assert manifest(tmp_path)["computed_in_this_run"] == 1
    assert len(kept(tmp_path)) == len(set(kept(tmp_path))) == 5
    spinloom("sweep", *GOALS, *out, "--fresh")
    about = manifest(tmp_path)
    assert (about["computed_in_this_run"], about["result_hash"]) == (4, before["result_hash"])
    assert len(kept(tmp_path)) == 4


def test_a_changed_number_changes_the_hash(spinloom, tmp_path):
    hashes = set()
    for latency in ("33400 ps", "33401 ps"):
        spinloom("sweep", VECTOR, "n=8", "strategy=seek", f"link.switch={latency}", "--out", str(tmp_path))
        hashes.add(manifest(tmp_path)["result_hash"])
    assert len(hashes) == 2


# ---- stopped, killed ----


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_sweep_goes_on_where_it_was(spinloom, tmp_path, reference, number):
    """The signal goes to all processes, as a terminal's Ctrl-C does."""
    ran = command(*LONG, "--out", str(tmp_path), "--workers", "2")
    until(lambda: len(kept(tmp_path)) >= 2)
    os.killpg(ran.pid, number)
    _, said = ran.communicate(timeout=seconds(60))
    done = len(kept(tmp_path))
    assert 2 <= done < manifest(reference)["cells"]
    assert not (tmp_path / "sweep.parquet").exists()
    if number != signal.SIGKILL:
        assert ran.returncode == 128 + number
        assert said.endswith(
            f"; {done} of 24 cells are kept in {tmp_path}; the same command goes on from there\n"
        )
        assert said.count("\n") == 1
    again = spinloom("sweep", *LONG, "--out", str(tmp_path), "--workers", "2")
    assert again.code == 0, again.err
    assert manifest(tmp_path)["computed_in_this_run"] == 24 - done
    assert len(kept(tmp_path)) == len(set(kept(tmp_path))) == 24
    assert manifest(tmp_path)["result_hash"] == manifest(reference)["result_hash"]
    assert (tmp_path / "sweep.parquet").read_bytes() == (reference / "sweep.parquet").read_bytes()


def test_a_scheduler_elsewhere_gives_the_same(spinloom, tmp_path, reference):
    with scheduler(tmp_path, workers=1) as (address, _):
        assert address.startswith("tcp://127.0.0.1:")
        out = tmp_path / "out"
        ran = spinloom("sweep", *LONG, "--out", str(out), "--scheduler", address)
        assert ran.code == 0, ran.err
    assert manifest(out)["result_hash"] == manifest(reference)["result_hash"]


@contextmanager
def scheduler(folder, workers):
    """The address of a scheduler that is a process of its own, with workers that are, too; the process."""
    file = folder / "scheduler.json"
    module = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    place = ["--scheduler-file", str(file)]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
    started = [subprocess.Popen([*module, "distributed.cli.dask_scheduler", *options, *place], **quiet)]
    try:
        assert until(file.exists)
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
        for _ in range(workers):
            started.append(
                subprocess.Popen(
                    [*module, "distributed.cli.dask_worker", *options, *place], **quiet, cwd=folder
                )
            )
        yield until(lambda: file.read_text() and json.loads(file.read_text())["address"]), started[0]
    finally:
        for each in reversed(started):
            each.kill()
            each.wait()


def test_a_scheduler_without_workers_is_no_endless_wait(spinloom, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "NO_WORKER_S", 0.0)
    with scheduler(tmp_path, workers=0) as (address, _):
        ran = spinloom("sweep", *GOALS, "--out", str(tmp_path / "out"), "--scheduler", address)
    assert ran.code == 3
    assert "no worker" in ran.err
    assert "0 of 4 cells are kept" in ran.err


def test_a_scheduler_that_dies_ends_the_sweep_which_can_go_on(spinloom, tmp_path, reference):
    out = tmp_path / "out"
    with scheduler(tmp_path, workers=1) as (address, process):
        ran = command(*LONG, "--out", str(out), "--scheduler", address)
        until(lambda: kept(out))
        process.kill()
        _, said = ran.communicate(timeout=seconds(120))
    assert ran.returncode == 3
    done = len(kept(out))
    assert f"the connection to the Dask scheduler is lost; is it still running? ({done} of 24 cells" in said
    assert said.count("\n") == 1
    assert spinloom("sweep", *LONG, "--out", str(out)).code == 0
    assert manifest(out)["result_hash"] == manifest(reference)["result_hash"]


def test_no_scheduler_is_one_sentence(spinloom, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CONNECT_S", 1)
    ran = spinloom("sweep", *GOALS, "-q", "--out", str(tmp_path), "--scheduler", "tcp://127.0.0.1:1")
    assert ran.code == 3
    assert ran.err.startswith("spinloom: no Dask scheduler answers at tcp://127.0.0.1:1")
    assert ran.err.count("\n") == 1


# ---- cells that fail ----


def deadly(batch):
    """In place of one.compute: 16 ranks kill the worker, 8 raise what is no trouble."""
    for inputs, _ in batch:
        if inputs["ranks"] == 16:
            os._exit(1)
        if inputs["ranks"] == 8:
            raise ValueError("not foreseen")
    return one.compute(batch)


def test_a_cell_that_kills_its_workers_harms_no_other():
    wanted = cells.cells(axes.with_arguments(axes.Spec(), ("pattern=dissemination", "ranks=2..64*2")))
    with workers.local(2) as client:
        found = {
            cell.columns["ranks"]: result for cell, result in workers.run(wanted, client, compute=deadly)
        }
    assert {ranks: result["status"] for ranks, result in found.items()} == {
        **dict.fromkeys((2, 4, 32, 64), "ok"),
        8: "failed",
        16: "died",
    }
    assert found[16]["message"] == "its worker died 3 times: out of memory, or a crash"
    assert found[8]["message"] == "ValueError: not foreseen"


def answer_to(context: ssl.SSLContext, stranger: socket.socket) -> bytes:
    try:
        with context.wrap_socket(stranger) as asking:
            asking.sendall(bytes(64))
            return asking.recv(1)
    except OSError:
        return b""


def test_only_who_has_the_sweeps_key_reaches_its_workers():
    with workers.local(1) as client:
        addresses = [client.scheduler.address, *client.scheduler_info()["workers"]]
        assert len(addresses) == 2
        for address in addresses:
            assert address.startswith("tls://127.0.0.1:")
            with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as stranger:
                stranger.settimeout(seconds(20))
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                assert not answer_to(context, stranger)
        assert client.submit(os.getpid).result(timeout=seconds(20)) != os.getpid()


def quick(batch):
    """In place of one.compute: what every cell is, without computing it."""
    return json.dumps([{"status": "ok", "pid": os.getpid()} for _ in batch])


def test_a_worker_that_dies_with_a_result_computes_it_again():
    """A result stays at its worker until it is taken, and is lost with that worker."""
    some = list(cells.cells(axes.with_arguments(axes.Spec(), ("pattern=dissemination", "ranks=2..8*2"))))
    with workers.local(1) as client:
        work = workers.RunningBatches(client, seconds(60), quick)
        work.begin(some)
        future = work.ended.get(timeout=seconds(60))
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: future.status == "lost")
        work.ended.put(future)
        ended, results = work.next()
        while not ended:
            ended, results = work.next()
    assert ended == some
    assert [result["status"] for result in results] == ["ok"] * len(some)
    assert all(result["pid"] != pid for result in results)


def test_failing_cells_are_rows_and_the_others_stay(spinloom, tmp_path):
    """10^12 times 64 bytes are more than a message may have; 1 and 2 times are not."""
    arguments = (VECTOR, "n=8", "strategy=seek", "count=1,1000000000000,2", "--out", str(tmp_path))
    ran = spinloom("sweep", *arguments, "--json", "-q")
    assert ran.code == 1
    assert "1 of 3 cells failed" in ran.err
    document = json.loads(ran.out)
    assert document["failed"] == 1
    small, large, middle = document["rows"]
    assert small["status"] == middle["status"] == "ok"
    assert large["status"] == "overflow"
    assert "64000000000000 bytes exceeds" in large["message"]
    assert large["message"] in ran.err
    assert "time_ps" not in large
    again = spinloom("sweep", *arguments, "-q")
    assert again.code == 1
    assert manifest(tmp_path)["computed_in_this_run"] == 0
    assert polars.read_parquet(tmp_path / "sweep.parquet")["status"].to_list() == ["ok", "overflow", "ok"]


def test_what_a_strategy_cannot_do_is_no_failure(spinloom, tmp_path):
    ran = spinloom(
        "sweep", VECTOR, "n=8", "strategy=rdma-direct,host-mpitypes", "--out", str(tmp_path), "--json"
    )
    assert ran.code == 0
    direct, host = json.loads(ran.out)["rows"]
    assert (direct["status"], host["status"]) == ("unsupported", "ok")
    assert direct["checked"] is None
    assert direct["message"]


# ---- plots ----


def test_a_plot_says_what_is_modelled_and_what_all_rows_share(spinloom, four, tmp_path):
    arguments = ("sweep", *FOUR, "hpus=4,16", "--out", str(four))
    ran = spinloom(*arguments, "--axes", "n", "time_ps")
    assert ran.code == 0, ran.err
    drawn = (four / "time_ps-over-n.svg").read_text(encoding="utf-8")
    for text in ("modelled time [ns]", "hpus, strategy", "16, seek", "nic sc19-slingshot; host i7-4770"):
        assert text in drawn
    png = tmp_path / "picture.png"
    spinloom(*arguments, "hpus=4", "--axes", "strategy", "speedup", "--by", "n", "--plot", str(png))
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--axes", "n", "time"), "no column 'time'; did you mean 'time_ps'"),
        (("--axes", "n", "nic"), "has no numbers"),
        (("--axes", "n", "time_ps", "--by", "nic"), "add what differs to --by: nic,strategy"),
        (("--axes", "n", "time_ps", "--plot", "a.pdf"), "end the name in .svg or .png"),
        (("--by", "nic"), "--by goes with --axes"),
        (("--axes", "n", "time_ps", "seed=1..5"), "lines are too many to tell apart; name the columns"),
        (("--scheduler", "tcp://a:1", "--slurm"), "one of them"),
        (("--scheduler", "tcp://a:1", "--workers", "2"), "--workers is about this machine"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(spinloom, four, options, said):
    ran = spinloom("sweep", *FOUR, "hpus=16", "--out", str(four), "-q", *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


# ---- what is loaded, what is missing ----


def test_dask_is_loaded_only_when_a_cell_runs(tmp_path):
    script = (
        "import sys\nfrom spinloom.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print([name for name in ('dask', 'distributed', 'polars') if name in sys.modules])"
    )
    for arguments in (["--help"], ["sweep", "--help"], ["sweep", *GOALS, "--dry-run"]):
        ran = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
        )
        assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("module", "options", "said"),
    [
        ("distributed", (), "pip install distributed"),
        ("polars", (), "pip install polars"),
        ("dask_jobqueue", ("--slurm",), "pip install dask-jobqueue"),
    ],
)
def test_a_missing_package_is_named_before_anything_runs(
    spinloom, tmp_path, monkeypatch, module, options, said
):
    monkeypatch.setitem(sys.modules, module, None)
    ran = spinloom("sweep", *GOALS, "--out", str(tmp_path), "-q", *options)
    assert ran.code == 3
    assert said in ran.err
    assert kept(tmp_path) == []


def test_a_folder_of_another_run_is_left_alone(spinloom, tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    ran = spinloom("sweep", *GOALS, "--out", str(tmp_path))
    assert ran.code == 2
    assert "holds manifest.json of another run" in ran.err
    assert (tmp_path / "manifest.json").read_text() == "{}"


def test_a_dry_run_runs_nothing(spinloom, tmp_path):
    ran = spinloom("sweep", *GOALS, "--dry-run", "--json", "--out", str(tmp_path / "out"))
    assert [row["ranks"] for row in json.loads(ran.out)] == [4, 8, 16, 32]
    assert not (tmp_path / "out").exists()
    assert spinloom("sweep", *GOALS, "--dry-run").out.startswith("4 cells")


def test_without_a_folder_for_results_nothing_runs(spinloom):
    ran = spinloom("sweep", *GOALS)
    assert ran.code == 2
    assert "say where the results of 4 cells are kept: --out DIR" in ran.err
