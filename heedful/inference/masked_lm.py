"""Guessing hidden tokens: an encoder, its MLM head and its tokenizer, and what they say at a place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from heedful.checkpoints.bert_weights import open_bert
from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.weights import fill
from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import Bert, MlmHead
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class MaskedLm:
    """A masked language model; the encoder may be packed, and may be the one that also embeds."""

    encoder: Bert
    head: MlmHead
    tokenizer: Tokenizer

    @property
    def positions(self) -> int:
        """How many tokens the encoder has room for."""
        return self.encoder.config.max_position_embeddings

    @torch.inference_mode()
    def log_probabilities(
        self,
        sequences: Sequence[Sequence[int]],
        places: Sequence[Sequence[int]],
        segments: Sequence[Sequence[int]] | None = None,
    ) -> Tensor:
        """The log-probabilities of the whole vocabulary at the `places` of each of B sequences, (all places, V)."""
        matrix = self.encoder.embeddings.token.weight
        batch = flat_batch(sequences, segments).to(str(matrix.device))
        starts = accumulate(batch.lengths, initial=0)
        rows = [start + place for start, own in zip(starts, places, strict=False) for place in own]
        logits: Tensor = self.head(self.encoder.states_at(batch, torch.tensor(rows, device=matrix.device)), matrix)
        return torch.log_softmax(logits, dim=-1)


def load_mlm_head(folder: ModelFolder) -> MlmHead:
    """The MLM head of a folder in fp32; a folder without one is refused."""
    with open_bert(folder.weights, folder.model_config) as found:
        if not found.holds("mlm"):
            raise HeedfulError(
                "the folder has no MLM head, so it cannot guess hidden words",
                where=folder.weights,
                remedy="use a pretrained BERT with its head, such as one that `heedful pretrain` has written",
            )
        head = MlmHead(folder.model_config)
        fill(head, found, prefix="mlm.")
    return head.eval()
