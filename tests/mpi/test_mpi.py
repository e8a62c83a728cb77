"""Random datatypes against real MPI libraries: size, bounds, true bounds, packed bytes, and back to text."""

from __future__ import annotations

import json
import os
import subprocess
from random import Random

import pytest

import mpi_differences
import mpi_program
from conftest import needs_engine
from layer_programs import Mpi, compile_for
from mpi_libraries import differences, libraries
from mpi_worker import place
from patience import seconds
from spinloom.common import core
from spinloom.layout import mpi_types
from type_trees import random_text

pytestmark = needs_engine

TRIALS = int(os.environ.get("SPINLOOM_TEST_TYPES", "400"))  # 20000 for a long look
REACH_BYTES_MAX = 20_000


def random_questions(seed: int, trials: int) -> list[tuple[str, int]]:
    """(text, count) of types that reach a few KiB."""
    random = Random(seed)
    questions: list[tuple[str, int]] = []
    while len(questions) < trials:
        text = random_text(random, random.randint(0, 6))
        tree = core.load().type_tree(text)
        if (
            max(tree["size"], abs(tree["extent"]), tree["true_extent"], abs(tree["true_lb"]))
            < REACH_BYTES_MAX
        ):
            questions.append((text, random.randint(1, 3)))
    return questions


@pytest.fixture(scope="module")
def present():
    if not libraries():
        pytest.skip("no MPI library that mpi4py can start: pip install mpi4py mpich")
    return libraries()


def unexplained(library_version, questions, answers):
    """What no quirk on docs/mpi-differences.md explains, the shortest type first."""
    found = []
    for (text, count), told in zip(questions, answers, strict=True):
        tree = core.load().type_tree(text)
        for kind, sentence in differences(text, count, told).items():
            if not mpi_differences.explained(library_version, tree, kind):
                found.append((len(text), f"{library_version}: {count} x {text}: {sentence}"))
    return [sentence for _, sentence in sorted(found)]


def test_random_types_are_what_mpi_says(present):
    # Rules: LAY-51.
    questions = random_questions(seed=1, trials=TRIALS)
    for library in present:
        assert unexplained(library.version, questions, library.ask(questions)) == []


def test_most_random_types_need_no_explanation(present):
    """The quirks must not hide what is compared."""
    questions = random_questions(seed=2, trials=200)
    for library in present:
        answers = library.ask(questions)
        agreed = sum(
            not differences(*question, told) for question, told in zip(questions, answers, strict=True)
        )
        assert agreed > len(questions) // 2, library.version


def test_the_page_of_differences_is_what_the_libraries_say(present):
    said = mpi_differences.PAGE.read_text(encoding="utf-8")
    assert said == mpi_differences.page(), mpi_differences.UPDATE


@pytest.mark.parametrize("compiler", mpi_program.compilers() or [None])
def test_the_c_interface_says_the_same(compiler, tmp_path):
    if compiler is None:
        pytest.skip("no mpicc on this machine")
    peer = tmp_path / "mpi_peer"
    compile_for(Mpi(compiler, compiler, "true"), [mpi_program.SOURCE], peer)
    engine = core.load()
    questions = [
        (text, count)
        for text, count in random_questions(seed=3, trials=TRIALS)
        if not mpi_differences.holds_an_empty_type(engine.type_tree(text))
    ]
    lines = [str(len(questions))]
    for text, count in questions:
        tree = engine.type_tree(text)
        lines.append(" ".join(map(str, [*mpi_program.program(tree), count, *place(tree, count)])))
    done = subprocess.run(
        [str(peer)], input="\n".join(lines), capture_output=True, text=True, timeout=seconds(240)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    version, *answers = done.stdout.splitlines()
    library = "MPICH" if "MPICH" in version else "Open MPI"
    told = [
        {**json.loads(answer), "padded": [], "text": text}
        for answer, (text, _) in zip(answers, questions, strict=True)
    ]
    assert unexplained(library, questions, told) == []


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("int", "dup(int)"),
        ("float_complex", "dup(c_complex)"),
        ("vector(3, 2, -4, int)", "vector(3, 2, -4, int)"),
        ("contig(2147483653, int)", "contig(2147483653, int)"),
        ("struct([(0B, double), (8B, char)])", "resized(0B, 9B, struct([(0B, 1, double), (8B, 1, char)]))"),
    ],
)
def test_text_to_mpi_and_back(present, text, back):
    if not present[0].version.startswith("MPICH 5"):
        pytest.skip(f"{present[0].version} writes large counts in its own way")
    datatype = mpi_types.to_mpi(text)
    assert mpi_types.from_mpi(datatype) == back
    datatype.Free()


def test_pair_types_and_c_structs_come_with_their_padding(present):
    lib = mpi_types.mpi()
    assert mpi_types.from_mpi(lib.DOUBLE_INT) == "resized(0B, 16B, struct([(0B, double), (8B, int)]))"
    padded = lib.Datatype.Create_struct([1, 1], [0, 8], [lib.DOUBLE, lib.CHAR])
    assert mpi_types.from_mpi(padded) == "resized(0B, 16B, struct([(0B, 1, double), (8B, 1, char)]))"
    padded.Free()


def test_what_is_no_datatype_is_refused(present):
    with pytest.raises(mpi_types.Trouble, match="MPI_DATATYPE_NULL"):
        mpi_types.from_mpi(mpi_types.mpi().DATATYPE_NULL)
