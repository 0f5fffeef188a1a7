"""A family: all that has to be known of one kind of encoder, so that folders, runs and heads need not ask which it is.

A new encoder is one file in `heedful/models/` and one such record:

    register_family(Family(ConfigFormat(MyConfig, "My"), initialise=initialise))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from torch import nn

from heedful.checkpoints.config_json import ConfigFormat
from heedful.checkpoints.names import NameTable, own_names
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig
from heedful.models.informed_start import InformedStart
from heedful.models.language_model import LanguageModel
from heedful.text.tokenizer import Tokenizer

C = TypeVar("C", bound=EncoderConfig)


def any_frame(tokenizer: Tokenizer, where: Path) -> None:
    """The check of a family that takes texts in any frame."""


def between_cls_and_sep(tokenizer: Tokenizer, where: Path) -> None:
    """Refuse a tokenizer that does not put texts between [CLS] and [SEP], whatever it calls them."""
    frame = [tokenizer.special_tokens[role] for role in ("cls", "sep")]
    if tokenizer.encode("").tokens != frame:
        raise HeedfulError(
            f"the tokenizer does not put texts between {' and '.join(frame)}, as the model was trained to see them",
            where=where,
            remedy="use the tokenizer.json that belongs to the model (its post_processor adds them), or its vocab.txt",
        )


def no_tokenizer(folder: Path) -> Tokenizer | None:
    """What a family without a tokenizer of its own has in a folder without the files of one."""
    return None


@dataclass(frozen=True)
class Family(Generic[C]):
    """How the models of one type are read, built, started, named on disk and framed, and what they can be used for."""

    config: ConfigFormat[C]
    initialise: Callable[[nn.Module, C, int], None]  # what a model or a part of it starts as, by a seed
    names: NameTable = field(default_factory=own_names)
    check_frame: Callable[[Tokenizer, Path], None] = any_frame  # refuses a tokenizer that frames texts otherwise
    # The tokenizer of a folder without the files of one, if the family has one by nature; None if it has not.
    other_tokenizer: Callable[[Path], Tokenizer | None] = no_tokenizer
    # Hugging Face's classes by what they are for: the "Model" alone, "PreTraining", "TokenClassification" …; those of
    # `token_heads` by the part.
    classes: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()  # what else it may be called where a user names a family
    class_prefix: str | None = None  # of folders that were written before config.json had a model_type
    sized: Callable[[str, int], C] | None = None  # the config of a named size for so many pieces
    # Pretraining: the model, which has its encoder as `encoder`, and the names of what it can be trained on.
    pretraining: Callable[[C], nn.Module] | None = None
    objectives: tuple[str, ...] = ()
    masked_lm: Callable[[C], nn.Module] | None = None  # the head that guesses masked tokens, on disk the part `mlm`
    token_heads: Mapping[str, Callable[[C], nn.Module]] = field(default_factory=dict)  # others over each state, by part
    language_model: Callable[[C], LanguageModel] | None = None  # the model that says what comes next
    two_way_lm: Callable[[C], nn.Module] | None = None  # two of words that share a softmax, forwards and backwards
    pooling: str = "mean"  # how a text becomes a vector where nothing else is said
    parts: Mapping[str, str] = field(default_factory=dict)  # what a folder may lack -> what to call it
    informed: InformedStart | None = None  # what of a model can be counted before it is trained
    per_piece: tuple[str, ...] = ()  # the parameters of the pretraining model that have a row for each piece

    @property
    def model_type(self) -> str:
        """Its name in config.json."""
        name: object = self.config.kind.model_type
        assert isinstance(name, str)
        return name

    def pretraining_model(self, config: C) -> nn.Module:
        """The encoder with the heads of its pretraining, not yet started."""
        self.objective()
        assert self.pretraining is not None
        return self.pretraining(config)

    def objective(self, name: str | None = None) -> str:
        """The name of an objective that this family is pretrained on, its first if none is named."""
        if self.pretraining is None or not self.objectives:
            what = f"a model of the type {self.model_type} has no pretraining here"
            raise HeedfulError(what, remedy="start from a folder that is trained, and fine-tune it")
        if name is not None and name not in self.objectives:
            what = f"a model of the type {self.model_type} is not pretrained by {name!r}"
            raise HeedfulError(what, remedy=f"its objectives are {', '.join(self.objectives)}")
        return name or self.objectives[0]

    def config_of_size(self, size: str, vocab_size: int) -> C:
        """The config of a named size, such as mini, with so many pieces."""
        if self.sized is None:
            raise HeedfulError(f"the type {self.model_type} has no named sizes", remedy="give the fields of its config")
        return self.sized(size, vocab_size)
