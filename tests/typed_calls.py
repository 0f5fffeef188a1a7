"""What a type checker must see in calls from Python: an ignored error that is none fails the check."""

from __future__ import annotations

from pathlib import Path

import heedful


def right() -> dict[str, float]:
    run = heedful.finetune("classify", model=Path("m"), train=[("a text", "good")], output="run", epochs=3, resume=True)
    heedful.pretrain("corpus", "run", size="mini", budget="30m", on_event=print)
    heedful.distil("teacher", "run", train=["a text"], size="mini", keep_width=True)
    heedful.train_translator(train=("a.en", "a.de"), output=Path("run"), progress=False)
    heedful.train_tokenizer(["a.txt"], "tokenizer", vocab_size=8000)
    heedful.build_corpus("a.txt", "corpus", tokenizer="tokenizer", words=True)
    heedful.ladder("corpus", "ladder", budget="10m", pairs=("pairs.tsv",), tasks=("toy:tags.en",), at_once=2)
    heedful.whiten(run, "lines.txt", "vectors", layer=-1, width=64, encoding="gb18030", force=True)
    return {**run.scores, **heedful.evaluate(run, "dev.tsv").scores}


def wrong() -> None:
    heedful.finetune("classify", model="m", train="t.tsv", output="run", epoch=3)  # type: ignore[call-arg]
    heedful.finetune("classify", model="m", train="t.tsv", output="run", epochs="3")  # type: ignore[arg-type]
    heedful.pretrain("corpus", "run", masking=True)  # type: ignore[arg-type]
    heedful.pretrain("corpus", "run", "mini")  # type: ignore[call-arg]
    heedful.train_translator(train="pairs.tsv", output="run", schedule="steep")  # type: ignore[arg-type]
    heedful.train_tokenizer(["a.txt"], "tokenizer", resume=True)  # type: ignore[call-arg]
    heedful.ladder("corpus", "ladder", model="bert")  # type: ignore[call-arg]
