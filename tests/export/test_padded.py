"""Heads over padded texts say what they say over flat ones: every task on every family that can be exported."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
import torch
from torch import nn

from heedful.checkpoints.families import family_named
from heedful.data.batching import flat_batch
from heedful.export.padded import PaddedHead
from heedful.models.heads import SequenceClassifier, Tagger
from heedful.schema import Selection
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.multilabel import MultiLabel
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task

LABELS = ("x", "y", "z")
TASKS: dict[str, Task[Any]] = {
    "classify": Classify(labels=LABELS),
    "classify by means of two layers": Classify(labels=LABELS, pooling="mean", features=(-1, 1)),
    "multilabel": MultiLabel(labels=LABELS),
    "regress": Regress(),
    "tag": Tag(labels=("B-X", "I-X", "O")),
    "tag by two BiLSTMs": Tag(labels=("B-X", "I-X", "O"), head="bilstm", lstm_width=6, lstm_layers=2),
    "tag by a BiLSTM and a CRF over a mix": Tag(
        labels=("B-X", "I-X", "O"), head="bilstm-crf", lstm_width=6, features=(-1, 0), combine="mix"
    ),
    "answer": Answer(),
    "choose": Choose(),
}
FAMILIES = (
    *("bert", "roberta", "xlm-roberta", "distilbert", "albert", "electra", "ernie", "mpnet", "modernbert", "gpt2"),
    "lstm-lm",
)
LENGTHS = (7, 5, 2)
FIRSTS = (1, 3, 4), (0, 1, 2, 3, 4), (1,)  # where words begin in each text: some, everywhere, one


def model_of(family: str, task: Task[Any]) -> nn.Module:
    """A small random one whose attention is far from a mean."""
    config = family_named(family).config_of_size("nano", 40)
    model = task.model(config.build())
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.3, generator=rng)
    return model.eval()


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_every_head_over_padded_texts(family: str) -> None:
    rng = torch.Generator().manual_seed(1)
    texts = [torch.randint(5, 40, (length,), generator=rng) for length in LENGTHS]
    sides = [[int(place > 2) for place in range(length)] for length in LENGTHS]
    batch = flat_batch([ids.tolist() for ids in texts], sides)
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    ids = torch.full(mask.shape, 3)  # what is padded must not be seen, whatever it is
    ids[mask] = torch.cat(texts)
    segments = torch.zeros_like(ids)
    segments[mask] = batch.segments
    for name, task in TASKS.items():
        model = model_of(family, task)
        if isinstance(model, SequenceClassifier):
            rows, counts = model.encoder.summary_rows(LENGTHS), (1,) * len(LENGTHS)
        else:
            rows, counts = places_of_words() if isinstance(model, Tagger) else (torch.arange(sum(LENGTHS)), LENGTHS)
        words = torch.zeros_like(ids)
        words[mask] = torch.zeros_like(batch.ids).index_fill(0, rows, 1)
        said, states, *_ = PaddedHead(model)(ids, mask.long(), segments, words)  # type: ignore[arg-type]
        wanted = model(Selection(batch, rows, counts))
        assert wanted.std() > 1e-3, name
        torch.testing.assert_close(said[mask][rows] if said.ndim == 3 else said, wanted, atol=2e-5, rtol=1e-4, msg=name)
        torch.testing.assert_close(states[mask], model.encoder(batch).last, atol=2e-5, rtol=1e-4)


def places_of_words() -> tuple[torch.Tensor, tuple[int, ...]]:
    """The flat places of the first pieces, and how many each text has."""
    starts = accumulate(LENGTHS[:-1], initial=0)
    rows = [start + first for start, firsts in zip(starts, FIRSTS, strict=True) for first in firsts]
    return torch.tensor(rows), tuple(map(len, FIRSTS))
