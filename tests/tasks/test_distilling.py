"""Distilling: the losses by their formulas, micro-batches that make no difference, and items in flat memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.data.labelled.dataset import SentencePair, TextRow
from heedful.tasks.classify import Classify
from heedful.tasks.distilling import (
    LABELS,
    TEACHER,
    Distilling,
    FlatItems,
    TaughtSource,
    following_vectors,
    soft_loss,
)
from heedful.tasks.embed import Embed
from heedful.tasks.task import Task
from heedful.text.tokenizer import Tokenizer

Small = Callable[[Task[Any]], nn.Module]
OURS = torch.tensor([[0.5, -1.0, 2.0], [0.0, 1.0, 0.3]])
THEIRS = torch.tensor([[1.5, 0.0, -0.5], [0.2, 3.0, 0.1]])
ROWS = [TextRow(f"the cat sees {letter}", label="x" if letter in "abc" else None) for letter in "abcdefgh"]


def test_soft_labels_by_the_sums_of_their_formula() -> None:
    expected = 0.0
    for ours, theirs in zip(OURS.tolist(), THEIRS.tolist(), strict=True):
        p = [math.exp(t / 3) for t in theirs]
        q = [math.exp(s / 3) for s in ours]
        expected += 9 * sum(a / sum(p) * math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True))
    assert float(soft_loss("classify", 3.0)(OURS, THEIRS)) == pytest.approx(expected, rel=1e-5)
    assert float(soft_loss("classify", 3.0)(OURS, OURS)) == pytest.approx(0, abs=1e-6)


def test_several_labels_and_numbers_by_the_sums_of_their_formulas() -> None:
    expected = 0.0
    for ours, theirs in zip(OURS.flatten().tolist(), THEIRS.flatten().tolist(), strict=True):
        wanted, said = 1 / (1 + math.exp(-theirs / 2)), 1 / (1 + math.exp(-ours / 2))
        expected -= 4 / 3 * (wanted * math.log(said) + (1 - wanted) * math.log(1 - said))
    assert float(soft_loss("multilabel", 2.0)(OURS, THEIRS)) == pytest.approx(expected, rel=1e-5)
    squares = sum((a - b) ** 2 for a, b in zip(OURS.flatten().tolist(), THEIRS.flatten().tolist(), strict=True))
    assert float(soft_loss("regress", 2.0)(OURS, THEIRS)) == pytest.approx(squares, rel=1e-5)


def test_vectors_follow_by_their_direction_alone() -> None:
    assert float(following_vectors(OURS, 7 * OURS)) == pytest.approx(0, abs=1e-6)
    assert float(following_vectors(OURS, -OURS)) == pytest.approx(4, abs=1e-6)


def answers_of(numbers: Sequence[int]) -> Tensor:
    return torch.stack([torch.tensor([float(number), 1.0]) for number in numbers])


def test_flat_items_are_the_items(tiny_tokenizer: Tokenizer) -> None:
    task = Classify(labels=("x", "y"), max_length=6)
    examples = [*ROWS, TextRow("a " * 20)]
    flat, plain = FlatItems.of(task, examples, tiny_tokenizer), task.encode(examples, tiny_tokenizer)
    assert list(flat) == plain and len(flat) == 9 and flat[1:3] == plain[1:3]
    lines = [SentencePair("the cat"), SentencePair("dog")]
    task_of_lines = Embed(learns="teacher")
    assert list(FlatItems.of(task_of_lines, lines, tiny_tokenizer)) == task_of_lines.encode(lines, tiny_tokenizer)


def gradients(model: nn.Module, objective: Distilling, batches: Sequence[Any]) -> dict[str, Tensor]:
    """As the trainer adds them up: sums of losses over the counts of the whole step."""
    model.zero_grad()
    totals = {name: sum(batch.counts[name] for batch in batches) for name in batches[0].counts}
    for batch in batches:
        sum(loss / max(totals[name], 1) for name, loss in objective(model, batch).items()).backward()  # type: ignore[union-attr]
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def test_micro_batches_and_labelled_rows_make_one_batch(tiny_tokenizer: Tokenizer, small_model: Small) -> None:
    task = Classify(labels=("x", "y"))
    model = small_model(task).eval()
    source = TaughtSource(FlatItems.of(task, ROWS, tiny_tokenizer), answers_of, batch_size=8, seed=0)
    objective = Distilling(task, soft_loss("classify", 2.0), label_weight=0.25)
    (whole,), parts = source.step(0), source.step(0, accumulate=3)
    assert whole.counts == {TEACHER: 8, LABELS: 3} and len(parts) == 3
    one, three = (gradients(model, objective, batches) for batches in ([whole], parts))
    for name, gradient in one.items():
        torch.testing.assert_close(three[name], gradient, atol=1e-6, rtol=1e-4)
    outputs = model(whole.items.selection)
    assert whole.labelled is not None
    hard = nn.functional.cross_entropy(outputs[whole.labelled], torch.zeros(3, dtype=torch.long), reduction="sum")
    losses = objective(model, whole)
    torch.testing.assert_close(losses[LABELS], 0.25 * hard)
    torch.testing.assert_close(losses[TEACHER], 0.75 * soft_loss("classify", 2.0)(outputs, whole.taught))


def test_the_teachers_answers_stay_with_their_texts(tiny_tokenizer: Tokenizer) -> None:
    task = Embed(learns="teacher")
    items = FlatItems.of(task, [SentencePair(f"{letter} cat") for letter in "abcdefg"], tiny_tokenizer)
    source = TaughtSource(items, answers_of, batch_size=3, seed=5)
    seen: list[int] = []
    for batch in (micro for step in range(source.epochs.steps_in(1)) for micro in source.step(step)):
        assert batch.labelled is None and set(batch.counts) == {TEACHER}
        rows = batch.items.selection.batch.ids[batch.items.selection.rows + 1].tolist()
        numbers = [int(number) for number in batch.taught[:, 0]]
        assert rows == [items[number].windows[0].ids[1] for number in numbers]
        seen += numbers
    assert sorted(seen) == list(range(7))
