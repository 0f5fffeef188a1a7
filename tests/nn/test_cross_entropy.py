"""The cross-entropy that works in place has torch's value and torch's gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from heedful.nn import cross_entropy
from heedful.nn.cross_entropy import projected_cross_entropy, summed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("at_once", [1, 400, 1 << 20])
def test_value_and_gradient_are_torchs(monkeypatch: pytest.MonkeyPatch, smoothing: float, at_once: int) -> None:
    monkeypatch.setattr(cross_entropy, "BYTES_AT_ONCE", at_once)
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(23, 8, generator=rng, requires_grad=True)
    weight = torch.randn(40, 8, generator=rng, requires_grad=True)
    labels = torch.randint(40, (23,), generator=rng)
    found = []
    for loss_of in (
        lambda logits: summed_cross_entropy(logits, labels, smoothing),
        lambda logits: F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing),
    ):
        loss = loss_of(F.linear(states, weight) * 5)
        gradients = torch.autograd.grad(loss / 7, [states, weight])
        found.append((loss.detach(), *gradients))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.processor
def test_of_bfloat16_logits_only_the_gradient_is_rounded() -> None:
    rng = torch.Generator().manual_seed(0)
    logits, labels = (torch.randn(9, 50, generator=rng) * 5).bfloat16(), torch.randint(50, (9,), generator=rng)
    exact = logits.float().requires_grad_()
    wanted = F.cross_entropy(exact, labels, reduction="sum", label_smoothing=0.1)
    rounded = logits.clone().requires_grad_()
    loss = summed_cross_entropy(rounded * 1, labels, 0.1)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-6)
    (gradient,), (right,) = torch.autograd.grad(loss, [rounded]), torch.autograd.grad(wanted, [exact])
    torch.testing.assert_close(gradient, right.bfloat16(), rtol=0.01, atol=1e-6)


def test_large_logits_do_not_overflow() -> None:
    logits = (torch.tensor([[1000.0, -1000.0, 999.0]]) * torch.ones(1, requires_grad=True)).clone()
    assert summed_cross_entropy(logits, torch.tensor([0])).item() == pytest.approx(0.313262, abs=1e-4)


def test_without_a_gradient_the_logits_stay_as_they_are() -> None:
    logits, labels = torch.randn(4, 6), torch.tensor([0, 5, 2, 2])
    before = logits.clone()
    assert torch.equal(summed_cross_entropy(logits, labels), F.cross_entropy(logits, labels, reduction="sum"))
    assert torch.equal(logits, before)


def test_logits_that_are_no_numbers_give_a_loss_that_is_none() -> None:
    logits = torch.full((2, 3), float("nan"), requires_grad=True).clone()
    assert not torch.isfinite(summed_cross_entropy(logits, torch.tensor([0, 1])))


def test_a_second_gradient_is_refused() -> None:
    loss = summed_cross_entropy(torch.randn(2, 3, requires_grad=True) * 1, torch.tensor([0, 1]))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("at_once", [1, 3 * 40 * 4, 1 << 20])
def test_the_projected_one_is_the_same_without_all_logits(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(cross_entropy, "BYTES_OF_LOGITS", at_once)
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(23, 8, generator=rng, requires_grad=True)
    matrix = torch.randn(40, 8, generator=rng, requires_grad=True)
    labels = torch.randint(40, (23,), generator=rng)
    ours = projected_cross_entropy(states, matrix, labels)
    theirs = F.cross_entropy(F.linear(states, matrix), labels, reduction="sum")
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    for own, their in zip(
        torch.autograd.grad(ours / 7, [states, matrix]), torch.autograd.grad(theirs / 7, [states, matrix]), strict=True
    ):
        torch.testing.assert_close(own, their, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(projected_cross_entropy(states, matrix, labels), theirs.detach())


@pytest.mark.processor
def test_the_projected_one_in_bfloat16_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = torch.Generator().manual_seed(0)
    states = torch.randn(23, 8, generator=rng, requires_grad=True)
    matrix = torch.randn(40, 8, generator=rng, requires_grad=True)
    labels = torch.randint(40, (23,), generator=rng)
    theirs = F.cross_entropy(F.linear(states, matrix), labels, reduction="sum")
    wanted = torch.autograd.grad(theirs, [states, matrix])
    with torch.autocast("cpu", torch.bfloat16):
        ours = projected_cross_entropy(states, matrix, labels)
    assert ours.dtype == torch.float32 and float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=0.01)
    for own, their in zip(torch.autograd.grad(ours, [states, matrix]), wanted, strict=True):
        assert own.dtype == torch.float32
        torch.testing.assert_close(own, their, rtol=0.05, atol=0.1)
