"""`heedful similarity`: how alike are these texts?"""

from __future__ import annotations

from collections.abc import Sequence

import click

from heedful.cli.shared_options import encoding_option, force_option


@click.command()
@click.argument("model", type=click.Path())
@click.argument("texts", nargs=-1)
@click.option("--pairs", type=click.Path(dir_okay=False), help="Judged pairs, a line each: two texts and a number.")
@encoding_option
@click.option("--layers", default="-1", show_default=True, help="Layers, by commas; several are concatenated.")
@click.option("--pooling", help="cls, mean, max, mean-max, weighted-mean, last.  [default: the folder's, else mean]")
@click.option("--prompt", metavar="NAME", help="Put this prompt of the folder before each text, such as query.")
@force_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
@click.option("--json", "as_json", is_flag=True, help="Print the matrix as JSON.")
def command(
    model: str,
    texts: tuple[str, ...],
    pairs: str | None,
    layers: str,
    pooling: str | None,
    prompt: str | None,
    force: bool,
    device: str | None,
    as_json: bool,
) -> None:
    """The cosines of all pairs of TEXTS, as a table; or with --pairs, how far cosines and human judgements agree.

    Pairs with a word that has no vector are counted and left out.

    \b
    Examples:
      heedful similarity MODEL "The weather is lovely." "It is so sunny!" "He drove off."
      heedful similarity MODEL 中国 美国 苹果
      heedful similarity MODEL --pairs wordsim353.tsv
    """
    import json
    import warnings

    from heedful.cli.embed import layer_list
    from heedful.inference.embedder import TruncationWarning
    from heedful.inference.load import load_embedder

    if pairs is not None and not texts:
        return _judged(model, pairs, layer_list(layers), pooling, prompt, force, device, as_json)
    if len(texts) < 2 or pairs is not None:
        raise click.UsageError("give two texts or more, or --pairs FILE")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncationWarning)
        embedder = load_embedder(model, device, force)
        matrix = embedder.similarity(texts, layer_list(layers), pooling, prompt)
    for message in (*(str(warning.message) for warning in caught), *_unknown(embedder.tokenizer.unknown_words(texts))):
        click.echo(f"warning: {message}", err=True)
    if as_json:
        rows = [[round(float(x), 6) for x in row] for row in matrix]
        click.echo(json.dumps({"texts": texts, "cosine": rows}, ensure_ascii=False))
        return
    from rich.table import Table
    from rich.text import Text

    from heedful.cli.console import table_console

    table = Table("", *(str(i + 1) for i in range(len(texts))), box=None)
    for number, (text, row) in enumerate(zip(texts, matrix, strict=True), start=1):
        table.add_row(Text(f"{number}  {text}"), *(f"{x:.4f}" for x in row))
    longest = max(Text(text).cell_len for text in texts)
    table_console(longest + 8 * len(texts) + 8).print(table)


def _unknown(words: Sequence[str]) -> list[str]:
    """What to say of words that the vocabulary cannot spell, if there are any."""
    some = ", ".join(words[:8]) + (" …" if len(words) > 8 else "")
    return [f"the model does not know {some}: such words all count as the same, or as nothing"] if words else []


def _judged(
    model: str,
    pairs: str,
    layers: list[int],
    pooling: str | None,
    prompt: str | None,
    force: bool,
    device: str | None,
    as_json: bool,
) -> None:
    """Print how far the cosines of a model and the judgements in a file agree."""
    import json
    from dataclasses import asdict

    from heedful.checkpoints.vector_files import is_vector_file
    from heedful.inference.judged_pairs import agreement, read_pairs, text_vectors
    from heedful.inference.load import load_embedder
    from heedful.inference.nearest import WordVectors

    judged = read_pairs(pairs)
    if is_vector_file(model):
        words = WordVectors.open(model)
        found = agreement(judged, lambda texts: [words.vector(text) for text in texts])
    else:
        embedder = load_embedder(model, device, force)
        found = agreement(judged, lambda texts: text_vectors(embedder, texts, layers, pooling, prompt))
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False))
        return
    click.echo(f"Spearman {found.spearman:.4f}, Pearson {found.pearson:.4f} over {found.pairs:,} pairs")
    if found.left_out:
        some = ", ".join(found.without[:8]) + (" …" if len(found.without) > 8 else "")
        click.echo(f"left out: {found.left_out:,} pairs; without a vector: {some}", err=True)
