"""Guessing masked tokens: an encoder, its MLM head and its tokenizer, and what they say at a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import load_head
from heedful.checkpoints.folder import ModelFolder
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.inference.suited_verbs import suited_verbs
from heedful.models.encoder import Encoder
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class MaskedLm:
    """A masked language model; the encoder may be packed, and may be the one that also embeds."""

    encoder: Encoder
    head: nn.Module  # states (M, D) and the encoder's token matrix -> logits (M, V)
    tokenizer: Tokenizer

    @property
    def positions(self) -> int | None:
        """How many tokens the encoder has room for."""
        return self.encoder.max_length

    @torch.inference_mode()
    def log_probabilities(
        self,
        sequences: Sequence[Sequence[int]],
        places: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None = None,
    ) -> Tensor:
        """The log-probabilities of the whole vocabulary at the `places` of each of B sequences, (all places, V)."""
        matrix = self.encoder.token_matrix
        batch = flat_batch(sequences, segments).to(str(matrix.device))
        starts = accumulate(batch.lengths, initial=0)
        rows = [start + place for start, own in zip(starts, places, strict=False) for place in own]
        logits: Tensor = self.head(self.encoder.states_at(batch, torch.tensor(rows, device=matrix.device)), matrix)
        return torch.log_softmax(logits, dim=-1)


def load_mlm_head(folder: ModelFolder) -> nn.Module:
    """The MLM head of a folder in fp32; a folder without one is refused."""
    build = folder.family.masked_lm
    if build is None:
        raise HeedfulError(
            f"a model of the type {folder.model_type} does not guess masked words",
            where=folder.weights,
            remedy=f"{suited_verbs(folder)}; this needs a masked language model, such as a BERT",
        )
    with folder.open_weights() as found:
        if not found.holds("mlm"):
            raise HeedfulError(
                "the folder has no MLM head, so it cannot guess masked words",
                where=folder.weights,
                remedy="use a pretrained BERT with its head, such as one that `heedful pretrain` has written",
            )
    return load_head(folder, "mlm", build)
