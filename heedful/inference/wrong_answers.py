"""The answers of a model that are wrong: found, ranked, and written to a file to be looked through.

A file has a row for each: the place of the example, its text, its label, what was predicted, and how sure that was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.atomic import atomic_file, check_free
from heedful.inference.answer_table import answer_format, write_table
from heedful.tasks.task import Prediction, Task

# The scores of which one says how right a single answer is, the first that a task has; errors count downwards.
SINGLE = ("accuracy", "f1", "squared_error")
COLUMNS = ("where", "text", "label", "prediction", "probability")  # of a table without a row


@dataclass(frozen=True)
class WrongAnswer:
    """A labelled example, what the model said of it in full and in short, and how right that is: 0 and up to, not, 1.

    Of numbers it is their squared error below zero: all are a little wrong.
    """

    example: Any
    prediction: Prediction
    said: str
    right: float

    @property
    def row(self) -> dict[str, Any]:
        """What a file says of it."""
        cells = getattr(self.example, "cells", {"text": self.example.shown})
        sure = {"probability": self.prediction["probability"]} if "probability" in self.prediction else {}
        told = {"label": self.example.truth, "prediction": self.said, **sure}
        return {"where": self.example.where, **cells, **told, **({"error": -self.right} if self.right < 0 else {})}


def wrong_answers(
    task: Task[Any], examples: Sequence[Any], predictions: Sequence[Prediction]
) -> tuple[WrongAnswer, ...]:
    """The wrong ones in the order of the examples; of numbers all, the farthest first."""
    found: list[WrongAnswer] = []
    by_number = False
    for example, prediction in zip(examples, predictions, strict=True):
        alone = task.score([example], [prediction])
        name = next((name for name in SINGLE if name in alone), None)
        if name is None:
            return ()
        by_number = name == "squared_error"
        right = -alone[name] if by_number else alone[name]
        if by_number or right < 1:
            found.append(WrongAnswer(example, prediction, task.said(prediction), right))
    return tuple(sorted(found, key=lambda answer: answer.right) if by_number else found)


def surest_first(wrong: Sequence[WrongAnswer]) -> list[WrongAnswer]:
    """The most wrong first, and of equally wrong ones the surest."""
    return sorted(wrong, key=lambda answer: (answer.right, -float(answer.prediction.get("probability", 0.0))))


def write_errors(wrong: Sequence[WrongAnswer], path: str | Path, overwrite: bool = False) -> None:
    """Write wrong answers to a .csv, .tsv or .jsonl; a file that is there is replaced only with `overwrite`."""
    kind = answer_format(str(path))
    check_free(path, overwrite)
    rows = [answer.row for answer in wrong]
    with atomic_file(path) as file:
        if kind == ".jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        else:
            write_table(file, kind, list(dict.fromkeys(name for row in rows for name in row)) or COLUMNS, rows)
