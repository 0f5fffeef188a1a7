"""A model that is no better than one answer for all is told so, and one that is better is not."""

from __future__ import annotations

from typing import Any

import pytest

from heedful.data.labelled.conll import tagged_from_words
from heedful.data.labelled.dataset import Answer as Stretch
from heedful.data.labelled.dataset import Choice, Question, TextRow
from heedful.tasks.answer import Answer
from heedful.tasks.blind_guess import blind_guess_remark
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task

ROWS = [TextRow("a", label=label) for label in ("no", "yes", "yes")]
NUMBERS = [TextRow("a", label=label) for label in ("1", "2", "3")]
WORDS = [tagged_from_words(["a", "b", "c"], ["O", "B-X", "O"])]
QUESTIONS = [Question("1", "q", "cat b", (Stretch("cat", 0),)), Question("2", "q", "a b")]
CHOICES = [Choice("a", "b", ("x", "y"), label) for label in (1, 1, 0)]

CASES: list[tuple[Task[Any], list[Any], str, float, float, str]] = [
    (Classify(labels=("no", "yes")), ROWS, "accuracy", 2 / 3, 0.7, "'yes' (0.6667)"),
    (Classify(labels=("no", "yes")), ROWS, "matthews", 0.0, 0.1, "'yes' (0)"),
    (Regress(), NUMBERS, "spearman", 0.0, 0.1, "the mean, 2 (0)"),
    (Regress(), NUMBERS, "squared_error", 0.7, 0.6, "the mean, 2 (0.6667)"),
    (Tag(labels=("O", "B-X")), WORDS, "f1", 0.0, 0.1, "O (0)"),
    (Tag(labels=("O", "B-X")), WORDS, "accuracy", 2 / 3, 0.7, "O (0.6667)"),
    (Choose(), CHOICES, "accuracy", 2 / 3, 0.7, "ending 1 (0.6667)"),
    (Answer(no_answer=True), QUESTIONS, "f1", 0.5, 0.6, "nothing (0.5)"),
]


@pytest.mark.parametrize(("task", "examples", "name", "blind", "better", "told"), CASES)
def test_told_when_it_is_no_better(
    task: Task[Any], examples: list[Any], name: str, blind: float, better: float, told: str
) -> None:
    remark = blind_guess_remark(task, examples, {name: blind}, name)
    assert remark is not None and f"always answering {told}" in remark
    assert blind_guess_remark(task, examples, {name: better}, name) is None


def test_not_where_there_is_no_such_guess() -> None:
    assert blind_guess_remark(Answer(), QUESTIONS[:1], {"f1": 0.0}, "f1") is None
