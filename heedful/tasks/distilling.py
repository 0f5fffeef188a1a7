"""Distilling: a student's outputs follow a teacher's, which were computed beforehand and lie in one array on disk.

    vectors   1 - cos(s, Aᵀt)                         s the student's vector, t the teacher's, A its principal axes
    labels    T² · KL(softmax(t / T) ‖ softmax(s / T))      one label of several (Hinton et al., 2015)
    several   T² · binary cross-entropy with sigmoid(t / T)
    numbers   (s - t)²

Where A is narrower than t, cos(A s, t) = cos(s, Aᵀt) |Aᵀt|: the columns of A are orthonormal, so that the student's
vectors compare as their images in the teacher's space do. Rows that have a label may be learned from beside it, by the
task's own loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.epochs import Epochs
from heedful.tasks.items import ItemMicroBatch, ItemSource, micro_batch_of
from heedful.tasks.task import Item, Task, Window
from heedful.text.tokenizer import Tokenizer

TEACHER, LABELS = "teacher", "labels"  # the names of the two losses
EXAMPLES_AT_ONCE = 4096
# The summed loss of a student's outputs (B, K) beside what the teacher said, (B, K).
SoftLoss = Callable[[Tensor, Tensor], Tensor]


class FlatItems(Sequence[Item]):
    """Items of one window each, their tokens in one array: millions of lines take a few bytes a token."""

    def __init__(self, items: Iterator[Item]) -> None:
        ids, segments, self.rows = list[NDArray[np.int32]](), list[NDArray[np.int8]](), list[int]()
        self.cuts, self.targets, lengths = list[bool](), dict[int, tuple[float, ...]](), [0]
        for number, item in enumerate(items):
            (window,) = item.windows
            ids.append(np.array(window.ids, dtype=np.int32))
            segments.append(np.array(window.segments, dtype=np.int8))
            self.rows += window.rows
            self.cuts.append(item.cut)
            lengths.append(len(window.ids))
            if item.target:
                self.targets[number] = item.target
        self.ids, self.segments, self.starts = np.concatenate(ids), np.concatenate(segments), np.cumsum(lengths)

    @classmethod
    def of(cls, task: Task[Any], examples: Sequence[Any], tokenizer: Tokenizer) -> FlatItems:
        """The items of a task's examples, one for each."""
        parts = (examples[i : i + EXAMPLES_AT_ONCE] for i in range(0, len(examples), EXAMPLES_AT_ONCE))
        return cls(item for part in parts for item in task.encode(part, tokenizer))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)  # which is how `for` finds the end
        part = slice(int(self.starts[place]), int(self.starts[place + 1]))
        window = Window(self.ids[part].tolist(), self.segments[part].tolist(), [self.rows[place]])
        return Item(place, (window,), self.targets.get(place, ()), cut=self.cuts[place])


@dataclass(frozen=True)
class TaughtMicroBatch:
    """Items, what the teacher said of each, and which of them have a label."""

    items: ItemMicroBatch  # its targets are those of the labelled ones
    taught: Tensor  # (B, K)
    labelled: Tensor | None  # places in the batch; None where no item of the run has a label

    @property
    def counts(self) -> Mapping[str, int]:
        """The divisors of the losses."""
        hard = {} if self.labelled is None else {LABELS: len(self.labelled)}
        return {TEACHER: len(self.taught), **hard}

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return self.items.tokens

    @property
    def padding(self) -> int:
        """What a padded batch would add."""
        return self.items.padding

    def to(self, device: str) -> TaughtMicroBatch:
        """The same on another device."""
        labelled = None if self.labelled is None else self.labelled.to(device)
        return TaughtMicroBatch(self.items.to(device), self.taught.to(device), labelled)


class TaughtSource:
    """Training batches without end, each item with the teacher's answer."""

    def __init__(
        self, items: Sequence[Item], answers: Callable[[Sequence[int]], Tensor], batch_size: int, seed: int
    ) -> None:
        """`answers` gives what the teacher said of some items, by their numbers, (B, K)."""
        self.items, self.answers = items, answers
        self.labelled = bool(getattr(items, "targets", ()))
        self.epochs: Epochs = ItemSource(items, TEACHER, batch_size, seed).epochs

    def step(self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> list[TaughtMicroBatch]:
        """The micro-batches of a step for one of `world` processes; together they are always the same items."""
        return [self._micro_batch(share) for share in self.epochs.shares(number, rank, world, accumulate)]

    def _micro_batch(self, numbers: Sequence[int]) -> TaughtMicroBatch:
        items = [self.items[i] for i in numbers]
        labelled = torch.tensor([place for place, item in enumerate(items) if item.target], dtype=torch.long)
        flat = micro_batch_of(items, TEACHER)
        return TaughtMicroBatch(flat, self.answers(numbers), labelled if self.labelled else None)


class Distilling:
    """What a trainer minimises: how far the student is from the teacher and, of labelled rows, from their labels."""

    def __init__(self, task: Task[Any], soft: SoftLoss, label_weight: float = 0.0) -> None:
        """`label_weight` is the share of the loss that the labels have."""
        self.task, self.soft, self.label_weight = task, soft, label_weight

    def __call__(self, model: nn.Module, micro_batch: TaughtMicroBatch) -> Mapping[str, Tensor]:
        """Both losses, summed."""
        selection, labelled = micro_batch.items.selection, micro_batch.labelled
        outputs = model(selection).float()
        soft = self.soft(outputs, micro_batch.taught)
        if labelled is None:
            return {TEACHER: soft}
        counts = [1] * len(labelled)
        hard = self.task.loss(model, outputs[labelled], counts, micro_batch.items.targets)
        return {TEACHER: (1 - self.label_weight) * soft, LABELS: self.label_weight * hard}


def following_vectors(outputs: Tensor, taught: Tensor) -> Tensor:
    """Σ 1 - cos(s, t)."""
    return (1 - F.cosine_similarity(outputs, taught, dim=-1)).sum()


def soft_loss(task: str, temperature: float) -> SoftLoss:
    """What brings the outputs of a task's head to the teacher's."""

    def one_label(outputs: Tensor, taught: Tensor) -> Tensor:
        ours, theirs = (outputs / temperature).log_softmax(-1), (taught / temperature).log_softmax(-1)
        return temperature**2 * F.kl_div(ours, theirs, reduction="sum", log_target=True)

    def several(outputs: Tensor, taught: Tensor) -> Tensor:
        wanted = (taught / temperature).sigmoid()
        summed = F.binary_cross_entropy_with_logits(outputs / temperature, wanted, reduction="sum")
        return temperature**2 * summed / outputs.shape[-1]

    def numbers(outputs: Tensor, taught: Tensor) -> Tensor:
        return F.mse_loss(outputs, taught, reduction="sum")

    return {"classify": one_label, "multilabel": several, "regress": numbers}[task]
