"""`heedful search`: the lines nearest to a query, from a folder of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.run_options import RunCommand
from heedful.cli.shared_options import encoding_option, force_option, text_option
from heedful.errors import counted

if TYPE_CHECKING:
    from heedful.inference.search import Index


@click.command(cls=RunCommand)
@click.argument("index", type=click.Path(file_okay=False))
@click.argument("queries", nargs=-1, metavar="[QUERY]…")
@click.option(
    "--add",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Add the lines of this file, or the rows of a .csv, .tsv or .jsonl; those that are there already stay once.",
)
@click.option("--model", type=click.Path(), help="The model of a new index.  [default: that of the index]")
@click.option("--pooling", help="Of a new index, cls, mean, max, mean-max, weighted-mean, last.  [default: its own]")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Show so many lines.")
@click.option("--approximate", is_flag=True, help="Search very many lines by faiss's graph of them, which is kept.")
@text_option
@encoding_option
@force_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each query.")
def command(
    index: str,
    queries: tuple[str, ...],
    files: tuple[str, ...],
    model: str | None,
    pooling: str | None,
    top: int,
    approximate: bool,
    column: str | None,
    force: bool,
    device: str | None,
    as_json: bool,
) -> None:
    """The lines nearest to each QUERY, by the cosine of their vectors, compared with every line of the folder INDEX.

    With --add lines go into the folder, which is made if it is not there; adding can be interrupted and repeated.

    \b
    Examples:
      heedful search index --model MODEL --add lines.txt
      heedful search index "how do I get my money back"
      heedful search index --add tickets.csv --text body
      heedful search index "退款" "cancel" --top 3 --json
    """
    if not queries and not files:
        raise click.UsageError("give a query, or lines to add with --add")
    found = _index(index, model, pooling, bool(files), device, force)
    for file in files:
        _add(found, file, column)
    for query, hits in zip(queries, found.search(queries, top, approximate) if queries else (), strict=True):
        if as_json:
            import json
            from dataclasses import asdict

            told = {"query": query, "hits": [asdict(hit) for hit in hits]}
            click.echo(json.dumps(told, ensure_ascii=False))
            continue
        click.echo(query)
        for hit in hits:
            place = f"  ({hit.source} {hit.line})" if hit.source else ""
            click.echo(f"  {hit.cosine:.4f}  {hit.text}{place}")


def _index(folder: str, model: str | None, pooling: str | None, adding: bool, device: str | None, force: bool) -> Index:
    from pathlib import Path

    from heedful.inference.load import load_embedder
    from heedful.inference.search import RECORD, Index

    embedder = None if model is None else load_embedder(model, device, force)
    if (Path(folder) / RECORD).exists() or not adding or embedder is None:
        if pooling is not None and (Path(folder) / RECORD).exists():
            raise click.UsageError("--pooling is for a new index; this one has its own")
        return Index.open(folder, embedder)
    return Index.create(folder, embedder, pooling)


def _add(index: Index, file: str, column: str | None) -> None:
    from heedful.cli.progress import progress_bar
    from heedful.data.text_files import count_texts, read_texts

    with progress_bar("embedding", count_texts(file), "texts") as advance:
        added = index.add(read_texts(file, column), file, lambda done: advance(done, done))
    told = [f"{counted(added.new, 'line')} added"]
    told += [f"{added.known:,} were there already"] if added.known else []
    told += [f"{added.blank:,} blank ones passed over"] if added.blank else []
    told += [f"{added.cut:,} longer than the model reads and cut"] if added.cut else []
    click.echo(f"{file}: {', '.join(told)}; the index has {len(index):,}", err=True)
