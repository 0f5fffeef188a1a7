"""What of a task suits an encoder, decided before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from heedful.checkpoints.folder import ModelFolder
from heedful.errors import HeedfulError
from heedful.runs.finetuning.plan import batch_size_of
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.tasks.answer import Answer
from heedful.tasks.embed import Embed
from heedful.tasks.task import Task

LINES_DROPOUT = 0.1


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


def with_noise(settings: FinetuningSettings, folder: ModelFolder, task: Task[Any]) -> FinetuningSettings:
    """The settings with dropout where lines alone are learned from: without it both vectors of a line are the same."""
    asked = settings.dropout
    if (
        not isinstance(task, Embed)
        or task.learns != "lines"
        or (folder.model_config.dropout if asked is None else asked)
    ):
        return settings
    if asked is not None:
        raise HeedfulError(
            "without dropout a line gives the same vector twice: there is nothing to learn from lines alone",
            remedy=f"use `dropout` {LINES_DROPOUT}, or give pairs",
        )
    return replace(settings, dropout=LINES_DROPOUT)


def check_contrast(settings: FinetuningSettings, task: Task[Any], examples: Sequence[Any]) -> None:
    """Refuse batches of one text, where there is no other that it could be told from."""
    contrasted = isinstance(task, Embed) and task.learns in ("pairs", "lines")
    alone = batch_size_of(settings) == 1 and not settings.by_tokens
    if contrasted and alone and not any(one.negatives for one in examples):
        what = "in a batch of one there is no other text to tell it from: nothing would be learned"
        raise HeedfulError(what, remedy="use a larger `batch_size`, as 64; `accumulate` keeps its memory small")
