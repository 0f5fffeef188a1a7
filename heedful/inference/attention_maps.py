"""All attention weights of texts, with their tokens: what pictures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.batching import flat_batch
from heedful.models.encoder import Encoder
from heedful.text.tokenizer import Tokenizer

# Ids, and the segment of each.
Sequences = Sequence[tuple[list[int], list[int]]]


@dataclass(frozen=True)
class AttentionMaps:
    """What each token of a text looks at, in every layer and head."""

    tokens: list[str]  # as the tokenizer writes them, special ones too
    segments: list[int]
    weights: NDArray[np.float32]  # (L, H, T, T), a row for each token that looks


def attention_input(
    tokenizer: Tokenizer, text: str | tuple[str, str], max_length: int
) -> tuple[list[int], list[int], list[str]]:
    """A text, or two, as ids, segments and tokens, cut to `max_length`."""
    first, second = (text, None) if isinstance(text, str) else text
    encoding = tokenizer.encode(first, second, max_length)
    ids = tokenizer.frame.some(encoding.ids)
    return ids, encoding.type_ids or [0], encoding.tokens or [tokenizer.vocabulary[ids[0]]]


def attention_weights(encoder: Encoder, sequences: Sequences, device: str) -> list[NDArray[np.float32]]:
    """The weights (L, H, T, T) of each sequence, in one batch."""
    layers = range(1, encoder.layer_count + 1)
    ids, segments = [one[0] for one in sequences], [one[1] for one in sequences]
    with torch.inference_mode():
        maps = encoder(flat_batch(ids, segments).to(device), hidden=(), attention=layers).attention
    return [
        torch.stack([maps[layer][number] for layer in layers]).float().cpu().numpy() for number in range(len(sequences))
    ]
