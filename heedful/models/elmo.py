"""ELMo: Peters et al., "Deep contextualized word representations", 2018.

Words are read by their characters, and two LSTMs tell the next word and the one before. A state is what both know of a
word, side by side, so that context comes from both sides, but never from both at once.

    layer 0   x, x                  the word by itself, twice
    layer j   forwards_j, backwards_j

Tokens are bytes (see `heedful/text/elmo_pipeline.py`); the states are those of words, and every byte of a word has the
word's. A task mixes the layers, γ Σ s_j h_j with weights s that add up to one (`heedful.nn.scalar_mix`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.sizes import size_named
from heedful.nn.char_cnn import CharacterCnn
from heedful.nn.dropout import Dropout
from heedful.nn.projected_lstm import LstmState, TwoWayLstm
from heedful.schema import Batch, Encoded
from heedful.text.elmo_pipeline import BEGIN, END, FIRST_BYTES, OTHER_BYTES, PIECES
from heedful.text.frame import SummaryRow

# Characters beside the 256 bytes, as published: those of the sentence's ends, of the word's ends, and what fills up.
# Row 0 of the table is zero and never used; all others come one later.
SENTENCE_BEGIN, SENTENCE_END, WORD_BEGIN, WORD_END, FILLING = range(257, 262)
CHARACTERS = 262


@dataclass(frozen=True)
class ElmoConfig(EncoderConfig):
    """The shape of an ELMo; the defaults are those of the published one, without the words of its softmax."""

    summary: ClassVar[SummaryRow] = "last"
    max_length: ClassVar[None] = None  # nothing runs out

    vocab_size: int = PIECES
    character_width: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    highways: int = 2
    characters_per_word: int = 50
    activation: str = "relu"
    projection: int = 512
    lstm_width: int = 4096
    layers: int = 2
    clip: float = 3.0
    skip: bool = True  # from the second layer on, what goes into a layer is added to what comes out
    dropout: float = 0.1
    words: int = 0  # those of the softmax in pretraining; 0 where it is not known
    model_type: str = "elmo"

    def __post_init__(self) -> None:
        if self.activation not in ("relu", "tanh"):
            raise HeedfulError(f"activation {self.activation!r} is not supported", remedy="use relu or tanh")
        if self.vocab_size != PIECES:
            raise HeedfulError(f"vocab_size is {self.vocab_size}", remedy=f"leave it out: bytes make {PIECES} pieces")
        widest = max((width for width, _ in self.filters), default=0)
        if not self.filters or self.characters_per_word < max(widest, 3):
            what = f"words of {self.characters_per_word} characters are too short for the filters"
            raise HeedfulError(what, remedy="raise characters_per_word, or use narrower filters")

    @property
    def width(self) -> int:
        """D: both directions."""
        return 2 * self.projection

    def with_dropout(self, dropout: float) -> ElmoConfig:
        """The same share before each layer and after the last."""
        return replace(self, dropout=dropout)

    @property
    def described(self) -> str:
        """With its cells."""
        return f"{self.layers} layers in both directions, {self.lstm_width} cells, width {self.width}"

    def build(self) -> Elmo:
        """Without a pooler: it has none."""
        return Elmo(self)


# Filters, projection, cells.
_SMALL = ((1, 16), (2, 32), (3, 64), (4, 64))
SIZES: dict[str, tuple[tuple[tuple[int, int], ...], int, int]] = {
    "nano": (((1, 8), (2, 16), (3, 16)), 32, 64),
    "tiny": (_SMALL, 64, 256),
    "mini": (_SMALL, 128, 512),
    "small": (((1, 32), (2, 32), (3, 64), (4, 128), (5, 256)), 128, 1024),
    "medium": (ElmoConfig.filters[:6], 256, 2048),
    "base": (ElmoConfig.filters, 512, 4096),
}


def sized(size: str, words: int) -> ElmoConfig:
    """The config of a named size with so many words in its softmax; base is the published one."""
    filters, projection, cells = size_named(size, SIZES, "ELMo")
    return ElmoConfig(filters=filters, projection=projection, lstm_width=cells, words=words)


class Words(NamedTuple):
    """The words in a batch of bytes."""

    of_token: Tensor  # (N,) the number of the word that each token is in
    characters: Tensor  # (U, C) the characters of the distinct words
    distinct: Tensor  # (W,) which of these each word is
    lengths: tuple[int, ...]  # words of each sequence


class Elmo(Encoder):
    """The encoder. Its memory has outputs (B, 2, P) and cells (B, 2, lstm_width) of each layer, in turn."""

    has_attention = False

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config: ElmoConfig = config
        self.embeddings = CharacterCnn(
            CHARACTERS, config.character_width, config.filters, config.highways, config.projection, config.activation
        )
        shape = (config.projection, config.lstm_width, config.projection, config.clip)
        self.layers = nn.ModuleList(TwoWayLstm(*shape) for _ in range(config.layers))
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """The states asked for, those of a word at each of its bytes; a sequence goes on from the one before it."""
        wanted, _ = self.asked_layers(hidden, attention)
        words = self.words_of(batch)
        states, after = self.word_states(words, max(wanted, default=0), memory)
        return Encoded({n: _side_by_side(states[n])[words.of_token] for n in wanted}, {}, after)

    def states_at(self, batch: Batch, rows: Tensor) -> Tensor:
        """The last layer's states at some flat rows only, (M, D)."""
        words = self.words_of(batch)
        states, _ = self.word_states(words, self.layer_count)
        return _side_by_side(states[-1])[words.of_token[rows]]

    def word_states(
        self, words: Words, highest: int, memory: tuple[Tensor, ...] | None = None
    ) -> tuple[list[Tensor], tuple[Tensor, ...] | None]:
        """The states of W words in both directions, (2, W, P) for layers 0 … `highest`, and the memory after them."""
        x = self.embeddings(words.characters)[words.distinct]
        states = [x.expand(2, -1, -1)]
        after: list[Tensor] = []
        for number in range(highest):
            layer = self.layers[number]
            assert isinstance(layer, TwoWayLstm)
            before = None if memory is None else LstmState(*memory[2 * number : 2 * number + 2])
            given = self.dropout(states[-1])
            out, state = layer(given, words.lengths, before)
            states.append(out + given if self.config.skip and number else out)
            after += [part.detach() for part in state]
        if highest == self.layer_count:
            states[-1] = self.dropout(states[-1])
        return states, tuple(after) if highest == self.layer_count else None

    def words_of(self, batch: Batch) -> Words:
        """The words of a batch: which token is in which, and their characters, each distinct word once."""
        ids = batch.ids
        begins = ids < OTHER_BYTES
        begins[torch.tensor([0, *batch.lengths[:-1]]).cumsum(0).to(ids.device)] = True  # though a window cut a word
        of_token = begins.cumsum(0) - 1
        first = begins.nonzero()[:, 0]
        place = torch.arange(len(ids), device=ids.device) - first[of_token] + 1
        counts = [int(part.sum()) for part in torch.split(begins, list(batch.lengths))]
        kept = place <= self.config.characters_per_word - 2
        sizes = torch.bincount(of_token[kept], minlength=len(first))
        longest = int(sizes.max()) if len(sizes) else 0
        # Filters may look at nothing but filling, and all such places are alike: one for the widest filter is enough.
        columns = min(self.config.characters_per_word, longest + 2 + self.embeddings.widest)
        characters = torch.full((len(first), columns), FILLING, device=ids.device)
        characters[:, 0] = WORD_BEGIN
        characters[of_token[kept], place[kept]] = _characters(ids[kept])
        characters.scatter_(1, sizes[:, None] + 1, WORD_END)
        distinct, number = torch.unique(characters, dim=0, return_inverse=True)
        return Words(of_token, distinct, number, tuple(counts))

    @property
    def token_matrix(self) -> Tensor:
        """The vectors of characters, which are all that is known before a word is read, (V, their width)."""
        ids = torch.arange(PIECES, device=self.embeddings.character.weight.device)
        return self.embeddings.character.weight[_characters(ids)]


