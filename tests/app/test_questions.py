"""docs/questions.md: what its examples print is what it says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conftest import needs_engine

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import questions

pytestmark = needs_engine
ASKED = questions.questions()


def test_there_are_the_questions_of_the_page():
    assert len(ASKED) >= 3
    assert all(question.printed.strip() for question in ASKED)


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.code.splitlines()[0][:40])
def test_the_answer_is_the_one_that_is_printed(question):
    assert question.ask() == question.printed, "if the change is right: tools/questions.py --update"


def test_python_answers_are_short():
    for question in ASKED:
        assert len(question.code.splitlines()) <= 14
