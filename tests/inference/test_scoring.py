"""Perplexity from left to right is Hugging Face's loss, and per word it counts the ends of lines."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from transformers import GPT2LMHeadModel

from heedful.checkpoints.encoder_folder import save_model
from heedful.inference.load import load_embedder
from heedful.inference.scoring import LineScore, kind_of_score, score_lines
from tests.gpt_folder import byte_level_tokenizer, random_gpt

TEXTS = ["the cat on the cat", "", "A", "one <unk> in the text"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, tokenizer = tmp_path_factory.mktemp("scoring") / "gpt", byte_level_tokenizer()
    save_model(random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=48), path, tokenizer)
    return path


def test_the_loss_is_hugging_faces_with_both_ends(folder: Path) -> None:
    ours, theirs = load_embedder(folder, "cpu"), GPT2LMHeadModel.from_pretrained(folder).eval()
    end = ours.tokenizer.id_of("<|endoftext|>")
    assert kind_of_score(ours) == "left-to-right"
    found = list(score_lines(ours, TEXTS))
    for text, line in zip(TEXTS, found, strict=True):
        pieces = ours.tokenizer.pieces([text])[0].ids
        if not pieces:
            assert line.score.empty == 1 and line.words == 0 and line.score.tokens == 0
            continue
        ids = torch.tensor([[end, *pieces, end]])
        with torch.no_grad():
            mean = float(theirs(ids, labels=ids).loss)
        assert line.score.tokens == len(pieces) + 1
        assert line.score.loss == pytest.approx(mean, rel=1e-4)
        assert line.per_word == pytest.approx(math.exp(mean * (len(pieces) + 1) / len(text.split())), rel=1e-3)
    whole = sum(found, LineScore())
    assert (whole.words, whole.marks, whole.score.texts, whole.score.empty) == (11, 1, 4, 1)


def test_a_text_that_is_too_long_loses_its_end_and_that_is_told(folder: Path) -> None:
    (line,) = score_lines(load_embedder(folder, "cpu"), ["x y " * 40])
    assert line.score.truncated == 1 and line.score.tokens == 48


def test_a_masked_model_has_another_quantity(tiny_folder: Path) -> None:
    model = load_embedder(tiny_folder, "cpu")
    (line,) = score_lines(model, ["the <unk> sees"])
    assert kind_of_score(model) == "pseudo" and (line.words, line.marks) == (3, 1)
    assert line.score.tokens == 3 and line.score.unknown == 1  # <unk> is the tokenizer's own [UNK]
