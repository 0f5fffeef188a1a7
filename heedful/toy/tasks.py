"""All tasks of the toy world, and their rows by name, language, split and seed."""

from __future__ import annotations

from random import Random
from typing import Any

from heedful.toy import choices, documents, pairs, parallel, questions, roles, sentiment, similarity, tags
from heedful.toy.task import Task
from heedful.toy.world import SEEN_NAMES, UNSEEN_NAMES, Word

_MODULES = (sentiment, pairs, similarity, tags, roles, questions, choices, parallel)
TASKS: dict[str, Task[Any]] = {module.TASK.name: module.TASK for module in _MODULES}


def names_for(split: str) -> tuple[Word, ...]:
    """The names of a split: training has its own, the people of every other split are new."""
    return SEEN_NAMES if split == "train" else UNSEEN_NAMES


def rows(task: str, language: str, split: str, count: int, seed: int = 0) -> list[Any]:
    """`count` rows of a task; the same arguments always give the same rows."""
    return TASKS[task].generate(Random(f"{seed} {task} {language} {split}"), count, language, names_for(split))


def stories(split: str, count: int, seed: int = 0) -> dict[str, list[documents.Document]]:
    """`count` documents in both languages; the same arguments always give the same documents."""
    return documents.generate(Random(f"{seed} documents {split}"), count, names_for(split))
