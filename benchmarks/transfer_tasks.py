"""The tasks on which a BERT of one's own is compared with random weights: their files, rows and scores."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from materials import table, tagged

Rows = Sequence[Mapping[str, Any]]
CHOOSING_FROM = 2000  # rows: a rate is chosen on the first of the training rows, four fifths of them trained on
HELD_OUT = 5  # one in so many, the last ones
DECIDING = 10  # one in so many, the last ones, tell where yes begins


@dataclass(frozen=True)
class Task:
    """A task of heedful, the files it is learned from and judged by, and how much of them is read how often."""

    name: str
    kind: str
    train: str
    dev: str
    metric: str
    rows: int | None = 2000  # the first of the file; None is all of them
    epochs: int = 5
    label: str | None = None
    language: str = "en"
    pairs: bool = False  # of texts, which are compared
    asked: bool = False  # run only where it is asked for by name
    drawn: bool = False  # the rows are drawn from the whole file, not its first
    head: str | None = None  # of a tagger, where it is not linear
    choosing_from: int = CHOOSING_FROM  # more, where so few rows teach nothing
    decided: bool = False  # from which probability on yes is said is chosen by the metric on training rows held out

    def settings(self) -> dict[str, Any]:
        """What heedful.finetune is told of it."""
        pooling = None if self.kind == "tag" else "compare" if self.pairs else "mean"
        named = {"pooling": pooling, "label": self.label, "head": self.head}
        named["decide_by"] = self.metric if self.decided else None
        return {name: value for name, value in named.items() if value is not None}

    def training_rows(self, most: int | None = None) -> Rows:
        """The rows to learn from, at most so many."""
        every = _rows(self.kind, self.train)
        if self.drawn:
            every = random.Random(0).sample(every, len(every))
        return every[: min(self.rows or len(every), most or len(every))]

    def deciding_rows(self, most: int | None = None) -> tuple[Rows, Rows]:
        """Those to learn from, and those that tell where yes begins, none of which is a dev row."""
        rows = self.training_rows(most)
        kept = len(rows) - len(rows) // DECIDING
        return rows[:kept], rows[kept:]

    def choosing_rows(self, most: int | None = None) -> tuple[Rows, Rows]:
        """The rows that a rate is chosen on: those to learn from, and those to judge by, none of which is a dev row."""
        rows = self.training_rows(most)[: self.choosing_from]
        kept = len(rows) - len(rows) // HELD_OUT
        return rows[:kept], rows[kept:]

    def dev_rows(self) -> Rows:
        """The rows of the scores that are reported."""
        return _rows(self.kind, self.dev)

    def one_answer(self) -> float:
        """The score of one answer for all dev rows: the most frequent label, or for F1 always yes."""
        if self.metric == "accuracy":
            labels = [str(row[self.label or "label"]) for row in self.dev_rows()]
            return max(Counter(labels).values()) / len(labels)
        if self.metric == "f1" and self.kind == "classify":
            yes = sum(int(row["label"] == "1") for row in self.dev_rows())
            return 2 * yes / (yes + len(self.dev_rows()))
        return 0.0  # a correlation with what never changes, and no entity found


TASKS = (
    Task("STS-B", "regress", "stsb/train.tsv", "stsb/dev.tsv", "pearson", label="score", pairs=True),
    Task("SICK", "classify", "sick/train.tsv", "sick/dev.tsv", "accuracy", label="label", pairs=True),
    Task("SST-2", "classify", "sst2/train.tsv.gz", "sst2/dev.tsv", "accuracy"),
    Task("CoLA", "classify", "cola/train.tsv", "cola/dev.tsv", "matthews", rows=None, epochs=3, choosing_from=10_000,
         decided=True),
    Task("MRPC", "classify", "mrpc/train.tsv", "mrpc/dev.tsv", "f1", rows=None, epochs=3, pairs=True, decided=True),
    Task("CoNLL", "tag", "conll2003/train.conll.gz", "conll2003/dev.conll", "f1"),
    Task("CoNLL, CRF", "tag", "conll2003/train.conll.gz", "conll2003/dev.conll", "f1", head="crf"),
    Task("ChnSentiCorp", "classify", "chnsenticorp/train_nodup.tsv.gz", "chnsenticorp/dev.tsv", "accuracy", epochs=3,
         language="zh"),
    # Reported nowhere: settings are tried on it.
    Task("RTE", "classify", "rte/train.tsv", "rte/dev.tsv", "accuracy", rows=2000, pairs=True, asked=True),
    # The first 2,000 rows of STS-B are captions, half of its dev rows are news and forums.
    Task("STS-B drawn", "regress", "stsb/train.tsv", "stsb/dev.tsv", "pearson", label="score", pairs=True, asked=True,
         drawn=True),
)  # fmt: skip


def tasks_named(names: Sequence[str]) -> list[Task]:
    """The tasks of these names; of none, all that are reported."""
    known = {task.name: task for task in TASKS}
    for name in names:
        if name not in known:
            sys.exit(f"there is no task {name}: there are {', '.join(known)}")
    return [known[name] for name in names] or [task for task in TASKS if not task.asked]


def _rows(kind: str, file: str) -> Rows:
    return tagged(file) if kind == "tag" else table(file)
