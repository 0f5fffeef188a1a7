"""From token sequences to flat batches: sorted by length, cut by a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby

import numpy as np
import torch

from heedful.schema import Batch, Group

# For inference on one core: enough rows for products at full speed. From 512 to 2,048 no difference was measured.
TOKENS_PER_BATCH = 1024
# A last batch of an epoch smaller than this share of the one before it joins it.
SMALL_TAIL = 0.25


def flat_batch(sequences: Sequence[Sequence[int]], segments: Sequence[Sequence[int]] | None = None) -> Batch:
    """Lay token sequences one after the other; without `segments` every token is in segment 0."""
    lengths = tuple(map(len, sequences))
    # For one text alone, such as a query, this is a noticeable part of the work.
    alone = len(lengths) == 1 and lengths[0] > 0
    ids = torch.tensor(sequences[0], dtype=torch.int64) if alone else torch.from_numpy(_flat(sequences))
    return Batch(
        ids=ids,
        segments=torch.zeros_like(ids) if segments is None else torch.from_numpy(_flat(segments)),
        positions=torch.arange(lengths[0]) if alone else torch.cat([torch.arange(n) for n in lengths]),
        lengths=lengths,
        groups=(Group(0, 1, lengths[0]),) if alone else groups_of(lengths),
    )


def groups_of(lengths: Sequence[int]) -> tuple[Group, ...]:
    """The runs of equally long neighbours."""
    groups: list[Group] = []
    start = 0
    for length, run in groupby(lengths):
        groups.append(Group(start, sum(1 for _ in run), length))
        start += groups[-1].count * length
    return tuple(groups)


def cut_by_tokens(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Sequence numbers in batches of at most `budget` tokens (or a single longer sequence), longest first.

    Equally long sequences become neighbours, which is what attention wants; the longest first, so that workers who
    share the batches finish at about the same time.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return cut_in_order(order, lengths, budget)


def cut_in_order(order: Sequence[int], sizes: Sequence[int], budget: int) -> list[list[int]]:
    """The numbers in `order` in batches whose `sizes` add up to at most `budget`, or of a single larger one."""
    batches: list[list[int]] = []
    room = 0
    for index in order:
        if sizes[index] > room or not batches:
            batches.append([])
            room = budget
        batches[-1].append(index)
        room -= sizes[index]
    return batches


def without_small_tail(batches: list[list[int]]) -> list[list[int]]:
    """The batches of an epoch; a last one much smaller than the others joins the one before it."""
    if len(batches) > 1 and len(batches[-1]) < SMALL_TAIL * len(batches[-2]):
        return [*batches[:-2], batches[-2] + batches[-1]]
    return batches


def _flat(sequences: Sequence[Sequence[int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.fromiter(chain.from_iterable(sequences), dtype=np.int64)
