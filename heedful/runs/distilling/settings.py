"""What `heedful distil` is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from heedful.errors import HeedfulError
from heedful.runs.settings import Place, Precision, check_bounds, data_of, refuse_idle, told


@dataclass(frozen=True)
class DistillingSettings:
    """A student, a teacher and texts that nobody has labelled."""

    teacher: Place = told(place="folder", argument=True)
    output: Place = told(help="The run's folder.", place="folder", flags=("-o", "--output"))
    _: KW_ONLY
    train: Any = told(help="Texts: a line each, or a table or JSON lines.", place="file")
    dev: Any = told(None, "Scored pairs for vectors, labelled rows for a task: decides what is kept.", place="file")
    labelled: Any = told(None, "For a task: rows with labels, learned from beside `train`.", place="file")
    learn: Literal["vectors", "answers"] | None = told(
        None,
        "The teacher's sentence vectors, or its answers to the task it was fine-tuned for.",
        unset="answers of a teacher that has a task, else vectors",
    )
    size: str = told("mini", "Of the student: tiny, mini, small, medium, base or large.")
    set: Mapping[str, Any] = told({}, "Any field of the student's config.", metavar="FIELD=VALUE")
    student: Place | None = told(None, "Start from this model folder instead, such as one of your own.", place="folder")
    tokenizer: Place | None = told(None, "The student's own vocabulary.", unset="the teacher's", place="folder")
    start: Literal["teacher", "random"] = told(
        "teacher", "teacher: its embeddings at the student's width, and its layers where their shape is the same."
    )
    pooling: str | None = told(
        None, "What sums a text up: cls, mean or max.", unset="as the teacher's folder says, which must then say it"
    )
    keep_width: bool = told(
        False, "Vectors in the teacher's own space, as wide as its: a Dense module behind the pooling."
    )
    text: str | None = told(None, "The column with the text.", unset="found by the header")
    pair: str | None = told(None, "The column with the second text.")
    label: str | None = told(None, "The column with the label or score.")
    encoding: str | None = told(None, "Of the files: gb18030, utf-16, cp1252 …", unset="utf-8")
    limit: int | None = told(None, "Learn from N texts, drawn at random.", unset="all", least=1, metavar="N")
    held_out: int = told(500, "So many texts only tell how close the student has come; at most a tenth.", least=1)
    epochs: float = told(3.0)
    budget: str | None = told(None, "30m, 2h or 2000steps instead of epochs; a time includes the teacher's.")
    temperature: float = told(2.0, "For a task: the teacher's answers are softened by it.", above=0)
    label_weight: float = told(0.5, "For a task: the share of the loss that `labelled` has.", above=0, below=1)
    learning_rate: float | None = told(
        None,
        unset="1e-3, 3e-4 with `student`; less for a width over 256",
        above=0,
        flags=("--learning-rate", "--lr"),
    )
    warmup: float = told(0.1, "Share of the steps, or steps from 1 on.")
    weight_decay: float = told(0.01)
    dropout: float = told(0.0, "Of states and attention.", least=0, below=1)
    batch_size: int = told(64, least=1)
    accumulate: int = told(1, "Gradient accumulation: micro-batches a step.", least=1)
    precision: Precision = told("auto", "Mixed precision: bfloat16 where the processor has it, else float32.")
    max_length: int = told(128, "Tokens of a text.", least=3)
    seed: int = told(1, least=0)
    keep: str | None = told(None, "best (on dev, else on held-out texts) or last: the weights to end with.")
    metric: str | None = told(None, "The score on `dev` that decides.", unset="the task's own")
    patience: int = told(0, "Stop after so many evaluations without a better one.")
    eval_every: int = told(0, "In steps.", unset="ten times in all")
    checkpoint_every: int = told(500, "In steps; 0 for the end only.")
    force: bool = told(False, "Take a tokenizer of far fewer pieces than the teacher has rows.")

    def __post_init__(self) -> None:
        for name in ("train", "dev", "labelled"):
            object.__setattr__(self, name, data_of(getattr(self, name)))
        check_bounds(self)
        refuse_idle(self, ("metric",))
        if self.keep not in (None, "best", "last"):
            raise HeedfulError(f"`keep` is {self.keep!r}", remedy="write best or last")
        if not 0 < self.epochs < math.inf:
            raise HeedfulError(f"{self.epochs:g} epochs", remedy="train at least a part of one, as 0.5")
        if self.student is not None and (self.set or self.tokenizer is not None):
            remedy = "the student's shape and vocabulary are those of its folder: leave the others out"
            raise HeedfulError("`set` and `tokenizer` do not go with `student`", remedy=remedy)
