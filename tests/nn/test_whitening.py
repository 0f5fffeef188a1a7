"""Whitened vectors have mean 0 and covariance 1; a narrower space keeps the directions that differ most."""

from __future__ import annotations

import torch

from heedful.nn.whitening import whitening


def correlated(count: int = 500, width: int = 6) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(count, width, generator=rng) @ torch.randn(width, width, generator=rng) + 3


def test_the_mean_is_0_and_the_covariance_1() -> None:
    x = correlated()
    made = whitening(x.split(77))
    y = made.layer(x)
    torch.testing.assert_close(y.mean(0), torch.zeros(6), atol=1e-4, rtol=0)
    torch.testing.assert_close(y.T.cov(correction=0), torch.eye(6), atol=1e-4, rtol=0)
    assert made.vectors == 500 and abs(made.kept - 1) < 1e-9


def test_the_first_directions_are_those_of_the_greatest_variance() -> None:
    x = correlated()
    made = whitening([x], 2)
    _, _, directions = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    scores = (x - x.mean(0)) @ directions[:2].T
    torch.testing.assert_close(made.layer(x).abs(), (scores / scores.std(0, correction=0)).abs(), atol=1e-3, rtol=1e-3)
    variances = torch.linalg.svdvals(x - x.mean(0)).square()
    assert abs(made.kept - float(variances[:2].sum() / variances.sum())) < 1e-5


def test_a_direction_in_which_nothing_differs_is_not_blown_up() -> None:
    x = correlated()
    x[:, 0] = 1.0
    assert whitening([x]).layer(x).abs().max() < 100
