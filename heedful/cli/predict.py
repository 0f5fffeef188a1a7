"""`heedful predict`: the answers of a fine-tuned model, one JSON object a line, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.shared_options import (
    encoding_option,
    engine_option,
    force_int8_option,
    overwrite_option,
    precision_option,
)

if TYPE_CHECKING:
    from heedful.inference.predictor import Predictor


@click.command()
@click.argument("run", type=click.Path())
@click.argument("source", metavar="INPUT|TEXT")
@click.option("--pair", "--context", "pair", help="The second text of a pair, or the context of a question.")
@click.option("--text-column", "--text", help="The column with the text.  [default: as in training]")
@click.option("--pair-column", help="The column with the second text.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A .jsonl, .csv or .tsv.  [default: print]")
@encoding_option
@precision_option
@force_int8_option
@engine_option
@overwrite_option
def command(
    run: str,
    source: str,
    pair: str | None,
    text_column: str | None,
    pair_column: str | None,
    output: str | None,
    precision: str,
    force: bool,
    engine: str,
    overwrite: bool,
) -> None:
    """What a fine-tuned model (a run folder or its model folder) says of a file of inputs, or of one TEXT.

    A file is read as in training, labels not needed; a `.txt` file without tabs holds a text a line, and so does `-`,
    standard input. Answers come in the order of the inputs, with probabilities and, for tags and answers, character
    offsets. An empty input gets an answer too, marked as empty. An answer to a question carries the question's id.

    In a .jsonl, as on standard output, an answer is a JSON object, with the place of its input. A .csv or .tsv has all
    columns of the input table (of anything else the text or question) and the answers after them, each label's
    probability in a column of its own; one whose name is taken, as label often is, is called predicted_label.

    \b
    Examples:
      heedful predict run "A wonderful film."
      heedful predict run "He sold the car." --pair "The car was bought."
      heedful predict run "Who wrote it?" --context "Emma was written by Jane Austen."
      heedful predict run unlabelled.csv -o answers.csv
      heedful predict run unlabelled.tsv -o answers.jsonl
    """
    from heedful.atomic import check_free
    from heedful.cli.predict_file import predict_file, predict_text, refuse_file_name
    from heedful.data.labelled.dataset import Columns
    from heedful.inference.answer_table import answer_format

    if output is not None:
        answer_format(output)
        check_free(output, overwrite)
    if source == "-" or _is_file(source):
        if pair is not None:
            raise click.UsageError("--pair goes with a TEXT; of a file, name the column with --pair-column")
        predict_file(_loaded(run, force, precision, engine), source, Columns(text_column, pair_column), output)
    else:
        refuse_file_name(source)
        predict_text(_loaded(run, force, precision, engine), source, pair, output)


def _loaded(run: str, force: bool, precision: str, engine: str) -> Predictor:
    from heedful.cli.precision import tell_int8
    from heedful.inference.load import predictor

    found = predictor(run, force=force, precision=precision, engine=engine)
    tell_int8(found.int8 or found.exported)
    return found


def _is_file(source: str) -> bool:
    from pathlib import Path

    try:
        return Path(source).is_file()
    except (ValueError, OSError):  # a text with a zero character, or a long one, is no path
        return False
