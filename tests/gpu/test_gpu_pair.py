"""gpu.Pair: two processes of the driver of tests/gpu/driver, or of a GPU with CuPy where there is one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import needs_engine
from gpu_programs import HERE, KINDS, ROOT, program
from spinloom import gpu
from spinloom.common.errors import Trouble
from spinloom.verbs import doctor

pytestmark = needs_engine

WAYS = ["ipc", "staged", "packed"]


@KINDS
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", ["views", "both_ways", "errors", "talks", "killed"])
def test_two_processes(kind, case, way):
    said = program(kind, HERE / "pair_process.py", case, SPINLOOM_GPU_PEER=way)
    assert f"process 0 of {case}: {way}" in said


@KINDS
@pytest.mark.parametrize("way", ["auto", *WAYS])
def test_the_example(kind, way):
    said = program(kind, ROOT / "examples/gpu/two_processes.py", SPINLOOM_GPU_PEER=way)
    assert said.count("the ghost column holds the neighbour's column") == 2
    assert f"process 1: {'ipc' if way == 'auto' else way}: " in said


@KINDS
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", ["views", "both_ways", "errors"])
def test_two_ranks(kind, case, way):
    mpi4py = pytest.importorskip("mpi4py")
    launcher = Path(sys.executable).with_name("mpiexec")
    if not launcher.exists():
        pytest.skip(f"there is no launcher beside Python for mpi4py {mpi4py.__version__}")
    said = program(
        kind, HERE / "pair_process.py", case, SPINLOOM_GPU_PEER=way, launcher=[launcher, "-n", "2"]
    )
    assert all(f"process {rank} of {case}: {way}" in said for rank in (0, 1)), said


def test_ranks_that_a_pair_refuses():
    comm = SimpleNamespace(Iprobe=None, size=2, rank=1)
    with pytest.raises(Trouble, match="needs peer=, the rank of the other process"):
        gpu.Pair(comm)
    for peer in (-1, 1, 2):
        with pytest.raises(Trouble, match=f"peer = {peer} is no other rank of the 2"):
            gpu.Pair(comm, peer=peer)
    with pytest.raises(Trouble, match="peer= is the rank"):
        gpu.Pair(0, peer=1)


def test_what_a_pair_refuses():
    with pytest.raises(
        TypeError, match="a multiprocessing Connection, a socket or a communicator of mpi4py, not str"
    ):
        gpu.Pair("here")
    with pytest.raises(Trouble, match="patience_s is 0"):
        gpu.Pair(0, patience_s=0)


def test_a_pair_needs_a_device(monkeypatch):
    monkeypatch.setenv("SPINLOOM_GPU", "shim")
    with pytest.raises(Trouble, match="has no device that two processes could share"):
        gpu.Pair(0)


@KINDS
def test_doctor_tries_two_processes(kind):
    said = program(kind, "-c", "from spinloom.verbs import doctor; print(doctor.gpu_pair())")
    assert said.startswith("ipc: each process has read the other's memory by CUDA IPC")


def test_doctor_has_no_word_of_it_without_a_gpu(monkeypatch):
    monkeypatch.setattr(doctor, "gpus", lambda: "")
    assert doctor.gpu_pair() == ""


def test_a_second_process_that_does_not_come_is_no_pair(monkeypatch):
    monkeypatch.setattr(gpu, "OTHER", "raise SystemExit(1)")
    assert gpu.with_itself() is None
