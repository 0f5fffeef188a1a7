"""Dev data split off: in shares, by label, by context, and nothing on both sides."""

from __future__ import annotations

from collections import Counter

import pytest

from heedful.data.labelled.dataset import Question, TextRow
from heedful.data.labelled.dev_split import share_of, split_off
from heedful.errors import HeedfulError


@pytest.mark.parametrize(
    ("dev", "share"), [("10%", 0.1), (" 2.5 %", 0.025), ("dev.tsv", None), (None, None), ([], None)]
)
def test_shares_are_told_from_files(dev: object, share: float | None) -> None:
    assert share_of(dev) == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize("dev", ["0%", "100%", "250%"])
def test_a_share_that_is_none_is_refused(dev: str) -> None:
    with pytest.raises(HeedfulError, match="for dev"):
        share_of(dev)


def test_every_label_keeps_its_share_and_nothing_is_on_both_sides() -> None:
    rows = [TextRow(f"text {number}", label="rare" if number % 10 == 0 else "usual") for number in range(1000)]
    train, dev = split_off(rows, 0.1, seed=1)
    assert Counter(row.label for row in dev) == {"usual": 90, "rare": 10}
    assert sorted([*train, *dev], key=rows.index) == rows and not set(train) & set(dev)
    assert split_off(rows, 0.1, seed=1) == (train, dev) != split_off(rows, 0.1, seed=2)
    assert train == sorted(train, key=rows.index) and dev == sorted(dev, key=rows.index)


def test_repeated_rows_and_questions_about_one_context_stay_together() -> None:
    rows = [TextRow(f"text {number % 50}", label="x") for number in range(200)]
    train, dev = split_off(rows, 0.2, seed=3)
    assert not {row.text for row in train} & {row.text for row in dev} and len(dev) == 40
    asked = [Question(str(i), f"question {i}", f"context {i // 5}") for i in range(100)]
    train_asked, dev_asked = split_off(asked, 0.1, seed=3)
    assert not {one.context for one in train_asked} & {one.context for one in dev_asked} and len(dev_asked) == 10


def test_numbers_as_labels_are_no_strata_and_strange_examples_are_split_too() -> None:
    rows = [TextRow(f"text {number}", label=str(number / 7)) for number in range(100)]
    assert len(split_off(rows, 0.1, seed=1)[1]) == 10
    assert len(split_off([object() for _ in range(30)], 0.1, seed=1)[1]) == 3


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(HeedfulError, match="leave nothing"):
        split_off([TextRow("a", label="x"), TextRow("b", label="y")], 0.1, seed=1)
    with pytest.raises(HeedfulError, match=r"20% of 20 examples \(2 without repeats, which stay together\) leave"):
        split_off([TextRow("a", label="x"), TextRow("b", label="y")] * 10, 0.2, seed=1)
