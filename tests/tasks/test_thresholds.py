"""The threshold with the best score, by brute force, and the labels of a classifier that has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from heedful.data.labelled.dataset import TextRow
from heedful.errors import HeedfulError
from heedful.tasks.classify import Classify
from heedful.tasks.label_metrics import accuracy, f1, matthews
from heedful.tasks.thresholds import SCORES, best_threshold

BY_HAND: dict[str, Callable[[list[bool], list[bool]], float]] = {
    "accuracy": accuracy,
    "f1": lambda truth, said: f1(truth, said, True),
    "matthews": matthews,
}


@pytest.mark.parametrize("score", SCORES)
def test_the_threshold_is_the_best_there_is(score: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        shares, truth = rng.integers(1, 8, size=12) / 8, rng.random(12) < 0.4
        found = best_threshold(shares, truth, score)
        # Something is said at every threshold; a score that is not defined counts as none.
        each = [BY_HAND[score](truth.tolist(), (shares >= cut).tolist()) for cut in np.linspace(0, max(shares), 101)]
        ours = BY_HAND[score](truth.tolist(), (shares >= found).tolist())
        assert np.nan_to_num(ours) == pytest.approx(max(np.nan_to_num(each)))
    assert best_threshold(np.array([0.2, 0.9]), np.array([False, False]), score) == 0.5


ROWS = [TextRow("", None, label) for label in ("no", "no", "yes", "yes", "no")]
SHARES = (0.1, 0.3, 0.4, 0.6, 0.5)  # of yes
SAID = [{"label": "", "probabilities": {"no": 1 - share, "yes": share}} for share in SHARES]


def test_dev_decides_from_where_on_the_second_label_is_given() -> None:
    task = Classify.fit(ROWS, decide_by="f1")
    assert task.threshold == 0.5 and task.tuned(ROWS, SAID).threshold == pytest.approx(0.35)
    likelier = Classify.fit(ROWS)
    assert likelier.tuned(ROWS, SAID) is likelier


def test_the_label_and_its_probability_are_those_of_the_threshold() -> None:
    task = replace(Classify.fit(ROWS, decide_by="f1"), threshold=0.35)
    given = [task._prediction(said["probabilities"]) for said in SAID]  # type: ignore[arg-type]
    assert [one["label"] for one in given] == ["no", "no", "yes", "yes", "yes"]
    assert given[2]["probability"] == 0.4  # less than the other's, which is not given
    assert task.score(ROWS, given)["f1"] == pytest.approx(0.8)


def test_three_labels_have_no_threshold() -> None:
    with pytest.raises(HeedfulError, match=r"`decide_by` is for two labels, and there are 3"):
        Classify.fit([*ROWS, TextRow("", None, "maybe")], decide_by="f1")
