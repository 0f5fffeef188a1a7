"""Vectors of words from their characters: n-gram filters, highway layers, a projection (Kim et al., 2016; ELMo)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Highway(nn.Module):
    """g · max(0, W x + b) + (1 - g) · x with the gate g = σ(W_g x + b_g)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(W, D) -> (W, D)."""
        return torch.lerp(x, F.relu(self.transform(x)), torch.sigmoid(self.gate(x)))


class CharacterCnn(nn.Module):
    """For each word the strongest answer of every filter anywhere in it, then highways and a projection."""

    def __init__(
        self, characters: int, width: int, filters: Sequence[tuple[int, int]], highways: int, projected: int, act: str
    ) -> None:
        """`filters` are pairs of a width in characters and how many filters there are of it; `act` is relu or tanh."""
        super().__init__()
        self.act: Callable[[Tensor], Tensor] = {"relu": torch.relu, "tanh": torch.tanh}[act]
        self.character = nn.Embedding(characters, width)
        self.filters = nn.ModuleList(nn.Conv1d(width, count, size) for size, count in filters)
        total = sum(count for _, count in filters)
        self.highways = nn.ModuleList(Highway(total) for _ in range(highways))
        self.projection = nn.Linear(total, projected)

    @property
    def widest(self) -> int:
        """The characters that the widest filter looks at."""
        return max(int(conv.kernel_size[0]) for conv in self.filters if isinstance(conv, nn.Conv1d))

    def forward(self, characters: Tensor) -> Tensor:
        """Words as rows of characters, (W, C) -> (W, D)."""
        x = self.character(characters).transpose(1, 2)  # (W, d, C)
        x = torch.cat([self.act(conv(x).amax(-1)) for conv in self.filters], dim=-1)
        for highway in self.highways:
            x = highway(x)
        return self.projection(x)  # type: ignore[no-any-return]
