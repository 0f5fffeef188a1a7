"""How well a key answers a query, in four ways, and several queries over one memory.

    additive    v · tanh(W q + U k)    Bahdanau, Cho and Bengio, 2015
    dot         q · k                  Luong, Pham and Manning, 2015
    bilinear    q W k                  the same paper, which calls it general
    scaled-dot  q · k / √d_k           Vaswani et al., 2017

What depends on the keys alone is computed once, by `project`; `forward` then scores any number of queries against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError

SCORES = ("additive", "dot", "bilinear", "scaled-dot")


class AdditiveScore(nn.Module):
    """v · tanh(W q + U k)."""

    def __init__(self, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_width, width, bias=False)
        self.key = nn.Linear(key_width, width, bias=False)
        self.v = nn.Linear(width, 1, bias=False)

    def project(self, keys: Tensor) -> Tensor:
        """U k, (…, d_k) -> (…, d)."""
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(self, queries: Tensor, projected: Tensor) -> Tensor:
        """Queries (…, T, d_q) and projected keys (…, S, d) -> (…, T, S)."""
        together = self.query(queries).unsqueeze(-2) + projected.unsqueeze(-3)  # (…, T, S, d)
        return self.v(torch.tanh(together)).squeeze(-1)  # type: ignore[no-any-return]


class DotScore(nn.Module):
    """q · k, and if `scaled` divided by √d_k."""

    def __init__(self, scaled: bool) -> None:
        super().__init__()
        self.scaled = scaled

    def project(self, keys: Tensor) -> Tensor:
        """The keys as they are, or divided by √d_k, which is less work than to divide the scores of every query."""
        return keys / math.sqrt(keys.shape[-1]) if self.scaled else keys

    def forward(self, queries: Tensor, projected: Tensor) -> Tensor:
        """Queries (…, T, d_k) and projected keys (…, S, d_k) -> (…, T, S)."""
        return queries @ projected.transpose(-2, -1)


class BilinearScore(nn.Module):
    """q W k."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        self.key = nn.Linear(key_width, query_width, bias=False)

    def project(self, keys: Tensor) -> Tensor:
        """W k, (…, d_k) -> (…, d_q)."""
        return self.key(keys)  # type: ignore[no-any-return]

    def forward(self, queries: Tensor, projected: Tensor) -> Tensor:
        """Queries (…, T, d_q) and projected keys (…, S, d_q) -> (…, T, S)."""
        return queries @ projected.transpose(-2, -1)


Score = AdditiveScore | DotScore | BilinearScore


def score_named(name: str, query_width: int, key_width: int) -> Score:
    """The score with this name; the inner width of the additive one is that of the keys."""
    if name not in SCORES:
        raise HeedfulError(f"there is no attention score {name!r}", remedy=f"the scores are {', '.join(SCORES)}")
    if name == "additive":
        return AdditiveScore(query_width, key_width, key_width)
    if name == "bilinear":
        return BilinearScore(query_width, key_width)
    if query_width != key_width:
        raise HeedfulError(
            f"a {name} score of queries {query_width} wide and keys {key_width} wide is not defined",
            remedy="use the bilinear or the additive score",
        )
    return DotScore(scaled=name == "scaled-dot")


@dataclass(frozen=True)
class KeyedMemory:
    """What B sentences offer to queries: values, their projected keys, and which of them are no padding."""

    values: Tensor  # (B, S, D)
    keys: Tensor  # (B, S, d)
    visible: Tensor | None  # (B, S); None where nothing is padding

    def keep(self, sentences: Tensor) -> KeyedMemory:
        """The memory of these sentences."""
        visible = None if self.visible is None else self.visible.index_select(0, sentences)
        return KeyedMemory(self.values.index_select(0, sentences), self.keys.index_select(0, sentences), visible)

    def first(self, count: int) -> KeyedMemory:
        """That of the first so many sentences, not copied."""
        return KeyedMemory(
            self.values[:count], self.keys[:count], None if self.visible is None else self.visible[:count]
        )


class MemoryQueries(nn.Module):
    """M queries a state over one memory, their results side by side.

    A single query is the state itself; several are linear functions of it.
    """

    def __init__(self, state_width: int, memory_width: int, score: str, queries: int = 1) -> None:
        super().__init__()
        self.queries = queries
        self.asked = nn.Linear(state_width, queries * memory_width, bias=False) if queries > 1 else None
        self.score = score_named(score, memory_width if queries > 1 else state_width, memory_width)

    def scores(self, states: Tensor, memory: KeyedMemory) -> Tensor:
        """The scores of the queries of states (B, T, D), (B, M, T, S); -inf where there is padding."""
        found: Tensor = self.score(self._queries_of(states), memory.keys)  # (B, M·T, S)
        found = found.reshape(len(found), self.queries, -1, found.shape[-1])
        return found if memory.visible is None else found.masked_fill(~memory.visible[:, None, None], -math.inf)

    def mix(self, weights: Tensor, memory: KeyedMemory) -> Tensor:
        """The values weighted by (B, M, T, S), the M results side by side: (B, T, M·D)."""
        mixed = weights.flatten(1, 2) @ memory.values  # (B, M·T, D)
        return mixed.reshape(len(mixed), self.queries, -1, mixed.shape[-1]).transpose(1, 2).flatten(2)

    def _queries_of(self, states: Tensor) -> Tensor:
        """All queries of a sentence as one dimension, so that its memory is gone through once: (B, M·T, D)."""
        if self.asked is None:
            return states
        queries: Tensor = self.asked(states).unflatten(-1, (self.queries, -1))  # (B, T, M, D)
        return queries.transpose(1, 2).flatten(1, 2)
