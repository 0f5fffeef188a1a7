"""What `heedful ladder` is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from heedful.runs.settings import Place, check_bounds, told


@dataclass(frozen=True)
class LadderSettings:
    """All kinds of language models on one corpus, compared."""

    corpus: Place = told(place="folder", argument=True)
    output: Place = told(help="The folder of all the runs.", place="folder", flags=("-o", "--output"))
    _: KW_ONLY
    budget: str = told("10m", "Of each model: 10m, 2h, 5Mtokens, 2000steps or 3epochs.")
    models: str | None = told(
        None,
        "Some of word2vec, lstm-lm, elmo, gpt, bert, xlnet, bert-informed, with commas between them.",
        unset="all",
    )
    size: str = told("mini", "tiny, mini, small or medium.")
    phases: str = told("128:100%", "Lengths and their shares of the steps; not for word2vec.")
    batch_size: int = told(16, "At the first length; not for word2vec.", least=1)
    set: Mapping[str, Any] = told(
        {},
        "A setting of `heedful pretrain` for one model or all, as gpt.learning_rate=1e-3 or warmup=0.05.",
        metavar="[MODEL.]FIELD=VALUE",
    )
    valid: Place | None = told(
        None, "Text for the perplexities.", unset="the held-out part of `corpus`, if it holds words", place="file"
    )
    pairs: tuple[Place, ...] = told(
        (), "Words that people have compared: two words and a number a line.", place="file", several=True
    )
    tasks: tuple[str, ...] = told(
        (),
        "A task and its data, as classify:train.tsv:dev.tsv or names=tag:train.conll:dev.conll, or of the toy world, "
        "as toy:tags.zh; none for no task. May be given several times.",
        unset="toy:sentiment.en and toy:tags.en",
        flags=("--task", "--tasks"),
        several=True,
        metavar="[NAME=]KIND:TRAIN:DEV",
    )
    rows: int = told(2000, "Each task is trained on the first N rows.", least=1, metavar="N")
    seeds: int = told(3, "Of each task, from which mean and spread are taken.", least=1)
    epochs: float = told(5.0, "Of fine-tuning.", above=0)
    finetune_rate: float = told(3e-4, "The learning rate of fine-tuning.", above=0)
    seed: int = told(0, "Of pretraining.", least=0)
    at_once: int = told(1, "So many models at a time, each with its share of the threads.", least=1)
    checkpoint_every: int = told(100, "In steps; 0 for the end only.", least=0)

    def __post_init__(self) -> None:
        check_bounds(self)
