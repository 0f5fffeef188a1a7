"""Runs on a stand-in device, for `test_device.py`: `python on_stand_in.py KIND PRECISION FOLDER`.

A program of its own, because a device once made known to torch stays for the whole process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import stand_in
import torch
from torch import Tensor, nn

from heedful.checkpoints.own_weights import weights_of
from heedful.data.batching import flat_batch
from heedful.data.corpus.source import PretrainingMicroBatch
from heedful.data.labelled.dataset import TextRow
from heedful.models.bert import Bert, BertConfig, BertForPretraining, initialise
from heedful.tasks.classify import Classify
from heedful.tasks.finetuning import TaskObjective, predict
from heedful.tasks.items import ItemSource
from heedful.tasks.pretraining import evaluate, pretraining_losses
from heedful.text.tokenizer import Tokenizer
from heedful.training import budget
from heedful.training.contract import Objective, Source
from heedful.training.events import Event, Note, Progress
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import Precision, TrainingConfig

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "book", "a", "the", "very", "quite")
STEPS, STOPS_AFTER = 3, 2


def shape(dropout: float) -> BertConfig:
    """A very small BERT."""
    return BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


class Kind(NamedTuple):
    """What a run is made of."""

    model: nn.Module
    objective: Objective
    source: Source
    evaluate: Callable[[nn.Module], dict[str, float]]


class RandomMicroBatches:
    """Masked tokens and pairs from a generator seeded with the step."""

    def step(self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> Sequence[PretrainingMicroBatch]:
        rng = np.random.default_rng(number)
        return [self._micro_batch(rng) for _ in range(accumulate)]

    def _micro_batch(self, rng: np.random.Generator) -> PretrainingMicroBatch:
        batch = flat_batch([rng.integers(5, len(WORDS), length).tolist() for length in (9, 9, 6, 4)])
        places = torch.from_numpy(rng.choice(len(batch.ids), 5, replace=False)).sort().values
        return PretrainingMicroBatch(batch, places, batch.ids[places], torch.tensor([0, 1, 1, 0]), padding=0)


def pretraining(folder: Path, dropout: float) -> Kind:
    model = BertForPretraining(shape(dropout))
    initialise(model, model.encoder.config, seed=0)
    held_out = RandomMicroBatches().step(99)
    return Kind(model, pretraining_losses, RandomMicroBatches(), lambda model: evaluate(model, held_out))  # type: ignore[arg-type]


def classifier(folder: Path, dropout: float) -> Kind:
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    tokenizer = Tokenizer.load(folder)
    rows = [
        TextRow(f"{how} {what} film", label=what) for how in ("a very", "the quite", "a") for what in ("good", "bad")
    ]
    task = Classify(labels=("bad", "good"), max_length=16)
    encoder = Bert(shape(dropout))
    initialise(encoder, encoder.config, seed=0)
    torch.manual_seed(0)
    source = ItemSource(task.encode(rows, tokenizer), "loss", batch_size=3, seed=0)

    def right(model: nn.Module) -> dict[str, float]:
        answers = predict(task, model, rows, tokenizer)
        return {"accuracy": float(np.mean([one["label"] == row.label for one, row in zip(answers, rows, strict=True)]))}

    return Kind(task.model(encoder), TaskObjective(task), source, right)


class Stray(nn.Module):
    """A layer that makes a tensor where it should not."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.ones(x.shape[-1])


def stray(folder: Path, dropout: float) -> Kind:
    kind = pretraining(folder, dropout)
    assert isinstance(kind.model, BertForPretraining)
    kind.model.encoder.layers[1].dropout = Stray()  # type: ignore[union-attr]
    return kind


KINDS = {"pretraining": pretraining, "classifier": classifier, "stray": stray}


class Stopped(Exception):
    """The run is to be gone on with."""


