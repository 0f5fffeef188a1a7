"""`heedful vectors`: the static word matrix of a model, for use elsewhere."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option, overwrite_option


@click.command()
@click.argument("model", type=click.Path())
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file: .npy, or word2vec text."
)
@force_option
@overwrite_option
def command(model: str, output: str, force: bool, overwrite: bool) -> None:
    """Export the token embeddings: one vector for each piece of the vocabulary.

    A name that ends in .npy gives the matrix, with the pieces one a line in NAME.vocab.txt beside it; any other name
    gives the text format of word2vec (a line `pieces width`, then a piece and its numbers a line).

    \b
    Examples:
      heedful vectors MODEL -o vectors.txt
      heedful vectors MODEL -o vectors.npy
    """
    from heedful.atomic import check_free
    from heedful.inference.load import load_embedder
    from heedful.inference.static_vectors import static_files, write_static_vectors

    for file in static_files(output):
        check_free(file, overwrite)
    rows, width = write_static_vectors(load_embedder(model, force=force), output)
    click.echo(f"{output}: {rows:,} pieces, {width} numbers each", err=True)
