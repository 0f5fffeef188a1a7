"""What an objective of pretraining brings: its examples, its losses, how it is judged, and what it leaves behind.

`heedful/runs/pretraining` knows nothing else of it. See "A new pretraining objective" in docs/architecture.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.grown import grown_config, load_grown
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Batches
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig
from heedful.nn.carried import Carried
from heedful.text.domain_words import extends

Tell = Callable[[str], object]
Losses = Mapping[str, Tensor]


class Examination(Protocol):
    """Questions about held-out documents, always the same."""

    def scores(self, model: nn.Module) -> dict[str, float]:
        """How the model does, beside what something simple reaches on the same text."""
        ...

    def shown(self, model: nn.Module) -> list[dict[str, Any]]:
        """What the model makes of a few examples, for a reader."""
        ...


class PretrainingObjective(ABC):
    """Something to be learned from text alone."""

    name: ClassVar[str]
    rate_from_random: ClassVar[float] = 1.0  # that share of the usual rate suits a start from random weights
    recipe: ClassVar[type[ExampleRecipe]]  # how its examples are made
    settings: ClassVar[Mapping[str, str]] = {}  # a run's settings that are its own -> the field of its recipe
    unused: ClassVar[frozenset[str]] = frozenset()  # settings of every run that have no effect here
    precision: ClassVar[Literal["float32"] | None] = None  # the one that it computes in, if it has no choice
    use: ClassVar[str] = "    heedful embed FOLDER lines.txt -o vectors.npy"  # commands for the model card

    @abstractmethod
    def check(self, corpus: Corpus) -> None:
        """Refuse a corpus, or its tokenizer, that lacks what this needs."""

    def defaults(self, corpus: Corpus) -> Mapping[str, Any]:
        """Settings of a run that are other ones for this objective, unless they are given."""
        return {}

    def pieces(self, corpus: Corpus, recipe: Any) -> int:
        """How many pieces a model has for this corpus: those of its tokenizer, unless words are its pieces."""
        return corpus.tokenizer.vocab_size

    def config_from(self, folder: ModelFolder, corpus: Corpus, recipe: Any) -> EncoderConfig:
        """The shape of a model that goes on from a folder; a corpus in other pieces is refused."""
        if folder.tokenizer is not None and not extends(corpus.tokenizer, folder.tokenizer):
            corpus.check_vocabulary(folder.tokenizer)
        return grown_config(folder, corpus.tokenizer)

    def model_from(
        self, folder: ModelFolder, config: EncoderConfig, corpus: Corpus, recipe: Any, seed: int, tell: Tell
    ) -> nn.Module:
        """The model of a folder, of the shape planned; what the corpus has more starts as it can."""
        shape = replace(config, vocab_size=folder.model_config.vocab_size)  # as planned, dropout and all, but not grown
        more = corpus.tokenizer.vocab_size - folder.tokenizer.vocab_size if folder.tokenizer else 0
        if more:
            tell(f"{more:,} words are new: each starts as the mean of the pieces it was spelled with")
        return load_grown(replace(folder, model_config=shape), corpus.tokenizer, seed)

    def size(self, corpus: Corpus, recipe: Any) -> int:
        """How many tokens once through the text are."""
        return corpus.train.tokens

    @abstractmethod
    def batches(self, corpus: Corpus, recipe: Any) -> Batches:
        """The training batches with examples of the recipe's length."""

    def written_ahead(self, corpus: Corpus, recipe: Any, duplicates: int) -> Batches:
        """The same from examples that were written ahead."""
        raise HeedfulError(f"no examples of {self.name!r} are written ahead", remedy="leave `duplicates` out")

    @abstractmethod
    def losses(self, model: nn.Module, micro_batch: Any) -> Losses:
        """The sum of each loss over a micro-batch, which stands for itself."""

    def in_run(self, model: nn.Module, lanes: int, recipe: Any) -> Any:
        """What the trainer calls (`heedful.training.contract.Objective`), for batches of up to so many rows.

        One whose state travels from batch to batch gives a `Remembering`.
        """
        return self.losses

    @abstractmethod
    def examination(
        self, corpus: Corpus, recipe: Any, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> Examination:
        """The evaluation on up to `most` held-out examples, in batches; `tell` hears what takes long."""

    @abstractmethod
    def described(self, recipe: Any) -> str:
        """What is learned and how, in a line for the model card."""

    def save(self, model: nn.Module, folder: Path, corpus: Corpus, recipe: Any) -> None:
        """Write the finished model with all that it needs to read texts."""
        save_model(model, folder, corpus.tokenizer, overwrite=True)


class Remembering:
    """An objective for the trainer in which each lane of a batch goes on from what the step before has left.

    `losses` is given the state of the micro-batch's lanes, (b, …) each, and gives the losses and the state after it. A
    micro-batch says which `lanes` it has and which of them are `fresh`, (b,) each.
    """

    def __init__(
        self,
        losses: Callable[[nn.Module, Any, dict[str, Tensor]], tuple[Losses, Mapping[str, Tensor]]],
        state: Mapping[str, Tensor],
    ) -> None:
        """`state` is zero, a row for each lane: what the trainer finds at the start and keeps in its checkpoints."""
        self._losses = losses
        self.carried = Carried(state)

    def __call__(self, model: nn.Module, micro_batch: Any) -> Losses:
        """The losses; what the lanes have come to is left until the step is taken."""
        before = self.carried.rows(micro_batch.lanes, micro_batch.fresh)
        losses, after = self._losses(model, micro_batch, before)
        self.carried.leave(micro_batch.lanes, after)
        return losses
