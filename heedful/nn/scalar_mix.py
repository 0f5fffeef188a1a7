"""ELMo's mix of layers for a task: γ Σ s_j h_j, where the weights s are positive, add up to one and are learned.

Or they are given: Σ w_j h_j.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """One number for each layer and one for their sum; at the start it is the mean."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))  # s is their softmax
        self.gamma = nn.Parameter(torch.ones(1))

    def forward(self, side_by_side: Tensor) -> Tensor:
        """The states of L layers side by side, (R, L · D) -> (R, D)."""
        layers = side_by_side.view(*side_by_side.shape[:-1], len(self.weights), -1)
        return self.gamma * torch.einsum("l,rld->rd", self.weights.softmax(0), layers)


class GivenMix(nn.Module):
    """The sum of layers by weights that somebody has chosen; nothing of it is learned, and nothing is on disk."""

    weights: Tensor

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("weights", torch.tensor(weights), persistent=False)

    def forward(self, side_by_side: Tensor) -> Tensor:
        """The states of L layers side by side, (R, L · D) -> (R, D)."""
        layers = side_by_side.view(*side_by_side.shape[:-1], len(self.weights), -1)
        return torch.einsum("l,rld->rd", self.weights, layers)
