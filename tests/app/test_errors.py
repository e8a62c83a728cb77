"""What users catch: Trouble, and a Refusal, which is a ValueError as well."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import spinloom as package
from conftest import needs_engine
from spinloom import errors, layout
from spinloom.accelerate.peer_pair import ProcessEnded
from spinloom.common.documents import MissingFile
from spinloom.common.errors import EXIT_OF_CODE, EXIT_USAGE, Refusal, Trouble


def test_trouble_with_what_was_passed_is_a_value_error():
    for code, exit_code in EXIT_OF_CODE.items():
        trouble = Trouble(code, "a sentence")
        assert isinstance(trouble, Trouble)
        assert isinstance(trouble, ValueError) == isinstance(trouble, Refusal) == (exit_code == EXIT_USAGE)
        assert (trouble.code, trouble.message, str(trouble)) == (code, "a sentence", "a sentence")
    assert isinstance(MissingFile("invalid", "there is no such file"), ValueError)


@pytest.mark.parametrize("kind", [Trouble, MissingFile])
def test_trouble_comes_through_a_pickle(kind):
    trouble = pickle.loads(pickle.dumps(kind("invalid", "a sentence")))
    assert isinstance(trouble, kind)
    assert (trouble.code, trouble.message) == ("invalid", "a sentence")


@needs_engine
def test_what_the_engine_raises_is_a_value_error_too():
    with pytest.raises(ValueError, match="column"):
        layout.from_text("vector(3, 2")
    with pytest.raises(ValueError, match="holds 7 bytes") as caught:
        layout.from_text("double").pack(bytes(7))
    assert isinstance(caught.value, errors.Trouble)
    assert caught.value.code == "invalid"


@needs_engine
def test_a_simulation_refuses_as_value_errors():
    with pytest.raises(ValueError, match="HPUs: a NIC has 1 to"):
        package.simulate("vector(8, 1, 2, double)", hpus=0)
    with pytest.raises(ValueError, match="there is no NIC profile 'nowhere'"):
        package.simulate("vector(8, 1, 2, double)", nic="nowhere")


def test_modules_show_what_is_for_users():
    assert set(dir(layout)) == set(layout.__all__)
    assert dir(errors)
    assert dir(package) == ["Frame", "__version__", "exchange", "simulate"]
    assert all(hasattr(package, name) for name in dir(package))
    assert all(hasattr(layout, name) for name in dir(layout))


INDICES = "from_indices(indices, block, type) makes a layout of a list of indices"
REAL = np.arange(100.0)
ITEM = "double"


@needs_engine
@pytest.mark.parametrize(
    "misused",
    [
        lambda: layout.Layout([0, 5, 9]),
        lambda: layout.from_text(np.array([0, 5, 9])),
        lambda: layout.from_array([0, 5, 9]),
        lambda: layout.from_array(range(3)),
        lambda: layout.from_array(REAL, base=(0, 5, 9)),
        lambda: layout.from_array(REAL[[0, 5, 9]], base=REAL),
        lambda: layout.from_array(np.array([0, 5, 9]), base=REAL),
        lambda: layout.from_dtype([0, 5, 9]),
        lambda: layout.from_dtype(np.array([0, 5, 9])),
        lambda: layout.from_mpi([0, 5, 9]),
        lambda: layout.from_text(ITEM).pack(REAL, count=[0, 5, 9]),
        lambda: layout.from_text(ITEM).pack(REAL, offset=np.array([0, 5, 9])),
        lambda: package.simulate([0, 5, 9]),
    ],
)
def test_indices_in_the_wrong_place_are_told_the_right_one(misused):
    with pytest.raises((TypeError, ValueError)) as caught:
        misused()
    assert INDICES in str(caught.value)


@needs_engine
@pytest.mark.parametrize(
    "misused",
    [
        lambda: layout.Layout(3),
        lambda: layout.from_array(["a"]),
        lambda: layout.from_array([]),
        lambda: layout.from_array([1.5]),
        lambda: layout.from_dtype("nonsense"),
        lambda: layout.from_text(ITEM).pack(REAL, count=1.5),
        lambda: layout.from_text(ITEM).pack(REAL, count=np.zeros((2, 2), int)),
    ],
)
def test_what_is_no_list_of_indices_is_not(misused):
    with pytest.raises((TypeError, ValueError)) as caught:
        misused()
    assert "from_indices" not in str(caught.value)


def test_a_subclass_may_be_made_of_a_sentence_alone():
    class Ended(Trouble):
        def __init__(self, why: str) -> None:
            super().__init__("fault", f"it has ended: {why}")

    ended = Ended("SIGKILL")
    assert (ended.code, str(ended)) == ("fault", "it has ended: SIGKILL")
    assert not isinstance(ended, ValueError)


def test_the_end_of_a_process_survives_pickling():
    ended = pickle.loads(pickle.dumps(ProcessEnded("by SIGKILL")))
    assert type(ended) is ProcessEnded
    assert "by SIGKILL" in ended.message


def test_keywords_make_a_refusal_too():
    assert isinstance(Trouble(code="invalid", message="no"), ValueError)
