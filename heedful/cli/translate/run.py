"""`heedful translate run`: translate a file, standard input, or what is typed."""

from __future__ import annotations

import click

from heedful.cli.shared_options import encoding_option, overwrite_option, precision_option

AT_LEAST_ONE = click.IntRange(min=1)


@click.command()
@click.argument("run", type=click.Path())
@click.argument("input", required=False, type=click.Path(allow_dash=True))
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file to write.  [default: print]")
@click.option("--beam", default=5, show_default=True, type=AT_LEAST_ONE, help="Hypotheses kept; 1 is greedy search.")
@click.option("--length-penalty", default=1.0, show_default=True, type=float, help="α in log P(y|x) / |y|^α.")
@click.option("--n-best", default=1, show_default=True, type=AT_LEAST_ONE, help="Translations of each text.")
@click.option("--sample", is_flag=True, help="Draw translations at random instead of searching the best.")
@click.option(
    "--temperature", type=float, help="Of --sample: below 1 more cautious, above 1 more daring.  [default: 1]"
)
@click.option("--top-k", type=click.IntRange(min=0), help="Of --sample: from the K likeliest symbols.  [default: all]")
@click.option("--top-p", type=float, help="Of --sample: from the likeliest symbols that reach P.  [default: 1]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of --sample.")
@click.option("--max-length", type=AT_LEAST_ONE, help="Tokens of a translation.  [default: 3 × the source + 20]")
@click.option("--column", help="The column or field to read of a .tsv, .csv or .jsonl.  [default: as in training]")
@click.option("--json", "as_json", is_flag=True, help="JSON lines with scores.")
@click.option("--alignments", type=click.Path(dir_okay=False), help="An HTML page of what each word looked at.")
@click.option("--layer", default=-1, show_default=True, help="Of --alignments: the decoder layer, from 1, -1 the last.")
@click.option("--head", type=click.IntRange(min=0), help="Of --alignments: the head, from 0.  [default: their mean]")
@encoding_option
@overwrite_option
@precision_option
@click.option("--force", is_flag=True, help="Compute in int8 where it hardly pays.")
@click.option("--engine", default="auto", show_default=True, help="auto, heedful or ctranslate2.")
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(**options: object) -> None:
    """Translate each line of INPUT with the model of RUN (a run folder or its model folder).

    INPUT is a text file with a text a line, a table (.tsv, .csv), JSON lines, any of them .gz, or - for standard input.
    Without it, standard input is read, or you are asked for texts if that is a terminal. A line comes out for each line
    that goes in, in the same order; with several translations a text, its number, the score and the translation, parted
    by tabs.

    Translations are compared by log P(y|x) / |y|^α, where |y| counts the symbols with the end symbol and α is the
    length penalty: 0 prefers short ones, 1 takes the mean of a symbol, more prefers long ones.

    \b
    Examples:
      heedful translate run run test.en -o test.de
      echo "A dog runs." | heedful translate run run
      heedful translate run run test.en --beam 10 --n-best 3 --json
      heedful translate run run test.en --sample --top-p 0.9 --seed 1
      heedful translate run run test.en --alignments looks.html --head 2
    """
    from heedful.cli.translate.file import Options, translate_file

    translate_file(Options(**options))  # type: ignore[arg-type]
