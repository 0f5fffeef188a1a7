"""What a student is to learn of its teacher: sentence vectors, or the answers to a task.

A lesson knows how texts are read, what the teacher says of them, and how a student's outputs are compared with that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.task_folder import is_for_task
from heedful.data.labelled.dataset import Columns, Dataset, SentencePair
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.features import Vectors
from heedful.inference.predictor import EXAMPLES_PER_CHUNK, Predictor
from heedful.inference.workers import worker_pool
from heedful.runs.distilling.settings import DistillingSettings
from heedful.tasks.distilling import SoftLoss, following_vectors, soft_loss
from heedful.tasks.embed import Embed
from heedful.tasks.items import outputs_of
from heedful.tasks.label_metrics import pearson
from heedful.tasks.task import Task
from heedful.tasks.text_items import TextTask, mean_outputs
from heedful.training.distributed import own_device

STUDENT_POOLINGS = ("mean", "cls", "max")


class Lesson(ABC):
    """A teacher and what it teaches."""

    task: Task[Any]  # the student's
    width: int  # numbers in the teacher's answer to a text
    loss: SoftLoss
    decides: str  # of the scores of `closeness`, the one by which weights are chosen where there is no dev data

    @abstractmethod
    def read(self, data: Any, columns: Columns) -> Dataset[Any]:
        """The texts of unlabelled data."""

    @abstractmethod
    def answers(self, examples: Sequence[Any]) -> Iterator[list[Vectors]]:
        """What the teacher says of each, a chunk at a time; where one ends depends on nothing but their number."""

    @abstractmethod
    def closeness(self, outputs: Tensor, taught: Tensor) -> Mapping[str, float]:
        """How close a student has come to its teacher on texts that it did not learn from, both (N, K)."""


class VectorLesson(Lesson):
    """The teacher's sentence vectors."""

    decides = "teacher_cosine"
    loss = staticmethod(following_vectors)

    def __init__(self, settings: DistillingSettings, folder: ModelFolder) -> None:
        own = folder.sentence.pooling if folder.sentence else None
        pooling = own or settings.pooling
        if pooling is None:
            raise HeedfulError(
                "the teacher does not say how a text becomes a vector: it has no modules.json and no pooling",
                where=folder.path,
                remedy="give `pooling`, as mean, or use a model for sentence vectors",
            )
        self.teacher = Embedder(folder, own_device())
        self.wanted = self.teacher.features((-1,), "concat", pooling, "sentence", normalize=False)
        self.width = self.wanted.width(self.teacher.encoder.config)
        ours = settings.pooling or (pooling if pooling in STUDENT_POOLINGS else "mean")
        if ours not in STUDENT_POOLINGS:
            what, remedy = f"`pooling` is {ours!r}", f"choose one of {', '.join(STUDENT_POOLINGS)}"
            raise HeedfulError(what, remedy=remedy)
        self.task = Embed(max_length=settings.max_length, learns="teacher", pooling=ours)  # type: ignore[arg-type]

    def read(self, data: Any, columns: Columns) -> Dataset[SentencePair]:
        """Every text of the data, each once."""
        found = Embed.read_data(data, columns)
        texts = dict.fromkeys(
            text for one in found.examples for text in (one.text, one.pair, *one.negatives) if text is not None
        )
        return replace(found, examples=[SentencePair(text) for text in texts])

    def answers(self, examples: Sequence[SentencePair]) -> Iterator[list[Vectors]]:
        """The vectors; the same bits wherever an interrupted attempt is gone on with."""
        texts = (one.text for one in examples)
        return (chunk.vectors for chunk in self.teacher.chunks(texts, self.wanted, shortcut=False))

    def closeness(self, outputs: Tensor, taught: Tensor) -> Mapping[str, float]:
        """The mean cosine of the student's vectors with the teacher's."""
        return {self.decides: float(F.cosine_similarity(outputs, taught, dim=-1).mean())}


class AnswerLesson(Lesson):
    """The teacher's answers to the task that it was fine-tuned for, as they are before a label is chosen."""

    decides = "agreement"

    def __init__(self, settings: DistillingSettings, folder: ModelFolder) -> None:
        if not is_for_task(folder):
            what, remedy = "the teacher is not fine-tuned for a task", "fine-tune it first, or learn its vectors"
            raise HeedfulError(what, where=folder.path, remedy=remedy)
        self.teacher = Predictor(folder, own_device())
        task = self.teacher.task
        if not isinstance(task, TextTask):
            what = f"the teacher's task is {task.name}: soft labels are for those about whole texts"
            remedy = "use a teacher for classify or regress, or learn its vectors with `learn`"
            raise HeedfulError(what, where=folder.path, remedy=remedy)
        labels = getattr(task, "labels", ("",))
        if not labels:
            what, remedy = "the teacher has no labels", "use a folder whose task.json or id2label names them"
            raise HeedfulError(what, where=folder.path, remedy=remedy)
        self.width = len(labels)
        self.task = replace(
            task,
            max_length=settings.max_length,
            stride=0,
            features=(),
            pooling=settings.pooling or task.pooling,  # type: ignore[arg-type]
        )
        self.loss = soft_loss(task.name, settings.temperature)

    def read(self, data: Any, columns: Columns) -> Dataset[Any]:
        """The rows, whatever labels they have."""
        found = self.teacher.task.read_data(data, self.teacher.columns(data, columns, labelled=False), labelled=False)
        self.teacher.check_pairs(found.examples)
        return replace(found, examples=[row for row in found.examples if not row.empty])

    def answers(self, examples: Sequence[Any]) -> Iterator[list[Vectors]]:
        """The outputs of the teacher's head; of a text in several windows their mean."""
        task, tokenizer = self.teacher.task, self.teacher.tokenizer
        with worker_pool() as pool:
            for start in range(0, len(examples), EXAMPLES_PER_CHUNK):
                chunk = examples[start : start + EXAMPLES_PER_CHUNK]
                items = task.encode(chunk, tokenizer)
                outputs = mean_outputs(len(chunk), items, outputs_of(self.teacher.model, items, pool.map))
                yield list(outputs.numpy().astype(np.float32))

    def closeness(self, outputs: Tensor, taught: Tensor) -> Mapping[str, float]:
        """The share of decisions that are the teacher's; of numbers, their correlation with the teacher's."""
        if self.task.name == "regress":
            return {self.decides: pearson(outputs[:, 0].tolist(), taught[:, 0].tolist())}
        one = self.task.name == "classify"
        ours, theirs = (x.argmax(-1) if one else x > 0 for x in (outputs, taught))
        return {self.decides: float(torch.eq(ours, theirs).float().mean())}


def lesson_of(settings: DistillingSettings, folder: ModelFolder) -> Lesson:
    """What the settings say is to be learned, or what the teacher is for."""
    learn = settings.learn or ("answers" if _has_task(folder) else "vectors")
    if learn == "answers":
        if settings.keep_width:
            raise HeedfulError("`keep_width` is for vectors", remedy="leave it out")
        return AnswerLesson(settings, folder)
    if settings.labelled is not None:
        raise HeedfulError("`labelled` is for a task", remedy="leave it out, or use a teacher that has a task")
    return VectorLesson(settings, folder)


def _has_task(folder: ModelFolder) -> bool:
    """Whether a folder answers, rather than makes vectors."""
    return folder.sentence is None and is_for_task(folder)
