"""`heedful translate score`: how probable are given translations?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.shared_options import encoding_option

if TYPE_CHECKING:
    from heedful.inference.teacher_forced import PairScore


@click.command()
@click.argument("run", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option("--source", help="The column of the source.  [default: as in training]")
@click.option("--target", help="The column of the translation.  [default: as in training]")
@encoding_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, the whole as the last one.")
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(
    run: str, files: tuple[str, ...], source: str | None, target: str | None, as_json: bool, device: str | None
) -> None:
    """The log-probability that the model of RUN gives to each translation in FILES, and to all of them together.

    FILES is a table or JSON-lines file with a column for each side, or two texts whose lines belong together, that of
    the sources first. Logarithms are natural, over the pieces of a translation and the end symbol.

    \b
    Examples:
      heedful translate score run test.tsv
      heedful translate score run test.en test.de --json
    """
    import sys

    from heedful.cli.progress import progress_bar
    from heedful.data.bitext.reading import read_pairs
    from heedful.inference.load import load_translator
    from heedful.inference.teacher_forced import PairScore

    translator = load_translator(run, device)
    names = translator.folder.names
    data = read_pairs(files, source or names[0], target or names[1], whole=False)
    for remark in data.remarks:
        click.echo(str(remark), err=True)
    scores: list[PairScore] = []
    out, size = sys.stdout, 256  # kept, because a bar takes the name over
    with progress_bar("scoring", len(data.examples), "pairs") as advance:
        for start in range(0, len(data.examples), size):
            some = data.examples[start : start + size]
            scores += translator.pair_scores([(pair.source, pair.target) for pair in some])
            for pair, score in zip(some, scores[start:], strict=True):
                click.echo(_line(pair.where, score, as_json, pair.empty), file=out)
            advance(len(scores), len(scores))
    counted = [score for pair, score in zip(data.examples, scores, strict=True) if not pair.empty]
    whole = PairScore(sum(one.log_probability for one in counted), sum(one.symbols for one in counted))
    click.echo(_line(None, whole, as_json), file=out)
    if any(one.truncated for one in scores):
        cut, limit = sum(one.truncated for one in scores), translator.folder.max_length
        click.echo(f"warning: {cut:,} pairs had a side longer than {limit} tokens, which was cut", err=True)


def _line(where: str | None, score: PairScore, as_json: bool, empty: bool = False) -> str:
    import json
    import math

    perplexity = math.exp(min(-score.log_probability / score.symbols, 700.0))
    numbers = {"log_probability": score.log_probability, "symbols": score.symbols, "perplexity": perplexity}
    if as_json:
        name = {"whole": True} if where is None else {"where": where}
        return json.dumps({**name, **numbers, **({"empty": True} if empty else {})}, ensure_ascii=False)
    title = "whole" if where is None else where
    rest = f"{score.symbols:,} symbols, perplexity {perplexity:,.3f}{', a side is empty' if empty else ''}"
    return f"{title:<24} {score.log_probability:14.4f}   {rest}"
