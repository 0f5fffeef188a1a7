"""What looks at an encoder's states to solve a task: a layer or two over a text's summary, its words, or all tokens.

Each model takes a `Selection`, a batch and R places in it, and gives K numbers a place, (R, K). It takes its encoder
over: a pooler that it does not look at is removed, and with `features`, the numbers of layers whose states are joined,
the encoder becomes a fixed function, without gradients and without dropout. Its states can then be computed once and
handed in as `selection.states`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, encoder_of
from heedful.nn.crf import Crf
from heedful.nn.pooling import combine, compare, pool
from heedful.nn.recurrent import over_runs
from heedful.nn.scalar_mix import GivenMix, ScalarMix
from heedful.schema import Selection

H = TypeVar("H", bound="Head")
# What sums a text up: the row that the encoder means for it, or the mean or maximum over all its tokens.
Pooling = Literal["cls", "mean", "max"]
# The same for a task, where a pair can also be summed up by what its two texts have in common.
Summary = Literal["cls", "mean", "max", "compare"]
TAGGERS = ("linear", "bilstm", "crf", "bilstm-crf")


class Head(nn.Module):
    """An encoder with something on top of it, which looks at its last layer or at the layers `features`."""

    def __init__(self, encoder: Encoder, features: Sequence[int] = ()) -> None:
        super().__init__()
        for layer in features:
            encoder.layer_number(layer)  # refuses one that is not there
        self.features = tuple(features)
        self.encoder = encoder.requires_grad_(False).without_pooler() if features else encoder

    def train(self: H, mode: bool = True) -> H:
        """Training mode; an encoder that is a fixed function stays as it is, so that its states hold for all epochs."""
        super().train(mode)
        if self.features:
            self.encoder.eval()
        return self

    def token_states(self, selection: Selection, combine: str = "concat") -> Tensor:
        """What a head over single tokens looks at, (R, D): their states, through a pooler that stands before them."""
        x = states(self.encoder, selection, self.features, combine)
        return self.encoder.pool(x) if self.encoder.pools_tokens and not self.features else x


class SequenceClassifier(Head):
    """Labels, one number, or the score of one ending, from what sums a text up.

    With the pooling "cls" that is the state of the encoder's own summary row, through its pooler; with "mean" or "max"
    it is pooled over all tokens of the text, and there is no pooler, as there is none with `features`. "compare" pools
    the two texts of a pair by themselves and compares them. Then come dropout and a linear layer.
    """

    def __init__(self, encoder: Encoder, labels: int, features: tuple[int, ...] = (), pooling: Summary = "cls") -> None:
        if pooling == "compare" and not encoder.config.segments:
            what = f"a {encoder.config.model_type} does not tell the two texts of a pair apart, and cannot compare them"
            raise HeedfulError(what, remedy="choose cls, mean or max as `pooling`")
        super().__init__(encoder if pooling == "cls" else encoder.without_pooler(), features)
        self.pooling = pooling
        self.dropout = nn.Dropout(encoder.config.dropout)
        own = pooling == "cls" and not features  # what Hugging Face has a class for
        bias = encoder.config.summary_bias or not own
        parts = max(1, len(features)) * (4 if pooling == "compare" else 1)
        self.classifier = nn.Linear(encoder.width * parts, labels, bias=bias)

    def forward(self, selection: Selection) -> Tensor:
        """A selection of the summary rows of R sequences -> (R, K)."""
        if self.pooling == "cls" and not self.features:
            x = self.encoder.pool(self.encoder.summaries(selection))
        else:
            x = states(self.encoder, selection, self.features, pooling=self.pooling)
        return self.classifier(self.dropout(x))  # type: ignore[no-any-return]


class SentenceEncoder(Head):
    """An encoder and what it is pooled by, nothing else: sentence vectors."""

    def __init__(self, encoder: Encoder, pooling: Pooling = "mean") -> None:
        super().__init__(encoder.without_pooler())
        self.pooling = pooling

    def forward(self, selection: Selection) -> Tensor:
        """A selection of the summary rows of R sequences -> (R, D)."""
        return states(self.encoder, selection, (), pooling=self.pooling)


class Tagger(Head):
    """A label a word: dropout, perhaps a BiLSTM over the words of each sequence, a linear layer, perhaps a CRF.

    The outputs are what the CRF calls emissions; `crf` turns them into losses and labels. It allows every transition
    until it is replaced by one that knows the labels, `Crf(K, *bio_transitions(labels))`.
    """

    def __init__(
        self,
        encoder: Encoder,
        labels: int,
        head: str = "linear",
        features: tuple[int, ...] = (),
        lstm_width: int = 256,
        lstm_layers: int = 1,
        combine: str = "concat",
        mix: tuple[float, ...] = (),
    ) -> None:
        """`lstm_width` is that of each direction; `combine` is how the layers of `features` are joined.

        With "mix" that is by weights, which are learned unless they are given as `mix`.
        """
        if head not in TAGGERS:
            raise HeedfulError(f"there is no tagging head {head!r}", remedy=f"the heads are {', '.join(TAGGERS)}")
        super().__init__(encoder.for_tokens(), features)
        self.combine = combine
        # Under the name that every folder has for what is our own.
        self.head = None
        if features and combine == "mix":
            self.head = nn.ModuleDict({"mix": GivenMix(mix) if mix else ScalarMix(len(features))})
        width = encoder.width * (len(features) if features and combine == "concat" else 1)
        dropout = encoder.config.dropout
        self.dropout = nn.Dropout(dropout)
        self.lstm: nn.LSTM | None = None
        if head.startswith("bilstm"):
            between = dropout if lstm_layers > 1 else 0.0
            self.lstm = nn.LSTM(width, lstm_width, lstm_layers, bidirectional=True, dropout=between)
            width = 2 * lstm_width
        self.classifier = nn.Linear(width, labels)
        self.crf: Crf | None = Crf(labels) if head.endswith("crf") else None

    def forward(self, selection: Selection) -> Tensor:
        """A selection of R words -> (R, K)."""
        x = self.read(selection)
        if self.lstm is not None:
            x = self.dropout(over_runs(self.lstm, x, selection.counts))
        return self.classifier(x)  # type: ignore[no-any-return]

    def read(self, selection: Selection) -> Tensor:
        """What the BiLSTM reads, or the linear layer where there is none: (R, D)."""
        x = self.token_states(selection, self.combine)
        return self.dropout(x if self.head is None else self.head["mix"](x))  # type: ignore[no-any-return]


class SpanFinder(Head):
    """Where an answer starts and where it ends: the scores <s, v_i> and <e, v_i> of each token's state v_i."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder.for_tokens())
        self.span = nn.Linear(encoder.width, 2)

    def forward(self, selection: Selection) -> Tensor:
        """A selection of R tokens -> (R, 2)."""
        return self.span(self.token_states(selection))  # type: ignore[no-any-return]


