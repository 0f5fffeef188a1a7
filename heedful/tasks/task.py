"""What a task is: how examples are read and turned into tokens, what looks at the encoder, and what its answers are.

A task of your own is one file with a subclass of `Task`; docs/own-task.md goes through one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.checkpoints.sentence_transformers import SentenceSettings
from heedful.data.labelled.dataset import BadRows, Columns, Dataset, Remark
from heedful.data.tables import as_json
from heedful.models.encoder import Encoder
from heedful.text.rows import DataSource, Rows
from heedful.text.tokenizer import Tokenizer

E = TypeVar("E")
T = TypeVar("T", bound="Task[Any]")
# What a model says of one example, ready for JSON.
Prediction = dict[str, Any]
# The scores of a choice of examples, given by their numbers, of which some come several times.
Rescorer = Callable[[NDArray[np.int64]], Mapping[str, float]]


@dataclass(frozen=True)
class Window:
    """A token sequence that fits the model, and the places in it whose states the head looks at."""

    ids: list[int]
    segments: list[int]
    rows: list[int]


@dataclass(frozen=True)
class Item:
    """What is judged at once: one window of an example, or one for each of its endings."""

    example: int  # its number
    windows: tuple[Window, ...]
    target: tuple[float, ...] = ()  # what the loss compares with; empty where no label is known
    weight: int = 1  # how many things the loss adds up
    spans: tuple[tuple[int, int], ...] = ()  # what each row stands for: words, or characters, first and past the last
    cut: bool = False  # whether a part of the example is left out, because it does not fit into a window

    @property
    def tokens(self) -> int:
        """How many tokens it has."""
        return sum(len(window.ids) for window in self.windows)


@dataclass(frozen=True)
class Detail:
    """A table about predictions that says more than one number."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | int | float]]


@dataclass(frozen=True)
class Task(ABC, Generic[E]):
    """A kind of problem, settled for one set of data: a frozen dataclass whose fields are kept with the model."""

    name: ClassVar[str]  # as on the command line
    best: ClassVar[str]  # the score that decides which checkpoint is kept
    scores: ClassVar[tuple[str, ...]] = ()  # the names `score` can give, if they are known beforehand
    errors: ClassVar[tuple[str, ...]] = ()  # those of them of which less is better
    layouts: ClassVar[tuple[tuple[str, ...], ...]] = ()  # what the places of a tuple are, in rows in memory
    architecture: ClassVar[str | None] = None  # what Hugging Face's class of such a model is for, where there is one
    whole_batch: ClassVar[bool] = False  # whether the loss of an item depends on the others of its batch

    max_length: int = 128  # tokens of a window
    stride: int = 0  # how far a window moves on in a text that is too long

    @classmethod
    @abstractmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[E]:
        """The examples of a file; without `labelled`, labels may be missing."""

    @classmethod
    def read_data(
        cls, data: str | DataSource, columns: Columns, labelled: bool = True, bad_rows: BadRows | None = None
    ) -> Dataset[E]:
        """The examples of a file, by its name, or of rows in memory; bad rows are refused unless they are to skip."""
        source = data.named(cls.layouts) if isinstance(data, Rows) else Path(data)
        return cls.read(source, columns, labelled).settled(bad_rows)

    @classmethod
    @abstractmethod
    def example(cls, given: Any) -> E:
        """An unlabelled example from what a caller in Python gives: a text, a pair, a mapping."""

    @classmethod
    @abstractmethod
    def fit(cls: type[T], examples: Sequence[Any], **fields: Any) -> T:
        """The task with what its training examples tell, such as the labels there are."""

    @abstractmethod
    def check(self, examples: Sequence[E]) -> None:
        """Refuse labelled examples that cannot be scored, such as one without a label."""

    def decides(self, examples: Sequence[E]) -> str:
        """The score of such examples that decides which checkpoint is kept."""
        return self.best

    @property
    def sentence(self) -> SentenceSettings | None:
        """How sentence-transformers is to make vectors with a model of this task, if it is for vectors."""
        return None

    @property
    def rule(self) -> str:
        """From which probability on a label is given, where it is not simply the likeliest one that is."""
        return ""

    def unseen(self, examples: Sequence[E]) -> tuple[Remark, ...]:
        """What labelled examples ask for that training never showed: the model's errors, for its user to know."""
        return ()

    def doubtful(self, examples: Sequence[E]) -> tuple[Remark, ...]:
        """What of its training examples the task has taken in a way that may not be meant."""
        return ()

    @abstractmethod
    def encode(self, examples: Sequence[E], tokenizer: Tokenizer) -> list[Item]:
        """The items of the examples, in their order; a text that is too long gives several."""

    @abstractmethod
    def model(self, encoder: Encoder) -> nn.Module:
        """The encoder with a head: called with a `Selection` of R rows, it gives outputs (R, K)."""

    @abstractmethod
    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """The summed loss of outputs (R, K) of windows with `counts` rows; `targets` hold those of all items."""

    @abstractmethod
    def decode(
        self, model: nn.Module, examples: Sequence[E], items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]
    ) -> list[Prediction]:
        """What is said of each example, from the outputs (rows, K) of each window of each item."""

    def tuned(self: T, examples: Sequence[Any], predictions: Sequence[Prediction]) -> T:
        """The task with what only its dev data can tell, such as a threshold."""
        return self

    @abstractmethod
    def score(self, examples: Sequence[E], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """How good predictions for labelled examples are."""

    def said(self, prediction: Prediction) -> str:
        """What a prediction says, for a reader, without how sure it is."""
        return as_json(prediction)

    def blind_guess(self, examples: Sequence[E]) -> tuple[str, Sequence[Prediction]] | None:
        """The best single answer for all labelled examples, by its name, and as predictions; None if there is none."""
        return None

    def rescorer(self, examples: Sequence[E], predictions: Sequence[Prediction]) -> Rescorer:
        """As `score`, for the many choices of a bootstrap; what is the same in all of them may be computed once."""

        def rescored(chosen: NDArray[np.int64]) -> Mapping[str, float]:
            numbers = chosen.tolist()
            return self.score([examples[i] for i in numbers], [predictions[i] for i in numbers])

        return rescored

    def details(self, examples: Sequence[E], predictions: Sequence[Prediction]) -> Sequence[Detail]:
        """What else can be told, label by label."""
        return ()
