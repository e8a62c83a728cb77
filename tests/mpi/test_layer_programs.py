"""A program of ours that does not compile is a failure, unless it says itself what the MPI lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from layer_programs import Mpi, chosen, compile_for

MPI_H = "static inline int MPI_Init(int* count, char*** words) { return *words == 0 && *count; }\n"
GOOD = "#include <mpi.h>\nint main(int count, char** words) { return MPI_Init(&count, &words); }\n"
LACKS = '#include <mpi.h>\n#error "not this MPI: it has no MPI_Pack_c"\n'


@pytest.fixture
def mpi(tmp_path) -> Mpi:
    """A compiler with as much of an mpi.h as GOOD needs."""
    (tmp_path / "mpi.h").write_text(MPI_H, encoding="utf-8")
    compiler = tmp_path / "mpicc"
    compiler.write_text(f'#!/bin/sh\nexec cc -I{tmp_path} "$@"\n', encoding="utf-8")
    compiler.chmod(0o755)
    return Mpi("a small MPI", str(compiler), "true")


def compiled(mpi: Mpi, folder: Path, text: str, *options: str, libraries: tuple[str, ...] = ()) -> bool:
    source = folder / "program.c"
    source.write_text(text, encoding="utf-8")
    compile_for(mpi, [source], folder / "program", *options, libraries=libraries)
    return (folder / "program").exists()


def test_a_good_program_is_there(mpi, tmp_path):
    assert compiled(mpi, tmp_path, GOOD)


@pytest.mark.parametrize(
    ("text", "option", "told"),
    [
        (GOOD.replace("return", "retrun"), "-O0", "retrun"),
        (GOOD.replace("MPI_Init(&", "MPI_Innit(&"), "-O0", "MPI_Innit"),
        ("#include <nowhere.h>\n" + GOOD, "-O0", "nowhere.h"),
        (GOOD, "--no-such-option", "no-such-option"),
    ],
)
def test_an_error_of_ours_is_a_failure(mpi, tmp_path, text, option, told):
    with pytest.raises(pytest.fail.Exception, match=rf"a small MPI does not compile(.|\n)*{told}"):
        compiled(mpi, tmp_path, text, option)


def test_what_an_mpi_lacks_is_said_by_the_program(mpi, tmp_path):
    with pytest.raises(pytest.skip.Exception, match=r"a small MPI: it has no MPI_Pack_c$"):
        compiled(mpi, tmp_path, LACKS)


def test_an_mpi_that_is_not_there_or_compiles_nothing_is_skipped(mpi, tmp_path):
    with pytest.raises(pytest.skip.Exception, match="none is not here"):
        compiled(Mpi("none", "no-mpicc-of-this-name", "true"), tmp_path, GOOD)
    with pytest.raises(pytest.skip.Exception, match="compiles nothing with -lspinloom_nowhere here"):
        compiled(mpi, tmp_path, GOOD, libraries=("-lspinloom_nowhere",))
    (tmp_path / "mpi.h").unlink()
    with pytest.raises(pytest.skip.Exception, match=r"compiles nothing here: .*mpi\.h"):
        compiled(mpi, tmp_path, GOOD)


def test_a_run_takes_two_mpis_by_the_commit_or_all():
    mpis = [Mpi(name, "cc", "true") for name in "abcd"]
    pairs = {"".join(mpi.name for mpi in chosen(mpis, f"{commit:x}", None)) for commit in range(6)}
    assert pairs == {"ab", "ac", "ad", "bc", "bd", "cd"}
    assert chosen(mpis, "5", "all") == mpis
    assert chosen(mpis[:2], "5", None) == mpis[:2]
    assert len(chosen(mpis, "", None)) == 2  # there is no git here