def states(
    encoder: Encoder, selection: Selection, features: tuple[int, ...], how: str = "concat", pooling: Summary = "cls"
) -> Tensor:
    """The last layer's states at the rows of a selection, (R, D), or those of the layers `features`.

    The latter are joined as `combine` has it, and computed without gradients. With a pooling other than "cls" each row
    stands for the whole sequence that it lies in. States that the selection brings along are taken as they are.
    """
    if selection.states is not None:
        return selection.states
    if not features and pooling == "cls":
        return encoder.states_at(selection.batch, selection.rows)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not features):
        layers = features or (-1,)
        hidden = encoder(selection.batch, hidden=layers).hidden
        return combine([at_rows(hidden[encoder.layer_number(layer)], selection, pooling) for layer in layers], how)


def at_rows(hidden: Tensor, selection: Selection, pooling: Summary) -> Tensor:
    """Of states (N, D) those at the rows of a selection, or for each row its whole sequence pooled, (R, D or 4D)."""
    if pooling == "cls":
        return hidden[selection.rows]
    lengths = selection.batch.lengths
    ends = torch.tensor(lengths, device=hidden.device).cumsum(0)
    compares = pooling == "compare"
    pooled = compare(hidden, lengths, selection.batch.segments) if compares else pool(hidden, lengths, pooling)
    return pooled[torch.searchsorted(ends, selection.rows, right=True)]


def layer_depth(encoder: Encoder, name: str) -> int:
    """How high a parameter of a model with this encoder lies: 0 embeddings, 1 … L layers, L + 1 pooler and head."""
    own = name.removeprefix("encoder.")
    return encoder.layer_count + 1 if own == name else encoder.depth(own)


def freeze(model: nn.Module, what: str) -> None:
    """Train no more the "embeddings", the whole "encoder", or with a number K the embeddings and the lowest K layers.

    The pooler belongs to the head: it is trained with the encoder frozen.
    """
    encoder = encoder_of(model)
    layers = encoder.layer_count
    depths = {"embeddings": 0, "encoder": layers, **{str(number): number for number in range(layers + 1)}}
    if what not in depths:
        raise HeedfulError(
            f"cannot freeze {what!r}", remedy=f"say embeddings, encoder, or a number of layers from 0 to {layers}"
        )
    for name, parameter in model.named_parameters():
        if layer_depth(encoder, name) <= depths[what]:
            parameter.requires_grad_(False)
