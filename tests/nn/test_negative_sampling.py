"""The moves of word2vec are those of the written-out sums over pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.nn.negative_sampling import BLOCK, Architecture, Sampling, Windows, update

V, D, W, DRAWN, RATE = 40, 6, 3, 5, 0.1


def tables(seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(V, D, generator=rng), torch.randn(V, D, generator=rng)


def some_windows(words: int, seed: int = 0) -> Windows:
    """Words in sentences of about 7, in whole blocks, with what fills them up."""
    rng = np.random.default_rng(seed)
    blocks = -(-words // BLOCK)
    fill = (W, blocks * BLOCK - words + W)
    ids, reach = rng.integers(0, V, words), rng.integers(1, W + 1, words)
    sentences = np.cumsum(rng.random(words) < 0.15)
    padded = [torch.from_numpy(np.pad(x, fill)) for x in (ids, sentences, reach)]
    return Windows(*padded, torch.from_numpy(rng.integers(0, V, (blocks, DRAWN))))


def window_of(windows: Windows, i: int) -> list[int]:
    """The places of the words in the window of the word at i."""
    reach, sentences = int(windows.reach[i]), windows.sentences
    near = [j for j in range(i - reach, i + reach + 1) if j != i and windows.reach[j] > 0]
    return [j for j in near if sentences[j] == sentences[i]]


def written_out(v: Tensor, o: Tensor, windows: Windows, how: Sampling) -> tuple[Tensor, int]:
    """The loss as a sum over words, pairs and negatives, with each negative of a block counted by its share."""
    loss, pairs, words = torch.zeros(()), 0, windows.words.tolist()
    for i in range(W, len(words) - W):
        if not windows.reach[i]:
            continue
        share = how.negatives / DRAWN
        if how.architecture == "cbow":
            near = window_of(windows, i)
            if near:
                h = torch.stack([v[words[j]] for j in near]).mean(0)
                drawn = windows.negatives[(i - W) // BLOCK]
                loss = loss - F.logsigmoid(o[words[i]] @ h) - share * F.logsigmoid(-(o[drawn] @ h)).sum()
                pairs += 1
            continue
        for j in window_of(windows, i):  # the word at j is the input, in the block of which negatives were drawn
            drawn = windows.negatives[(j - W) // BLOCK]
            x = v[words[j]]
            loss = loss - F.logsigmoid(o[words[i]] @ x) - share * F.logsigmoid(-(o[drawn] @ x)).sum()
            pairs += 1
    return loss, pairs


@pytest.mark.parametrize("architecture", ["skip-gram", "cbow"])
@pytest.mark.parametrize("words", [1, 20, BLOCK, 3 * BLOCK + 5])
def test_loss_and_moves_are_those_of_the_formula(architecture: Architecture, words: int) -> None:
    windows, how, (v, o) = some_windows(words), Sampling(architecture, W, 4), tables()
    expected, pairs = written_out(v.requires_grad_(), o.requires_grad_(), windows, how)
    moved_v, moved_o = v.detach().clone(), o.detach().clone()
    loss = update(moved_v, moved_o, windows, how, RATE)
    assert loss.pairs == pairs and loss.total == pytest.approx(float(expected.detach()), rel=1e-4, abs=1e-5)
    if not pairs:
        assert torch.equal(moved_v, v) and torch.equal(moved_o, o)
        return
    expected.backward()
    torch.testing.assert_close(moved_o, o.detach() - RATE * o.grad, atol=1e-4, rtol=1e-4)
    if architecture == "skip-gram":
        torch.testing.assert_close(moved_v, v.detach() - RATE * v.grad, atol=1e-4, rtol=1e-4)


def test_cbow_adds_the_gradient_of_the_mean_whole_as_the_original_does() -> None:
    windows = some_windows(12)
    whole = Windows(windows.words, torch.zeros_like(windows.sentences), windows.reach, windows.negatives)
    how, (v, o) = Sampling("cbow", W, 4), tables()
    moved, _ = v.clone(), update(v_copy := v.clone(), o.clone(), whole, how, RATE)
    expected, words = moved, whole.words.tolist()
    for i in range(W, W + 12):
        near = window_of(whole, i)
        h = torch.stack([v[words[j]] for j in near]).mean(0).requires_grad_()
        drawn = whole.negatives[0]
        loss = -F.logsigmoid(o[words[i]] @ h) - 4 / DRAWN * F.logsigmoid(-(o[drawn] @ h)).sum()
        loss.backward()
        for j in near:
            expected[words[j]] -= RATE * h.grad
    torch.testing.assert_close(v_copy, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["skip-gram", "cbow"])
def test_the_loss_falls(architecture: Architecture) -> None:
    windows, how, (v, o) = some_windows(200), Sampling(architecture, W, 5), tables()
    losses = [update(v, o, windows, how, 0.02).total for _ in range(30)]
    assert losses[-1] < 0.8 * losses[0]


def test_parts_are_the_whole() -> None:
    windows, how, (v, o) = some_windows(3 * BLOCK), Sampling("skip-gram", W, 5), tables()
    whole = update(v, o, windows, how, 0.0)
    parts = [update(v, o, windows.part(i, i + 1, W), how, 0.0) for i in range(3)]
    assert sum(part.total for part in parts) == pytest.approx(whole.total, rel=1e-5)
    assert sum(part.pairs for part in parts) == whole.pairs
