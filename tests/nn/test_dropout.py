"""Dropout: the share it drops, the mean it keeps, its gradient, and that it is the generator's."""

from __future__ import annotations

import pytest
import torch

from heedful.nn.dropout import Dropout, drop


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(1001, 999), (7, 11, 13, 101)])
def test_the_share_dropped_and_the_mean(p: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.ones(shape)
    dropped = drop(x, p)
    count = x.numel()
    deviation = (p * (1 - p) / count) ** 0.5
    assert float((dropped == 0).double().mean()) == pytest.approx(p, abs=4.5 * deviation)
    assert torch.equal(dropped[dropped != 0].unique(), torch.tensor([1 / (1 - p)]))


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(1)
    gone = (drop(torch.ones(400_000), 0.1) == 0).double()
    for distance in (1, 2, 3, 4, 5):
        both = float((gone[:-distance] * gone[distance:]).mean())
        assert both == pytest.approx(0.01, abs=0.001)


def test_the_gradient_goes_where_the_value_went() -> None:
    torch.manual_seed(2)
    x = torch.randn(50, 30, requires_grad=True)
    out = drop(x, 0.3)
    out.sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad * x, out)


def test_the_generator_decides() -> None:
    x = torch.ones(1000)
    torch.manual_seed(3)
    first, second = drop(x, 0.2), drop(x, 0.2)
    torch.manual_seed(3)
    assert torch.equal(first, drop(x, 0.2))
    assert not torch.equal(first, second)


def test_nothing_is_dropped_outside_training() -> None:
    layer, x = Dropout(0.5), torch.ones(1000)
    assert not torch.equal(layer(x), x)
    assert layer.eval()(x) is x
    assert drop(x, 0.0) is x
    assert not drop(x, 1.0).any()
