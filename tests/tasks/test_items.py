"""Items in batches: laid out as asked, dealt out completely, and answered in order."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.schema import Selection
from heedful.tasks.items import ItemSource, micro_batch_of, outputs_of, select
from heedful.tasks.task import Item, Window


def item(number: int, *lengths: int, target: tuple[float, ...] = (0.0,)) -> Item:
    """An item whose tokens are 100·number, 100·number + 1, …; the first and the last of each window are looked at."""
    windows = [
        Window([100 * number + 10 * w + i for i in range(n)], [0] * n, [0, n - 1]) for w, n in enumerate(lengths)
    ]
    return Item(number, tuple(windows), target)


class Echo(nn.Module):
    """Gives back the ids at the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, selection: Selection) -> Tensor:
        return selection.batch.ids[selection.rows].float().unsqueeze(-1) * self.scale


def test_rows_keep_the_order_of_the_items_although_the_batch_is_sorted() -> None:
    items = [item(1, 3), item(2, 7), item(3, 5, 2)]
    selection = select(items)
    assert selection.batch.lengths == (7, 5, 3, 2)
    assert selection.batch.ids[selection.rows].tolist() == [100, 102, 200, 206, 300, 304, 310, 311]
    assert selection.counts == (2, 2, 2, 2)


def test_a_micro_batch_counts_tokens_padding_and_weight() -> None:
    micro_batch = micro_batch_of([item(1, 3), item(2, 7, target=(4.0, 5.0))], "tag")
    assert (micro_batch.tokens, micro_batch.padding, micro_batch.counts) == (10, 4, {"tag": 2})
    assert micro_batch.targets.tolist() == [0.0, 4.0, 5.0]


def test_outputs_come_in_the_order_of_the_items() -> None:
    items = [item(n, 3 + n % 5) for n in range(1, 40)]
    outputs = outputs_of(Echo(), items)
    assert [int(windows[0][0]) for windows in outputs] == [100 * n for n in range(1, 40)]


def test_an_epoch_shows_every_item_once_in_an_order_of_its_own() -> None:
    items = [item(n, 4) for n in range(50)]
    source = ItemSource(items, "loss", batch_size=8, seed=3)
    epochs = [_numbers(source, range(*(source.steps_in(n) if n else 0 for n in (e, e + 1)))) for e in range(2)]
    assert [sorted(numbers) for numbers in epochs] == [list(range(50))] * 2
    assert epochs[0] != epochs[1]
    assert _numbers(ItemSource(items, "loss", 8, seed=3), range(3)) == _numbers(source, range(3))
    assert _numbers(ItemSource(items, "loss", 8, seed=4), range(3)) != _numbers(source, range(3))


@pytest.mark.parametrize(("world", "accumulate"), [(1, 4), (2, 1), (2, 3)])
def test_ranks_and_micro_batches_share_the_same_batch(world: int, accumulate: int) -> None:
    source = ItemSource([item(n, 3 + n % 4) for n in range(40)], "loss", batch_size=12, seed=0)
    for step in range(source.steps_in(1)):
        whole = _step(source, step, 0, 1, 1)
        dealt = [n for rank in range(world) for n in _step(source, step, rank, world, accumulate)]
        assert Counter(whole) == Counter(dealt)


def test_batches_by_tokens_stay_within_their_size() -> None:
    items = [item(n, 3 + n % 9) for n in range(60)]
    source = ItemSource(items, "loss", batch_size=40, seed=0, by_tokens=True)
    sizes = [source.step(step)[0].tokens for step in range(source.steps_in(1))]
    assert max(sizes[:-1]) <= 40
    assert sum(sizes) == sum(3 + n % 9 for n in range(60))


def test_a_part_of_an_epoch() -> None:
    items = [item(n, 4) for n in range(64)]
    source = ItemSource(items, "loss", 8, seed=0)
    assert [source.steps_in(epochs) for epochs in (0.01, 0.5, 1.25, 3)] == [1, 4, 10, 24]


@pytest.mark.parametrize("by_tokens", [False, True])
def test_any_step_can_be_asked_for_in_any_order(by_tokens: bool) -> None:
    items = [item(n, 3 + n % 9) for n in range(20)]
    source, other = (ItemSource(items, "loss", 30 if by_tokens else 8, 0, by_tokens) for _ in range(2))
    forwards = [_step(source, step, 0, 1, 1) for step in range(source.steps_in(5))]
    backwards = [_step(other, step, 0, 1, 1) for step in reversed(range(len(forwards)))]
    assert forwards == backwards[::-1]
    assert Counter(n for numbers in forwards for n in numbers) == dict.fromkeys(range(20), 5)


def test_a_batch_too_small_for_the_processes_is_refused_on_all_of_them() -> None:
    source = ItemSource([item(n, 4) for n in range(5)], "loss", batch_size=3, seed=0)
    assert all(source.step(0, rank, world=3) for rank in range(3))
    for rank in range(3):
        with pytest.raises(HeedfulError, match="step 2 is too small for 3 processes"):
            source.step(1, rank, world=3)
    with pytest.raises(HeedfulError, match="step 2 is too small for 3 processes"):
        source.check(world=3, steps=9)
    source.check(world=3, steps=1)
    source.check(world=2, steps=9)


def test_another_label_makes_another_fingerprint() -> None:
    one, same, other = (ItemSource([item(1, 4, target=(n,))], "loss", 3, 0).fingerprint for n in (0.0, 0.0, 1.0))
    assert one == same != other


def test_nothing_to_train_on_is_refused() -> None:
    with pytest.raises(HeedfulError, match="nothing to train on"):
        ItemSource([], "loss", batch_size=3, seed=0)


def _numbers(source: ItemSource, steps: range) -> list[int]:
    return [number for step in steps for number in _step(source, step, 0, 1, 1)]


def _step(source: ItemSource, step: int, rank: int, world: int, accumulate: int) -> list[int]:
    found = []
    for micro_batch in source.step(step, rank, world, accumulate):
        first = micro_batch.selection.rows[::2]
        found += [int(token) // 100 for token in micro_batch.selection.batch.ids[first]]
    return found
