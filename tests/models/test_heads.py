"""Heads: what they compute from the encoder's states, what is trained, and what is frozen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.models.bert import Bert, BertConfig
from heedful.models.heads import (
    TAGGERS,
    SequenceClassifier,
    SpanFinder,
    Tagger,
    freeze,
    layer_depth,
    states,
)
from heedful.nn.pooling import first_rows
from heedful.schema import Selection

CONFIG = BertConfig(
    vocab_size=30, hidden_size=12, num_hidden_layers=3, num_attention_heads=3, intermediate_size=20,
    max_position_embeddings=16,
)  # fmt: skip
BATCH = flat_batch([[2, 9, 8, 5, 3], [2, 7, 6, 3], [2, 4, 3]])
CLS = Selection(BATCH, first_rows(BATCH.lengths), (1, 1, 1))
# Words in the order of the answers, which is not that of the batch.
WORDS = Selection(BATCH, torch.tensor([10, 1, 3, 6, 7]), (1, 2, 2))
FEATURES = (-1, 2, 0)


@pytest.fixture
def encoder() -> Bert:
    encoder = Bert(CONFIG)
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(0.0, 0.3, generator=rng)
    return encoder


def side_by_side(encoder: Bert, selection: Selection) -> torch.Tensor:
    hidden = encoder(selection.batch, hidden=range(4)).hidden
    return torch.cat([hidden[number][selection.rows] for number in (3, 2, 0)], dim=-1)


@torch.no_grad()
def test_classification_looks_at_the_pooler(encoder: Bert) -> None:
    model = SequenceClassifier(encoder, 4).eval()
    first = encoder(BATCH).last[CLS.rows]
    torch.testing.assert_close(model(CLS), model.classifier(encoder.pool(first)))


@torch.no_grad()
def test_features_are_layers_side_by_side(encoder: Bert) -> None:
    expected = side_by_side(encoder.eval(), WORDS)
    assert expected.shape == (5, 36)
    torch.testing.assert_close(states(encoder, WORDS, FEATURES), expected)
    for model in (SequenceClassifier(encoder, 4, FEATURES), Tagger(encoder, 4, features=FEATURES)):
        torch.testing.assert_close(model.eval()(WORDS), model.classifier(expected))


@torch.no_grad()
def test_tagging_and_answering_look_at_the_last_states(encoder: Bert) -> None:
    last = encoder.eval()(BATCH).last[WORDS.rows]
    tagger, answerer = Tagger(encoder, 4).eval(), SpanFinder(encoder).eval()
    torch.testing.assert_close(tagger(WORDS), tagger.classifier(last))
    torch.testing.assert_close(answerer(WORDS), answerer.span(last))
    assert answerer(WORDS).shape == (5, 2)


@torch.no_grad()
@pytest.mark.parametrize("head", TAGGERS)
def test_a_sequence_is_tagged_as_if_alone(encoder: Bert, head: str) -> None:
    torch.manual_seed(1)
    model = Tagger(encoder, 4, head, lstm_width=5, lstm_layers=2).eval()
    assert (model.crf is not None) == head.endswith("crf")
    together = model(WORDS)
    assert together.shape == (5, 4)
    alone = [([2, 4, 3], [1]), ([2, 9, 8, 5, 3], [1, 3]), ([2, 7, 6, 3], [1, 2])]
    found = [model(Selection(flat_batch([ids]), torch.tensor(rows), (len(rows),))) for ids, rows in alone]
    torch.testing.assert_close(together, torch.cat(found), rtol=1e-5, atol=1e-5)


def test_a_bilstm_sees_both_sides_within_the_sequence(encoder: Bert) -> None:
    model = Tagger(encoder, 4, "bilstm", lstm_width=5).eval()
    known = torch.randn(5, 12, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for row, seen in ((1, [1, 2]), (2, [1, 2]), (0, [0])):
        outputs = model(Selection(WORDS.batch, WORDS.rows, WORDS.counts, known))
        (slopes,) = torch.autograd.grad(outputs[row].sum(), known)
        assert slopes.abs().sum(-1).nonzero().flatten().tolist() == seen


MODELS: dict[str, tuple[Callable[[Bert], nn.Module], Selection, tuple[int, ...]]] = {
    "classification": (lambda encoder: SequenceClassifier(encoder, 4), CLS, ()),
    "classification of features": (lambda encoder: SequenceClassifier(encoder, 4, FEATURES), CLS, FEATURES),
    "tagging": (lambda encoder: Tagger(encoder, 4, "bilstm-crf", lstm_width=5), WORDS, ()),
    "tagging of features": (lambda encoder: Tagger(encoder, 4, "bilstm", FEATURES, 5, 2), WORDS, FEATURES),
    "answering": (SpanFinder, WORDS, ()),
}


@pytest.mark.parametrize("name", MODELS)
def test_known_states_spare_the_encoder(encoder: Bert, name: str) -> None:
    build, selection, features = MODELS[name]
    model = build(encoder).eval()
    calls: list[nn.Module] = []
    encoder.embeddings.register_forward_hook(lambda module, *_: calls.append(module))
    expected = model(selection)
    known = states(encoder, selection, features).detach()
    assert len(calls) == 2
    found = model(Selection(selection.batch, selection.rows, selection.counts, known))
    assert len(calls) == 2
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", MODELS)
def test_everything_that_is_not_frozen_is_trained(encoder: Bert, name: str) -> None:
    build, selection, features = MODELS[name]
    model = build(encoder).train()
    outputs = model(selection)
    crf = getattr(model, "crf", None)
    targets = torch.arange(len(outputs)) % outputs.shape[1]
    loss = nn.functional.cross_entropy(outputs, targets)
    (loss if crf is None else crf.loss(outputs, selection.counts, targets)).backward()
    for parameter_name, parameter in model.named_parameters():
        trained = not (features and parameter_name.startswith("encoder."))
        assert parameter.requires_grad == trained, parameter_name
        assert (parameter.grad is not None and bool(parameter.grad.any())) == trained, parameter_name


def test_frozen_features_know_no_dropout_and_no_pooler(encoder: Bert) -> None:
    model = Tagger(encoder, 4, features=FEATURES).train()
    once, again = (states(model.encoder, WORDS, FEATURES) for _ in range(2))
    assert torch.equal(once, again) and not once.requires_grad
    assert model.encoder.pooler is None
    assert not torch.equal(model(WORDS), model(WORDS))  # the head has its dropout still
    assert model.encoder.config == CONFIG


def test_only_classification_keeps_the_pooler(encoder: Bert) -> None:
    assert SequenceClassifier(encoder, 2).encoder.pooler is not None
    assert SequenceClassifier(encoder, 2, (-1,)).encoder.pooler is None
    assert Tagger(Bert(CONFIG), 2).encoder.pooler is None
    assert SpanFinder(Bert(CONFIG)).encoder.pooler is None


def test_what_is_not_there_is_refused(encoder: Bert) -> None:
    with pytest.raises(HeedfulError, match="no tagging head 'lstm'"):
        Tagger(encoder, 2, "lstm")
    with pytest.raises(HeedfulError, match="no layer 4"):
        Tagger(encoder, 2, features=(-1, 4))
    with pytest.raises(HeedfulError, match="no layer -5"):
        SequenceClassifier(encoder, 2, (-5,))


def test_a_selection_of_nothing(encoder: Bert) -> None:
    nothing = Selection(BATCH, torch.zeros(0, dtype=torch.long), (0, 0, 0))
    for head in TAGGERS:
        assert Tagger(encoder, 4, head, lstm_width=5)(nothing).shape == (0, 4)


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("encoder.embeddings.token.weight", 0),
        ("encoder.embeddings.norm.bias", 0),
        ("encoder.layers.0.up.weight", 1),
        ("encoder.layers.11.output_norm.bias", 12),
        ("encoder.pooler.weight", 13),
        ("classifier.bias", 13),
        ("lstm.weight_ih_l0", 13),
        ("crf.starts", 13),
    ],
)
def test_the_depth_of_a_parameter(name: str, depth: int) -> None:
    assert layer_depth(Bert(replace(CONFIG, num_hidden_layers=12)), name) == depth


@pytest.mark.parametrize(
    ("what", "frozen"),
    [("embeddings", {0}), ("0", {0}), ("2", {0, 1, 2}), ("3", {0, 1, 2, 3}), ("encoder", {0, 1, 2, 3})],
)
def test_freezing_from_below(encoder: Bert, what: str, frozen: set[int]) -> None:
    model = SequenceClassifier(encoder, 2)
    freeze(model, what)
    depths = {True: set(), False: set()}
    for name, parameter in model.named_parameters():
        depths[parameter.requires_grad].add(layer_depth(encoder, name))
    assert depths == {False: frozen, True: set(range(5)) - frozen}
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    nn.functional.cross_entropy(model(CLS), torch.tensor([0, 1, 1])).backward()
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == (layer_depth(encoder, name) in frozen), name


@pytest.mark.parametrize("what", ["", "all", "4", "-1", "1.5", "Encoder"])
def test_freezing_something_else_is_refused(encoder: Bert, what: str) -> None:
    model = SequenceClassifier(encoder, 2)
    with pytest.raises(HeedfulError, match="cannot freeze") as caught:
        freeze(model, what)
    assert "0 to 3" in str(caught.value.remedy)
    assert all(parameter.requires_grad for parameter in model.parameters())
