"""Pseudo-perplexity: against one masked copy after the other through `transformers`, in every way of batching."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
import transformers

from heedful.inference import pseudo_perplexity
from heedful.inference.embedder import Embedder
from heedful.inference.masked_lm import MaskedLm, load_mlm_head
from heedful.inference.pseudo_perplexity import Score, score_sequences, score_texts

TEXTS = [
    "the cat sees the dog",
    "",
    "我爱北京",
    "unaffordable!",
    "   ",
    "dogs love 苹果 🙂",
    "a",
    "the cat sees the dog",
]


@pytest.fixture(scope="module")
def lm(tiny: Embedder) -> MaskedLm:
    return MaskedLm(tiny.encoder, load_mlm_head(tiny.folder), tiny.tokenizer)


@pytest.fixture(scope="module")
def theirs(tiny_folder: Path) -> transformers.BertForMaskedLM:
    return transformers.BertForMaskedLM.from_pretrained(tiny_folder).eval()


@torch.inference_mode()
def brute_force(theirs: transformers.BertForMaskedLM, ids: list[int], mask: int) -> list[float]:
    losses = []
    for place in range(1, len(ids) - 1):
        copy = torch.tensor([ids])
        copy[0, place] = mask
        losses.append(-theirs(input_ids=copy).logits[0, place].log_softmax(-1)[ids[place]].item())
    return losses


@pytest.mark.parametrize(("batch", "chunk"), [(1024, 65_536), (1, 1), (16, 40)])
def test_equal_to_brute_force(
    lm: MaskedLm, theirs: transformers.BertForMaskedLM, monkeypatch: pytest.MonkeyPatch, batch: int, chunk: int
) -> None:
    monkeypatch.setattr(pseudo_perplexity, "TOKENS_PER_BATCH", batch)
    monkeypatch.setattr(pseudo_perplexity, "TOKENS_PER_CHUNK", chunk)
    scores = list(score_texts(lm, TEXTS))
    assert len(scores) == len(TEXTS)
    everything = []
    for text, score in zip(TEXTS, scores, strict=True):
        losses = brute_force(theirs, lm.tokenizer.encode(text).ids, lm.tokenizer.mask_id)
        everything += losses
        assert (score.tokens, score.empty) == (len(losses), int(not losses))
        assert score.loss_sum == pytest.approx(sum(losses), rel=1e-5, abs=1e-6)
    whole = sum(scores, Score())
    assert whole.perplexity == pytest.approx(math.exp(sum(everything) / len(everything)), rel=1e-5)
    assert (whole.texts, whole.empty, whole.windowed, whole.unknown) == (len(TEXTS), 2, 0, 1)


def test_a_long_text_is_read_in_windows_and_every_token_is_hidden_once(
    lm: MaskedLm, theirs: transformers.BertForMaskedLM
) -> None:
    text = "the cat sees the dog love a"
    long, short = score_texts(lm, [text, "the cat sees"], max_length=6)
    ids = lm.tokenizer.pieces([text])[0].ids
    assert len(ids) == 7 and (long.tokens, long.windowed) == (7, 1) and (short.tokens, short.windowed) == (3, 0)
    frame, expected = (lm.tokenizer.cls_id, lm.tokenizer.sep_id), 0.0
    for start, hidden in ((0, (0, 1, 2)), (2, (1,)), (3, (1, 2, 3))):  # four tokens a window, the most around each
        window = [frame[0], *ids[start : start + 4], frame[1]]
        losses = brute_force(theirs, window, lm.tokenizer.mask_id)
        expected += sum(losses[place] for place in hidden)
    assert long.loss_sum == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("chunk", [65_536, 40])
def test_sequences_score_as_the_texts_they_are(lm: MaskedLm, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(pseudo_perplexity, "TOKENS_PER_CHUNK", chunk)
    sequences = [lm.tokenizer.encode(text).ids for text in TEXTS]
    as_tuples = (tuple(ids) for ids in sequences)
    assert list(score_sequences(lm, as_tuples)) == list(score_texts(lm, TEXTS))
    assert list(score_sequences(lm, [])) == []


def test_texts_are_read_as_they_are_needed(lm: MaskedLm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudo_perplexity, "TOKENS_PER_CHUNK", 1)
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "the cat"

    scores = score_texts(lm, endless())
    next(scores)
    scores.close()
    assert taken <= 2 * pseudo_perplexity.TEXTS_PER_CALL


def test_nothing_scores_as_not_a_number() -> None:
    assert math.isnan(Score().perplexity) and Score(loss_sum=1e6, tokens=1).perplexity == math.inf
