"""Who sees whom where tokens are predicted in another order than they stand in: the two streams of XLNet.

token   a  b  c  d         the content of c sees   a, d, b and c
turn   -1  0  1 -1         its query sees          a, d and b
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.nn.ragged import Layout, layout_of
from heedful.nn.relative_attention import HIDDEN, Sight
from heedful.schema import Batch, Group


def sights(
    batch: Batch, past: int, order: Tensor | None, targets: Tensor | None
) -> tuple[tuple[Sight, ...], tuple[Sight, ...]]:
    """What content and queries see in each group of a batch after `past` states of memory.

    `order` (N,) are the turns of the tokens, -1 for those that all see; `targets` (M,) the places that have a query.
    """
    one_segment = not bool(batch.segments.any())
    counts = _targets_in(batch, targets) if targets is not None else []
    longest = max(batch.lengths, default=0)
    content, query = [], []
    sequence = 0
    for group in batch.groups:
        rows = slice(group.start, group.start + group.count * group.length)
        shape, first = (group.count, group.length), longest - group.length
        turns = None if order is None else order[rows].view(shape)
        segments = None if one_segment else batch.segments[rows].view(shape)
        content.append(_content_sight(group, first, past, turns, segments))
        if targets is not None and turns is not None:
            mine = targets[(targets >= rows.start) & (targets < rows.stop)] - group.start
            layout = layout_of(counts[sequence : sequence + group.count], targets.device)
            query.append(_query_sight(group, first, past, turns, segments, mine, layout))
        sequence += group.count
    return tuple(content), tuple(query)


def _content_sight(group: Group, first: int, past: int, turns: Tensor | None, segments: Tensor | None) -> Sight:
    layout = Layout(group.count, group.length, None)
    hidden = None
    if turns is not None:
        itself = torch.eye(group.length, dtype=torch.bool, device=turns.device)
        hidden = _hiding(_earlier(turns, turns) | itself, past)
    elsewhere = None if segments is None else _elsewhere(segments, segments, past)
    return Sight(layout, group.length, first, None, hidden, elsewhere)


def _query_sight(
    group: Group, first: int, past: int, turns: Tensor, segments: Tensor | None, targets: Tensor, layout: Layout
) -> Sight:
    places = layout.pad(targets % group.length)  # in the cells that are left over the first token asks, for nobody
    visible = _earlier(turns.gather(1, places), turns)
    seeing = None
    if not past and not bool(visible.any(-1).all()):
        seeing = visible.any(-1, keepdim=True).float()
    elsewhere = None if segments is None else _elsewhere(segments.gather(1, places), segments, past)
    return Sight(layout, group.length, first, places, _hiding(visible, past), elsewhere, seeing)


def _earlier(asking: Tensor, turns: Tensor) -> Tensor:
    """Which tokens had their turn before: (b, Q) and (b, T) -> (b, Q, T)."""
    return turns[:, None, :] < asking.clamp(min=0)[:, :, None]


def _hiding(visible: Tensor, past: int) -> Tensor:
    """0 for what is visible, memory included, and HIDDEN for the rest, (b, Q, past + T)."""
    hidden = torch.zeros(visible.shape, device=visible.device).masked_fill_(~visible, HIDDEN)
    return F.pad(hidden, (past, 0))


def _elsewhere(asking: Tensor, segments: Tensor, past: int) -> Tensor:
    """1 for keys of another segment than the query's; the memory is in segment 0, (b, Q, past + T)."""
    return (asking[:, :, None] != F.pad(segments, (past, 0))[:, None, :]).float()


def _targets_in(batch: Batch, targets: Tensor) -> list[int]:
    """How many of the targets each sequence has."""
    ends = torch.tensor(batch.lengths, device=targets.device).cumsum(0)
    counts: list[int] = torch.bincount(torch.bucketize(targets, ends, right=True), minlength=len(ends)).tolist()
    return counts
