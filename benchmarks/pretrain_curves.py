"""What a finished pretraining run reached, evaluation by evaluation, for docs/results.md.

    python benchmarks/pretrain_curves.py RUN NAME [--text "… [MASK] …"]… [--remark TEXT]…

RUN is a folder of `heedful pretrain`; docs/results gets NAME.json with the table and filled-in examples, and
NAME.svg with the curves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results_file import RESULTS, Table, write_results
from standalone_svg import standalone

from heedful.inference.load import load_embedder
from heedful.views.svg import Curve, line_chart

COLUMNS = ("mlm_loss", "mlm_accuracy", "pseudo_perplexity", "nsp_accuracy")
LEVELS = ("unigram_loss", "bigram_loss")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--title", required=True)
    parser.add_argument("--text", action="append", default=[], help="to be filled in by the finished model")
    parser.add_argument("--remark", action="append", default=[])
    a = parser.parse_args()
    rows = [json.loads(line) for line in (a.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    evaluations = [row for row in rows if "evaluation" in row]
    tokens = {row["step"]: row["tokens"] for row in rows if "tokens" in row}
    last = evaluations[-1]["evaluation"]
    columns = [name for name in COLUMNS if name in last]  # without NSP there is no accuracy of it
    timing = json.loads((a.run / "timing.json").read_text(encoding="utf-8"))
    (RESULTS / f"{a.name}.svg").write_text(picture(a.title, rows), encoding="utf-8")
    write_results(
        RESULTS / f"{a.name}.json",
        title=a.title,
        what="Held-out documents, evaluation by evaluation; what counting alone reaches on the same tokens: "
        + ", ".join(f"{name.replace('_', ' ')} {last[name]:.3f}" for name in (*LEVELS, "bigram_accuracy")),
        tables=[
            Table(
                ["step", "tokens", *(name.replace("_", " ") for name in columns)],
                [_row(e, tokens, columns) for e in evaluations],
            ),
            Table(["held-out text", "stood there", "guesses"], [_example(one) for one in evaluations[-1]["examples"]]),
            Table(["text", "guesses"], filled(a.run / "model", a.text)),
        ],
        remarks=[
            f"{timing['wall'] / 60:.1f} minutes by the clock, of which "
            + ", ".join(f"{part} {seconds / timing['wall']:.1%}" for part, seconds in timing["parts"].items()),
            *a.remark,
            f"![MLM loss]({RESULTS.name}/{a.name}.svg)",
        ],
        arguments=f"{a.run.parent.name}/{a.run.name} {a.name}",
    )


def picture(title: str, rows: list[dict[str, Any]]) -> str:
    """The MLM losses as a picture that stands by itself."""
    training = [(row["step"], row["losses"]["mlm"]) for row in rows if "losses" in row]
    held_out = [(row["step"], row["evaluation"]) for row in rows if "evaluation" in row]
    curves = [
        Curve("training", training),
        Curve("held-out", [(step, found["mlm_loss"]) for step, found in held_out]),
        *(Curve(name.replace("_loss", ""), [(step, found[name]) for step, found in held_out], True) for name in LEVELS),
    ]
    return standalone(line_chart(title, curves, rows[-1]["step"]))


def filled(model: Path, texts: list[str]) -> list[list[str]]:
    """The three likeliest words for the first [MASK] of each text."""
    loaded = load_embedder(model)
    rows = []
    for text in texts:
        guesses = loaded.fill(text, top=3)[0].guesses
        rows.append([text, ", ".join(f"{guess.word} {guess.probability:.0%}" for guess in guesses)])
    return rows


def _row(found: dict[str, Any], tokens: dict[int, int], columns: Sequence[str]) -> list[Any]:
    return [found["step"], tokens.get(found["step"], ""), *(f"{found['evaluation'][name]:.3f}" for name in columns)]


def _example(one: dict[str, Any]) -> list[str]:
    return [one["text"], one["truth"], ", ".join(f"{word} {share:.0%}" for word, share in one["guesses"])]


if __name__ == "__main__":
    main()
