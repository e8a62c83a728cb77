"""Text traces become what the recorder writes of the same run, and the verbs take them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from layer_programs import Mpi, compile_for, every_mpi
from patience import seconds
from spinloom.traces import recorded

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
TIME_LIMIT_S = seconds(240)
US = 1000


def spinloom(*words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIME_LIMIT_S, env={**os.environ, **settings}
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """program(mpi): a library stands before the MPI, so that the recorder stands before both."""
    folder = tmp_path_factory.mktemp("texts")
    built: dict[Mpi, Path] = {}

    def compiled(mpi: Mpi) -> Path:
        if mpi not in built:
            library, path = folder / f"libtexts{len(built)}.so", folder / f"program{len(built)}"
            compile_for(mpi, [HERE / "programs/text_wrapper.c"], library, "-shared", "-fPIC")
            compile_for(mpi, [HERE / "programs/texts.c"], path, libraries=(str(library),))
            built[mpi] = path
        return built[mpi]

    return compiled


def called(trace) -> list[tuple]:
    """Each call: its name, peers, tag, members of its communicator, bytes."""
    signatures, comms = trace.signatures(), trace.comms()
    found = []
    for number in recorded.events(trace)["signature"]:
        row = signatures[number]
        known = row["comm"] < len(comms) and row["call"] not in ("Init", "Finalize")
        members = tuple(comms[row["comm"]]["world_ranks"]) if known else ()
        found.append(
            (row["call"], row["peer"], row["tag"], members, row["sent_bytes"], row["received_bytes"])
        )
    return found


@every_mpi
def test_a_text_trace_is_what_the_recorder_saw(mpi, program, tmp_path):
    texts, ours, made = tmp_path / "texts", tmp_path / "ours", tmp_path / "made"
    texts.mkdir()
    words = ["record", "-o", ours, "--", mpi.launcher, *mpi.options, "-n", "4", program(mpi)]
    ran = spinloom(*words, TEXT_TRACES=str(texts))
    assert ran.returncode == 0, ran.stderr
    done = spinloom("trace", texts, "--import", made, "--json")
    assert done.returncode == 0, done.stderr
    assert "left out: 4 calls that move nothing between ranks" in done.stderr
    assert "4 MPI_Comm_rank" in done.stderr
    assert "has no layouts" in done.stderr
    for seen, told in zip(recorded.read(ours), recorded.read(made), strict=True):
        assert called(told) == called(seen)
        # The recorder stands before the wrapper or behind it: lengths differ by what either takes.
        assert told.ended
    pairs = [sorted(recorded.core.load().trace_messages(recorded.read(one))) for one in (ours, made)]
    assert pairs[0] == pairs[1]
    for verb in (("trace", made, "--check"), ("predict", made, "--quiet")):
        looked = spinloom(*verb)
        assert looked.returncode == 0, looked.stderr
    goal = tmp_path / "made.goal"
    assert spinloom("predict", made, "--goal", goal).returncode == 0
    assert goal.read_text().startswith("num_ranks 4")


def ring(rank: int, size: int) -> str:
    comm = f"4096,{rank},{size}"
    send = f"MPI_Send:20:8:4:1,4,4:{(rank + 1) % size}:0:{comm}:30\n"
    receive = f"MPI_Recv:40:8:4:1,4,4:{(rank - 1) % size}:0:{comm}:99:50\n"
    return f"MPI_Init:-:0:0:10\n{send}{receive}MPI_Finalize:60:-\n"


def write(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def test_the_files_are_those_of_one_program(tmp_path):
    names = {f"a-{rank:02}.txt": ring(rank, 3) for rank in range(3)}
    both = write(tmp_path / "both", {**names, **{f"b-{rank}.txt": ring(rank, 2) for rank in range(2)}})
    done = spinloom("trace", both, "--import", tmp_path / "made")
    assert done.returncode == 2
    assert "several programs: a-N.txt, b-N.txt; name a file of one" in done.stderr
    done = spinloom("trace", both / "b-1.txt", "--import", tmp_path / "made")
    assert done.returncode == 0, done.stderr
    assert len(recorded.read(tmp_path / "made")) == 2
    lacking = write(tmp_path / "lacking", {"a-0.txt": ring(0, 2), "a-2.txt": ring(1, 2)})
    done = spinloom("trace", lacking, "--import", tmp_path / "more")
    assert done.returncode == 2
    assert "2 files, and none is of rank 1" in done.stderr


def test_a_trace_is_not_overwritten_and_a_wrong_line_leaves_none(tmp_path):
    texts = write(tmp_path / "texts", {f"a-{rank}.txt": ring(rank, 2) for rank in range(2)})
    made = tmp_path / "made"
    assert spinloom("trace", texts, "--import", made).returncode == 0
    again = spinloom("trace", texts, "--import", made)
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    assert spinloom("trace", texts, "--import", made, "--force").returncode == 0
    (texts / "a-1.txt").write_text(ring(1, 2).replace(":4:1,4,4:", ":4:1,4:"))
    wrong = spinloom("trace", texts, "--import", tmp_path / "wrong")
    assert wrong.returncode == 2
    assert "a-1.txt:2: MPI_Send: the type is '1,4'" in wrong.stderr
    assert not recorded.is_recorded(tmp_path / "wrong")


def test_a_folder_of_texts_says_how_to_import_them(tmp_path):
    texts = write(tmp_path / "texts", {"a-0.txt": ring(0, 1)})
    done = spinloom("trace", texts)
    assert done.returncode == 2
    assert f"spinloom trace {texts} --import DIR" in done.stderr
