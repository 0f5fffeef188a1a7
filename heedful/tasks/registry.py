"""The tasks there are, by name: those of this folder, those a program registers, and those of installed packages.

A package adds a task by an entry point of the group `heedful.tasks`, such as

    [project.entry-points."heedful.tasks"]
    topics = "my_package.topics:Topics"
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from heedful.config import from_mapping
from heedful.errors import HeedfulError
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.embed import Embed
from heedful.tasks.multilabel import MultiLabel
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task

# What task.json says beside the fields of the task: its name, and how its training data was read.
BESIDE = ("task", "columns", "pairs", "merge_labels")

_known: dict[str, type[Task[Any]]] = {
    kind.name: kind for kind in (Classify, MultiLabel, Regress, Tag, Answer, Choose, Embed)
}


def register(kind: type[Task[Any]]) -> None:
    """Make a task known to this process, for its commands too; it may take the place of one of ours."""
    _known[kind.name] = kind


def task_named(name: str) -> type[Task[Any]]:
    """The class of a task."""
    if name in _known:
        return _known[name]
    others = entry_points(group="heedful.tasks")
    for entry in others:
        if entry.name == name:
            found: type[Task[Any]] = entry.load()
            return found
    names = ", ".join([*_known, *(entry.name for entry in others)])
    raise HeedfulError(f"there is no task {name!r}", remedy=f"the tasks are {names}")


def task_of(settings: Mapping[str, Any], where: object) -> Task[Any]:
    """The task that a model folder's settings describe: its name under `task`, and its fields."""
    fields = {name: value for name, value in settings.items() if name not in BESIDE}
    return from_mapping(task_named(str(settings.get("task"))), fields, where)
