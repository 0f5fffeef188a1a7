"""What `heedful finetune` is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from heedful.data.labelled.dataset import BadRows
from heedful.errors import HeedfulError
from heedful.runs.settings import SHARD, Place, Precision, check_bounds, data_of, refuse_idle, told


@dataclass(frozen=True)
class FinetuningSettings:
    """A pretrained encoder, a task and labelled data."""

    task: str = told(argument=True)
    _: KW_ONLY
    model: Place = told(help="A model or run folder to start from.", place="folder")
    train: Any = told(help="TSV, CSV, JSON lines, CoNLL or SQuAD.", place="file")
    dev: Any = told(
        None, "Labelled data to choose the best checkpoint by, or 10%: so much of `train`, split off.", place="file"
    )
    output: Place = told(help="The run's folder.", place="folder", flags=("-o", "--output"))
    text: str | None = told(None, "The column with the text.", unset="found by the header")
    pair: str | None = told(None, "The column with the second text.")
    label: str | None = told(None, "The column with the label.")
    multi: bool = told(
        False,
        "classify: any number of labels for a text, separated in one column, or `label` a,b,c: columns of 0 and 1.",
    )
    separator: str | None = told(None, "What parts the labels of `multi` in a cell.", unset="; | or , as found")
    balance: bool = told(False, "classify: rarer labels count more, all labels alike.")
    decide_by: Literal["accuracy", "f1", "matthews"] | None = told(
        None,
        "classify, two labels: the second is given from the probability on that has the best such score on `dev`.",
        unset="the likelier label is given",
    )
    encoding: str | None = told(None, "Of the files: gb18030, utf-16, cp1252 …", unset="utf-8")
    bad_rows: BadRows = told("error", "Rows without a label or text: error, or skip and tell.")
    merge_labels: Literal["case"] | None = told(None, "Take labels for one that differ only by case or spaces.")
    limit: int | None = told(None, "Train on the first N rows only.", unset="all", least=1, metavar="N")
    epochs: float = told(3.0)
    budget: str | None = told(None, "30m, 2h or 2000steps instead of epochs.")
    learning_rate: float | None = told(
        None, unset="5e-5; 1e-3 with `features`", above=0, flags=("--learning-rate", "--lr")
    )
    head_rate: float | None = told(None, "Of the head.", unset="the same; 1e-3 for bilstm, crf", above=0)
    warmup: float = told(0.1, "Share of the steps, or steps from 1 on.")
    weight_decay: float = told(0.01)
    layer_decay: float = told(1.0, "Each lower layer learns so much less.")
    dropout: float | None = told(
        None,
        "Of states and attention.",
        unset="the folder's own; for embed from lines, if that is 0, 0.1",
        least=0,
        below=1,
    )
    batch_size: int | None = told(None, unset="32; 4096 with `by_tokens`", least=1)
    by_tokens: bool = told(False, "The batch size counts tokens, not examples.")
    accumulate: int = told(
        1,
        "Gradient accumulation: micro-batches a step; for embed the loss stays that of the whole batch.",
        least=1,
        formerly="portions",
    )
    shard: bool = told(False, SHARD)
    precision: Precision = told("auto", "Mixed precision: bfloat16 where the processor has it, else float32.")
    max_length: int | None = told(None, "Tokens of a window.", unset="128; 384 for answer", least=1)
    stride: int | None = told(None, "Read longer texts in windows so many tokens apart.", least=0)
    freeze: str | None = told(None, "embeddings, encoder, or a number: the embeddings and so many lowest layers.")
    features: tuple[int, ...] = told(
        (), "Layers of the frozen encoder, as -1,-2,-3,-4; computed once, only the head learns.", metavar="LAYERS"
    )
    pooling: str | None = told(
        None,
        "What sums a text up: cls, mean or max of its tokens, or compare, for pairs; not for tag and answer.",
        unset="cls; mean for embed, and for word2vec",
    )
    head: str | None = told(None, "For tag: linear, bilstm, crf or bilstm-crf.", unset="linear")
    combine: str | None = told(
        None, "How the layers of `features` are joined, for tag: concat, sum, mix (learned; or `set` mix=0.2,0.3,0.5)."
    )
    lstm_width: int | None = told(None, "Of each direction of a bilstm head.", unset="256", least=1)
    lstm_layers: int | None = told(None, "Of a bilstm head.", unset="1", least=1)
    set: Mapping[str, Any] = told(
        {}, "Any field of the task's own, as temperature=0.1 of embed.", metavar="FIELD=VALUE"
    )
    random_weights: bool = told(False, "The model's shape only, to see what pretraining is worth.")
    seed: int = told(1, least=0)
    seeds: int = told(1, "So many runs, the best kept.", least=1)
    sweep: Mapping[str, Any] = told(
        {},
        "Try each of several values, as learning_rate=1e-5,3e-5; of several fields all combinations.",
        metavar="FIELD=VALUES",
    )
    keep: str | None = told(None, "best (on dev) or last: the weights to end with.", unset="best; last without `dev`")
    metric: str | None = told(None, "The score that decides.", unset="the task's own")
    patience: int = told(0, "Stop after so many evaluations without a better one.")
    eval_every: int = told(0, "In steps.", unset="once an epoch")
    checkpoint_every: int = told(500, "In steps; 0 for the end only.")

    force: bool = told(False, "Take a tokenizer of far fewer pieces than the model has rows.")

    @property
    def task_name(self) -> str:
        """The task as the registry has it."""
        return "multilabel" if self.multi else self.task

    def __post_init__(self) -> None:
        for name in ("train", "dev"):
            object.__setattr__(self, name, data_of(getattr(self, name)))
        check_bounds(self)
        if self.multi and self.task not in ("classify", "multilabel"):
            raise HeedfulError(f"`multi` does not go with {self.task}", remedy="leave it out, or use classify")
        refuse_idle(self, ("metric", "patience", "eval_every", "decide_by"))
        refuse_idle(self, ("keep",), lambda keep: keep == "best")
        if self.keep not in (None, "best", "last"):
            raise HeedfulError(f"`keep` is {self.keep!r}", remedy="write best or last")
        if not 0 < self.epochs < math.inf:
            raise HeedfulError(f"{self.epochs:g} epochs", remedy="train at least a part of one, as 0.5")
        if not 0 < self.layer_decay <= 1:
            raise HeedfulError(f"a layer decay of {self.layer_decay}", remedy="use one above 0 and up to 1, as 0.9")
