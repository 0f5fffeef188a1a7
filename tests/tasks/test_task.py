"""What tasks say of themselves."""

from __future__ import annotations

import pytest

from heedful.data.labelled.dataset import Answer as Stretch
from heedful.data.labelled.dataset import Choice, Question, TaggedWords
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.registry import task_named
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task

QUESTIONS = [Question("1", "q", "a b", (Stretch("a", 0),)), Question("2", "q", "a b", ())]


@pytest.mark.parametrize("name", ["classify", "regress", "tag", "answer", "choose"])
def test_the_score_that_decides_is_one_of_the_scores(name: str) -> None:
    kind = task_named(name)
    assert kind.best in kind.scores
    assert kind.best not in kind.errors
    assert set(kind.errors) <= set(kind.scores)


def test_the_names_of_scores_are_those_that_come_out() -> None:
    words = [TaggedWords(("a", "b"), "a b", ((0, 1), (2, 3)), ("O", "B-X"))]
    assert tuple(Tag(labels=("O", "B-X")).score(words, [{"labels": ["O", "O"]}])) == Tag.scores
    assert tuple(Choose().score([Choice("a", "", ("b", "c"), 1)], [{"label": 1}])) == Choose.scores
    assert tuple(Answer().score(QUESTIONS, [{"answer": "a"}, {"answer": ""}])) == Answer.scores


def test_a_task_of_ones_own_need_not_know_its_scores() -> None:
    assert (Task.scores, Task.errors) == ((), ())
