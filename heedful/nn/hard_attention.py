"""From scores to weights: soft attention looks at every place a little, hard attention at one.

At prediction the one place is that of the highest score. In training it is drawn, a ~ p = softmax(scores), and the
draw has no derivative. For the expected loss E[L(a)] there are two ways on:

    score function    ∇E[L(a)] = E[∇L(a) + L(a) ∇log p(a)]. Unbiased. The second part is what `score_function_term`
                      adds; it needs the losses, so whoever computes these must add it.
    straight-through  the gradient of soft attention in the place of the missing one. BIASED: it takes the loss for a
                      linear function of the weights, which it is not. It needs nothing but the scores.

Scores are -inf where there is nothing to be seen; where nothing at all is, soft weights are zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.nn.ragged import pad, unpad


@dataclass(frozen=True)
class Drawn:
    """One place a query, drawn: its weights, and the logarithm of its probability, through which gradients flow."""

    weights: Tensor  # (…, S) one 1, else 0
    log_probability: Tensor  # (…)


def soft(scores: Tensor) -> Tensor:
    """softmax over the places, (…, S)."""
    weights = scores.softmax(-1)
    nothing = (scores == -math.inf).all(-1, keepdim=True)
    return weights.masked_fill(nothing, 0.0)


def hard(scores: Tensor) -> Tensor:
    """1 at the place of the highest score, the first of equals, else 0."""
    return _one_hot(scores.argmax(-1), scores)


def draw(scores: Tensor, rng: torch.Generator | None = None) -> Drawn:
    """Draw a place for each query; to learn from it, add `score_function_term` to the loss."""
    logarithms = scores.log_softmax(-1)
    chances = logarithms.detach().exp().flatten(0, -2)
    if rng is not None:
        chances = chances.to(rng.device)
    places = torch.multinomial(chances, 1, generator=rng).view(scores.shape[:-1]).to(scores.device)
    return Drawn(_one_hot(places, scores), logarithms.gather(-1, places.unsqueeze(-1)).squeeze(-1))


def straight_through(scores: Tensor, rng: torch.Generator | None = None) -> Tensor:
    """Draw a place for each query, with the (biased) gradient of soft attention."""
    weights = soft(scores)
    return draw(scores.detach(), rng).weights + (weights - weights.detach())


def score_function_term(losses: Tensor, log_probabilities: Tensor, lengths: Sequence[int]) -> Tensor:
    """What to add to the sum of the losses: its value is 0, its gradient is Σ (R - b) ∇log p(a).

    losses and log_probabilities (R,) lie in runs of `lengths` steps. A draw can change the losses of its own step and
    of those after it, so R is their sum. The baseline b, which must not depend on the draw, is what the other runs
    lose a step, times the steps left: it makes the estimate less noisy and leaves it unbiased.
    """
    known = pad(losses.detach(), lengths)  # (B, T)
    steps = known.new_tensor(lengths)
    to_go = unpad(known.flip(1).cumsum(1).flip(1), lengths)  # (R,)
    left = unpad(steps[:, None] - torch.arange(known.shape[1], device=known.device), lengths)
    others = (known.sum() - known.sum(1)) / (steps.sum() - steps).clamp(min=1)  # (B,)
    baseline = left * others.repeat_interleave(steps.long())
    return ((to_go - baseline) * (log_probabilities - log_probabilities.detach())).sum()


def _one_hot(places: Tensor, like: Tensor) -> Tensor:
    return F.one_hot(places, like.shape[-1]).to(like.dtype)
