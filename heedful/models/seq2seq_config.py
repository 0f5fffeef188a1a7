"""The choices that make up a recurrent sequence-to-sequence model, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from heedful.errors import HeedfulError
from heedful.models.sizes import size_named

Cell = Literal["rnn", "gru", "lstm"]
Context = Literal["last", "transform", "all"]
Decoder = Literal["1", "2", "3", "attention"]
FirstState = Literal["given", "learned", "zero"]
ScoreName = Literal["additive", "dot", "bilinear", "scaled-dot"]
Attention = Literal["soft", "hard"]
HardGradient = Literal["score-function", "straight-through"]

# What the first state of a decoder can be; the first named is what it is if nothing is said.
FIRST_STATES: dict[str, tuple[FirstState, ...]] = {
    "1": ("given",),
    "2": ("learned", "zero"),
    "3": ("learned", "zero"),
    "attention": ("given", "learned", "zero"),
}
# Width of the embeddings, width of the states, layers on each side.
SIZES = {
    "tiny": (128, 256, 1),
    "small": (256, 512, 1),
    "medium": (512, 512, 2),
    "base": (512, 1024, 2),
    "big": (1024, 1024, 4),
}


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The shape of a recurrent sequence-to-sequence model; see `heedful.models.seq2seq` for what the choices mean.

    hidden_size is the width of the encoder's states, both directions together, and of the decoder's. The fields from
    `score` on, dropout apart, are for the attention decoder.
    """

    source_vocab_size: int
    target_vocab_size: int
    share: bool = False  # one embedding for both sides
    embedding_size: int = 256
    hidden_size: int = 512
    layers: int = 1
    cell: Cell = "gru"
    bidirectional: bool = True
    context: Context = "last"
    decoder: Decoder = "attention"
    first_state: FirstState | None = None  # None: the usual one of the decoder
    score: ScoreName = "scaled-dot"
    queries: int = 1  # a step asks the memory so many times
    attention: Attention = "soft"
    hard_gradient: HardGradient = "straight-through"
    attention_feeds: bool = False
    dropout: float = 0.3

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_numbers()
        if self.begins not in FIRST_STATES[self.decoder]:
            raise HeedfulError(
                f"decoder {self.decoder} cannot have a {self.begins} first state",
                remedy=f"its first_state can be {' or '.join(FIRST_STATES[self.decoder])}",
            )
        if self.bidirectional and self.hidden_size % 2:
            raise HeedfulError(
                f"two directions cannot share hidden_size {self.hidden_size}", remedy="choose an even width"
            )
        if self.share and self.source_vocab_size != self.target_vocab_size:
            raise HeedfulError(
                f"vocabularies of {self.source_vocab_size} and {self.target_vocab_size} cannot share an embedding",
                remedy="use one vocabulary for both sides, or do not share",
            )

    @property
    def attends(self) -> bool:
        """Whether the decoder looks at all states of the encoder."""
        return self.decoder == "attention"

    @property
    def uses_context(self) -> bool:
        """Whether c comes into the decoder anywhere."""
        return self.begins == "given" or not self.attends

    @property
    def takes_words(self) -> bool:
        """Whether the word before comes into the decoder; if not, there is nothing to force."""
        return self.decoder in ("3", "attention")

    @property
    def begins(self) -> FirstState:
        """Where the decoder's first state comes from: given (the context), learned or zero."""
        return self.first_state or FIRST_STATES[self.decoder][0]

    def _check_choices(self) -> None:
        choices = {"cell": Cell, "context": Context, "decoder": Decoder, "score": ScoreName, "attention": Attention}
        for name, kind in {**choices, "hard_gradient": HardGradient}.items():
            if getattr(self, name) not in get_args(kind):
                raise HeedfulError(
                    f"{name} is {getattr(self, name)!r}", remedy=f"choose one of {', '.join(get_args(kind))}"
                )

    def _check_numbers(self) -> None:
        for name in ("source_vocab_size", "target_vocab_size", "embedding_size", "hidden_size", "layers", "queries"):
            if getattr(self, name) < 1:
                raise HeedfulError(f"{name} is {getattr(self, name)}", remedy="it must be 1 or more")
        if not 0 <= self.dropout < 1:
            raise HeedfulError(f"dropout is {self.dropout}", remedy="it must be at least 0 and below 1")


def sized(size: str, source_vocab_size: int, target_vocab_size: int, share: bool = True) -> Seq2SeqConfig:
    """The config of a size: tiny, small, medium, base or big; choose the rest with `dataclasses.replace`."""
    return Seq2SeqConfig(source_vocab_size, target_vocab_size, share, *size_named(size, SIZES, "RNN"))
