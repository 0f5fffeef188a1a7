"""`heedful evaluate`: how good is a fine-tuned model on labelled data, how sure is that, and where does it fail?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.run_options import RunCommand
from heedful.cli.shared_options import (
    encoding_option,
    engine_option,
    force_int8_option,
    overwrite_option,
    precision_option,
)

if TYPE_CHECKING:
    from heedful.data.labelled.dataset import BadRows


@click.command(cls=RunCommand)
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="RUN [RUN2] DATA")
@click.option("--text", help="The column with the text.  [default: that of training, or found by the header]")
@click.option("--pair", help="The column with the second text.")
@click.option("--label", help="The column with the label.")
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Show so many of the surest wrong answers.",
)
@click.option(
    "--rounds", type=click.IntRange(min=0), default=500, show_default=True, help="Of the bootstrap; 0 for no intervals."
)
@encoding_option
@click.option(
    "--bad-rows",
    type=click.Choice(["error", "skip"]),
    default="error",
    show_default=True,
    help="Rows without a label or text: error, or skip and tell.",
)
@click.option(
    "--errors",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write every wrong answer to this .csv, .tsv or .jsonl, with its place, text, label and probability.",
)
@overwrite_option
@precision_option
@force_int8_option
@engine_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    models: tuple[str, ...],
    text: str | None,
    pair: str | None,
    label: str | None,
    worst: int,
    rounds: int,
    bad_rows: BadRows,
    errors: str | None,
    overwrite: bool,
    precision: str,
    force: bool,
    engine: str,
    as_json: bool,
) -> None:
    """Score a fine-tuned model (a run folder or its model folder) on labelled DATA.

    Each score comes with a 95 % bootstrap interval over the examples. Two models are compared on the same resamples
    of the same examples (paired bootstrap). A label that training never showed counts as an error, and is told.

    \b
    Examples:
      heedful evaluate run dev.tsv
      heedful evaluate run other-run dev.tsv
      heedful evaluate run dev.tsv --precision int8
      heedful evaluate run test.jsonl --label score --json
      heedful evaluate run test.csv --errors wrong.csv
    """
    from heedful.atomic import check_free
    from heedful.cli.evaluate_report import evaluate_and_show, loaded
    from heedful.data.labelled.dataset import Columns
    from heedful.inference.answer_table import answer_format
    from heedful.inference.evaluation import EvaluationSettings

    if not 2 <= len(models) <= 3:
        raise click.UsageError("give one or two runs, and the data after them")
    if errors is not None:
        answer_format(errors)
        check_free(errors, overwrite)
    settings = EvaluationSettings(Columns(text, pair, label), rounds, worst, bad_rows)
    predictors = loaded(models[:-1], force, precision, engine)
    evaluate_and_show(models[:-1], predictors, models[-1], settings, as_json, errors)
