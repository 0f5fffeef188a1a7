"""A small encoder over the tiny vocabulary, and a few steps of training with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from heedful.models.bert import Bert, BertConfig, initialise
from heedful.tasks.finetuning import TaskObjective
from heedful.tasks.items import micro_batch_of
from heedful.tasks.task import Task
from heedful.text.tokenizer import Tokenizer


class Trained(NamedTuple):
    """A model, and its mean loss before and after training."""

    model: nn.Module
    before: float
    after: float


@pytest.fixture
def small_model(tiny_tokenizer: Tokenizer) -> Callable[[Task[Any]], nn.Module]:
    """The model of a task over an encoder of two layers, random but always the same, without dropout."""
    config = BertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )

    def make(task: Task[Any]) -> nn.Module:
        torch.manual_seed(0)
        model = task.model(Bert(config))
        initialise(model, config, seed=0)
        return model.eval()

    return make


@pytest.fixture
def trained(
    small_model: Callable[[Task[Any]], nn.Module], tiny_tokenizer: Tokenizer
) -> Callable[[Task[Any], Sequence[Any]], Trained]:
    """Train a task's small model on examples, all of them in every step."""

    def train(task: Task[Any], examples: Sequence[Any], steps: int = 40) -> Trained:
        model, loss_of = small_model(task), TaskObjective(task)
        micro_batch = micro_batch_of(task.encode(examples, tiny_tokenizer), "loss")
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
        losses = []
        for _ in range(steps):
            optimiser.zero_grad()
            loss = loss_of(model, micro_batch)["loss"] / micro_batch.weight
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        return Trained(model, losses[0], losses[-1])

    return train
