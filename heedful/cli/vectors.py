"""`heedful vectors`: the static word matrix of a model, for use elsewhere."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option, overwrite_option


@click.command()
@click.argument("model", type=click.Path())
@click.option(
    "-o", "--output", required=True, type=click.Path(), help="The file: .npy, .bin, word2vec text; or a folder."
)
@force_option
@overwrite_option
def command(model: str, output: str, force: bool, overwrite: bool) -> None:
    """Export the token embeddings of MODEL: one vector for each piece of the vocabulary, or for each word.

    A name that ends in .npy gives the matrix, with the pieces one a line in NAME.vocab.txt beside it; .bin gives the
    binary format of word2vec, any other ending its text format (a line `pieces width`, then a piece and its numbers a
    line); a name without an ending a model folder. MODEL may be such a file itself, of gensim or fastText too.

    \b
    Examples:
      heedful vectors MODEL -o vectors.txt
      heedful vectors MODEL -o vectors.bin
      heedful vectors vectors.bin -o folder
    """
    from pathlib import Path

    from heedful.atomic import check_free
    from heedful.checkpoints.vector_files import is_vector_file, read_vectors
    from heedful.inference.load import load_embedder
    from heedful.inference.static_vectors import save_as_model, static_files, static_vectors, write_named_vectors

    for file in static_files(output):
        check_free(file, overwrite)
    vectors = read_vectors(model) if is_vector_file(model) else static_vectors(load_embedder(model, force=force))
    if Path(output).suffix:
        rows, width = write_named_vectors(vectors, output)
    else:
        save_as_model(vectors, output, overwrite)
        rows, width = vectors.matrix.shape
    click.echo(f"{output}: {rows:,} pieces, {width} numbers each", err=True)
