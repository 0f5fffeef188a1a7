"""What of a task suits an encoder, decided before anything is trained."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from heedful.checkpoints.folder import ModelFolder
from heedful.errors import HeedfulError
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.tasks.answer import Answer
from heedful.tasks.task import Task


def suited(settings: FinetuningSettings, folder: ModelFolder, kind: type[Task[Any]]) -> FinetuningSettings:
    """The settings for this encoder: where a state knows nothing of the others, no single one sums a text up."""
    if folder.model_config.contextual:
        return settings
    if issubclass(kind, Answer):
        raise HeedfulError(
            f"a vector of {folder.model_type} knows nothing of the question: no answer could be told by it",
            where=folder.path,
            remedy="use a model that reads a text in its context: BERT, GPT, XLNet, ELMo or an LSTM",
        )
    if "pooling" not in {field.name for field in fields(kind)}:
        return settings
    if settings.pooling == "cls":
        raise HeedfulError(
            f"a vector of {folder.model_type} knows nothing of the words around it: none sums a text up",
            where=folder.path,
            remedy="use `pooling` mean or max",
        )
    return settings if settings.pooling else replace(settings, pooling="mean")
