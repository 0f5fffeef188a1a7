"""Memory runs out somewhere in a batch: it is done in smaller parts, with the same result, or the size is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.checkpoints.encoder_folder import save_model
from heedful.errors import HeedfulError
from heedful.inference.embed_file import embed_file
from heedful.inference.embedder import Embedder
from heedful.inference.load import load
from heedful.models.bert import BertConfig, BertForPretraining, initialise
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer

REFUSAL = (
    "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."
)
TEXTS = [" ".join("abcdefgh"[: 1 + i % 8]) for i in range(40)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    folder = tmp_path_factory.mktemp("memory") / "model"
    pieces = [*SPECIAL_TOKENS.values(), *"abcdefgh"]
    words = Tokenizer(wordpiece_tokenizer({piece: i for i, piece in enumerate(pieces)}, lowercase=True))
    config = BertConfig(
        words.vocab_size, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
    )
    fresh = BertForPretraining(config)
    initialise(fresh, config, 0)
    save_model(fresh, folder, words)
    found = load(folder)
    assert isinstance(found, Embedder)
    return found


@contextmanager
def failing(fails: Callable[[int, torch.Tensor], bool]) -> Iterator[None]:
    """The layer norm, which every layer calls, finds no memory where `fails` says so of its call and its input."""
    original, calls = torch.nn.functional.layer_norm, 0

    def layer_norm(x: torch.Tensor, *rest: Any, **options: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if fails(calls, x):
            raise RuntimeError(REFUSAL)
        return original(x, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "layer_norm", layer_norm)
        yield


@pytest.mark.parametrize("call", range(1, 11))
def test_a_batch_that_does_not_fit_is_done_in_halves(model: Embedder, call: int) -> None:
    expected = model.embed(TEXTS)
    with failing(lambda number, x: number == call):
        found = model.embed(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("room", range(10, 20))
def test_only_so_many_tokens_fit_at_once(model: Embedder, room: int) -> None:
    expected = model.embed(TEXTS)
    with failing(lambda number, x: len(x) > room):
        found = model.embed(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_text_that_never_fits_is_told_by_its_size_and_what_was_written_stays(model: Embedder, tmp_path: Path) -> None:
    texts, output = [*["a b"] * 5000, "a b c d e f g h"], tmp_path / "vectors.npy"
    wanted = model.features((-1,), "concat", None, "sentence", False)
    with failing(lambda number, x: len(x) % 4 != 0), pytest.raises(HeedfulError) as caught:
        embed_file(model, texts, output, wanted)
    assert "a single text of 10 tokens" in str(caught.value) and "`max_length` of 5" in str(caught.value)
    assert not output.exists()
    embed_file(model, texts, output, wanted)  # goes on where it stopped
    assert np.load(output).shape == (5001, 8)
