"""Pseudo-perplexity: Salazar et al., "Masked Language Model Scoring", 2020.

Each token of a text is hidden in turn and predicted from all the others:

    PLL(W) = Σ_t log P(w_t | W without t)        PPPL = exp(−(sum of PLL) / (number of tokens))

A text of n tokens is computed n times, in copies of equal length; logits are made at the hidden places only. One longer
than the model is read in windows that overlap, and each token is hidden in the window that shows most around it.
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
from heedful.tasks.windows import home, spread
from heedful.text.frame import Frame

# So many tokens of hidden copies are sorted and shared out together: enough for all workers, and scores come often.
TOKENS_PER_CHUNK = 16_384
# The tokenizer works in parallel on this many texts at once.
TEXTS_PER_CALL = 64


def perplexity(loss_sum: float, count: int) -> float:
    """exp of the mean loss; not a number where nothing was counted."""
    try:
        return math.exp(loss_sum / count) if count else math.nan
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class Score:
    """How well a text, or several together, can be guessed token by token."""

    loss_sum: float = 0.0  # negative log-probabilities in nats
    tokens: int = 0  # without [CLS] and [SEP]
    unknown: int = 0  # of them [UNK], which is easily guessed
    texts: int = 0
    empty: int = 0  # texts without a token
    windowed: int = 0  # texts longer than the model, read in windows that overlap

    @property
    def loss(self) -> float:
        """The mean over the tokens; not a number where there are none."""
        return self.loss_sum / self.tokens if self.tokens else math.nan

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return perplexity(self.loss_sum, self.tokens)

    def __add__(self, other: Score) -> Score:
        return Score(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass(frozen=True)
class MaskedText:
    """A text in windows, [CLS] … [SEP] each, and the places that are hidden in turn, each with its window."""

    windows: list[list[int]]
    places: list[tuple[int, int]]  # the number of a window, and a place in it

    @property
    def copies(self) -> list[tuple[list[int], int]]:
        """The window and the place of every token."""
        return [(self.windows[window], place) for window, place in self.places]


# The number of a text in its chunk, a window of it, and the place that is hidden.
Copy = tuple[int, list[int], int]
_Running = tuple[list[MaskedText], list[list[Copy]], list[Future[list[float]]]]


def score_texts(lm: MaskedLm, texts: Iterable[str], max_length: int | None = None) -> Iterator[Score]:
    """The score of each text, in order and in constant memory, in windows of at most `max_length` tokens.

    Added up, the scores give that of the whole.
    """
    yield from _scores(lm, masked_texts(lm, texts, max_length))


def score_sequences(lm: MaskedLm, sequences: Iterable[Sequence[int]]) -> Iterator[Score]:
    """As `score_texts`, of texts that are tokens already: [CLS] … [SEP], none longer than the model."""
    frame = lm.tokenizer.frame.single
    before, size = len(frame.before.ids), frame.size
    wholes = (list(ids) for ids in sequences)
    yield from _scores(lm, (MaskedText([ids], [(0, before + i) for i in range(len(ids) - size)]) for ids in wholes))


def _scores(lm: MaskedLm, texts: Iterable[MaskedText]) -> Iterator[Score]:
    running: deque[_Running] = deque()
    with worker_pool() as pool:
        for chunk in _chunks(texts):
            running.append(_start(lm, chunk, pool))
            if len(running) > 1:
                yield from _finished(lm, *running.popleft())
        while running:
            yield from _finished(lm, *running.popleft())


def masked_texts(lm: MaskedLm, texts: Iterable[str], max_length: int | None = None) -> Iterator[MaskedText]:
    """Texts as ids, in windows of at most `max_length` tokens, or of what the model has room for."""
    limit = min((limit for limit in (max_length, lm.positions) if limit is not None), default=None)
    source = iter(texts)
    while some := list(islice(source, TEXTS_PER_CALL)):
        for encoding in lm.tokenizer.pieces(some):
            yield _windows(lm.tokenizer.frame, encoding.ids, limit)


def _windows(frame: Frame, pieces: list[int], limit: int | None) -> MaskedText:
    before = len(frame.single.before.ids)
    windows = spread(len(pieces), len(pieces) or 1 if limit is None else limit - frame.single.size)
    homes = ((token, home(windows, token)) for token in range(len(pieces)))
    return MaskedText(
        [frame.joined(pieces[window.start : window.stop])[0] for window in windows],
        [(number, before + token - windows[number].start) for token, number in homes],
    )


def _chunks(texts: Iterable[MaskedText]) -> Iterator[list[MaskedText]]:
    chunk: list[MaskedText] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text.windows[0]) * max(len(text.places), 1)
        if size >= TOKENS_PER_CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _start(lm: MaskedLm, chunk: list[MaskedText], pool: ThreadPoolExecutor) -> _Running:
    copies = [(number, ids, place) for number, text in enumerate(chunk) for ids, place in text.copies]
    lengths = [len(ids) for _, ids, _ in copies]
    batches = [[copies[i] for i in batch] for batch in cut_by_tokens(lengths, TOKENS_PER_BATCH)]
    hidden = [[(ids, place) for _, ids, place in batch] for batch in batches]
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
    for (number, _, _), loss in zip(chain.from_iterable(batches), losses, strict=True):
        by_text[number].append(loss)
    for text, own in zip(chunk, by_text, strict=True):
        yield score_of(lm, text, own)


def score_of(lm: MaskedLm, text: MaskedText, losses: Sequence[float]) -> Score:
    """The score of a text whose tokens had these losses."""
    return Score(
        loss_sum=math.fsum(losses),
        tokens=len(losses),
        unknown=sum(ids[place] == lm.tokenizer.unk_id for ids, place in text.copies),
        texts=1,
        empty=int(not losses),
        windowed=int(len(text.windows) > 1),
    )
