"""Perplexity from left to right: every token of a text is predicted from those before it, the end of the text too.

    loss(W) = − Σ_t log P(w_t | w_1 … w_{t-1}),  t = 1 … n + 1,  w_{n+1} the end symbol

Over the whitespace words of the raw text, and not over tokens, models of different vocabularies compare. A text longer
than the model is read in windows that overlap by half: every token is predicted once, in the first window that has it,
from at least half a window (in the first one, from all there is).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch

from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens, flat_batch
from heedful.inference.pseudo_perplexity import Score
from heedful.models.language_model import LanguageModel
from heedful.tasks.windows import spread
from heedful.text.ends import Ends
from heedful.text.tokenizer import Tokenizer

TEXTS_PER_CHUNK = 256


class _Window(NamedTuple):
    """Tokens that a model reads, of which the last `new` were not predicted before."""

    text: int  # the number of the text in its chunk
    ids: list[int]  # one more than is read
    new: int


def score_left_to_right(
    model: LanguageModel, tokenizer: Tokenizer, texts: Iterable[str], limit: int | None = None
) -> Iterator[Score]:
    """The score of each text, in order and in constant memory, in windows of at most `limit` tokens."""
    ends, source = Ends.of(tokenizer), iter(texts)
    while some := list(islice(source, TEXTS_PER_CHUNK)):
        pieces = [encoding.ids for encoding in tokenizer.pieces(some)]
        wholes = [ends.whole(ids) if ids else [] for ids in pieces]
        windows = [window for number, ids in enumerate(wholes) if ids for window in _windows(number, ids, limit)]
        losses: list[list[float]] = [[] for _ in wholes]
        for window, loss in zip(windows, _losses(model, windows), strict=True):
            losses[window.text].append(loss)
        for ids, own in zip(wholes, losses, strict=True):
            yield Score(
                loss_sum=math.fsum(own),
                tokens=max(len(ids) - 1, 0),
                unknown=_unknown(tokenizer, ids[1:], ends),
                texts=1,
                empty=int(not ids),
                windowed=int(len(own) > 1),
            )


def _windows(text: int, ids: list[int], limit: int | None) -> Iterator[_Window]:
    """The windows of a text; the last token is only predicted, and never read."""
    read, done = len(ids) - 1, 0
    for window in spread(read, limit or read):
        yield _Window(text, ids[window.start : window.stop + 1], window.stop - done)
        done = window.stop


@torch.inference_mode()
def _losses(model: LanguageModel, windows: Sequence[_Window]) -> list[float]:
    """The negative log-probability of the new tokens of each window."""
    found = [0.0] * len(windows)
    for places in cut_by_tokens([len(window.ids) - 1 for window in windows], TOKENS_PER_BATCH):
        some = [windows[place].ids for place in places]
        batch = flat_batch([ids[:-1] for ids in some]).to(str(model.device))
        targets = torch.tensor([token for ids in some for token in ids[1:]], device=model.device)
        parts = torch.split(model.log_probabilities(batch, targets), list(batch.lengths))
        for place, part in zip(places, parts, strict=True):
            found[place] = -math.fsum(part[-windows[place].new :].tolist())
    return found


def _unknown(tokenizer: Tokenizer, ids: list[int], ends: Ends) -> int:
    unknown = tokenizer.id_of(tokenizer.special_tokens.get("unk", ""))
    return 0 if unknown is None or unknown == ends.end else ids.count(unknown)
