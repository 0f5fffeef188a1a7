"""The fields of a task that settings may fill: those that have a name among the settings, and a task's own by `set`."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from typing import Any, get_type_hints

from heedful.errors import HeedfulError
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.overrides import typed
from heedful.runs.settings import under_present_names
from heedful.tasks.registry import task_named
from heedful.tasks.task import Task

# The settings that are fields of a task, where the task has such a field.
TASK_FIELDS = (
    *("max_length", "stride", "head", "features", "combine", "lstm_width", "lstm_layers"),
    *("balance", "decide_by", "pooling"),
)


def fitted(kind: type[Task[Any]], examples: Sequence[Any], settings: FinetuningSettings) -> Task[Any]:
    """The task with what its training examples tell and what the settings say."""
    given = {**_named(settings, kind), **_own(settings, kind)}
    try:
        return kind.fit(examples, **given)
    except TypeError as error:
        for name in settings.set:
            if f"'{name}'" in str(error) and "multiple values" in str(error):
                what = f"{name} of {kind.name} is found in the training data"
                raise HeedfulError(what, remedy="leave it out of `set`") from error
        raise


def with_own_fields(given: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a call, those that only the task has moved into `set`."""
    if "task" not in given:
        return given
    given = under_present_names(FinetuningSettings, given)
    settings = {field.name for field in dataclasses.fields(FinetuningSettings)}
    own = {name for name in _fields(task_named(given["task"])) if name in given} - settings
    if not own:
        return given
    rest = {name: value for name, value in given.items() if name not in own}
    return {**rest, "set": {**given.get("set", {}), **{name: given[name] for name in own}}}


def _fields(kind: type[Task[Any]]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _named(settings: FinetuningSettings, kind: type[Task[Any]]) -> dict[str, Any]:
    found = {name: value for name in TASK_FIELDS if (value := getattr(settings, name)) not in (None, (), False)}
    for name in found:
        if name not in _fields(kind):
            task = "`multi`" if settings.multi else kind.name
            raise HeedfulError(f"`{name}` does not go with {task}", remedy="leave it out")
    return found


def _own(settings: FinetuningSettings, kind: type[Task[Any]]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    for name in settings.set:
        if name not in _fields(kind):
            near = difflib.get_close_matches(name, _fields(kind), n=1)
            remedy = f"did you mean {near[0]}?" if near else f"its fields are {', '.join(_fields(kind))}"
            raise HeedfulError(f"`set` {name}: {kind.name} has no such field", remedy=remedy)
    return {name: typed(name, value, hints[name], "`set`") for name, value in settings.set.items()}
