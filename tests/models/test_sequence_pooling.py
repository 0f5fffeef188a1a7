"""Pooling before a classifier: over whole sequences, in the order of the rows, for trained encoders and frozen ones."""

from __future__ import annotations

import pytest
import torch

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import Bert, BertConfig
from heedful.models.heads import Pooling, SequenceClassifier
from heedful.models.roberta import RobertaConfig
from heedful.nn.pooling import first_rows
from heedful.schema import Selection

LENGTHS = (5, 3, 3, 1)
ORDER = [2, 0, 3, 1]  # rows need not come in the order of the sequences


@pytest.fixture
def encoder() -> Bert:
    torch.manual_seed(0)
    shape = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    return BertConfig(vocab_size=30, **shape).build().eval()


def selection() -> Selection:
    batch = flat_batch([torch.arange(5, 5 + n).tolist() for n in LENGTHS])
    return Selection(batch, first_rows(LENGTHS)[ORDER], (1,) * len(LENGTHS))


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("features", [(), (-1, 0)])
def test_each_row_stands_for_its_whole_sequence(encoder: Bert, pooling: Pooling, features: tuple[int, ...]) -> None:
    model = SequenceClassifier(encoder, 3, features, pooling).eval()
    chosen = selection()
    hidden = encoder(chosen.batch, hidden=(-1, 0)).hidden
    joined = torch.cat([hidden[2], hidden[0]], -1) if features else hidden[2]
    texts = joined.split(LENGTHS)
    pooled = torch.stack([text.mean(0) if pooling == "mean" else text.amax(0) for text in texts])[ORDER]
    torch.testing.assert_close(model(chosen), model.classifier(pooled))
    assert not any(name.startswith("encoder.pooler") for name in model.state_dict())


@pytest.mark.parametrize("features", [(), (-1, 0)])
def test_the_texts_of_a_pair_are_compared(encoder: Bert, features: tuple[int, ...]) -> None:
    sides = ([0, 0, 1, 1, 1], [0, 1, 1], [0, 0, 1], [0])  # of the last pair one side is all
    batch = flat_batch([torch.arange(5, 5 + n).tolist() for n in LENGTHS], sides)
    chosen = Selection(batch, first_rows(LENGTHS)[ORDER], (1,) * len(LENGTHS))
    model = SequenceClassifier(encoder, 3, features, "compare").eval()
    hidden = encoder(batch, hidden=(-1, 0)).hidden
    rows = []
    for layer in (2, 0) if features else (2,):
        texts = zip(hidden[layer].split(LENGTHS), map(torch.tensor, sides), strict=True)
        means = [[x[of == side].sum(0) / max(1, int((of == side).sum())) for side in (0, 1)] for x, of in texts]
        rows.append(torch.stack([torch.cat([u, v, (u - v).abs(), u * v]) for u, v in means])[ORDER])
    torch.testing.assert_close(model(chosen), model.classifier(torch.cat(rows, -1)))
    with pytest.raises(HeedfulError, match="a roberta does not tell"):
        SequenceClassifier(RobertaConfig(30, 8, 1, 2, 8).build(), 3, (), "compare")


def test_gradients_reach_a_trained_encoder_and_no_frozen_one(encoder: Bert) -> None:
    SequenceClassifier(encoder, 1, (), "mean")(selection()).sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())
    frozen = SequenceClassifier(encoder, 1, (-1,), "mean")
    frozen.zero_grad()
    frozen(selection()).sum().backward()
    assert all(p.grad is None for p in encoder.parameters()) and frozen.classifier.weight.grad is not None


def test_states_computed_before_are_taken_as_they_are(encoder: Bert) -> None:
    model = SequenceClassifier(encoder, 2, (-1,), "max").eval()
    chosen = selection()
    known = torch.stack([text.amax(0) for text in encoder(chosen.batch).last.split(LENGTHS)])[ORDER]
    given = Selection(chosen.batch, chosen.rows, chosen.counts, known)
    torch.testing.assert_close(model(given), model(chosen))
