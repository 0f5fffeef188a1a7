"""Relative attention against its formula, written out token by token."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.data.batching import flat_batch
from heedful.nn.permutation import sights
from heedful.nn.relative_attention import RelativeAttention, distance_sinusoids

WIDTH, HEADS = 8, 2
LENGTHS = (5, 5, 3, 1)


@pytest.fixture
def attention() -> RelativeAttention:
    module = RelativeAttention(WIDTH, HEADS, dropout=0.0)
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.5, generator=rng)
    return module


def written_out(
    attention: RelativeAttention, query: Tensor, place: int, keys: Tensor, elsewhere: list[bool], visible: list[bool]
) -> Tensor:
    """What one query (D,) at a place among the keys (S, D) sees, head by head, (H · d)."""
    seen = []
    for head in range(HEADS):
        q, key, value, r = (weight[:, head] for weight in (attention.q, attention.k, attention.v, attention.r))
        u, v, w = (bias[head] for bias in (attention.r_w_bias, attention.r_r_bias, attention.r_s_bias))
        scores = []
        for j, other in enumerate(keys):
            distance = distance_sinusoids(place - j, 1, WIDTH)[0] @ r
            segment = attention.seg_embed[int(elsewhere[j]), head]
            score = (query @ q + u) @ (other @ key) + (query @ q + v) @ distance + (query @ q + w) @ segment
            scores.append(score / (WIDTH // HEADS) ** 0.5 if visible[j] else torch.tensor(-torch.inf))
        weights = torch.stack(scores).softmax(0) if any(visible) else torch.zeros(len(keys))
        seen.append(weights @ (keys @ value))
    return torch.cat(seen)


@pytest.mark.parametrize("past", [0, 4])
@torch.no_grad()
def test_both_streams_are_the_formula(attention: RelativeAttention, past: int) -> None:
    rng = torch.Generator().manual_seed(1)
    segments = [torch.randint(2, (n,), generator=rng).tolist() for n in LENGTHS]
    batch = flat_batch([[1] * n for n in LENGTHS], segments)
    x = torch.randn(sum(LENGTHS), WIDTH, generator=rng)
    memory = torch.randn(len(LENGTHS), past, WIDTH, generator=rng) if past else None
    order = torch.tensor([2, -1, 0, -1, 1, *(0, 1, -1, 2, 3), *(0, 1, 2), -1])
    targets = torch.tensor([0, 2, 5, 6, 8, 10, 12])  # of unlike number, and the first of the third sees nothing
    content, query = sights(batch, past, order, targets)
    kept = attention.remember(x, batch.groups, memory)
    distances = distance_sinusoids(past + 4, past + 9, WIDTH)
    g = torch.randn(len(targets), WIDTH, generator=rng)
    found = attention(x, kept, distances, content)
    asked = attention(g, kept, distances, query)
    starts = [0, 5, 10, 13]
    for number, (start, length) in enumerate(zip(starts, LENGTHS, strict=True)):
        own = x[start : start + length]
        keys = own if memory is None else torch.cat([memory[number], own])
        turns = order[start : start + length].tolist()
        for place in range(length):
            unlike = [segments[number][place] != other for other in [*[0] * past, *segments[number]]]
            before = [True] * past + [turn < max(turns[place], 0) for turn in turns]
            itself = [seen or j == past + place for j, seen in enumerate(before)]
            expected = written_out(attention, x[start + place], past + place, keys, unlike, itself)
            torch.testing.assert_close(found[start + place], expected, rtol=1e-5, atol=1e-5)
            if start + place in targets:
                row = targets.tolist().index(start + place)
                expected = written_out(attention, g[row], past + place, keys, unlike, before)
                torch.testing.assert_close(asked[row], expected, rtol=1e-5, atol=1e-5)


def test_a_query_that_sees_nothing_has_zeros_and_harmless_gradients(attention: RelativeAttention) -> None:
    batch = flat_batch([[1, 1, 1]])
    x = torch.randn(3, WIDTH, requires_grad=True)
    _, query = sights(batch, 0, torch.tensor([0, 1, 2]), torch.tensor([0, 2]))
    kept = attention.remember(x, batch.groups)
    seen = attention(torch.randn(2, WIDTH), kept, distance_sinusoids(2, 5, WIDTH), query)
    assert not seen[0].any() and seen[1].any()
    seen.sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters() if parameter.grad is not None)
