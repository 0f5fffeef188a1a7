"""The perplexity of texts forwards and backwards, as ELMo's two language models have it.

    forwards    − Σ_t log P(w_t | <S> w_1 … w_{t-1}),  t = 1 … n + 1,  w_{n+1} = </S>
    backwards   − Σ_t log P(w_t | w_{t+1} … w_n </S>),  t = n … 0,  w_0 = <S>

What is said is a word of the softmax's own vocabulary, `words.txt` in the folder. A word that is not in it is read by
its characters, but said as <UNK>, which is more likely than any such word: models with other vocabularies compare only
as far as few words are unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from heedful.checkpoints.folder import ModelFolder
from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens, flat_batch
from heedful.data.corpus.word_windows import BEGIN_WORD, END_WORD
from heedful.inference.language_models import with_heads
from heedful.inference.pseudo_perplexity import Score
from heedful.models.elmo import ElmoForPretraining
from heedful.models.encoder import Encoder
from heedful.models.language_model import chosen_log_probabilities
from heedful.tasks.bilm import read_words
from heedful.text.elmo_pipeline import BEGIN, END, spelled_words
from heedful.text.tokenizer import Tokenizer

TEXTS_PER_CHUNK = 256
UNKNOWN_ROW = 0


@dataclass(frozen=True)
class TwoWayLm:
    """Two language models that share the words they read and the words they say."""

    model: ElmoForPretraining
    tokenizer: Tokenizer
    words: Mapping[str, int]  # those of the softmax, and their rows

    def labels(self, ids: list[int]) -> list[int]:
        """The rows of the words that tokens <S> … </S> spell."""
        return [self.words.get(word, UNKNOWN_ROW) for word in (BEGIN_WORD, *spelled_words(ids[1:-1]), END_WORD)]


@dataclass(frozen=True)
class TwoWayScore:
    """The score of a text as the mean of both directions, and the loss of each."""

    score: Score
    forward: float
    backward: float


def two_way_lm_of(folder: ModelFolder, encoder: Encoder, tokenizer: Tokenizer, device: str) -> TwoWayLm:
    """The two language models of a folder around its encoder, with the words they say."""
    build = folder.family.two_way_lm
    assert build is not None
    model = with_heads(folder, encoder, build).to(device).eval()
    assert isinstance(model, ElmoForPretraining)
    return TwoWayLm(model, tokenizer, {word: row for row, word in enumerate(read_words(folder))})


def score_both_ways(lm: TwoWayLm, texts: Iterable[str]) -> Iterator[TwoWayScore]:
    """The score of each text, in order and in constant memory."""
    source = iter(texts)
    while some := list(islice(source, TEXTS_PER_CHUNK)):
        pieces = [encoding.ids for encoding in lm.tokenizer.pieces(some)]
        read = [[BEGIN, *ids, END] if ids else [] for ids in pieces]
        labels = [lm.labels(ids) if ids else [] for ids in read]
        for said, (forward, backward) in zip(labels, _losses(lm.model, read, labels), strict=True):
            count, unknown = max(len(said) - 1, 0), said.count(UNKNOWN_ROW)
            score = Score((forward + backward) / 2, count, unknown, texts=1, empty=int(not said))
            yield TwoWayScore(score, forward, backward)


@torch.inference_mode()
def _losses(model: ElmoForPretraining, texts: list[list[int]], labels: list[list[int]]) -> list[tuple[float, float]]:
    """The negative log-probability of each text in both directions."""
    worded = [number for number, ids in enumerate(texts) if ids]
    found = [(0.0, 0.0)] * len(texts)
    for places in cut_by_tokens([len(texts[number]) for number in worded], TOKENS_PER_BATCH):
        numbers = [worded[place] for place in places]
        words = model.encoder.words_of(flat_batch([texts[number] for number in numbers]).to(str(model.device)))
        states, _ = model.encoder.word_states(words, model.encoder.layer_count)
        right = torch.tensor([row for number in numbers for row in labels[number]], device=model.device)
        starts = torch.tensor([0, *words.lengths]).cumsum(0).to(right.device)
        # Forwards every word but the last says the next one, backwards every one but the first the one before.
        says = _all_but(starts[1:] - 1, len(right)), _all_but(starts[:-1], len(right))
        forward, backward = (
            chosen_log_probabilities(model.softmax, half[rows], right[rows + step], len(model.softmax.bias))
            for half, rows, step in zip(states[-1], says, (1, -1), strict=True)
        )
        counts = [length - 1 for length in words.lengths]
        for number, ahead, back in zip(
            numbers, *(torch.split(way, counts) for way in (forward, backward)), strict=True
        ):
            found[number] = -math.fsum(ahead.tolist()), -math.fsum(back.tolist())
    return found


def _all_but(places: Tensor, count: int) -> Tensor:
    """0 … count - 1 without some."""
    kept = torch.ones(count, dtype=torch.bool, device=places.device)
    kept[places] = False
    return kept.nonzero()[:, 0]
