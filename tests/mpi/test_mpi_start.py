"""What `spinloom run` and `spinloom record` look at before a job starts: options, launchers, sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from layer_programs import BIN, MPIS, TIME_LIMIT_S, Mpi, compile_for, every_mpi
from spinloom.accelerate import mpi_programs

HELLO = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char** words) {
  int ranks, rank, wrong = 0, *data = malloc(65536 * sizeof *data);
  MPI_Init(&count, &words);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype spread;
  MPI_Type_vector(4096, 1, 16, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  for (int i = 0; i < 65536; ++i) data[i] = rank == 0 ? i : -1;
  for (int i = 0; ranks > 1 && i < 4; ++i) {
    if (rank == 0) MPI_Send(data, 1, spread, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(data, 1, spread, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; rank == 1 && i < 65536; ++i) wrong += data[i] != (i % 16 == 0 ? i : -1);
  if (rank == ranks - 1) printf("%d ranks, %d wrong\\n", ranks, wrong);
  MPI_Type_free(&spread);
  if (count > 1) ((volatile int*)data)[65536 + 1] = 1;
  free(data);
  MPI_Finalize();
  return 0;
}
"""
SANITIZERS = {"address": "AddressSanitizer", "thread": "ThreadSanitizer", "undefined": None}
OPENMPI, MPICH = MPIS[0], MPIS[1]


def spinloom(*words: str, verb: str = "run", **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), verb, *words]
    environment = {**os.environ, **more}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )


@pytest.fixture(scope="module")
def hello(tmp_path_factory):
    """hello(mpi, *options): the program, compiled once for an MPI and these options."""
    folder = tmp_path_factory.mktemp("hello")
    source = folder / "hello.c"
    source.write_text(HELLO, encoding="utf-8")
    built: dict[tuple[str, ...], Path] = {}

    def program(mpi: Mpi, *options: str) -> Path:
        key = (mpi.name, *options)
        if key not in built:
            path = folder / f"hello{len(built)}"
            compile_for(mpi, [source], path, *options)
            built[key] = path
        return built[key]

    return program


def pair(mpi: Mpi, program: Path, *words: str) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", "2", str(program), *words]


# ---- options ----


@pytest.mark.parametrize(
    ("verb", "option", "nearest"),
    [
        ("run", "--reprt", "--report"),
        ("run", "--colectives", "--collectives"),
        ("record", "--acelerate", "--accelerate"),
        ("sim", "--rank", "--ranks"),
        ("threads", "--rank", "--ranks"),
    ],
)
def test_an_unknown_option_is_answered_with_the_nearest(verb, option, nearest):
    for words in ([option, "--", "true"], [option, "true"]):
        ran = spinloom(*words, verb=verb)
        assert ran.returncode == 2
        assert f"No such option '{option}'" in ran.stderr
        assert nearest in ran.stderr


def test_options_behind_the_program_are_its_own():
    ran = spinloom("echo", "--reprt", "--", "--report")
    assert (ran.returncode, ran.stdout) == (0, "--reprt -- --report\n")


@pytest.mark.parametrize(("verb", "word"), [("run", "--rma"), ("record", "-o"), ("record", "--out=x")])
def test_an_option_of_the_verb_behind_the_program_is_said(tmp_path, verb, word):
    before = ["-o", str(tmp_path / "trace"), "--force"] if verb == "record" else []
    ran = spinloom(*before, "true", word, verb=verb)
    assert ran.returncode == 0
    name = word.partition("=")[0]
    assert f"{name} is behind the program, which gets it; options of 'spinloom {verb}'" in ran.stderr
    for silent in (["--", "true", word], ["true", "--other", "run"]):
        assert "behind the program" not in spinloom(*before, *silent, verb=verb).stderr


@pytest.mark.parametrize(
    "words", [("report.json", "--", "true"), ("report.html", "true"), ("report", "--", "true")]
)
def test_a_file_behind_report_is_answered_with_the_accepted_form(words):
    ran = spinloom("--report", *words)
    assert ran.returncode == 2
    assert f"--report {words[0]}: write --report={words[0]}" in ran.stderr


# ---- launchers ----


def need(*mpis: Mpi) -> None:
    for mpi in mpis:
        if not mpi.present:
            pytest.skip(f"{mpi.name} is not here")


@pytest.mark.parametrize("verb", ["run", "record"])
def test_open_mpis_launcher_for_a_program_of_mpich(hello, tmp_path, verb):
    need(OPENMPI, MPICH)
    program = hello(MPICH)
    more = ["-o", str(tmp_path / "trace")] if verb == "record" else []
    for words in (pair(OPENMPI, program), [*pair(OPENMPI, Path("env")), "A=b", str(program)]):
        ran = spinloom(*more, "--", *words, verb=verb)
        assert (ran.returncode, ran.stdout) == (3, "")
        assert f"{program} is linked with MPICH (" in ran.stderr
        assert "is a launcher of Open MPI" in ran.stderr
    assert not (tmp_path / "trace").exists()


