"""No objective shows a model what it is to predict: by gradient, on examples as a run makes them.

Which rows of the token matrix does the state depend on that predicts a token? Those of the tokens it may see, no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.checkpoints.families import family_named
from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Place
from heedful.data.corpus.tokens import TokenSettings
from heedful.models.encoder import encoder_of
from heedful.tasks.objectives import objective_of
from heedful.text.tokenizer import Tokenizer

WORDS = ["the", "a", "cat", "dog", "dogs", "sees", "love", "loves", "affordable", "中", "北", "京", ".", "!", ","]
# A prediction: the state, the label, and the ids that it may depend on.
Prediction = tuple[Tensor, int, set[int]]


@pytest.fixture(scope="module")
def corpus(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder, rng = tmp_path_factory.mktemp("unseen"), np.random.default_rng(0)
    documents = ["\n".join(" ".join(rng.choice(WORDS, 9)) for _ in range(6)) for _ in range(30)]
    (folder / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    settings, reading = TokenSettings(layout="sentences"), ReadingSettings(held_out_share=0.2)
    return build_corpus([str(folder / "text.txt")], folder / "corpus", tiny_tokenizer, settings, reading)


def model_and_batch(family_name: str, corpus: Corpus, **recipe: Any) -> tuple[Any, Any]:
    """A random model without dropout, and a micro-batch of its family's objective."""
    family = family_named(family_name)
    objective = objective_of(family)
    size = "tiny" if family_name == "bert" else "nano"
    config = family.config_of_size(size, corpus.tokenizer.vocab_size).with_dropout(0.0)
    model = family.pretraining_model(config)
    family.initialise(model, config, 0)
    made = objective.recipe(max_length=24, **recipe)
    return model, objective.batches(corpus, made).take(Place(0, 0, 4), np.arange(4))


def seen_rows(model: nn.Module, state: Tensor) -> set[int]:
    """The rows of the token matrix on which a state depends."""
    probe = torch.randn(
        state.shape, generator=torch.Generator().manual_seed(0)
    )  # a norm's plain sum depends on nothing
    matrix = encoder_of(model).token_matrix
    (gradient,) = torch.autograd.grad((state * probe).sum(), matrix, retain_graph=True)
    return set(gradient.abs().sum(1).nonzero()[:, 0].tolist())


def sequences(one: Any) -> Iterator[range]:
    start = 0
    for length in one.batch.lengths:
        yield range(start, start + length)
        start += length


def masked(corpus: Corpus) -> tuple[nn.Module, list[Prediction]]:
    """Where a token was replaced by [MASK]; one in five of them is left, or another, on purpose."""
    model, one = model_and_batch("bert", corpus)
    states, found = encoder_of(model)(one.batch).last, []
    for places in sequences(one):
        for place, label in zip(one.masked.tolist(), one.labels.tolist(), strict=True):
            if place in places and int(one.batch.ids[place]) == corpus.tokenizer.mask_id:
                found.append((states[place], label, set(one.batch.ids[places.start : places.stop].tolist())))
    return model, found


def from_left_to_right(family: str, corpus: Corpus) -> tuple[nn.Module, list[Prediction]]:
    model, one = model_and_batch(family, corpus)
    states, ids = encoder_of(model)(one.batch).last, one.batch.ids.tolist()
    found = [
        (states[place], int(one.labels[place]), set(ids[places.start : place + 1]))
        for places in sequences(one)
        for place in places[::5]
    ]
    return model, found


def permuted(corpus: Corpus, memory: int) -> tuple[nn.Module, list[Prediction]]:
    """Of the memory nothing is known but its states, which are no tokens of the batch."""
    model, one = model_and_batch("xlnet", corpus, memory=memory)
    encoder: Any = encoder_of(model)
    rng, shape = torch.Generator().manual_seed(1), (4, memory, encoder.width)
    past = tuple(torch.randn(shape, generator=rng) for _ in range(encoder.layer_count)) if memory else None
    states = encoder.predictions(one.batch, one.order, one.targets, past).last
    found = []
    for places in sequences(one):
        for row, place in enumerate(one.targets.tolist()):
            if place in places:
                earlier = {int(one.batch.ids[other]) for other in places if one.order[other] < one.order[place]}
                found.append((states[row], int(one.labels[row]), earlier))
    return model, found


@pytest.mark.parametrize("kind", ["masked", "gpt2", "lstm-lm", "permutation", "permutation with a memory"])
def test_a_prediction_depends_on_what_it_may_see_and_on_nothing_else(corpus: Corpus, kind: str) -> None:
    if kind == "masked":
        model, predictions = masked(corpus)
    elif kind.startswith("permutation"):
        model, predictions = permuted(corpus, 7 if "memory" in kind else 0)
    else:
        model, predictions = from_left_to_right(kind, corpus)
    assert len(predictions) > 5
    for state, _, allowed in predictions:
        assert seen_rows(model, state) == allowed
    assert any(label not in allowed for _, label, allowed in predictions)  # otherwise it would show nothing
