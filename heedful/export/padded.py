"""Encoders and heads over padded texts, as other engines want them: (B, T) ids and a mask instead of flat tokens.

A padded batch is a flat one too, a single group of B sequences of T tokens, whose attention is told which of them are
real. So every encoder is exported by the same code, whatever it is made of.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import Head, SequenceClassifier, SpanFinder, Tagger
from heedful.nn.pooling import combine, compared
from heedful.schema import Batch, Group, Selection

# The outputs' names, which are those of Hugging Face's and sentence-transformers' own exports.
STATES, VECTORS, LOGITS = "last_hidden_state", "sentence_embedding", "logits"
CRF = "crf"  # of a tagger that has one: `Crf.table`


def padded_batch(ids: Tensor, mask: Tensor, segments: Tensor) -> Batch:
    """Three tensors (B, T), the mask 1 where a token is real, as one group of a flat batch."""
    count, length = ids.shape
    positions = torch.arange(length, device=ids.device).expand(count, length)
    group = Group(0, count, length, mask.bool()[:, None, None, :])
    return Batch(ids.reshape(-1), segments.reshape(-1), positions.reshape(-1), (), (group,))


def padded_pool(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """Pool (B, T, D) over the real tokens of each sequence: (B, D), or (B, 2D) for mean-max."""
    if how == "mean-max":
        return torch.cat([padded_pool(states, mask, "mean"), padded_pool(states, mask, "max")], dim=-1)
    if how == "cls":
        return states[:, 0]
    if how == "last":
        return states[torch.arange(states.shape[0], device=states.device), mask.sum(1) - 1]
    real = mask[:, :, None].to(states.dtype)
    if how == "max":
        return torch.where(real > 0, states, torch.full_like(states, -torch.inf)).amax(1)
    if how == "weighted-mean":
        real = real * real.cumsum(1)
    return (states * real).sum(1) / real.sum(1).clamp(min=1)


class PaddedEncoder(nn.Module):
    """The states of the last layer, and a vector of each text."""

    outputs = (STATES, VECTORS)

    def __init__(self, encoder: Encoder, pooling: str, normalize: bool, dense: nn.Module | None = None) -> None:
        """`dense` is what stands between the pooling and the length of a vector."""
        super().__init__()
        self.encoder, self.pooling, self.normalize = encoder, pooling, normalize
        self.dense = dense or nn.Identity()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T) each -> (B, T, D) and (B, D)."""
        states = self.encoder(padded_batch(input_ids, attention_mask, token_type_ids)).last
        states = states.view(*input_ids.shape, -1)
        vectors = self.dense(padded_pool(states, attention_mask, self.pooling))
        return states, nn.functional.normalize(vectors, dim=-1) if self.normalize else vectors


class PaddedHead(nn.Module):
    """What a head says of each text, (B, K), or of each token, (B, T, K), and the states of the last layer.

    The logits of a tagger with a CRF are its emissions, and its table comes with them: who asks looks for the path.
    """

    def __init__(self, model: Head) -> None:
        super().__init__()
        if not isinstance(model, SequenceClassifier | SpanFinder | Tagger):
            raise HeedfulError("a task of one's own has no known way to ONNX", remedy="use a built-in task")
        if isinstance(model, Tagger) and model.lstm is not None:
            what = "a tagger with a BiLSTM cannot be written for ONNX"
            raise HeedfulError(what, remedy="train one with the head `linear` or `crf`")
        self.model = model
        self.crf = model.crf if isinstance(model, Tagger) else None
        self.outputs = (LOGITS, STATES) if self.crf is None else (LOGITS, STATES, CRF)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, ...]:
        """(B, T) each -> logits, and (B, T, D); of a CRF its table."""
        encoder, layers = self.model.encoder, self.model.features or (-1,)
        batch = padded_batch(input_ids, attention_mask, token_type_ids)
        hidden = encoder(batch, hidden=(*layers, -1)).hidden
        last = hidden[encoder.layer_count].view(*input_ids.shape, -1)
        how = getattr(self.model, "combine", "concat")
        states = combine([hidden[encoder.layer_number(layer)] for layer in layers], how)
        if not isinstance(self.model, SequenceClassifier):
            said = self._said_of(batch, states).view(*input_ids.shape, -1)
            return (said, last) if self.crf is None else (said, last, self.crf.table())
        block = states.view(*input_ids.shape, -1)
        row = "last" if encoder.config.summary == "last" else "cls"
        if self.model.pooling == "compare":
            sides = (attention_mask * (token_type_ids == side) for side in (0, 1))
            return self._said_of(batch, compared(*(padded_pool(block, side, "mean") for side in sides))), last
        own = row if self.model.features else encoder.summary_pooling
        pooling = own if self.model.pooling == "cls" else self.model.pooling
        return self._said_of(batch, padded_pool(block, attention_mask, pooling)), last

    def _said_of(self, batch: Batch, states: Tensor) -> Tensor:
        rows = torch.arange(states.shape[0], device=states.device)
        said: Tensor = self.model(Selection(batch, rows, (), states))
        return said
