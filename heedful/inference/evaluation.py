"""How good a fine-tuned model is on labelled data, how sure that is, how it compares with another, where it fails.

    report = evaluate([predictor("run")], "dev.tsv")
    report.scores["accuracy"], report.intervals["accuracy"], report.worst
    write_errors(report.wrong, "errors.csv")          # of heedful.inference.wrong_answers

Each score has a 95 % bootstrap interval over the examples, and two models are compared on the same resamples of the
same examples (paired bootstrap).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.labelled.dataset import BadRows, Columns, Remark
from heedful.errors import HeedfulError
from heedful.inference.bars import Bar, no_bar
from heedful.inference.predictor import Evaluation, Predictor
from heedful.inference.wrong_answers import WrongAnswer, surest_first, wrong_answers
from heedful.tasks.bootstrap import interval, paired
from heedful.tasks.task import Detail
from heedful.text.rows import DataSource

ROUNDS, WORST = 500, 5


@dataclass(frozen=True)
class Comparison:
    """Another model on the same examples, and how far the first one is above it."""

    scores: Mapping[str, float]
    differences: Mapping[str, Mapping[str, float]]  # difference, low, high and p of each score


@dataclass(frozen=True)
class EvaluationReport:
    """What there is to say of a model's answers to labelled examples."""

    task: str
    examples: int
    scores: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    # Not shown where the report is printed, so that a notebook shows the scores.
    details: Sequence[Detail] = field(default=(), repr=False)
    worst: Sequence[Mapping[str, Any]] = field(
        default=(), repr=False
    )  # the surest wrong ones: where, text, truth, said
    wrong: Sequence[WrongAnswer] = field(
        default=(), repr=False
    )  # all, in the data's order; of numbers the farthest first
    compared: Comparison | None = None
    remarks: Sequence[Remark] = ()
    cut: int = 0  # examples that the model has not seen whole

    def as_json(self) -> dict[str, Any]:
        """The report as plain values; what is absent is left out."""
        told = asdict(replace(self, wrong=()))
        for name in ("wrong", "remarks", "cut", *(["compared"] if self.compared is None else [])):
            del told[name]
        return told


@dataclass(frozen=True)
class EvaluationSettings:
    """How much to work out."""

    columns: Columns = field(default_factory=Columns)
    rounds: int = ROUNDS  # of the bootstrap; 0 for no intervals
    worst: int = WORST
    bad_rows: BadRows = "error"  # those without a label or text


def evaluate(
    predictors: Sequence[Predictor],
    data: str | DataSource,
    settings: EvaluationSettings | None = None,
    bar: Bar = no_bar,
) -> EvaluationReport:
    """Score one model on labelled data, or two and compare them."""
    settings = settings or EvaluationSettings()
    if len({one.task.name for one in predictors}) > 1:
        raise HeedfulError("the two models are for different tasks", remedy="compare models for the same task")
    results = [_answered(one, data, settings, bar) for one in predictors]
    _check_same_truth(results)
    one, result = predictors[0], results[0]
    examples, predictions = result.data.examples, result.predictions
    wrong = wrong_answers(one.task, examples, predictions)
    with bar("resampling", settings.rounds * len(results), "rounds") as advance:
        rounds = count(1)
        first, *others = (
            _Rescored(*pair, lambda: advance(done := next(rounds), done))
            for pair in zip(predictors, results, strict=True)
        )
        intervals = _intervals(first, settings.rounds)
        compared = _comparison(first, others[0], settings.rounds) if others else None
    return EvaluationReport(
        task=one.task.name,
        examples=len(examples),
        scores=dict(result.scores),
        intervals=intervals,
        details=tuple(one.task.details(examples, predictions)),
        worst=[_shown(answer) for answer in surest_first(wrong)[: settings.worst]],
        wrong=wrong,
        compared=compared,
        remarks=result.data.remarks,
        cut=sum("cut" in answer for answer in predictions),
    )


def _answered(one: Predictor, data: str | DataSource, settings: EvaluationSettings, bar: Bar) -> Evaluation:
    read = one.read(data, settings.columns, bad_rows=settings.bad_rows)
    with bar("predicting", len(read.examples), "examples") as advance:
        return one.evaluate(read, lambda done: advance(done, done))


def _check_same_truth(results: Sequence[Evaluation]) -> None:
    """Two models can only be compared by the same truth, though one may look at more of the texts than the other."""
    first, *others = ([example.truth for example in result.data.examples] for result in results)
    if any(truth != first for truth in others):
        remedy = "name the column for both with `label`"
        raise HeedfulError("the two models were trained on different columns of labels", remedy=remedy)


class _Rescored:
    """The scores of choices of the examples; each choice is scored once, whoever asks for whichever of its scores."""

    def __init__(self, one: Predictor, result: Evaluation, tick: Callable[[], object]) -> None:
        """`tick` is called for each choice that is scored."""
        self.scores, self.examples, self.tick = result.scores, len(result.data.examples), tick
        self.rescorer = one.task.rescorer(result.data.examples, result.predictions)
        self.known: dict[bytes, Mapping[str, float]] = {_key(np.arange(self.examples)): result.scores}

    def named(self, name: str) -> Callable[[NDArray[np.int64]], float]:
        """The score of that name, nan where a choice has none, such as one without unanswerable questions."""
        return lambda chosen: self._scores(chosen).get(name, math.nan)

    def _scores(self, chosen: NDArray[np.int64]) -> Mapping[str, float]:
        key = _key(chosen)
        if key not in self.known:
            self.known[key] = self.rescorer(chosen)
            self.tick()
        return self.known[key]


def _key(chosen: NDArray[np.int64]) -> bytes:
    return hashlib.blake2b(chosen.tobytes(), digest_size=16).digest()


def _intervals(again: _Rescored, rounds: int) -> dict[str, tuple[float, float]]:
    return {name: interval(again.named(name), again.examples, rounds) for name in again.scores if rounds}


def _shown(answer: WrongAnswer) -> dict[str, Any]:
    example = answer.example
    return {"where": example.where, "text": example.shown, "truth": example.truth, "said": answer.prediction}


def _comparison(first: _Rescored, second: _Rescored, rounds: int) -> Comparison:
    differences = {
        name: paired(first.named(name), second.named(name), first.examples, rounds)._asdict()
        for name in first.scores
        if rounds
    }
    return Comparison(dict(second.scores), differences)