class Watched:
    """A run and what it told; it may be broken off after some steps."""

    def __init__(self, kind: Kind, precision: Precision, folder: Path, device: str, stops: int = STEPS) -> None:
        config = TrainingConfig(
            steps=STEPS,
            learning_rate=1e-2,
            clip=0.1,
            accumulate=2,
            precision=precision,
            eval_every=2,
            checkpoint_every=1,
            log_every=1,
        )
        self.kind, self.stops, self.losses = kind, stops, list[dict[str, float]]()
        self.notes: list[str] = []
        hooks = Hooks(evaluate=self._evaluate, on_event=self._hear)
        self.trainer = Trainer(kind.model, kind.objective, kind.source, config, folder, hooks, device=device)
        self.device = torch.device(device)

    def _evaluate(self, model: nn.Module) -> dict[str, float]:
        assert all(tensor.device == self.device for tensor in (*model.parameters(), *model.buffers()))
        return self.kind.evaluate(model)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Note):
            self.notes.append(event.text)
        if isinstance(event, Progress):
            self.losses.append(dict(event.losses))
            if event.step > self.stops:
                raise Stopped

    def weights(self) -> dict[str, Tensor]:
        return {name: tensor.detach().cpu() for name, tensor in weights_of(self.kind.model).items()}


def run(kind: str, precision: Precision, folder: Path) -> None:
    """Whole and in two parts on the device, and without dropout there and on the CPU."""
    device = stand_in.install()

    def made(name: str, where: str = device, dropout: float = 0.1, stops: int = STEPS) -> Watched:
        return Watched(KINDS[kind](folder, dropout), precision, folder / name, where, stops)

    whole = made("whole")
    measure(whole, device)
    assert whole.trainer.run().finished
    assert len(set(stand_in.backend.seeds)) > STEPS, "the device's generator was not seeded"
    assert set(stand_in.backend.rounded) == ({torch.bfloat16} if precision == "bfloat16" else set())
    assert same(whole, parts(made))
    plain, on_cpu = made("plain", dropout=0.0), made("cpu", "cpu", dropout=0.0)
    for one in (plain, on_cpu):
        assert one.trainer.run().finished
    compare(plain.losses, on_cpu.losses, 1e-4 if precision == "float32" else 0.05)
    elsewhere = made("plain", "cpu", dropout=0.0)
    assert elsewhere.trainer.run(resume=True).finished and same(plain, elsewhere)
    assert any("not bit for bit" in note for note in elsewhere.notes)


def measure(run: Watched, device: str) -> None:
    """A budget's measurement leaves the model where it was."""
    budget.WARM_UP = budget.FEWEST = budget.MOST = 1
    kind = run.kind
    assert budget.seconds_per_step(kind.model, kind.objective, kind.source, run.trainer.config, device=device) > 0
    assert all(p.device.type == "cpu" for p in kind.model.parameters())


def parts(made: Callable[..., Watched]) -> Watched:
    """A run that was broken off and gone on with."""
    try:
        made("parts", stops=STOPS_AFTER).trainer.run()
    except Stopped:
        rest = made("parts")
        assert rest.trainer.run(resume=True).finished and len(rest.losses) == STEPS - STOPS_AFTER
        assert f"resumed from step-{STOPS_AFTER:06d}" in rest.notes
    return rest


def same(one: Watched, other: Watched) -> bool:
    """Whether all weights are, bit for bit."""
    others = other.weights()
    return all(torch.equal(tensor, others[name]) for name, tensor in one.weights().items())


def compare(losses: list[dict[str, float]], others: list[dict[str, float]], most: float) -> None:
    """The device computes nearly as the CPU does, which has other ways to the same sums."""
    for one, other in zip(losses, others, strict=True):
        for name, loss in one.items():
            assert abs(loss - other[name]) < most, (name, loss, other[name])


if __name__ == "__main__":
    kind, precision, folder = sys.argv[1:]
    run(kind, precision, Path(folder))  # type: ignore[arg-type]
