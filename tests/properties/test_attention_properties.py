"""The padding-free path is the written-out formula, whatever the lengths, heads and masks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from heedful.data.batching import groups_of
from heedful.nn.attention import MultiHeadSelfAttention, attend, causal_visible, padding_visible

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def written_out(
    layer: MultiHeadSelfAttention, x: torch.Tensor, lengths: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Padded sequences, three separate projections, one padding mask: results (N, D) and maps (B, H, T, T)."""
    padded = pad_sequence(list(x.split(lengths)), batch_first=True)
    projections = zip(layer.qkv.weight.chunk(3), layer.qkv.bias.chunk(3), strict=True)
    heads = [F.linear(padded, w, b).unflatten(-1, (layer.heads, -1)).transpose(1, 2) for w, b in projections]
    visible = padding_visible(lengths)
    mixed, weights = attend(*heads, visible & causal_visible(max(lengths)) if layer.causal else visible)
    joined = layer.out(mixed.transpose(1, 2).flatten(-2))
    return torch.cat([rows[:n] for rows, n in zip(joined, lengths, strict=True)]), weights


@settings(max_examples=40, deadline=None)
@given(LENGTHS, st.sampled_from([1, 2, 3, 4]), st.sampled_from([1, 2, 5, 8]), st.integers(0, 2**16), st.booleans())
def test_flat_attention_is_the_padded_formula(
    lengths: list[int], heads: int, size: int, seed: int, causal: bool
) -> None:
    torch.manual_seed(seed)
    layer = MultiHeadSelfAttention(heads * size, heads, dropout=0.0, causal=causal).eval()
    x = torch.randn(sum(lengths), heads * size)
    expected, maps = written_out(layer, x, lengths)
    torch.testing.assert_close(layer(x, groups_of(lengths)), expected, rtol=1e-5, atol=1e-5)
    for one, padded, n in zip(layer.weights(x, groups_of(lengths)), maps, lengths, strict=True):
        torch.testing.assert_close(one, padded[:, :n, :n], rtol=1e-5, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7), st.floats(0, 1), st.integers(0, 2**16))
def test_any_mask_gives_what_torch_gives_and_zeros_where_torch_has_nothing_to_say(
    heads: int, queries: int, keys: int, share: float, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    query = torch.randn(heads, queries, 4, generator=rng)
    key, value = torch.randn(2, heads, keys, 4, generator=rng)
    visible = torch.rand(queries, keys, generator=rng) < share
    mixed, weights = attend(query, key, value, visible)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=visible).nan_to_num(0.0)
    torch.testing.assert_close(mixed, expected, rtol=1e-5, atol=1e-5)
    assert not weights[:, ~visible].any()
    blind = ~visible.any(-1)
    assert not mixed[:, blind].any()
    torch.testing.assert_close(weights.sum(-1), (~blind).float().expand(heads, -1))
