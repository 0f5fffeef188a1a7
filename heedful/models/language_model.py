"""What every model is that reads from left to right and says what comes next, whatever it is made of.

It scores texts, and `heedful/decoding.py` writes them with it: `start` reads prompts, `step` goes on symbol by symbol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.models.encoder import Encoder
from heedful.nn.cross_entropy import projected_cross_entropy
from heedful.nn.packed_linear import PackedLinear, packed, tied_linear
from heedful.schema import Batch


class LanguageModel(nn.Module, ABC):
    """An encoder, which never sees the future, with a head over the vocabulary."""

    encoder: Encoder

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.encoder.token_matrix.device

    @abstractmethod
    def logits(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, V), of what comes after each of some states of the last layer."""

    @abstractmethod
    def loss(self, states: Tensor, labels: Tensor) -> Tensor:
        """The cross-entropy of what came after each of M states, (M, D) and (M,), summed: for training."""

    @abstractmethod
    def start(self, read: Batch, hypotheses: int, longest: int) -> Any:
        """The state of `heedful.decoding` after B beginnings, of which some may be empty.

        There is room for `hypotheses` of each and at most `longest` steps. The first step is given the last token of
        each prompt, which therefore is not among the tokens that were read.
        """

    @abstractmethod
    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Give each hypothesis its newest symbol, tokens (B, K); logits of the next one (B, K, V), and the new state.

        The old state cannot be used again.
        """

    def log_probabilities(self, batch: Batch, targets: Tensor) -> Tensor:
        """log p of what came after each token of a batch, (N,) for targets (N,); memory goes by parts."""
        return chosen_log_probabilities(self.logits, self.next_states(batch), targets, self.encoder.config.vocab_size)

    def next_states(self, batch: Batch) -> Tensor:
        """The states, (N, D), whose logits say what comes after each token of a batch."""
        return self.encoder(batch).last  # type: ignore[no-any-return]

    def pack(self) -> None:
        """Make this model faster on a CPU, for inference only, where it can be."""
        self.encoder.pack()
        self.pack_head()

    def pack_head(self) -> None:
        """The same for what is not its encoder."""
        return


def chosen_log_probabilities(
    logits: Callable[[Tensor], Tensor], states: Tensor, targets: Tensor, pieces: int
) -> Tensor:
    """log softmax(logits(states))[targets], (N,) of states (N, D) and targets (N,), some rows of logits at a time."""
    rows = max(1, ROWS_TIMES_PIECES // pieces)
    found = [torch.zeros(0, device=states.device)]
    for some, right in zip(torch.split(states, rows), torch.split(targets, rows), strict=True):
        found.append(torch.log_softmax(logits(some).float(), -1).gather(1, right[:, None])[:, 0])
    return torch.cat(found)


def packed_product(matrix: Tensor, bias: Tensor | None = None) -> PackedLinear:
    """The product with a token matrix (V, D), for inference on a CPU."""
    return PackedLinear(tied_linear(matrix, bias))


class TiedLanguageModel(LanguageModel):
    """One whose head is the token matrix itself: it has no weights of its own."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.tied_head: nn.Module | None = None  # the product with the token matrix, rounded or packed

    def logits(self, states: Tensor) -> Tensor:
        """States of the last layer times the token matrix."""
        if self.tied_head is not None:
            return self.tied_head(states)  # type: ignore[no-any-return]
        return F.linear(states, self.encoder.token_matrix)

    def loss(self, states: Tensor, labels: Tensor) -> Tensor:
        """Without the logits of all states at once."""
        return projected_cross_entropy(states, self.encoder.token_matrix, labels)

    def pack_head(self) -> None:
        """The product with the token matrix."""
        self.tied_head = packed(self.tied_head or tied_linear(self.encoder.token_matrix))


ROWS_TIMES_PIECES = 4_000_000  # of the logits that are in memory at once
