"""A finished ladder as a page of results, and WikiText-2 read by those of its models that read from left to right.

    heedful tokenizer train ENWIKI -o tokenizer --vocab-size 8000
    heedful corpus build ENWIKI -o corpus --tokenizer tokenizer --drop-headings --words
    heedful ladder corpus -o ladder --budget 10m --pairs … --task …
    HEEDFUL_DATA=… python benchmarks/ladder.py ladder

The ladder itself trains and measures; `ladder/ladder.json` has all of its numbers, and this only lays them out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from materials import wikitext2
from results_file import RESULTS, Table, write_results

from heedful.data.text_files import read_texts
from heedful.inference.load import load_embedder
from heedful.json_files import read_json
from heedful.runs.ladder.climb import TABLE
from heedful.runs.ladder.measurements import perplexity
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.pretraining.plan import parse_phases
from heedful.runs.settings import settings_from
from heedful.views.ladder_page import reasons
from heedful.views.ladder_quantities import quantities

LEFT_TO_RIGHT = ("lstm-lm", "gpt", "xlnet")
Row = Mapping[str, Any]


def main() -> None:
    """Write docs/results/ladder.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "ladder.json")
    parser.add_argument("--remark", action="append", default=[], help="to be printed below the tables")
    a = parser.parse_args()
    told = read_json(a.ladder / TABLE)
    rows, settings = told["rows"], settings_from(LadderSettings, told["settings"])
    (phase,) = parse_phases(settings.phases)
    tables = [ladder_table(rows), wikitext_table(a.ladder, rows, phase.length)]
    missing = [f"{model}, {what}: {why}." for model, what, why in reasons(rows, quantities(rows))]
    what = (
        f"Each kind of model in the size {told['size']}, trained for {told['budget']} on the same text and measured. "
        f"Tasks: {settings.rows} rows, {settings.seeds} seeds, mean and standard deviation; frozen: a linear "
        "layer over the states, tuned: all weights. Second table: WikiText-2's valid text after it, the perplexity of "
        "a word as it stands there, ends of lines included."
    )
    write_results(a.output, "The ladder of language models", what, tables, [*missing, *a.remark], a.ladder.name)


def ladder_table(rows: Sequence[Row]) -> Table:
    """A column for each model."""
    lines = [["sees", *(row["sees"] for row in rows)]]
    for quantity in quantities(rows):
        if any(quantity.value(row) for row in rows):
            lines.append([quantity.title, *(quantity.told(row) for row in rows)])
    return Table(["", *(row["model"] for row in rows)], lines)


def wikitext_table(ladder: Path, rows: Sequence[Row], length: int) -> Table:
    """The perplexity of a word of WikiText-2 by each model that reads from left to right."""
    columns = ["model", "perplexity a word", "perplexity a token", "words", "tokens", "unknown", "<unk> in the text"]
    return Table(columns, list(_wikitext_rows(ladder, rows, length)))


def _wikitext_rows(ladder: Path, rows: Sequence[Row], length: int) -> Iterator[list[Any]]:
    texts = [text for text in read_texts(wikitext2()) if text.strip()]
    for row in rows:
        if row["model"] in LEFT_TO_RIGHT and "steps" in row["training"]:
            found = perplexity(load_embedder(ladder / row["model"], "cpu"), texts, length)
            numbers = [f"{found[name]:.1f}" for name in ("word_perplexity", "perplexity")]
            yield [row["model"], *numbers, *(found[name] for name in ("words", "tokens", "unknown", "marks"))]


if __name__ == "__main__":
    main()
