"""The learning rate's course, and the optimiser against torch's own."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import pytest
import torch

from heedful.errors import HeedfulError
from heedful.training.optimiser import Optimiser, layerwise
from heedful.training.schedule import rate_factor, transformer_peak
from heedful.training.training_config import TrainingConfig

CONFIG = TrainingConfig(steps=100, warmup=10)


def test_linear_rises_to_one_and_reaches_zero_just_past_the_end() -> None:
    course = [rate_factor(step, CONFIG) for step in range(1, 102)]
    assert course[0] == 0.1 and course[9] == 1.0 and course[100] == 0.0
    falls = [a - b for a, b in pairwise(course[9:])]
    assert falls == pytest.approx([1 / 91] * 91)


def test_inverse_sqrt_is_the_formula_of_the_transformer() -> None:
    config = TrainingConfig(
        steps=20000, warmup=4000, schedule="inverse_sqrt", learning_rate=transformer_peak(512, 4000)
    )
    for step in (1, 17, 3999, 4000, 4001, 20000):
        paper = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert config.learning_rate * rate_factor(step, config) == pytest.approx(paper, rel=1e-12)


def test_cosine_is_half_way_down_in_the_middle_and_constant_stays() -> None:
    cosine = replace(CONFIG, schedule="cosine", warmup=0, steps=99)
    assert rate_factor(50, cosine) == pytest.approx(0.5)
    assert rate_factor(99, cosine) == pytest.approx(0.5 * (1 + math.cos(math.pi * 0.99)))
    assert rate_factor(90, replace(CONFIG, schedule="constant")) == 1.0


def test_warmup_below_one_is_a_share() -> None:
    assert TrainingConfig(steps=500, warmup=0.1).warmup_steps == 50
    assert TrainingConfig(steps=500, warmup=20).warmup_steps == 20


def test_it_moves_as_adamw_does_and_decays_matrices_alone(trainee: ModuleType) -> None:
    ours, theirs = trainee.Net(32, 0.0), trainee.Net(32, 0.0)
    config = TrainingConfig(steps=20, weight_decay=0.3, learning_rate=1e-2)
    optimiser = Optimiser(ours, config)
    matrices = [p for p in theirs.parameters() if p.ndim >= 2]
    others = [p for p in theirs.parameters() if p.ndim < 2]
    groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
    reference = torch.optim.AdamW(groups, lr=1e-2, weight_decay=0.3, eps=config.eps)
    rng = torch.Generator().manual_seed(0)
    for step in range(1, 21):
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            mine.grad = torch.randn(mine.shape, generator=rng)
            other.grad = mine.grad.clone()
        rate = optimiser.rate(step)
        optimiser.step(rate)
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_lower_layers_may_learn_more_slowly_and_frozen_ones_do_not(trainee: ModuleType) -> None:
    model = trainee.Net(8, 0.0)
    model.sign.requires_grad_(False)
    optimiser = Optimiser(model, CONFIG, layerwise(lambda name: 2 if name.startswith("fit") else 1, top=2, decay=0.5))
    scales = {name: group.scale for group in optimiser.groups for name in group.parameters}
    assert scales["fit.weight"] == 1.0 and scales["body.0.weight"] == 0.5
    assert not any(name.startswith("sign") for name in scales)


def test_impossible_settings_are_refused() -> None:
    for name, value in {"steps": 0, "accumulate": 0, "clip": -1.0, "patience": 2}.items():
        with pytest.raises(HeedfulError, match=name):
            TrainingConfig(**{"steps": 1, name: value})  # type: ignore[arg-type]
