"""Windows, Python and Fortran in traces; and what the views of `spinloom trace` say of known programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from layer_programs import MPIS, Mpi, compile_for, every_mpi, program_for
from patience import seconds
from spinloom.common import perfetto_file
from spinloom.traces import recorded
from test_record import BIN, HERE, record, rows

TIME_LIMIT_S = seconds(240)


def trace(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), "trace", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)


@every_mpi
@pytest.mark.parametrize("accelerate", [False, True], ids=["looks on", "accelerates"])
def test_accesses_to_windows(mpi: Mpi, accelerate, tmp_path):
    program = tmp_path / "windows"
    compile_for(mpi, [HERE / "windows.c"], program)
    how = ["--accelerate"] if accelerate else []
    ran = record(tmp_path / "trace", *how, "--", mpi.launcher, *mpi.options, "-n", "2", program)
    assert ran.returncode == 0, ran.stderr
    traces = recorded.read(tmp_path / "trace")
    for rank, one in enumerate(traces):
        made, freed = rows(one, "Win_make"), rows(one, "Win_free")
        assert [row["window"] for row in made] == [0, 1]
        assert [row["window"] for row in freed] == [1, 0]
        assert [row["received_bytes"] for row in made] == [256, 64]
        assert [(row["window"], row["comm"]) for row in rows(one, "Win_fence")] == [(0, 0)] * 2
        (put,), (sum_,) = rows(one, "Put"), rows(one, "Accumulate")
        assert (put["peer"], put["window"], put["sent_bytes"]) == (1 - rank, 0, 24)
        assert put["receives"][0][:2] == (4, 3)
        assert (sum_["peer"], sum_["window"], sum_["sent_bytes"], sum_["receives"][0][:2]) == (
            1 - rank,
            0,
            16,
            (8, 2),
        )
    first = traces[0]
    (get,), (later,), (fetch,) = rows(first, "Get"), rows(first, "Rget"), rows(first, "Fetch_and_op")
    assert (get["peer"], get["window"], get["sends"][0][:2], get["received_bytes"]) == (1, 1, (1, 2), 16)
    assert rows(first, "Wait")[0]["requests"] == later["requests"] != []
    assert (fetch["sent_bytes"], fetch["peer"]) == (8, 1)
    for name in ("Win_lock", "Win_flush", "Win_unlock"):
        assert [(row["peer"], row["window"]) for row in rows(first, name)] == [(1, 1)]


@every_mpi
def test_python_programs(mpi: Mpi, tmp_path):
    pytest.importorskip("mpi4py")
    if not mpi.present or mpi.name.startswith("the standard"):
        pytest.skip(f"mpi4py is not run under {mpi.name} here")
    settings = {}
    if mpi.name == "Debian's Open MPI":
        settings = {"MPI4PY_LIBMPI": "/usr/lib/x86_64-linux-gnu/libmpi.so.40"}
    elif mpi.name == "Debian's MPICH":
        (tmp_path / "libmpi.so.12").symlink_to("/usr/lib/x86_64-linux-gnu/libmpich.so.12")
        settings = {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(tmp_path)}
    else:
        settings = {"MPI4PY_LIBMPI": f"{sys.prefix}/lib/libmpi.so.12"}
    if not Path(settings.get("MPI4PY_LIBMPI", "/usr/lib/x86_64-linux-gnu/libmpich.so.12")).exists():
        pytest.skip(f"the library of {mpi.name} lies elsewhere")
    words = [mpi.launcher, *mpi.options, "-n", "2", sys.executable, HERE / "exchange.py"]
    ran = record(tmp_path / "trace", "--", *words, **settings)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == ["rank 0", "rank 1"]
    traces = recorded.read(tmp_path / "trace")
    assert len(traces) == 2
    for rank, one in enumerate(traces):
        assert one.ended
        (send,), (receive,), (wait,) = rows(one, "Isend"), rows(one, "Irecv"), rows(one, "Waitall")
        assert (send["peer"], send["tag"], send["sent_bytes"], receive["received_bytes"]) == (
            1 - rank,
            6,
            40,
            40,
        )
        assert wait["requests"] == send["requests"] + receive["requests"]
        assert [row["sent_bytes"] for row in rows(one, "Allreduce")] == [8]
        assert [(row["peer"], row["sent_bytes"]) for row in rows(one, "Accumulate")] == [(1 - rank, 16)]
    assert trace(tmp_path / "trace", "--check").returncode == 0


@pytest.mark.parametrize("mpi", MPIS[:2], ids=lambda mpi: mpi.name)
def test_fortran_programs(mpi: Mpi, tmp_path):
    compiler = mpi.compiler.replace("mpicc", "mpif90")
    if not mpi.present or shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    program = tmp_path / "exchange"
    compile_for(replace(mpi, compiler=compiler), [HERE / "exchange.f90"], program, f"-J{tmp_path}")
    ran = record(tmp_path / "trace", "--", mpi.launcher, *mpi.options, "-n", "2", program)
    assert ran.returncode == 0, ran.stderr
    for rank, one in enumerate(recorded.read(tmp_path / "trace")):
        (send,), (receive,), (wait,) = rows(one, "Send"), rows(one, "Irecv"), rows(one, "Wait")
        assert (send["peer"], send["tag"], send["sent_bytes"]) == (1 - rank, 4, 48)
        assert receive["receives"][0][0] - send["sends"][0][0] == 7 * 8
        assert wait["requests"] == receive["requests"]
        assert len(rows(one, "Barrier")) == 1
    assert trace(tmp_path / "trace", "--check").returncode == 0


@pytest.fixture(scope="module", params=MPIS[:3], ids=lambda mpi: mpi.name)
def wasteful(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wasteful")
    program = program_for(request.param, HERE / "wasteful.c")
    words = [request.param.launcher, *request.param.options, "-n", "2", program]
    ran = record(folder / "trace", "--", *words)
    assert ran.returncode == 0, ran.stderr
    return folder / "trace"


def test_the_check_finds_what_is_wrong(wasteful):
    ran = trace(wasteful, "--check", "--json")
    assert ran.returncode == 1
    found = [
        (row["finding"], row["from"], row["to"], row["tag"], row["times"], row["bytes"])
        for row in json.loads(ran.stdout)
    ]
    assert found == [
        ("types differ", 0, 1, 3, 1, 16),
        ("not received", 0, 1, 5, 1, 4),
        ("sent twice", 0, 1, 2, 3, 64),
        ("sent twice", 1, 0, 2, 3, 64),
        ("room left", 0, 1, 4, 1, 24),
    ]


def test_who_sent_whom_how_much(wasteful):
    ran = trace(wasteful, "--matrix", "--json")
    assert ran.returncode == 0
    halo = 3 * (2 * 16 * 8 + 16 * 8)
    assert json.loads(ran.stdout) == [
        {"from": 0, "to": 1, "messages": 9, "bytes": halo + 16 + 8 + 4},
        {"from": 1, "to": 0, "messages": 6, "bytes": halo},
    ]


def test_the_types_of_its_buffers(wasteful):
    ran = trace(wasteful, "--types", "--json")
    assert ran.returncode == 0
    found = {row["text"] or row["name"]: row for row in json.loads(ran.stdout)}
    corner = found["vector(4, 4, 16, int64_t)"]
    assert (corner["blocks"], corner["contiguous"], corner["sends"], corner["bytes"]) == (
        4,
        False,
        6,
        6 * 128,
    )
    assert (found["MPI_DOUBLE"]["receives"], found["MPI_DOUBLE"]["contiguous"]) == (12, True)
    assert "MPI_DOUBLE" in trace(wasteful, "--types").stdout


@pytest.mark.skipif(not perfetto_file.available(), reason="the package perfetto is not here")
def test_a_timeline_has_every_call_and_an_arrow_for_each_message(wasteful, tmp_path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    out = tmp_path / "wasteful.pftrace"
    assert trace(wasteful, "--timeline", out).returncode == 0
    file = proto.Trace()
    file.ParseFromString(out.read_bytes())
    begins = [
        packet.track_event
        for packet in file.packet
        if packet.track_event.type == proto.TrackEvent.TYPE_SLICE_BEGIN
    ]
    assert len(begins) == sum(one.events for one in recorded.read(wasteful))
    arrows = [flow for event in begins for flow in event.flow_ids]
    assert sorted(arrows) == sorted(2 * list(range(1, 3 * 4 + 2 + 1)))
    assert "Isend 256 B to 1" in {event.name for event in begins}


def test_views_of_what_is_no_trace(tmp_path):
    ran = trace(tmp_path, "--check")
    assert ran.returncode == 2
    assert "holds no recorded program" in ran.stderr
    ran = trace(tmp_path / "none")
    assert ran.returncode == 2
    assert "'spinloom record -o " in ran.stderr
    (tmp_path / "rank-0.trace").write_bytes(os.urandom(100))
    ran = trace(tmp_path)
    assert ran.returncode == 2
    assert "is no recorded program" in ran.stderr
