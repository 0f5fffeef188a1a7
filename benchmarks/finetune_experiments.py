"""The fine-tuning experiments of docs/results.md: which runs on which files.

Paths begin with {data} ($HEEDFUL_DATA), {models} ($HEEDFUL_MODELS), {minilm} (all-MiniLM-L6-v2) or {made} (files made
from other data). What a BERT of one's own is worth is measured by transfer.py.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from finetune_data import make_data
from materials import minilm


@dataclass(frozen=True)
class Run:
    """One fine-tuning; `dev` is evaluated, and `reference` are the arguments of the reference trainer."""

    name: str
    arguments: tuple[str, ...]
    dev: str
    metrics: tuple[str, ...]
    columns: tuple[str, ...] = ()
    reference: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Experiment:
    """Runs that belong into one table."""

    name: str
    title: str
    what: str
    runs: Sequence[Run]
    remarks: tuple[str, ...] = field(default=())


VARIABLES = {
    "data": ("HEEDFUL_DATA", "the folder of the data sets"),
    "models": ("HEEDFUL_MODELS", "the folder of the models"),
    "en": ("HEEDFUL_EN", "the English model folder, OUTPUT_FOLDER/run/model of recipes/pretrain_enwiki.sh"),
    "zh": ("HEEDFUL_ZH", "the Chinese model folder, OUTPUT_FOLDER/run/model of recipes/pretrain_zhwiki.sh"),
}


def expand(arguments: Sequence[str], work: Path) -> list[str]:
    """The arguments with the names of folders put in; what is made from other data is made on the way."""
    named = set(re.findall(r"\{(\w+)\}", " ".join(arguments)))
    places = {name: _place(name, work) for name in named}
    return [argument.format(**places) for argument in arguments]


def _place(name: str, work: Path) -> Path:
    if name == "minilm":
        return minilm()
    return make_data(place("data"), work / "made") if name == "made" else place(name)


def place(name: str) -> Path:
    """The folder that an environment variable names."""
    variable, holds = VARIABLES[name]
    folder = Path(os.environ.get(variable) or "?")
    if not folder.is_dir():
        sys.exit(f"${variable} is {os.environ.get(variable) or 'not set'}: set it to {holds}")
    return folder


def _table_run(
    task: str,
    name: str,
    folder: str,
    metrics: tuple[str, ...],
    model: str = "{minilm}",
    train: str = "train.tsv",
    dev: str = "dev.tsv",
    more: tuple[str, ...] = (),
    seed: int = 1,
    epochs: int = 3,
    columns: tuple[str, ...] = (),
    reference: bool = False,
) -> Run:
    files = (f"{{data}}/{folder}/{train}", f"{{data}}/{folder}/{dev}")
    recipe = ("--epochs", str(epochs), "--seed", str(seed))
    given = (task, "--model", model, "--train", files[0], "--dev", files[1], *recipe, "--keep", "last", *columns, *more)
    theirs = (model, *files, *recipe, *columns) if reference else None
    return Run(name, given, files[1], metrics, columns, theirs)


BINARY = ("accuracy", "f1")
ROUNDED = ("--precision", "bfloat16")  # for runs whose time is compared with nothing
LIMITED = ("--limit", "10000", *ROUNDED)
PUBLISHED = (
    "Not measured by this command but carried over from an earlier reference measurement, Hugging Face's Trainer 5.22 "
    "with the same recipe and dynamic padding on two threads of a 2.8 GHz Ice Lake (dev scores, seconds of training): "
    "RTE accuracy 0.5596, 463.9 s; STS-B pearson 0.8535, spearman 0.8563, 571.6 s; "
    "SST-2, first 10,000, accuracy 0.8647, 582.6 s; SICK accuracy 0.8460, 268.5 s (seed 1 each); "
    "MRPC, seeds 1 and 2, accuracy 0.7917 and 0.7917, f1 0.8552 and 0.8604, 454.5 and 403.9 s; "
    "CoLA, seeds 1 and 2, matthews 0.2369 and 0.2828, 313.5 and 280.1 s."
)
GLUE = Experiment(
    "glue",
    "Fine-tuning against Hugging Face's Trainer",
    "all-MiniLM-L6-v2, 3 epochs, batch 32, learning rate 5e-5, warm-up 10 %, decay 0.01, at most 128 tokens, the last "
    "weights; scores on dev, seconds of training without evaluation. Times are compared where the reference was run "
    "alternately, on two threads each; the other runs had one thread each, two at a time, and their seconds say "
    "little. MRPC and CoLA in float32 as the reference, the others with bfloat16 mixed precision",
    [
        *(_table_run("classify", f"MRPC seed {s}", "mrpc", BINARY, seed=s, reference=s == 1) for s in (1, 2, 3)),
        *(_table_run("classify", f"CoLA seed {s}", "cola", ("matthews",), seed=s, reference=s == 1) for s in (1, 2, 3)),
        *(_table_run("classify", f"RTE seed {s}", "rte", ("accuracy",), more=ROUNDED, seed=s) for s in (1, 2, 3)),
        _table_run("regress", "STS-B", "stsb", ("pearson", "spearman"), more=ROUNDED, columns=("--label", "score")),
        _table_run(
            "classify",
            "SST-2, first 10,000",
            "sst2",
            ("accuracy",),
            train="train.tsv.gz",
            more=LIMITED,
        ),
        _table_run("classify", "SICK", "sick", ("accuracy",), more=ROUNDED, columns=("--label", "label")),
        _table_run("classify", "WNLI", "wnli", ("accuracy",), more=ROUNDED),
    ],
    (
        "WNLI does not learn: its dev pairs repeat training sentences with the other answer. The paper leaves it out.",
        "6 of STS-B's 1,500 dev pairs also stand in its training file (`heedful inspect`).",
        PUBLISHED,
    ),
)
CONLL_FILES = ("--train", "{data}/conll2003/train.conll.gz", "--dev", "{data}/conll2003/dev.conll")
ENTITY = ("f1", "precision", "recall")


def _conll(name: str, *more: str) -> Run:
    given = ("tag", "--model", "{minilm}", *CONLL_FILES, "--keep", "last", *more)
    return Run(name, given, "{data}/conll2003/dev.conll", ENTITY)


CONLL = Experiment(
    "conll",
    "Tagging: CoNLL-2003",
    "Entity F1 on dev with all-MiniLM-L6-v2 (uncased), 3 epochs, last weights",
    [
        _conll("linear", "--epochs", "3", "--lr", "1e-4"),
        _conll("BiLSTM-CRF", "--head", "bilstm-crf", "--epochs", "3", "--lr", "1e-4"),
    ],
)


def _answer(name: str, model: str, train: str, dev: str, epochs: int, tune: str = "") -> Run:
    given = (
        "answer",
        "--model",
        model,
        "--train",
        train,
        "--dev",
        tune or dev,
        "--epochs",
        str(epochs),
        "--lr",
        "1e-4",
    )
    return Run(name, (*given, "--keep", "last", *ROUNDED), dev, ("exact", "f1"))


SQUAD = Experiment(
    "squad",
    "Answering questions: SQuAD articles",
    "all-MiniLM-L6-v2, first 5,000 training questions of the practice split, 2 epochs, bfloat16 mixed precision. For "
    "the 2.0 way, 1 epoch, each paragraph is also asked questions of other paragraphs of its article; the threshold is "
    "chosen on half of the dev articles, and the scores are those of the rest",
    [
        _answer("SQuAD 1.1", "{minilm}", "{made}/squad_train.json", "{data}/squad1.1/practice_dev.json", 2),
        _answer(
            "SQuAD 2.0 way",
            "{minilm}",
            "{made}/squad2_train.json",
            "{made}/squad2_dev.json",
            1,
            "{made}/squad2_tune.json",
        ),
    ],
)


def _choose(name: str, folder: str, suffix: str, epochs: int, *more: str) -> Run:
    train, dev = (f"{{data}}/{folder}/{part}.{suffix}" for part in ("train", "dev"))
    given = ("choose", "--model", "{minilm}", "--train", train, "--epochs", str(epochs), "--keep", "last")
    return Run(name, (*given, *more, *ROUNDED), dev, ("accuracy",))


CHOICES = Experiment(
    "choices",
    "Choosing an ending: CODAH and DREAM",
    "all-MiniLM-L6-v2, one epoch, bfloat16 mixed precision; chance is 0.25 for CODAH and 0.33 for DREAM",
    [
        _choose("CODAH", "codah", "jsonl", 1, "--batch-size", "16"),
        _choose("DREAM, first 1,500", "dream", "jsonl.gz", 1, "--limit", "1500", "--batch-size", "16"),
    ],
)
M3E = "{models}/m3e-small-zh"


def _zh_tags(name: str, folder: str, train: str, *more: str) -> Run:
    files = ("--train", f"{{data}}/{folder}/{train}", "--dev", f"{{data}}/{folder}/dev.conll")
    given = ("tag", "--model", M3E, *files, "--epochs", "4", "--lr", "1e-4", "--keep", "last", *more, *ROUNDED)
    return Run(name, given, f"{{data}}/{folder}/dev.conll", ENTITY)


CHINESE = Experiment(
    "chinese",
    "Chinese",
    "m3e-small, the last weights; ChnSentiCorp 2 epochs of at most 128 tokens, LCQMC 2 epochs (its test file as "
    "training data), tagging 4 epochs, CMRC's trial questions split by context 4:1, 2 epochs; bfloat16 mixed precision",
    [
        _zh_tags("resume", "ner_zh_resume", "train.conll.gz"),
        _zh_tags("weibo", "ner_zh_weibo", "train.conll"),
        _zh_tags("resume, BiLSTM-CRF", "ner_zh_resume", "train.conll.gz", "--head", "bilstm-crf"),
        _table_run(
            "classify", "ChnSentiCorp", "chnsenticorp", ("accuracy",), M3E, "train_nodup.tsv.gz", more=ROUNDED, epochs=2
        ),
        _table_run("classify", "LCQMC", "lcqmc", ("accuracy",), M3E, "train_from_test.tsv", more=ROUNDED, epochs=2),
        _answer("CMRC trial", M3E, "{made}/cmrc_train.json", "{made}/cmrc_dev.json", 2),
    ],
    ("42 of weibo's 270 dev sentences also stand in its training file (`heedful inspect`), so its score is too high.",),
)


LAYERS = (("embeddings", "0"), *((f"layer {n}", str(n)) for n in (5, 6)), ("last four, concat", "-1,-2,-3,-4"))


def _features(name: str, layers: str, *more: str) -> Run:
    given = ("--features", layers, "--head", "bilstm", "--lstm-layers", "2", "--epochs", "2", "--limit", "2500")
    return _conll(name, *given, *more, *ROUNDED)


FEATURES = Experiment(
    "features",
    "Feature-based tagging: CoNLL-2003",
    "Two-layer BiLSTM on states of the frozen all-MiniLM-L6-v2, first 2,500 training sentences, 2 epochs, learning "
    "rate 1e-3, the last weights, mixed precision in bfloat16",
    [
        *(_features(name, layers) for name, layers in LAYERS),
        _features("last four, sum", "-1,-2,-3,-4", "--combine", "sum"),
    ],
    ("The paper's order holds: the last four layers concatenated are best, then their sum, then single layers.",),
)
EXPERIMENTS = {one.name: one for one in (GLUE, CONLL, SQUAD, CHOICES, CHINESE, FEATURES)}
