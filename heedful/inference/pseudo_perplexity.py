"""Pseudo-perplexity: Salazar et al., "Masked Language Model Scoring", 2020.

Each token of a text is hidden in turn and predicted from all the others:

    PLL(W) = Σ_t log P(w_t | W without t)        PPPL = exp(−(sum of PLL) / (number of tokens))

A text of n tokens is computed n times, in copies of equal length; logits are made at the hidden places only.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice

from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens
from heedful.inference.masked_lm import MaskedLm
from heedful.inference.workers import worker_pool
from heedful.text.tokenizer import was_truncated

# So many tokens of hidden copies are sorted and shared out together: enough for all workers, and scores come often.
TOKENS_PER_CHUNK = 16_384
# The tokenizer works in parallel on this many texts at once.
TEXTS_PER_CALL = 64


@dataclass(frozen=True)
class Score:
    """How well a text, or several together, can be guessed token by token."""

    loss_sum: float = 0.0  # negative log-probabilities in nats
    tokens: int = 0  # without [CLS] and [SEP]
    unknown: int = 0  # of them [UNK], which is easily guessed
    texts: int = 0
    empty: int = 0  # texts without a token
    truncated: int = 0  # texts that lost their right part

    @property
    def loss(self) -> float:
        """The mean over the tokens; not a number where there are none."""
        return self.loss_sum / self.tokens if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        try:
            return math.exp(self.loss)
        except OverflowError:
            return math.inf

    def __add__(self, other: Score) -> Score:
        return Score(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class MaskedText:
    """A text as ids, of which some are hidden in turn."""

    ids: list[int]  # [CLS] … [SEP]
    places: range  # those in between
    truncated: bool


# The number of a text in its chunk, and the place that is hidden.
Copy = tuple[int, int]
_Running = tuple[list[MaskedText], list[list[Copy]], list[Future[list[float]]]]


def score_texts(lm: MaskedLm, texts: Iterable[str], max_length: int | None = None) -> Iterator[Score]:
    """The score of each text, in order and in constant memory; what is longer than `max_length` tokens is cut.

    Added up, the scores give that of the whole.
    """
    yield from _scores(lm, masked_texts(lm, texts, max_length))


def score_sequences(lm: MaskedLm, sequences: Iterable[Sequence[int]]) -> Iterator[Score]:
    """As `score_texts`, of texts that are tokens already: [CLS] … [SEP], none longer than the model."""
    yield from _scores(lm, (_text(lm, list(ids), truncated=False) for ids in sequences))


def _scores(lm: MaskedLm, texts: Iterable[MaskedText]) -> Iterator[Score]:
    running: deque[_Running] = deque()
    with worker_pool() as pool:
        for chunk in _chunks(texts):
            running.append(_start(lm, chunk, pool))
            if len(running) > 1:
                yield from _finished(lm, *running.popleft())
        while running:
            yield from _finished(lm, *running.popleft())


def _text(lm: MaskedLm, ids: list[int], truncated: bool) -> MaskedText:
    frame = lm.tokenizer.frame.single
    return MaskedText(ids, range(len(frame.before.ids), len(ids) - len(frame.after.ids)), truncated)


def masked_texts(lm: MaskedLm, texts: Iterable[str], max_length: int | None = None) -> Iterator[MaskedText]:
    """Texts as ids, each cut to `max_length` tokens or to what the model has room for."""
    limit = min((limit for limit in (max_length, lm.positions) if limit is not None), default=None)
    source = iter(texts)
    while some := list(islice(source, TEXTS_PER_CALL)):
        for encoding in lm.tokenizer.encode_batch(some, limit, offsets=False):
            yield _text(lm, encoding.ids, was_truncated(encoding))


def _chunks(texts: Iterable[MaskedText]) -> Iterator[list[MaskedText]]:
    chunk: list[MaskedText] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text.ids) * max(len(text.places), 1)
        if size >= TOKENS_PER_CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _start(lm: MaskedLm, chunk: list[MaskedText], pool: ThreadPoolExecutor) -> _Running:
    copies = [(number, place) for number, text in enumerate(chunk) for place in text.places]
    lengths = [len(chunk[number].ids) for number, _ in copies]
    batches = [[copies[i] for i in batch] for batch in cut_by_tokens(lengths, TOKENS_PER_BATCH)]
    hidden = [[(chunk[number].ids, place) for number, place in batch] for batch in batches]
    return chunk, batches, [pool.submit(hidden_losses, lm, batch) for batch in hidden]


def hidden_losses(lm: MaskedLm, copies: Sequence[tuple[list[int], int]]) -> list[float]:
    """The loss of the token at a place of each sequence, which is hidden there."""
    mask = lm.tokenizer.mask_id
    sequences = [[*ids[:place], mask, *ids[place + 1 :]] for ids, place in copies]
    found = lm.log_probabilities(sequences, [[place] for _, place in copies])
    hidden = [ids[place] for ids, place in copies]
    losses: list[float] = (-found[range(len(hidden)), hidden]).tolist()
    return losses


def _finished(
    lm: MaskedLm, chunk: list[MaskedText], batches: list[list[Copy]], futures: list[Future[list[float]]]
) -> Iterator[Score]:
    by_text: list[list[float]] = [[] for _ in chunk]
    losses = chain.from_iterable(future.result() for future in futures)
    for (number, _), loss in zip(chain.from_iterable(batches), losses, strict=True):
        by_text[number].append(loss)
    for text, own in zip(chunk, by_text, strict=True):
        yield score_of(lm, text, own)


def score_of(lm: MaskedLm, text: MaskedText, losses: Sequence[float]) -> Score:
    """The score of a text whose tokens had these losses."""
    return Score(
        loss_sum=math.fsum(losses),
        tokens=len(losses),
        unknown=text.ids.count(lm.tokenizer.unk_id),
        texts=1,
        empty=int(not losses),
        truncated=int(text.truncated),
    )
