"""The best stretches of a text, by a score for their first token and one for their last."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class Stretch(NamedTuple):
    """Tokens `first` to `last`, both in it."""

    score: float
    first: int
    last: int


def best_stretches(starts: Tensor, ends: Tensor, longest: int, count: int) -> list[Stretch]:
    """The `count` stretches of at most `longest` tokens with the highest starts[first] + ends[last], best first."""
    tokens = len(starts)
    reach = min(longest, tokens)
    if reach < 1:
        return []
    # Row i holds the ends i … i + reach - 1, so that only stretches of an allowed length are ever scored.
    reachable = F.pad(ends, (0, reach - 1), value=-math.inf).unfold(0, reach, 1)  # (tokens, reach)
    scores, cells = (starts[:, None] + reachable).flatten().topk(min(count, tokens * reach))
    found = zip(scores.tolist(), cells.tolist(), strict=True)
    return [Stretch(s, cell // reach, cell // reach + cell % reach) for s, cell in found if s > -math.inf]
