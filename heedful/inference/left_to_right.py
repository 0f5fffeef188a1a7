"""Perplexity from left to right: every token of a text is predicted from those before it, the end of the text too.

    loss(W) = − Σ_t log P(w_t | w_1 … w_{t-1}),  t = 1 … n + 1,  w_{n+1} the end symbol

Over the whitespace words of the raw text, and not over tokens, models of different vocabularies compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

import torch

from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens, flat_batch
from heedful.inference.pseudo_perplexity import Score
from heedful.models.language_model import LanguageModel
from heedful.text.ends import Ends
from heedful.text.tokenizer import Tokenizer

TEXTS_PER_CHUNK = 256


def score_left_to_right(
    model: LanguageModel, tokenizer: Tokenizer, texts: Iterable[str], limit: int | None = None
) -> Iterator[Score]:
    """The score of each text, in order and in constant memory; of a text longer than `limit` tokens the rest is cut."""
    ends, source = Ends.of(tokenizer), iter(texts)
    while some := list(islice(source, TEXTS_PER_CHUNK)):
        pieces = [encoding.ids for encoding in tokenizer.pieces(some)]
        wholes = [ends.whole(ids) if ids else [] for ids in pieces]
        kept = [ids if limit is None else ids[: limit + 1] for ids in wholes]  # the last token is not read
        losses = _losses(model, kept)
        for whole, ids, own in zip(wholes, kept, losses, strict=True):
            yield Score(
                loss_sum=own,
                tokens=max(len(ids) - 1, 0),
                unknown=_unknown(tokenizer, ids[1:], ends),
                texts=1,
                empty=int(not ids),
                truncated=int(len(ids) < len(whole)),
            )


@torch.inference_mode()
def _losses(model: LanguageModel, texts: list[list[int]]) -> list[float]:
    """The negative log-probability of all but the first token of each text."""
    worded = [number for number, ids in enumerate(texts) if ids]
    found = [0.0] * len(texts)
    for places in cut_by_tokens([len(texts[number]) - 1 for number in worded], TOKENS_PER_BATCH):
        numbers = [worded[place] for place in places]
        batch = flat_batch([texts[number][:-1] for number in numbers]).to(str(model.device))
        targets = torch.tensor([token for number in numbers for token in texts[number][1:]], device=model.device)
        parts = torch.split(model.log_probabilities(batch, targets), list(batch.lengths))
        for number, part in zip(numbers, parts, strict=True):
            found[number] = -math.fsum(part.tolist())
    return found


def _unknown(tokenizer: Tokenizer, ids: list[int], ends: Ends) -> int:
    unknown = tokenizer.id_of(tokenizer.special_tokens.get("unk", ""))
    return 0 if unknown is None or unknown == ends.end else ids.count(unknown)
