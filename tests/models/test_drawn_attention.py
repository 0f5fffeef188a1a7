"""Hard attention inside the recurrent model: its score-function gradient against the enumeration of all choices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models import rnn_decoder
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.nn.hard_attention import Drawn, score_function_term
from heedful.schema import Bitext

SOURCE, TARGET = [2, 5, 3], [2, 4, 3]
CONFIG = Seq2SeqConfig(
    6, 6, embedding_size=3, hidden_size=4, dropout=0.0, score="bilinear", attention="hard",
    hard_gradient="score-function",
)  # fmt: skip
SCORE = "decoder.queries.score.key.weight"
COPIES, BATCHES = 300, 40


def copies(count: int) -> Bitext:
    return Bitext(flat_batch([SOURCE] * count), flat_batch([TARGET[:-1]] * count), torch.tensor(TARGET[1:] * count))


def model_of(feeds: bool) -> Seq2Seq:
    model = Seq2Seq(replace(CONFIG, attention_feeds=feeds)).train()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 1.0, generator=rng)
    return model


def along(model: Seq2Seq, loss: Tensor) -> Tensor:
    """The gradient along five fixed directions, and along two within the matrix of the score."""
    slopes = dict(zip(dict(model.named_parameters()), torch.autograd.grad(loss, list(model.parameters())), strict=True))
    rng = torch.Generator().manual_seed(1)
    flat, score = torch.cat([slope.flatten() for slope in slopes.values()]), slopes[SCORE].flatten()
    directions = torch.randn(5, len(flat), generator=rng), torch.randn(2, len(score), generator=rng)
    return torch.cat([directions[0] @ flat, directions[1] @ score])


def word_losses(model: Seq2Seq, outputs: Tensor, bitext: Bitext) -> Tensor:
    return F.cross_entropy(model.logits(outputs), bitext.labels, reduction="none")


def by_enumeration(model: Seq2Seq, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """∇ Σ p(a_1, a_2) (L_1 + L_2) over all pairs of places."""
    expected, bitext = torch.zeros(()), copies(1)
    for path in product(range(len(SOURCE)), repeat=2):
        places: Iterator[int] = iter(path)

        def chosen(scores: Tensor, rng: object, places: Iterator[int] = places) -> Drawn:
            index = torch.tensor([next(places) for _ in range(scores.shape[2])]).view(1, 1, -1)
            logarithms = scores.log_softmax(-1).gather(-1, index[..., None])[..., 0]
            return Drawn(F.one_hot(index, scores.shape[-1]).float(), logarithms)

        monkeypatch.setattr(rnn_decoder, "draw", chosen)
        outputs, logarithms = model.drawn(bitext)
        assert next(places, None) is None
        expected = expected + logarithms.sum().exp() * word_losses(model, outputs, bitext).sum()
    monkeypatch.undo()
    return along(model, expected)


@pytest.mark.parametrize("feeds", [False, True])
def test_the_gradient_is_unbiased(feeds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, bitext, rng = model_of(feeds), copies(COPIES), torch.Generator().manual_seed(3)
    expected = by_enumeration(model, monkeypatch)
    found = []
    for _ in range(BATCHES):
        outputs, logarithms = model.drawn(bitext, rng=rng)
        losses = word_losses(model, outputs, bitext)
        term = score_function_term(losses, logarithms, bitext.target.lengths)
        found.append(along(model, (losses.sum() + term) / COPIES))
    estimates = torch.stack(found)
    errors = estimates.std(0) / BATCHES**0.5
    assert ((estimates.mean(0) - expected).abs() <= 3 * errors).all()
    assert (expected[-2:].abs() > 10 * errors[-2:]).any()  # there was something to be learned for the score


def test_without_the_term_nothing_is_learned_about_where_to_look() -> None:
    model, bitext = model_of(False), copies(2)
    losses = word_losses(model, model.drawn(bitext)[0], bitext)
    assert torch.autograd.grad(losses.sum(), model.get_parameter(SCORE), allow_unused=True) == (None,)


def test_the_losses_are_needed_to_learn() -> None:
    model = model_of(False)
    assert model.draws
    with pytest.raises(HeedfulError, match="needs the losses"):
        model(copies(1))
    assert not model.eval().draws and model(copies(1)).shape == (2, 3)
    assert not Seq2Seq(replace(CONFIG, attention="soft")).train().draws
    with pytest.raises(HeedfulError, match="draws nothing"):
        Seq2Seq(replace(CONFIG, decoder="3")).drawn(copies(1))
