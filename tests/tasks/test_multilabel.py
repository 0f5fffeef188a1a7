"""Several labels for a text: targets, the loss, thresholds, scores by brute force, and class weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from heedful.data.labelled.dataset import MultiLabelRow, TextRow
from heedful.errors import HeedfulError
from heedful.tasks.classify import Classify
from heedful.tasks.finetuning import predict
from heedful.tasks.label_metrics import f1
from heedful.tasks.multilabel import MultiLabel
from heedful.text.tokenizer import Tokenizer


def row(text: str, *labels: str, where: str = "") -> MultiLabelRow:
    return MultiLabelRow(text, where=where, labels=labels)


ROWS = [
    row("the cat", "cat"),
    row("the dog", "dog"),
    row("cat dog", "cat", "dog"),
    row("love the dog", "dog", "love"),
    row("un"),
]
SAID = [{"labels": labels} for labels in (["cat"], ["cat", "dog"], ["dog"], ["love"], ["love"])]


def test_a_row_may_have_all_labels_or_none(tiny_tokenizer: Tokenizer) -> None:
    task = MultiLabel.fit(ROWS)
    assert task.labels == ("cat", "dog", "love")
    targets = [item.target for item in task.encode(ROWS, tiny_tokenizer)]
    assert targets == [(1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 1, 1), (0, 0, 0)]
    assert task.encode([TextRow("the cat")], tiny_tokenizer)[0].target == ()


def test_it_learns_each_label_by_itself(
    trained: Callable[[Any, Sequence[Any]], Any], tiny_tokenizer: Tokenizer
) -> None:
    task = MultiLabel.fit(ROWS)
    found = trained(task, ROWS)
    assert found.after < found.before / 3
    answers = predict(task, found.model, ROWS, tiny_tokenizer)
    assert [set(answer["labels"]) for answer in answers] == [set(one.labels or ()) for one in ROWS]
    assert all(
        0 < answer["probability"] <= 1 and set(answer["probabilities"]) == set(task.labels) for answer in answers
    )


def test_the_loss_is_the_mean_over_rows_and_labels() -> None:
    task = MultiLabel(labels=("a", "b", "c"))
    logits, wanted = torch.randn(5, 3), torch.randint(0, 2, (5, 3)).float()
    theirs = torch.nn.BCEWithLogitsLoss()(logits, wanted)
    assert torch.allclose(task.loss(torch.nn.Identity(), logits, (), wanted.ravel()) / 5, theirs)
    weights = torch.tensor([3.0, 0.5, 1.0])
    theirs = torch.nn.BCEWithLogitsLoss(pos_weight=weights)(logits, wanted)
    balanced = MultiLabel(labels=("a", "b", "c"), weights=(3.0, 0.5, 1.0))
    assert torch.allclose(balanced.loss(torch.nn.Identity(), logits, (), wanted.ravel()) / 5, theirs)


def test_scores_are_those_of_all_decisions() -> None:
    task = MultiLabel.fit(ROWS)
    found = task.score(ROWS, SAID)
    pairs = [(one.labels or (), said["labels"]) for one, said in zip(ROWS, SAID, strict=True)]
    decisions = [(label in true, label in said) for true, said in pairs for label in task.labels]
    assert found["f1"] == pytest.approx(f1(*zip(*decisions, strict=True), True))
    each = [f1([label in t for t, _ in pairs], [label in s for _, s in pairs], True) for label in task.labels]
    assert found["macro_f1"] == pytest.approx(np.mean(each))
    assert found["accuracy"] == pytest.approx(1 / 5)
    assert tuple(found) == MultiLabel.scores


def test_a_label_that_only_dev_has_counts_as_missed() -> None:
    task = MultiLabel.fit(ROWS)
    dev = [*ROWS, row("a bird", "bird", where="dev.csv:9")]
    task.check(dev)
    (remark,) = task.unseen(dev)
    assert (remark.count, remark.places) == (1, ("dev.csv:9",))
    said = [*SAID, {"labels": []}]
    assert task.score(dev, said)["f1"] < task.score(ROWS, SAID)["f1"]
    assert task.details(dev, said)[0].rows[-1] == ("bird (not in training)", 0.0, 0.0, 0.0, 1)
    with pytest.raises(HeedfulError, match="'bird'"):
        task.check(dev[-1:])


def test_dev_tunes_the_threshold() -> None:
    task = MultiLabel(labels=("a", "b"))
    rows = [row("", "a"), row("", "b"), row("")]
    shares = [(0.3, 0.1), (0.05, 0.35), (0.1, 0.1)]
    said = [{"labels": [], "probabilities": dict(zip("ab", both, strict=True))} for both in shares]
    assert task.tuned(rows, said).threshold == pytest.approx(0.2)


def test_the_best_blind_answer_is_found() -> None:
    task = MultiLabel.fit(ROWS)
    name, answers = task.blind_guess(ROWS)
    sets = [c for n in range(1, 4) for c in itertools.combinations(task.labels, n)]
    best = max(task.score(ROWS, [{"labels": list(one)}] * 5)["f1"] for one in sets)
    assert task.score(ROWS, answers)["f1"] == pytest.approx(best) and "dog" in name


def test_weights_make_skewed_labels_count_alike() -> None:
    rows = [TextRow("", None, label) for label in ("a", "a", "a", "b")]
    task = Classify.fit(rows, balance=True)
    assert task.weights == pytest.approx((4 / 6, 4 / 2))
    logits, targets = torch.zeros(4, 2), torch.tensor([0.0, 0.0, 0.0, 1.0])
    theirs = torch.nn.CrossEntropyLoss(torch.tensor(task.weights))(logits, targets.long())
    assert torch.allclose(task.loss(torch.nn.Identity(), logits, (), targets) / 4, theirs)
    assert MultiLabel.fit(ROWS, balance=True).weights == pytest.approx((3 / 2, 2 / 3, 4))
    everywhere = [row("", "a"), row("", "a", "b")]
    assert MultiLabel.fit(everywhere, balance=True).weights == pytest.approx((0.01, 1.0))


def test_rows_without_any_label_are_refused() -> None:
    with pytest.raises(HeedfulError, match="no row has a label"):
        MultiLabel.fit([row("the cat", where="a.csv:2")])
    with pytest.raises(HeedfulError, match="no labels"):
        MultiLabel.fit(ROWS).check([TextRow("the cat")])
