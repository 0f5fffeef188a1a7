"""`heedful predict`: the answers of a fine-tuned model, one JSON object a line."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option


@click.command()
@click.argument("run", type=click.Path())
@click.argument("source", metavar="INPUT|TEXT")
@click.option("--pair", "--context", "pair", help="The second text of a pair, or the context of a question.")
@click.option("--text-column", "--text", help="The column with the text.  [default: as in training]")
@click.option("--pair-column", help="The column with the second text.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file for the answers.  [default: print them]")
@force_option
def command(
    run: str,
    source: str,
    pair: str | None,
    text_column: str | None,
    pair_column: str | None,
    output: str | None,
    force: bool,
) -> None:
    """What a fine-tuned model (a run folder or its model folder) says of a file of inputs, or of one TEXT.

    A file is read as in training, labels not needed; a `.txt` file without tabs holds a text a line, and so does `-`,
    standard input. Answers come in the order of the inputs, with probabilities and, for tags and answers, character
    offsets. An answer to a question carries the question's id; with -o any other carries the place of its input.

    \b
    Examples:
      heedful predict run "A wonderful film."
      heedful predict run "He sold the car." --pair "The car was bought."
      heedful predict run "Who wrote it?" --context "Emma was written by Jane Austen."
      heedful predict run unlabelled.tsv -o answers.jsonl
    """
    from heedful.cli.predict_file import predict_file, predict_text, refuse_file_name
    from heedful.data.labelled import Columns
    from heedful.inference.load import predictor

    if source == "-" or _is_file(source):
        if pair is not None:
            raise click.UsageError("--pair goes with a TEXT; of a file, name the column with --pair-column")
        predict_file(predictor(run, force=force), source, Columns(text_column, pair_column), output)
    else:
        refuse_file_name(source)
        predict_text(predictor(run, force=force), source, pair, output)


def _is_file(source: str) -> bool:
    from pathlib import Path

    try:
        return Path(source).is_file()
    except (ValueError, OSError):  # a text with a zero character, or a long one, is no path
        return False
