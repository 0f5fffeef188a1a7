"""What `heedful pretrain` is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from heedful.runs.settings import SHARD, Place, Precision, check_bounds, told

# All that are built in, by the names of their models; --help must not import them to know.
FAMILIES = (
    "bert, roberta, xlm-roberta, distilbert, albert, electra, ernie, mpnet, modernbert, "
    "word2vec, lstm-lm, elmo, gpt2 or xlnet"
)


@dataclass(frozen=True)
class PretrainingSettings:
    """A model of one's own from a built corpus."""

    corpus: Place = told(place="folder", argument=True)
    output: Place = told(help="The run's folder.", place="folder", flags=("-o", "--output"))
    _: KW_ONLY
    model: str = told("bert", f"The family of the model: {FAMILIES}.")
    size: str = told("mini", "tiny, mini, small, medium, base or large.")
    set: Mapping[str, Any] = told({}, "Any field of the model's config.", metavar="FIELD=VALUE")
    start: Place | None = told(
        None,
        "Go on from this model folder; `corpus` has its tokenizer, or one that `heedful tokenizer extend` made of it.",
        place="folder",
        flags=("--from",),
    )
    recipe: Literal["small", "bert"] = told(
        "small", "What is not said. small: for small models and hours; bert: the paper's."
    )
    init: Literal["informed", "random"] | None = told(
        None,
        "informed: word frequencies, word vectors and heads that look at neighbours, counted in `corpus`.",
        flags=("--start",),
        unset="by the recipe: informed; bert: random",
    )
    budget: str = told("30m", "30m, 2h, 20000steps, 50Mtokens or 3epochs.")
    phases: str | None = told(
        None,
        "Lengths and their shares of the steps; 128x8:50%,128x32:50% says batch sizes too.",
        unset="by the recipe: 128:100%; bert: 128:90%,512:10%",
    )
    batch_size: int | None = told(
        None, "At the first length, unless `phases` says it.", least=1, unset="by the recipe: 16; bert: 256"
    )
    accumulate: int = told(1, "Gradient accumulation: micro-batches a step.", least=1, formerly="portions")
    shard: bool = told(False, SHARD)
    precision: Precision = told("auto", "Mixed precision: bfloat16 where the processor has it, else float32.")
    masking: str = told("token", "token, word or phrase.")
    mask_rate: float | None = told(
        None, "Share of the tokens to predict.", unset="by the recipe: 0.4; bert, or with `start`: 0.15"
    )
    pairs: str | None = told(
        None, "nsp, sop (sentence order) or none.", unset="by the recipe: none; bert, or with `duplicates`: nsp"
    )
    pairs_share: float | None = told(
        None,
        "Pairs come in this last part of the steps, with four times the examples; 1: in all of them, with as many.",
        above=0,
        most=1,
        unset="by the recipe: 0.3; bert, with `start` or with `duplicates`: 1",
    )
    duplicates: int = told(0, "Use the static examples that `heedful corpus build` wrote.", unset="none")
    single_sentences: bool = told(False, "A and B are one sentence each, not runs that fill the length.")
    predict_one_in: int = told(6, "XLNet: of so many tokens one is predicted.", least=2)
    memory: int = told(0, "XLNet: tokens of the text before that are seen too; text then goes on in lanes.", least=0)
    softmax_words: int = told(20_000, "ELMo: the most frequent words, which are predicted.", least=10)
    unit: Literal["word", "piece"] = told("word", "word2vec: over whole words, or the tokenizer's pieces.")
    min_count: int = told(5, "word2vec: leave out rarer words.", least=1)
    cased: bool = told(False, "word2vec: tell Words and words apart.")
    architecture: Literal["skip-gram", "cbow"] = told("skip-gram", "word2vec: predict the window, or from the window.")
    window: int = told(5, "word2vec: words on each side.", least=1)
    negatives: int = told(5, "word2vec: words drawn for each pair.", least=1)
    subsample: float = told(1e-3, "word2vec: thin out words more frequent than this share.", above=0)
    workers: int = told(1, "word2vec: threads that move vectors; with several, runs differ in their bits.", least=1)
    learning_rate: float | None = told(
        None,
        flags=("--learning-rate", "--lr"),
        unset="by the recipe: 0.001 at a width of 256, less for wider models, half from random weights where tokens "
        "are masked; bert, or with `start`: 0.0001",
    )
    warmup: float | None = told(None, "Share of the steps, or steps from 1 on.", unset="by the recipe: 0.1; bert: 0.01")
    schedule: Literal["linear", "cosine", "constant"] = told("linear", "The rate after the warm-up.")
    weight_decay: float = told(0.01)
    beta2: float = told(0.999, "How slowly Adam forgets squared gradients.", least=0, below=1)
    clip: float = told(1.0, "Largest norm of the gradient; 0 for none.")
    dropout: float | None = told(
        None, "Of states and attention.", unset="by the recipe: 0; bert: 0.1; from a folder: its own"
    )
    seed: int = told(0)
    eval_every: int = told(500, "In steps; 0 for the end only.")
    checkpoint_every: int = told(500, "In steps; 0 for the end only.")

    def __post_init__(self) -> None:
        check_bounds(self)
