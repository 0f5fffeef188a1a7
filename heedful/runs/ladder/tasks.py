"""The tasks that the models of a ladder are tried on: labelled files, or data of the toy world."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError
from heedful.runs.finetuning.data import LabelledData
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.tasks.registry import task_named
from heedful.toy.tasks import TASKS
from heedful.toy.writer import SIZES, task_files

DEFAULT = ("toy:sentiment.en", "toy:tags.en")
TOY, NONE = "toy", "none"
# What each task of the toy world is for us; translation is none of these.
TOY_KINDS = {
    "sentiment": "classify",
    "pairs": "classify",
    "similarity": "regress",
    "tags": "tag",
    "roles": "answer",
    "questions": "answer",
    "choices": "choose",
}
_COLON = re.compile(r":(?!\\)")  # not the one after the letter of a drive


@dataclass(frozen=True)
class LabelledTask:
    """A kind of task with its files."""

    name: str
    kind: str
    train: str
    dev: str
    toy: bool = False  # whether the files are ours to write


def tasks_of(told: Sequence[str], output: Path) -> list[LabelledTask]:
    """The tasks of the settings; those of the toy world have their files below the folder `output`."""
    told = tuple(told) or DEFAULT
    tasks = [] if told == (NONE,) else [_task(text, output) for text in told]
    names = [task.name for task in tasks]
    for name in names:
        if names.count(name) > 1:
            remedy = "name one of them, as other=classify:train.tsv:dev.tsv"
            raise HeedfulError(f"two tasks are called {name!r}", remedy=remedy)
    return tasks


def _task(text: str, output: Path) -> LabelledTask:
    name, _, files = text.rpartition("=")
    kind, *places = _COLON.split(files)
    if kind == TOY and len(places) == 1:
        return _toy_task(places[0], output)
    if len(places) != 2 or not all(places):
        remedy = "write KIND:TRAIN:DEV, as classify:train.tsv:dev.tsv, or toy:sentiment.en"
        raise HeedfulError(f"the task {text!r} is not understood", remedy=remedy)
    train, dev = places
    return LabelledTask(_as_file(name or Path(train).resolve().parent.name), kind, train, dev)


def _toy_task(name: str, output: Path) -> LabelledTask:
    task, _, language = name.partition(".")
    if task not in TOY_KINDS or language not in TASKS[task].languages:
        known = (f"{one}.{language}" for one in TOY_KINDS for language in TASKS[one].languages)
        raise HeedfulError(f"the toy world has no task {name!r}", remedy=f"choose one of {', '.join(known)}")
    train, dev = (str(output / TOY / name / f"{split}.{TASKS[task].format}") for split in ("train", "dev"))
    return LabelledTask(name, TOY_KINDS[task], train, dev, toy=True)


def write_toy(tasks: Sequence[LabelledTask], output: Path) -> None:
    """Write the files of the toy world's tasks among these, unless they are there."""
    for task in tasks:
        if not task.toy or Path(task.dev).exists():  # dev is written last
            continue
        kind, _, language = task.name.partition(".")
        for path, text in task_files(TASKS[kind], language, SIZES["normal"], seed=0):
            with atomic_file(output / TOY / path) as file:
                file.write(text)


def check_tasks(tasks: Sequence[LabelledTask]) -> None:
    """Read all data once, so that what is wrong with it is told before anything is trained."""
    for task in tasks:
        settings = FinetuningSettings(task.kind, model="", train=task.train, dev=task.dev, output="")
        LabelledData.of(settings, task_named(task.kind))


def _as_file(name: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", name)
