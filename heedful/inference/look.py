"""What a picture of a model's attention is made of: weights, neighbours through the layers, and alike positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.inference.attention_maps import AttentionMaps
from heedful.inference.embedder import Embedder

Numbers = NDArray[np.float32]
NEAREST = 5
MOST_POSITIONS = 128


@dataclass(frozen=True)
class TokenNeighbours:
    """The tokens of texts that were read apart, and to each in every layer the nearest others."""

    tokens: list[str]
    texts: list[int]
    nearest: list[list[list[tuple[int, float]]]]  # layer, token, rank -> which, cosine


def attention_of(model: Embedder, texts: Sequence[str]) -> AttentionMaps:
    """The attention of a text, or of two that are read together."""
    if len(texts) > 2:
        raise HeedfulError(f"{len(texts)} texts", remedy="give one text, or two")
    (found,) = model.attention([texts[0] if len(texts) == 1 else (texts[0], texts[1])])
    return found


def neighbours_of(model: Embedder, texts: Sequence[str]) -> TokenNeighbours:
    """The nearest tokens to each token of the texts, each read by itself, by the cosines of their hidden states."""
    encodings = [model.tokenizer.encode(text, max_length=model.limit(None)) for text in texts]
    layers = range(model.encoder.layer_count + 1)
    with torch.inference_mode():
        batch = flat_batch([encoding.ids for encoding in encodings]).to(model.device)
        hidden = model.encoder(batch, hidden=layers).hidden
    return TokenNeighbours(
        tokens=[token for encoding in encodings for token in encoding.tokens],
        texts=[number for number, encoding in enumerate(encodings) for _ in encoding.tokens],
        nearest=[_nearest(hidden[layer]) for layer in layers],
    )


def position_cosines(embeddings: nn.Module | None) -> Numbers | None:
    """The cosines of the first vectors for places, learned or sinusoids; None where there is no table of them."""
    position = getattr(embeddings, "position", None)
    table = position.weight if isinstance(position, nn.Embedding) else getattr(position, "table", None)
    if not isinstance(table, Tensor):
        return None
    vectors = F.normalize(table[:MOST_POSITIONS].detach().float(), dim=-1)
    found: Numbers = (vectors @ vectors.T).cpu().numpy()
    return found


def _nearest(states: Tensor) -> list[list[tuple[int, float]]]:
    vectors = F.normalize(states.float(), dim=-1)
    cosines = vectors @ vectors.T
    cosines.fill_diagonal_(-2.0)  # a token is not its own neighbour
    values, which = cosines.topk(min(NEAREST, len(vectors) - 1))
    return [list(zip(*pair, strict=True)) for pair in zip(which.tolist(), values.tolist(), strict=True)]
