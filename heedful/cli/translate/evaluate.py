"""`heedful translate evaluate`: how good are the translations of a test set?"""

from __future__ import annotations

import click

from heedful.cli.shared_options import encoding_option, overwrite_option, precision_option


@click.command()
@click.argument("run", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file for the translations.")
@click.option("--source", help="The column of the source.  [default: as in training]")
@click.option("--target", help="The column of the reference.  [default: as in training]")
@click.option("--beam", default=5, show_default=True, type=click.IntRange(min=1), help="1 is greedy search.")
@click.option("--length-penalty", default=1.0, show_default=True, help="α in log P(y|x) / |y|^α.")
@click.option("--bleu-tokenizer", help="sacreBLEU's: 13a, intl, zh, char, none.  [default: by the target's name]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@encoding_option
@overwrite_option
@precision_option
@click.option("--force", is_flag=True, help="Compute in int8 where it hardly pays.")
@click.option("--engine", default="heedful", show_default=True, help="heedful or ctranslate2.")
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(**options: object) -> None:
    """Translate the sources in FILES with the model of RUN, and compare with the references: sacreBLEU and chrF.

    FILES is a table or JSON-lines file with a column for each side, or two texts whose lines belong together, that of
    the sources first. BLEU comes with a 95 % bootstrap interval over the sentences, and each score with the signature
    that makes it comparable.

    \b
    Examples:
      heedful translate evaluate run test.tsv
      heedful translate evaluate run test.en test.de --beam 1 -o test.translated.de
    """
    from heedful.cli.translate.evaluation import Options, evaluate_and_show

    evaluate_and_show(Options(**options))  # type: ignore[arg-type]
