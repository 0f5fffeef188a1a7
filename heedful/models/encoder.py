"""What every encoder is, whatever it is made of: flat tokens in, hidden states out.

A new encoder is one file: a config, which is a frozen dataclass derived from `EncoderConfig`, and under it a module
derived from `Encoder`. A record in `heedful/checkpoints/` says how it lies in a folder.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.nn.pooling import first_rows, last_rows
from heedful.schema import Batch, Encoded, Selection
from heedful.text.frame import SummaryRow

C = TypeVar("C", bound="EncoderConfig")
E = TypeVar("E", bound="Encoder")
# Written before there was another kind, such a config does not say which it is.
FIRST_KIND = "bert"
_kinds: dict[str, type[EncoderConfig]] = {}
_LAYER = re.compile(r"layers\.(\d+)\.")


@dataclass(frozen=True)
class EncoderConfig(ABC):
    """The shape of an encoder: what can be said of it before it is built."""

    vocab_size: int

    summary: ClassVar[SummaryRow] = "first"  # the row that sums a text up
    summary_bias: ClassVar[bool] = True  # of the linear layer over that row, as Hugging Face has it
    contextual: ClassVar[bool] = True  # whether a state knows anything of the tokens around it

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        name: object = cls.model_type  # of a class in between it is not known yet
        if isinstance(name, str):
            _kinds[name] = cls

    @classmethod
    def kind_of(cls: type[C], values: Mapping[str, Any], where: object) -> type[C]:
        """The class of which a mapping holds the fields: this one, or for `EncoderConfig` that of its model_type."""
        if cls is not EncoderConfig:
            return cls
        name = str(values.get("model_type", FIRST_KIND))
        if name not in _kinds:
            raise HeedfulError(
                f"there is no encoder {name!r}", where=where, remedy=f"the encoders are {', '.join(_kinds)}"
            )
        return _kinds[name]  # type: ignore[return-value]

    @property
    @abstractmethod
    def model_type(self) -> str:
        """The name of the family; a field, so that it is written with the others, or a class variable."""

    @property
    @abstractmethod
    def width(self) -> int:
        """D, the width of a hidden state."""

    @property
    @abstractmethod
    def layers(self) -> int:
        """L, the number of layers above the embeddings."""

    @property
    def stored_layers(self) -> int:
        """How many layers have weights of their own; fewer than L where some are used again."""
        return self.layers

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """The tokens of the longest input; None where nothing runs out."""

    @property
    @abstractmethod
    def dropout(self) -> float:
        """The share of a hidden state that is dropped in training, which heads follow."""

    @abstractmethod
    def with_dropout(self: C, dropout: float) -> C:
        """The same shape with this share dropped everywhere: the one way in which dropout is set."""

    @property
    def segments(self) -> int | None:
        """How many segments are told apart; None where a model does not look at them."""
        return None

    @property
    def described(self) -> str:
        """The shape in a few words."""
        return f"{self.layers} layers, width {self.width}"

    @abstractmethod
    def build(self) -> Encoder:
        """An encoder of this shape, with a pooler if its family has one."""


class Encoder(nn.Module, ABC):
    """The encoder. Use it as a plain module inside a model of your own: flat tokens in, hidden states out."""

    config: EncoderConfig
    has_attention: ClassVar[bool] = True  # whether there are maps to ask for
    pools_tokens: ClassVar[bool] = False  # whether `pool` also stands before heads that look at single tokens

    @abstractmethod
    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """Hidden states of the layers `hidden` (0 = embeddings, -1 = last) and the attention maps of `attention`.

        Nothing above the highest layer asked for is computed. An encoder that carries a state from batch to batch
        goes on from `memory` and gives the new one with its result; any other ignores it.
        """

    def states_at(self, batch: Batch, rows: Tensor) -> Tensor:
        """The last layer's states at some flat rows only, (M, D); an encoder may save the work for all others."""
        return self(batch).last[rows]  # type: ignore[no-any-return]

    def summaries(self, selection: Selection) -> Tensor:
        """The states that sum up the texts of a selection of their summary rows, (B, D)."""
        given = selection.states
        return self.states_at(selection.batch, selection.rows) if given is None else given

    @property
    @abstractmethod
    def token_matrix(self) -> Tensor:
        """The vectors of the vocabulary before any context, (V, their width)."""

    def pool(self, summary: Tensor) -> Tensor:
        """What becomes of the states that sum texts up before a classifier sees them, (B, D) -> (B, D)."""
        return summary

    def without_pooler(self: E) -> E:
        """This encoder, its pooler removed if it has one: nothing looks at it."""
        return self

    def for_tokens(self: E) -> E:
        """This encoder for a head that looks at single tokens: a pooler is kept only if it stands before such too."""
        return self if self.pools_tokens else self.without_pooler()

    def pack(self) -> None:
        """Make this encoder faster on a CPU, for inference only, where it can be."""
        return

    def depth(self, parameter: str) -> int:
        """How high a parameter lies: 0 embeddings, 1 … L layers, L + 1 what is above them."""
        if parameter.startswith("embeddings."):
            return 0
        layer = _LAYER.match(parameter)
        return int(layer[1]) + 1 if layer else self.layer_count + 1

    @property
    def width(self) -> int:
        """D, the width of a hidden state."""
        return self.config.width

    @property
    def layer_count(self) -> int:
        """L, the number of layers above the embeddings."""
        return self.config.layers

    @property
    def max_length(self) -> int | None:
        """The tokens of the longest input; None where nothing runs out."""
        return self.config.max_length

    def summary_rows(self, lengths: Sequence[int]) -> Tensor:
        """The flat row that sums each sequence up, (B,)."""
        return first_rows(lengths) if self.config.summary == "first" else last_rows(lengths)

    @property
    def summary_pooling(self) -> str:
        """The pooling that makes what `summaries` gives of the last layer's states."""
        return "cls" if self.config.summary == "first" else "last"

    def layer_number(self, layer: int) -> int:
        """The number 0 … L of a layer that may be counted from the end."""
        last = self.layer_count
        number = layer + last + 1 if layer < 0 else layer
        if not 0 <= number <= last:
            raise HeedfulError(
                f"there is no layer {layer}", remedy=f"this model has layers 0 … {last} (or -1 … {-last - 1})"
            )
        return number

    def asked_layers(self, hidden: Collection[int], attention: Collection[int]) -> tuple[set[int], set[int]]:
        """The numbers of the layers whose states, and of those whose attention maps are asked for."""
        wanted, maps = ({self.layer_number(layer) for layer in layers} for layers in (hidden, attention))
        if maps and not self.has_attention:
            raise HeedfulError("this model has no attention", remedy="ask for hidden states only")
        if 0 in maps:
            raise HeedfulError(
                "layer 0 is the embedding output and has no attention map", remedy="maps are numbered from 1"
            )
        return wanted, maps


def encoder_of(model: nn.Module) -> Encoder:
    """The encoder of a model, under the name `encoder`; an encoder alone is its own."""
    found = model if isinstance(model, Encoder) else model.get_submodule("encoder")
    assert isinstance(found, Encoder)
    return found


def check_room(what: str, tokens: int, limit: int | None, *, where: object = None, remedy: str | None = None) -> None:
    """Refuse more tokens than a model has room for; `what` says in the message what has so many, as "a text is"."""
    if limit is not None and tokens > limit:
        raise HeedfulError(
            f"{what} more than the model's {limit} positions", where=where, remedy=remedy or f"use at most {limit}"
        )


def check_lengths(batch: Batch, limit: int | None) -> None:
    """Refuse a batch with a text for which a model has no room."""
    longest = max(batch.lengths, default=0)
    check_room(f"{longest} tokens are", longest, limit, remedy="cut the text")
