"""`heedful whiten`: sentence vectors from raw lines alone, without training."""

from __future__ import annotations

import click

from heedful.cli.shared_options import encoding_option, force_option, text_option


@click.command()
@click.argument("model", type=click.Path())
@click.argument("lines", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The folder to write.")
@click.option("--layer", default=0, show_default=True, help="Keep the model up to this layer; 0: its embeddings alone.")
@click.option("--width", type=click.IntRange(min=1), help="Numbers of a vector.  [default: the model's width]")
@click.option("--pooling", default="mean", show_default=True, help="cls, mean, max, mean-max, weighted-mean, last.")
@text_option
@encoding_option
@force_option
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
def command(
    model: str,
    lines: str,
    output: str,
    layer: int,
    width: int | None,
    pooling: str,
    column: str | None,
    force: bool,
    overwrite: bool,
) -> None:
    """Write a folder of sentence vectors that are made from MODEL and the texts of LINES, a minute's work.

    The vectors of texts are shifted and turned so that over all LINES their mean is 0 and their covariance 1: what all
    texts have in common no longer counts, and every direction counts alike. The folder serves `embed`, `search`,
    `similarity` and `serve`, and loads in sentence-transformers.

    \b
    Examples:
      heedful whiten run/model lines.txt -o vectors
      heedful whiten run/model tickets.csv --text body -o vectors --width 128
      heedful whiten BERT lines.txt -o vectors --layer -1
    """
    from heedful.cli.progress import progress_bar
    from heedful.data.text_files import read_texts
    from heedful.inference.whitened import whiten

    made = whiten(
        model,
        read_texts(lines, column),
        output,
        layer=layer,
        width=width,
        pooling=pooling,
        overwrite=overwrite,
        force=force,
        bar=progress_bar,
    )
    kept = f", {made.kept:.0%} of what told them apart" if width else ""
    click.echo(f"{output}: {made.told}{kept}", err=True)
