"""Mixed precision in bfloat16: other factors, nearly the same step, and everything that is kept stays in float32."""

from __future__ import annotations

import copy
from types import ModuleType

import pytest
import torch
from torch import nn

from heedful.data.batching import flat_batch
from heedful.models.bert import Bert, BertConfig, initialise
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.nn.dropout import drop
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.precision import in_precision
from heedful.training.step import Stepper
from heedful.training.timing import Clock
from heedful.training.training_config import TrainingConfig

pytestmark = pytest.mark.processor


def test_a_step_in_bfloat16_is_nearly_the_one_in_float32(trainee: ModuleType) -> None:
    after = {}
    for precision in ("float32", "bfloat16", "bfloat16"):
        model = trainee.Net(32, 0.0)
        config = TrainingConfig(steps=3, learning_rate=1e-2, precision=precision)  # type: ignore[arg-type]
        stepper = Stepper(model, trainee.objective, Optimiser(model, config), config, World(), Clock(), lambda: None)
        losses = [stepper.take(n, trainee.RandomRows().step(n, 0, 1, 1)).losses["sign"] for n in range(3)]
        assert all(p.dtype == torch.float32 for p in model.parameters())
        again = after.setdefault(precision, losses)
        assert again == losses, "not the same bits when done again"
    assert after["bfloat16"] != after["float32"]
    assert after["bfloat16"] == pytest.approx(after["float32"], rel=0.02)


def test_gradients_of_bert_point_the_same_way() -> None:
    config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    model = Bert(config)
    initialise(model, config, 0)
    batch = flat_batch([[5, 6, 7, 8], [9, 10, 11], [12, 13]])
    goal = torch.randn(9, 32, generator=torch.Generator().manual_seed(0))

    def objective(model: nn.Module, micro_batch: object) -> dict[str, torch.Tensor]:
        return {"distance": (model(micro_batch).last - goal).square().sum()}

    found = []
    for precision in ("float32", "bfloat16"):
        own = copy.deepcopy(model).eval()
        in_precision(objective, precision)(own, batch)["distance"].backward()  # type: ignore[arg-type, no-untyped-call]
        found.append(torch.cat([p.grad.flatten() for p in own.parameters() if p.grad is not None]))
    assert found[1].dtype == torch.float32
    assert float(torch.cosine_similarity(found[0].double(), found[1].double(), dim=0)) > 0.999
    assert not torch.equal(*found)


def test_the_loss_is_added_up_in_float32() -> None:
    logits = torch.randn(40, 3000, generator=torch.Generator().manual_seed(0)).bfloat16()
    labels = torch.arange(40)
    expected = nn.functional.cross_entropy(logits.double(), labels, reduction="sum")
    loss = summed_cross_entropy(logits.requires_grad_(), labels)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)


def test_dropout_does_not_round_its_factor() -> None:
    kept = drop(torch.full((1000,), 0.9).bfloat16(), 0.1)
    assert set(kept.tolist()) == {0.0, 1.0}  # 0.9 · 1/0.9, where 1/0.9 alone would round to 1.109 and give 0.996
