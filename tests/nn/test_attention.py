"""The written-out attention: its masks, its zeros, and torch's own function as the judge."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from heedful.data.batching import groups_of
from heedful.nn.attention import (
    AT_ONCE,
    MultiHeadSelfAttention,
    added_to_scores,
    attend,
    causal_visible,
    mix,
    padding_visible,
)


def random_qkv(*shape: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(*shape, generator=rng) for _ in range(3))
    return query, key, value


@pytest.mark.parametrize("visible", [None, causal_visible(7), padding_visible([7, 3])])
def test_equals_torch(visible: torch.Tensor | None) -> None:
    query, key, value = random_qkv(2, 3, 7, 5)
    mixed, weights = attend(query, key, value, visible)
    torch.testing.assert_close(mixed, F.scaled_dot_product_attention(query, key, value, attn_mask=visible))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 7))
    if visible is not None:
        assert not weights[~visible.expand_as(weights)].any()


@pytest.mark.parametrize("places", [1, 7, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1])
def test_a_mask_of_numbers_is_added_over_few_places_and_over_many(places: int) -> None:
    query, key, value = random_qkv(2, 3, places, 5)
    visible = padding_visible([places, max(1, places - 2)])
    expected = attend(query, key, value, visible)
    torch.testing.assert_close(attend(query, key, value, added_to_scores(visible, query)), expected)
    torch.testing.assert_close(attend(query, key, value), attend(query, key, value, torch.ones_like(visible)))


def test_keys_and_values_may_have_lengths_and_widths_of_their_own() -> None:
    query, key = torch.randn(4, 6), torch.randn(9, 6)
    mixed, weights = attend(query, key, torch.randn(9, 2))
    assert mixed.shape == (4, 2) and weights.shape == (4, 9)


def test_a_row_that_sees_nothing_gives_zeros_and_finite_gradients() -> None:
    query, key, value = (x.requires_grad_() for x in random_qkv(4, 5))
    visible = torch.ones(4, 4, dtype=torch.bool)
    visible[2] = False
    mixed, weights = attend(query, key, value, visible)
    assert not mixed[2].any() and not weights[2].any()
    assert mixed[[0, 1, 3]].all()
    mixed.sum().backward()
    for tensor in (query, key, value):
        assert tensor.grad is not None and tensor.grad.isfinite().all()


def test_masks_are_true_where_one_may_look() -> None:
    assert padding_visible([2, 3]).tolist() == [[[[True, True, False]]], [[[True, True, True]]]]
    assert causal_visible(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_the_future_does_not_reach_the_past() -> None:
    query, key, value = random_qkv(6, 4)
    before, _ = attend(query, key, value, causal_visible(6))
    key[4:], value[4:] = 7.0, 7.0
    after, _ = attend(query, key, value, causal_visible(6))
    assert torch.equal(before[:4], after[:4]) and not torch.equal(before[4:], after[4:])


@pytest.mark.processor
@pytest.mark.parametrize("visible", [None, causal_visible(7)])
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(("kind", "error"), [(torch.float32, 1e-6), (torch.bfloat16, 0.03)])
def test_the_fast_way_is_the_written_one(
    visible: torch.Tensor | None, by_name: bool, kind: torch.dtype, error: float
) -> None:
    found, right = ([x.clone().requires_grad_() for x in random_qkv(3, 2, 7, 8)] for _ in range(2))
    said = {"causal": visible is not None} if by_name else {"visible": visible}
    rounded = mix(*(x.to(kind) for x in found), **said)
    exact = attend(*right, visible)[0]
    assert rounded.dtype == kind
    torch.testing.assert_close(rounded.float(), exact, atol=error, rtol=error)
    rounded.float().square().sum().backward()
    exact.square().sum().backward()
    for mine, own in zip(found, right, strict=True):
        torch.testing.assert_close(mine.grad, own.grad, atol=error * 3, rtol=error * 3)


def test_a_causal_layer_lets_no_future_through_with_or_without_dropout() -> None:
    x, groups = torch.randn(10, 12), groups_of([5, 5])
    for dropout in (0.0, 0.4):
        layer = MultiHeadSelfAttention(12, 3, dropout, causal=True).train()
        changed = x.clone()
        changed[3:5] += 1.0
        outputs = []
        for rows in (x, changed):
            torch.manual_seed(0)
            outputs.append(layer(rows, groups))
        before, after = outputs
        assert torch.equal(before[:3], after[:3]) and torch.equal(before[5:], after[5:])
        assert not torch.equal(before[3:5], after[3:5])
        assert not torch.stack(layer.weights(x, groups)).triu(1).any()