def _characters(ids: Tensor) -> Tensor:
    """The rows of tokens in the table of characters."""
    special = torch.full((FIRST_BYTES,), FILLING, device=ids.device)
    special[BEGIN], special[END] = SENTENCE_BEGIN, SENTENCE_END
    as_byte = (ids - FIRST_BYTES) % 256 + 1
    return torch.where(ids < FIRST_BYTES, special[ids.clamp(max=FIRST_BYTES - 1)], as_byte)


def _side_by_side(states: Tensor) -> Tensor:
    """(2, W, P) -> (W, D)."""
    return torch.cat([states[0], states[1]], dim=-1)


class ElmoForPretraining(nn.Module):
    """ELMo with the softmax over words that both directions share."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        if not config.words:
            raise HeedfulError(
                "this model has no words to predict: its softmax is not known",
                remedy="its states can be used; to train it further, start from a folder that heedful has pretrained",
            )
        self.encoder = Elmo(config)
        self.softmax = nn.Linear(config.projection, config.words)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.softmax.weight.device


def initialise(model: nn.Module, config: ElmoConfig, seed: int) -> None:
    """Uniform filters and projections by their inputs, forget gates open, highways that carry; the same for a seed."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.Conv1d)):
                bound = (3 / module.weight[0].numel()) ** 0.5
                module.weight.uniform_(-bound, bound, generator=rng)
                if module.bias is not None:
                    module.bias.zero_()
            if isinstance(module, nn.Embedding):
                module.weight.uniform_(-1.0, 1.0, generator=rng)
            if isinstance(module, TwoWayLstm):
                _start_lstm(module, rng)
        for module in model.modules():
            gate = getattr(module, "gate", None)
            if isinstance(gate, nn.Linear):
                gate.bias.fill_(-2.0)


def _start_lstm(module: TwoWayLstm, rng: torch.Generator) -> None:
    for weight in (module.input, module.recurrent, module.projection):
        bound = (3 / weight.shape[1]) ** 0.5
        weight.uniform_(-bound, bound, generator=rng)
    module.bias.zero_()
    module.bias.chunk(4, dim=-1)[1].fill_(1.0)
