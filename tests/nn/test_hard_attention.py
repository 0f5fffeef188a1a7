"""Soft and hard weights, and what is learned from draws, against the enumeration of all of them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heedful.nn.hard_attention import draw, hard, score_function_term, soft, straight_through

SCORES = torch.tensor([0.3, -0.8, 1.1, 0.2])
VALUES = torch.tensor([[1.0, -0.5], [-1.2, 0.4], [0.3, 0.9], [-0.7, -1.0]])
SAMPLES = 20_000


def losses_of(weights: Tensor) -> Tensor:
    """A loss that is no linear function of the weights."""
    return ((weights @ VALUES - 0.5) ** 2).sum(-1)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_soft_weights_are_the_softmax() -> None:
    scores = torch.stack([SCORES, SCORES.masked_fill(torch.tensor([False, True, False, True]), -math.inf)])
    weights = soft(scores)
    torch.testing.assert_close(weights[0], SCORES.exp() / SCORES.exp().sum())
    assert weights[1].tolist()[1::2] == [0, 0] and weights[1].sum() == pytest.approx(1)


def test_a_row_that_sees_nothing_gets_zeros_and_gives_no_gradient() -> None:
    scores = SCORES.repeat(2, 1).requires_grad_()
    hidden = torch.tensor([[False], [True]])
    weights = soft(scores.masked_fill(hidden, -math.inf))
    assert weights[1].tolist() == [0] * 4
    losses_of(weights).sum().backward()
    assert scores.grad is not None and scores.grad[0].any() and not scores.grad[1].any()


def test_hard_weights_are_one_at_the_first_of_the_highest_scores() -> None:
    scores = torch.tensor([[0.0, 2.0, 2.0], [-5.0, -math.inf, -math.inf]])
    assert hard(scores).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_places_are_drawn_as_often_as_they_are_likely() -> None:
    scores = SCORES.clone()
    scores[1] = -math.inf
    drawn = draw(scores.expand(SAMPLES, -1), generator())
    chances = scores.softmax(-1)
    errors = (chances * (1 - chances) / SAMPLES).sqrt()
    assert (drawn.weights.sum(-1) == 1).all() and not drawn.weights[:, 1].any()
    assert ((drawn.weights.mean(0) - chances).abs() <= 3 * errors).all()
    torch.testing.assert_close(drawn.log_probability.exp(), drawn.weights @ chances)


def test_one_generator_draws_the_same_again() -> None:
    scores = torch.randn(2, 3, 5, generator=generator())
    once, again, other = (draw(scores, generator(seed)).weights for seed in (1, 1, 2))
    assert once.shape == scores.shape and torch.equal(once, again) and not torch.equal(once, other)
    assert torch.equal(straight_through(scores, generator(1)), once)


def by_enumeration() -> Tensor:
    """∇ Σ_a p(a) L(a)."""
    scores = SCORES.clone().requires_grad_()
    expected = (scores.softmax(-1) * losses_of(torch.eye(4))).sum()
    return torch.autograd.grad(expected, scores)[0]


def estimates(how: str) -> Tensor:
    """The gradient that each of many independent draws gives, (SAMPLES, S)."""
    scores = SCORES.repeat(SAMPLES, 1).requires_grad_()
    if how == "straight-through":
        total = losses_of(straight_through(scores, generator())).sum()
    else:
        drawn = draw(scores, generator())
        losses = losses_of(drawn.weights)
        total = losses.sum() + score_function_term(losses, drawn.log_probability, [1] * SAMPLES)
    return torch.autograd.grad(total, scores)[0]


def errors_off(found: Tensor) -> Tensor:
    """How many standard errors the mean of the estimates is off, for each score."""
    return (found.mean(0) - by_enumeration()).abs() / (found.std(0) / math.sqrt(len(found)))


def test_the_score_function_gradient_is_unbiased() -> None:
    assert (errors_off(estimates("score function")) <= 3).all()


def test_the_straight_through_gradient_is_biased() -> None:
    assert errors_off(estimates("straight-through")).max() > 30


def test_the_baseline_makes_the_estimate_less_noisy() -> None:
    scores = SCORES.repeat(SAMPLES, 1).requires_grad_()
    drawn = draw(scores, generator())
    plain = (losses_of(drawn.weights).detach() * drawn.log_probability).sum()
    without = torch.autograd.grad(plain, scores)[0]
    assert (errors_off(without) <= 3).all()
    assert (estimates("score function").std(0) < without.std(0)).all()


def test_a_draw_answers_for_its_own_step_and_those_after_it() -> None:
    losses = torch.tensor([1.0, 2.0, 4.0, 8.0, 3.0], requires_grad=True)
    chances = torch.zeros(5, requires_grad=True)
    term = score_function_term(losses, chances, [3, 2])
    assert term.item() == 0
    slopes, none = torch.autograd.grad(term, (chances, losses), allow_unused=True)
    # To go: 7 6 4 and 11 3. The other run loses 5.5 a step for the first run, 7 / 3 for the second.
    expected = [7 - 3 * 5.5, 6 - 2 * 5.5, 4 - 5.5, 11 - 2 * 7 / 3, 3 - 7 / 3]
    torch.testing.assert_close(slopes, torch.tensor(expected))
    assert none is None


def test_a_run_alone_has_nothing_to_compare_itself_with() -> None:
    chances = torch.zeros(2, requires_grad=True)
    score_function_term(torch.tensor([1.0, 2.0]), chances, [2]).backward()
    assert chances.grad is not None and chances.grad.tolist() == [3, 2]
