"""Attention scores against their formulas, pair by pair, and several queries over one memory."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heedful.errors import HeedfulError
from heedful.nn.attention import attend
from heedful.nn.scores import (
    SCORES,
    AdditiveScore,
    BilinearScore,
    DotScore,
    KeyedMemory,
    MemoryQueries,
    Score,
    score_named,
)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def written_out(score: Score, query: Tensor, key: Tensor) -> Tensor:
    """The formula for one query and one key."""
    if isinstance(score, AdditiveScore):
        return score.v.weight[0] @ torch.tanh(score.query.weight @ query + score.key.weight @ key)
    if isinstance(score, BilinearScore):
        return query @ score.key.weight @ key
    product = sum(q * k for q, k in zip(query, key, strict=True))
    assert isinstance(product, Tensor)
    return product / math.sqrt(len(key)) if score.scaled else product


@torch.no_grad()
@pytest.mark.parametrize("name", SCORES)
def test_a_score_is_its_formula(name: str) -> None:
    score = score_named(name, 5, 5)
    queries, keys = normal(2, 3, 5), normal(2, 4, 5, seed=1)
    found = score(queries, score.project(keys))
    assert found.shape == (2, 3, 4)
    for b in range(2):
        for t in range(3):
            for s in range(4):
                torch.testing.assert_close(found[b, t, s], written_out(score, queries[b, t], keys[b, s]))


@torch.no_grad()
@pytest.mark.parametrize("name", ["additive", "bilinear"])
def test_queries_and_keys_may_differ_in_width(name: str) -> None:
    score = score_named(name, 3, 5)
    queries, keys = normal(2, 3), normal(4, 5, seed=1)
    found = score(queries, score.project(keys))
    torch.testing.assert_close(found[1, 2], written_out(score, queries[1], keys[2]))


def test_what_is_not_defined_is_refused() -> None:
    with pytest.raises(HeedfulError, match="no attention score 'cosine'"):
        score_named("cosine", 4, 4)
    for name in ("dot", "scaled-dot"):
        with pytest.raises(HeedfulError, match="3 wide and keys 5 wide"):
            score_named(name, 3, 5)


def memory_of(queries: MemoryQueries, values: Tensor, visible: Tensor | None = None) -> KeyedMemory:
    return KeyedMemory(values, queries.score.project(values), visible)


@torch.no_grad()
def test_a_scaled_dot_query_is_the_attention_of_the_transformer() -> None:
    queries = MemoryQueries(5, 5, "scaled-dot")
    states, values = normal(2, 3, 5), normal(2, 4, 5, seed=1)
    visible = torch.tensor([[True] * 4, [True, True, False, False]])
    memory = memory_of(queries, values, visible)
    weights = queries.scores(states, memory).softmax(-1)
    mixed, expected = attend(states, values, values, visible[:, None])
    torch.testing.assert_close(weights[:, 0], expected)
    torch.testing.assert_close(queries.mix(weights, memory), mixed)
    assert isinstance(queries.score, DotScore) and not list(queries.parameters())


@torch.no_grad()
@pytest.mark.parametrize("name", SCORES)
def test_several_queries_lie_side_by_side(name: str) -> None:
    queries = MemoryQueries(6, 5, name, queries=3)
    assert queries.asked is not None
    states, values = normal(2, 4, 6), normal(2, 7, 5, seed=1)
    memory = memory_of(queries, values)
    weights = queries.scores(states, memory).softmax(-1)
    found = queries.mix(weights, memory)
    assert weights.shape == (2, 3, 4, 7) and found.shape == (2, 4, 15)
    for number in range(3):
        asked = states @ queries.asked.weight[5 * number : 5 * number + 5].T
        alone = queries.score(asked, memory.keys).softmax(-1)
        torch.testing.assert_close(weights[:, number], alone)
        torch.testing.assert_close(found[..., 5 * number : 5 * number + 5], alone @ values)


@torch.no_grad()
def test_padding_has_no_weight_whatever_stands_there() -> None:
    queries = MemoryQueries(5, 5, "additive", queries=2)
    states, values = normal(2, 3, 5), normal(2, 4, 5, seed=1)
    visible = torch.tensor([[True, True, True, False], [True, False, False, False]])
    weights = queries.scores(states, memory_of(queries, values, visible)).softmax(-1)
    assert (weights[0, ..., 3] == 0).all() and (weights[1, ..., 0] == 1).all()
    changed = values.masked_fill(~visible[..., None], 9.0)
    torch.testing.assert_close(queries.scores(states, memory_of(queries, changed, visible)).softmax(-1), weights)


@pytest.mark.parametrize("masked", [True, False])
def test_the_memory_of_some_sentences(masked: bool) -> None:
    visible = torch.ones(3, 4, dtype=torch.bool).tril() if masked else None
    memory = KeyedMemory(normal(3, 4, 5), normal(3, 4, 2), visible)
    for part, rows in ((memory.keep(torch.tensor([2, 0])), [2, 0]), (memory.first(2), [0, 1])):
        assert torch.equal(part.values, memory.values[rows]) and torch.equal(part.keys, memory.keys[rows])
        assert (part.visible is None) == (not masked)
        assert visible is None or torch.equal(part.visible, visible[rows])  # type: ignore[arg-type]
