"""The loss of a translation model is the formula's, however a batch is cut, and RNNs learn from what they draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from heedful.checkpoints.translation_folder import TranslationModel
from heedful.data.bitext.pairs import EncodedPairs, TokenRows
from heedful.data.bitext.source import BitextSource, micro_batches_of
from heedful.errors import HeedfulError
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.models.transformer import Transformer, TransformerConfig, initialise_transformer
from heedful.tasks.translate import Forcing, TranslationObjective, mean_loss
from heedful.training.precision import in_precision
from heedful.training.training_config import Precision

VOCABULARY = 20


def transformer(dropout: float = 0.0) -> Transformer:
    config = TransformerConfig(
        VOCABULARY, VOCABULARY, encoder_layers=1, decoder_layers=1, width=16, heads=2, inner=24, dropout=dropout
    )
    model = Transformer(config)
    initialise_transformer(model, 0)
    return model


def recurrent(**choices: Any) -> Seq2Seq:
    model = Seq2Seq(Seq2SeqConfig(VOCABULARY, VOCABULARY, embedding_size=8, hidden_size=12, dropout=0.0, **choices))
    initialise_seq2seq(model, 0)
    return model


def pairs(count: int = 12) -> EncodedPairs:
    """Copies: the target is the source."""
    rows = [[2, *(5 + (7 * n + i) % 15 for i in range(1 + n % 5)), 3] for n in range(count)]
    return EncodedPairs(TokenRows.of(rows), TokenRows.of(rows))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_formula(smoothing: float) -> None:
    model = transformer()
    (micro_batch,) = micro_batches_of(pairs(), 1000)
    bitext = micro_batch.bitext
    found = TranslationObjective(smoothing)(model, micro_batch)
    logs = model.logits(model(bitext)).double().log_softmax(-1)
    right = logs[torch.arange(len(bitext.labels)), bitext.labels]
    expected = -((1 - smoothing) * right + smoothing / VOCABULARY * logs.sum(-1)).sum()
    assert set(found) == set(micro_batch.counts) == {"translation"}
    assert float(found["translation"].detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def test_the_mean_loss_is_that_of_a_symbol_without_smoothing() -> None:
    model, data = transformer().eval(), pairs()
    with torch.no_grad():
        (whole,) = micro_batches_of(data, 1000)
        expected = float(TranslationObjective(0.0)(model, whole)["translation"]) / whole.counts["translation"]
    cut = list(micro_batches_of(data, 20))
    assert len(cut) > 2
    assert mean_loss(model, cut) == pytest.approx(expected, rel=1e-5)
    assert math.isnan(mean_loss(model, []))


@pytest.mark.parametrize("model", [transformer(), recurrent(), recurrent(decoder="1")], ids=["transformer", "a", "1"])
def test_micro_batches_add_up_to_the_gradient_of_the_whole(model: TranslationModel) -> None:
    source, objective = BitextSource(pairs(), 1000, seed=0), TranslationObjective(0.1)
    gradients = []
    for accumulate in (1, 4):
        model.zero_grad()
        for micro_batch in source.step(0, accumulate=accumulate):
            objective(model, micro_batch)["translation"].backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 3
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.processor
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "make",
    [
        transformer,
        recurrent,
        partial(recurrent, cell="lstm"),
        partial(recurrent, decoder="3"),
        partial(recurrent, attention="hard"),
        partial(recurrent, attention="hard", hard_gradient="score-function"),
    ],
    ids=["transformer", "attention", "lstm", "decoder 3", "straight-through", "score function"],
)
def test_it_learns(make: Callable[[], TranslationModel], precision: Precision) -> None:
    model = make()
    objective = in_precision(TranslationObjective(0.0, Forcing(1.0, 0.9), 40), precision)
    source = BitextSource(pairs(), 1000, seed=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(0)
    losses = []
    for step in range(40):
        (micro_batch,) = source.step(step)
        optimiser.zero_grad()
        loss = objective(model.train(), micro_batch)["translation"] / micro_batch.counts["translation"]
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]


def test_teacher_forcing_follows_its_schedule() -> None:
    falling = Forcing(1.0, 0.2)
    assert [round(falling.at(step, 5), 6) for step in (0, 2, 4, 9)] == [1.0, 0.6, 0.2, 0.2]
    assert Forcing().at(3, 1) == 1.0
    for shares in ((1.1, 1.0), (1.0, -0.1), (float("nan"), 1.0)):
        with pytest.raises(HeedfulError, match="from 0 to 1"):
            Forcing(*shares)


def test_the_step_decides_how_much_is_forced() -> None:
    """The last step gives the model its own words, the first the right ones; the words differ, and so do the losses."""
    model = recurrent().train()
    objective = TranslationObjective(0.0, Forcing(1.0, 0.0), steps=10)
    (micro_batch,) = micro_batches_of(pairs(), 1000)
    losses = {}
    for step in (0, 9):
        moved = type(micro_batch)(micro_batch.bitext, step)
        losses[step] = float(objective(model, moved)["translation"].detach())
    assert losses[0] == pytest.approx(float(TranslationObjective(0.0)(model, micro_batch)["translation"].detach()))
    assert losses[9] != pytest.approx(losses[0], rel=1e-6)


def test_what_is_drawn_depends_on_torchs_generator_alone() -> None:
    model = recurrent().train()
    objective = TranslationObjective(0.0, Forcing(0.5, 0.5))
    (micro_batch,) = micro_batches_of(pairs(), 1000)
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(float(objective(model, micro_batch)["translation"].detach()))
    assert losses[0] == losses[1] != losses[2]


def test_a_decoder_without_words_refuses_forcing() -> None:
    (micro_batch,) = micro_batches_of(pairs(), 1000)
    with pytest.raises(HeedfulError, match="takes no words"):
        TranslationObjective(0.0, Forcing(0.5, 0.5))(recurrent(decoder="2"), micro_batch)