def test_mpichs_launcher_for_a_program_of_open_mpi(hello):
    need(OPENMPI, MPICH)
    program = hello(OPENMPI)
    ran = spinloom("--", *pair(MPICH, program))
    assert (ran.returncode, ran.stdout) == (0, "1 ranks, 0 wrong\n" * 2)
    assert f"{program} is linked with Open MPI (" in ran.stderr
    assert ran.stderr.count("MPI_COMM_WORLD has one rank only, but the launcher has started 2") == 1


def test_a_launcher_that_a_script_hides_is_named_by_the_ranks(hello, tmp_path):
    need(OPENMPI, MPICH)
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\nexec {' '.join(pair(OPENMPI, hello(MPICH)))}\n", encoding="utf-8")
    script.chmod(0o755)
    ran = spinloom("--", str(script))
    assert ran.returncode == 0
    assert ran.stderr.count("the launcher of another MPI than the program's") == 1


@every_mpi
def test_nothing_is_said_of_a_launcher_of_the_same_mpi(hello, mpi):
    for words in (pair(mpi, hello(mpi)), [str(hello(mpi))]):
        ran = spinloom("--", *words)
        assert ran.returncode == 0, ran.stderr
        assert "launcher" not in ran.stderr


# ---- sanitizers ----


@pytest.fixture(params=SANITIZERS)
def sanitizer(request, tmp_path) -> str:
    """One whose programs run here by themselves."""
    source = tmp_path / "least.c"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    program = tmp_path / "least"
    words = ["cc", f"-fsanitize={request.param}", str(source), "-o", str(program)]
    if not shutil.which("cc") or subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"the compiler has no runtime for -fsanitize={request.param}")
    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        pytest.skip(f"-fsanitize={request.param} does not work here: {ran.stderr[:200]}")
    return request.param


QUIET = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "TSAN_OPTIONS": "report_bugs=0",
}  # the MPIs have faults of their own


@every_mpi
def test_a_program_with_a_sanitizer_starts(hello, mpi, sanitizer):
    program = hello(mpi, f"-fsanitize={sanitizer}", "-g")
    plain = subprocess.run(
        pair(mpi, program),
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if plain.returncode != 0:
        pytest.skip(f"it does not start without the layer either: {plain.stderr[-300:]}")
    ran = spinloom("--", *pair(mpi, program), **QUIET)
    assert (ran.returncode, ran.stdout) == (0, "2 ranks, 0 wrong\n"), ran.stderr
    assert "does not come first" not in ran.stderr
    name = SANITIZERS[sanitizer]
    assert (f"{program} is built with {name}: its runtime /" in ran.stderr) is (name is not None)


@every_mpi
def test_address_sanitizer_still_finds_faults(hello, mpi, sanitizer):
    if sanitizer != "address":
        pytest.skip("the fault is one of addresses")
    ran = spinloom("--", *pair(mpi, hello(mpi, "-fsanitize=address", "-g"), "fault"), **QUIET)
    assert ran.returncode != 0
    assert "heap-buffer-overflow" in ran.stdout + ran.stderr


def test_a_runtime_that_the_user_preloads_stays_first():
    others = "/opt/x.so /usr/lib/libasan.so.8:/opt/libasang.so"
    assert (
        mpi_programs.preloads("/ours.so", others)
        == "/usr/lib/libasan.so.8:/ours.so:/opt/x.so:/opt/libasang.so"
    )
    assert mpi_programs.preloads("/ours.so", "") == "/ours.so"


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("libasan.so.8", "AddressSanitizer"),
        ("libtsan.so.2", "ThreadSanitizer"),
        ("libclang_rt.asan-x86_64.so", "AddressSanitizer"),
        ("libclang_rt.tsan.so", "ThreadSanitizer"),
        ("libubsan.so.1", None),
        ("libclang_rt.ubsan_standalone.so", None),
        ("libmpi.so.40", None),
    ],
)
def test_which_libraries_are_runtimes(library, name):
    assert mpi_programs.sanitizer_of(library) == name


# ---- commands ----


@pytest.mark.parametrize(
    ("command", "places"),
    [
        (["mpiexec", "-n", "2", "/bin/ls", "/bin/cat"], [3]),
        (["mpiexec", "-n", "1", "/bin/ls", ":", "-n", "1", "/bin/cat"], [3, 7]),
        (["mpiexec", "-launcher", "cat", "-n", "2", "/bin/ls"], [5]),
        (["mpiexec", "-n", "2", "env", "A=/bin/cat", "/bin/ls"], [5]),
        (["/bin/ls", "-n"], [0]),
        (["mpiexec", "-n", "2", "no-such-program"], []),
    ],
)
def test_the_programs_of_a_command(command, places):
    assert [at for at, _ in mpi_programs.programs_in(command)] == places


def test_files_that_are_no_programs_have_no_libraries(tmp_path):
    script = tmp_path / "script"
    for contents in (
        b"",
        b"#!/bin/sh\n",
        b"\x7fELF\x02\x01" + b"\xff" * 300,
        Path(sys.executable).read_bytes()[:64],
    ):
        script.write_bytes(contents)
        assert mpi_programs.libraries_of(script) == {}
    assert mpi_programs.libraries_of(tmp_path) == {}
    assert mpi_programs.libraries_of(tmp_path / "nothing") == {}
