"""What a fine-tuning run works with: the folder it starts from, its task, and its data, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.int8_scheme import refuse_training
from heedful.config import to_mapping
from heedful.data.labelled.dataset import Dataset
from heedful.inference.load import model_path
from heedful.runs.finetuning.data import LabelledData
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.suited import check_contrast, suited, with_noise
from heedful.runs.finetuning.task_fields import fitted
from heedful.tasks.registry import task_named, task_of
from heedful.tasks.task import Item, Task
from heedful.text.tokenizer import Tokenizer

UNKNOWN_SHARE = 0.01  # of the pieces, from which on it is told


@dataclass(frozen=True)
class Material:
    """The folder, the task and the data as items; the same for every seed."""

    folder: ModelFolder
    tokenizer: Tokenizer
    task: Task[Any]
    train: Dataset[Any]
    dev: Dataset[Any] | None
    train_items: Sequence[Item]
    dev_items: list[Item]

    @classmethod
    def of(cls, settings: FinetuningSettings) -> Material:
        """Read and check all of it."""
        folder = read_folder(model_path(settings.model), settings.force)
        refuse_training(folder.int8, folder.path)
        tokenizer = folder.require_tokenizer()
        kind = task_named(settings.task_name)
        settings = suited(settings, folder, kind)
        data = LabelledData.of(settings, kind)
        train, dev = data.train, data.dev
        task = fitted(kind, train.examples, settings)
        # A model folder's task is checked when it is read: this one must pass too, before it is trained for hours.
        task = task_of(described(task), "settings")
        what, remedy = f"windows of {task.max_length} tokens are", "use a lower `max_length`"
        folder.check_room(what, task.max_length, remedy=remedy)
        if dev is not None:
            task.check(dev.examples)
            dev = replace(dev, remarks=(*dev.remarks, *task.unseen(dev.examples)))
        items = task.encode(train.examples, tokenizer)
        dev_items = task.encode(dev.examples, tokenizer) if dev else []
        return cls(folder, tokenizer, task, train, dev, items, dev_items)

    def decided(self, settings: FinetuningSettings) -> FinetuningSettings:
        """The settings with what suits the encoder, and the score that decides, where the dev data tells it."""
        check_contrast(settings, self.task, self.train.examples)
        settings = with_noise(suited(settings, self.folder, type(self.task)), self.folder, self.task)
        if self.dev is None or settings.metric is not None:
            return settings
        return replace(settings, metric=self.task.decides(self.dev.examples))

    def remarks(self) -> list[str]:
        """What is odd about the data, how much of it the vocabulary cannot spell, and how many examples do not fit."""
        found = LabelledData(self.train, self.dev).remarks(self.task.name)
        found += [f"train: {remark}" for remark in self.task.doubtful(self.train.examples)]
        pieces = [piece for item in self.train_items for window in item.windows for piece in window.ids]
        unk = self.tokenizer.library.token_to_id(self.tokenizer.special_tokens.get("unk", ""))
        unknown = sum(piece == unk for piece in pieces) / max(len(pieces), 1)
        if unknown >= UNKNOWN_SHARE:
            found.append(f"train: {unknown:.1%} of the pieces are [UNK]: the model's vocabulary cannot spell them")
        cut = {item.example for item in self.train_items if item.cut}
        if cut:
            whole = f"{len(cut):,} of {len(self.train.examples):,} examples"
            found.append(f"{whole} do not fit into {self.task.max_length} tokens and are cut")
        return found


def described(task: Task[Any]) -> dict[str, Any]:
    """The task as a model folder's task.json has it."""
    return {"task": task.name, **to_mapping(task)}
