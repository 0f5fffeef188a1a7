"""What looks at an encoder's states to solve a task: a layer or two over [CLS], over words, or over all tokens.

Each model takes a `Selection`, a batch and R places in it, and gives K numbers a place, (R, K). It takes its encoder
over: a pooler that it does not look at is removed, and with `features`, the numbers of layers whose states are put
side by side, the encoder becomes a fixed function, without gradients and without dropout. Its states can then be
computed once and handed in as `selection.states`.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.bert import Bert
from heedful.nn.attention import MultiHeadSelfAttention
from heedful.nn.crf import Crf
from heedful.nn.recurrent import over_runs
from heedful.schema import Selection

TAGGERS = ("linear", "bilstm", "crf", "bilstm-crf")


class BertForClassification(nn.Module):
    """Labels, one number, or the score of one ending, from [CLS]: pooler, dropout and a linear layer.

    With `features` there is no pooler.
    """

    def __init__(self, encoder: Bert, labels: int, features: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.features = features
        self.encoder = _fixed(encoder, features) if features else encoder
        self.dropout = nn.Dropout(encoder.config.hidden_dropout_prob)
        self.classifier = nn.Linear(_width(encoder, features), labels)

    def forward(self, selection: Selection) -> Tensor:
        """A selection of the [CLS] of R sequences -> (R, K)."""
        x = states(self.encoder, selection, self.features)
        return self.classifier(self.dropout(x if self.features else self.encoder.pool(x)))  # type: ignore[no-any-return]


class BertForTagging(nn.Module):
    """A label a word: dropout, perhaps a BiLSTM over the words of each sequence, a linear layer, perhaps a CRF.

    The outputs are what the CRF calls emissions; `crf` turns them into losses and labels. It allows every transition
    until it is replaced by one that knows the labels, `Crf(K, *bio_transitions(labels))`.
    """

    def __init__(
        self,
        encoder: Bert,
        labels: int,
        head: str = "linear",
        features: tuple[int, ...] = (),
        lstm_width: int = 256,
        lstm_layers: int = 1,
        combine: str = "concat",
    ) -> None:
        """`lstm_width` is that of each direction; `combine` is how the layers of `features` are joined."""
        super().__init__()
        if head not in TAGGERS:
            raise HeedfulError(f"there is no tagging head {head!r}", remedy=f"the heads are {', '.join(TAGGERS)}")
        self.features, self.combine = features, combine
        self.encoder = _fixed(encoder, features) if features else _without_pooler(encoder)
        width = encoder.config.hidden_size if combine == "sum" else _width(encoder, features)
        dropout = encoder.config.hidden_dropout_prob
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
        x = self.dropout(states(self.encoder, selection, self.features, self.combine))
        if self.lstm is not None:
            x = self.dropout(over_runs(self.lstm, x, selection.counts))
        return self.classifier(x)  # type: ignore[no-any-return]


class BertForAnswering(nn.Module):
    """Where an answer starts and where it ends: the scores <s, v_i> and <e, v_i> of each token's state v_i."""

    def __init__(self, encoder: Bert) -> None:
        super().__init__()
        self.encoder = _without_pooler(encoder)
        self.span = nn.Linear(encoder.config.hidden_size, 2)

    def forward(self, selection: Selection) -> Tensor:
        """A selection of R tokens -> (R, 2)."""
        return self.span(states(self.encoder, selection, ()))  # type: ignore[no-any-return]


def states(encoder: Bert, selection: Selection, features: tuple[int, ...], combine: str = "concat") -> Tensor:
    """The last layer's states at the rows of a selection, (R, D), or those of the layers `features`.

    The latter are put side by side, or with `combine` "sum" added up, and computed without gradients. States that the
    selection brings along are taken as they are.
    """
    if selection.states is not None:
        return selection.states
    if not features:
        return encoder.states_at(selection.batch, selection.rows)
    with torch.no_grad():
        hidden = encoder(selection.batch, hidden=features).hidden
        layers = [hidden[encoder.layer_number(layer)][selection.rows] for layer in features]
        return torch.stack(layers).sum(0) if combine == "sum" else torch.cat(layers, dim=-1)


def layer_depth(name: str, layers: int) -> int:
    """How high a parameter of a model with `layers` layers lies: 0 embeddings, 1 … L layers, L + 1 pooler and head."""
    if name.startswith("encoder.embeddings."):
        return 0
    layer = re.match(r"encoder\.layers\.(\d+)\.", name)
    return int(layer[1]) + 1 if layer else layers + 1


def freeze(model: nn.Module, what: str) -> None:
    """Train no more the "embeddings", the whole "encoder", or with a number K the embeddings and the lowest K layers.

    The pooler belongs to the head: it is trained with the encoder frozen.
    """
    encoder = model.get_submodule("encoder")
    assert isinstance(encoder, Bert)
    layers = encoder.config.num_hidden_layers
    depths = {"embeddings": 0, "encoder": layers, **{str(number): number for number in range(layers + 1)}}
    if what not in depths:
        raise HeedfulError(
            f"cannot freeze {what!r}", remedy=f"say embeddings, encoder, or a number of layers from 0 to {layers}"
        )
    for name, parameter in model.named_parameters():
        if layer_depth(name, layers) <= depths[what]:
            parameter.requires_grad_(False)


def _width(encoder: Bert, features: tuple[int, ...]) -> int:
    return encoder.config.hidden_size * max(1, len(features))


def _without_pooler(encoder: Bert) -> Bert:
    """Hugging Face's classes have none either where nothing looks at it."""
    encoder.pooler = None
    return encoder


def _fixed(encoder: Bert, features: tuple[int, ...]) -> Bert:
    """The encoder with nothing left to train or to chance, so that states computed once hold for all epochs."""
    for layer in features:
        encoder.layer_number(layer)  # refuses one that is not there
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, MultiHeadSelfAttention):
            module.dropout = 0.0
    return _without_pooler(encoder.requires_grad_(False))
