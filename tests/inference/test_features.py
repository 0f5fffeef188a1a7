"""Layers joined, tokens pooled, and what becomes one vector: against plain loops over the hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from heedful.data.batching import flat_batch
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.features import Features, combine

TEXTS = ["unaffordable cats, 中国!", "", "the dog 🙂 loves 苹果", "cat", "  \t "]


def states_of(model: Embedder, text: str, layer: int = -1) -> np.ndarray:
    """The hidden states of one text by itself, (T, D)."""
    batch = flat_batch([model.tokenizer.encode(text).ids])
    with torch.inference_mode():
        return model.encoder(batch, hidden=[layer]).last.numpy()


@pytest.mark.parametrize(
    ("pooling", "by_hand"),
    [
        ("cls", lambda x: x[0]),
        ("last", lambda x: x[-1]),
        ("mean", lambda x: x.mean(0)),
        ("max", lambda x: x.max(0)),
        ("mean-max", lambda x: np.concatenate([x.mean(0), x.max(0)])),
    ],
)
def test_pooling_of_sentences(tiny: Embedder, pooling: str, by_hand) -> None:  # type: ignore[no-untyped-def]
    found = tiny.embed(TEXTS, pooling=pooling)
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_allclose(found, [by_hand(states_of(tiny, text)) for text in TEXTS], atol=2e-5)


@pytest.mark.parametrize("how", ["concat", "sum", "mean"])
def test_several_layers_are_joined_in_the_order_asked_for(tiny: Embedder, how: str) -> None:
    found = tiny.embed(TEXTS, layers=[-1, 0, 2], combine=how)
    parts = [np.stack([states_of(tiny, text, layer).mean(0) for text in TEXTS]) for layer in (3, 0, 2)]
    joined = {"concat": np.concatenate(parts, axis=1), "sum": sum(parts), "mean": sum(parts) / 3}[how]
    np.testing.assert_allclose(found, joined, atol=5e-5)


def test_a_layer_may_be_asked_for_twice(tiny: Embedder) -> None:
    twice = np.asarray(tiny.embed(["cat"], layers=[-1, 3]))
    np.testing.assert_array_equal(twice[:, :32], twice[:, 32:])


def test_token_vectors_are_the_hidden_states(tiny: Embedder) -> None:
    found = tiny.embed(TEXTS, unit="token")
    assert isinstance(found, list)
    for text, vectors in zip(TEXTS, found, strict=True):
        assert vectors.shape == (len(tiny.tokenizer.encode(text)), 32)
        np.testing.assert_allclose(vectors, states_of(tiny, text), atol=2e-5)


def test_a_word_is_the_mean_of_its_pieces(tiny: Embedder) -> None:
    found = tiny.embed(TEXTS, unit="word")
    # unaffordable cats , 中 国 ! | nothing | the dog 🙂 loves 苹 果 | cat | nothing
    assert [len(vectors) for vectors in found] == [6, 0, 6, 1, 0]
    for text, vectors in zip(TEXTS, found, strict=True):
        words, states = tiny.tokenizer.encode(text).word_ids, states_of(tiny, text)
        for number, vector in enumerate(vectors):
            pieces = [state for state, word in zip(states, words, strict=True) if word == number]
            np.testing.assert_allclose(vector, np.mean(pieces, axis=0), atol=2e-5)
    assert tiny.tokenizer.encode(TEXTS[0]).word_ids.count(0) > 1  # or the mean would prove nothing


@pytest.mark.parametrize("unit", ["word", "token"])
def test_widths_of_words_and_tokens(tiny: Embedder, unit: str) -> None:
    wanted = Features(layers=(-1, -2), pooling="mean-max", unit=unit)
    found = tiny.embed(TEXTS, layers=[-1, -2], pooling="mean-max", unit=unit)
    assert {vectors.shape[1] for vectors in found} == {wanted.width(tiny.encoder.config)}


@pytest.mark.parametrize("unit", ["sentence", "word", "token"])
def test_normalized_vectors_have_length_one(tiny: Embedder, unit: str) -> None:
    for vectors in tiny.embed(TEXTS, unit=unit, normalize=True):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1.0, atol=1e-6)


def test_one_layer_is_never_changed_by_joining() -> None:
    x = torch.randn(3, 2)
    assert all(torch.equal(combine([x], how), x) for how in ("concat", "sum", "mean"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"combine": "add"}, "'add'"),
        ({"pooling": "median"}, "'median'"),
        ({"unit": "letter"}, "'letter'"),
        ({"layers": []}, "no layer is asked for"),
        ({"layers": [4]}, "no layer 4"),
    ],
)
def test_what_does_not_exist_is_refused(tiny: Embedder, wrong: dict[str, object], said: str) -> None:
    with pytest.raises(HeedfulError, match=said) as caught:
        tiny.embed(["cat"], **wrong)  # type: ignore[arg-type]
    assert caught.value.remedy
