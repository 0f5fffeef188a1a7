"""`heedful toy`: write the toy world, or show what its tasks give away to a bag of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from heedful.toy.baselines import Baseline
    from heedful.toy.writer import Size


@click.command()
@click.argument("out", metavar="OUT", required=False)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same bytes.")
@click.option("--size", type=click.Choice(["small", "normal", "large"]), default="normal", show_default=True)
@click.option("--overwrite", is_flag=True, help="Replace the folder OUT if it holds something.")
@click.option("--baselines", is_flag=True, help="Print what words alone, and rules, reach on each task.")
def command(out: str | None, seed: int, size: str, overwrite: bool, baselines: bool) -> None:
    """Write a small bilingual world, English and Chinese, with data for every task, into the folder OUT.

    The people of all dev and held-out files are unknown in training. No task can be solved from its words alone;
    --baselines shows it, with or without OUT.

    \b
    OUT gets:
      documents.en.txt  documents.zh.txt   stories, a sentence a line, to train on
      heldout.en.txt    heldout.zh.txt     stories about other people
      sentiment.*/      train.tsv, dev.tsv      like SST-2
      pairs.*/          train.tsv, dev.tsv      like RTE and MRPC
      similarity.*/     train.tsv, dev.tsv      like STS-B
      tags.*/           train.conll, dev.conll  token and IOB2 tag
      roles.*/          train.json, dev.json    like SQuAD 1.1, who does what in a sentence
      questions.*/      train.json, dev.json    like SQuAD 1.1, whose thing is asked for
      choices.*/        train.jsonl, dev.jsonl  like SWAG and CODAH
      parallel.en-zh/   train.tsv, dev.tsv      English and Chinese
      short.en-zh/      train.tsv, dev.tsv      the same with few words, learned in a minute

    \b
    Examples:
      heedful toy world
      heedful toy world --seed 7 --size large
      heedful toy --baselines
    """
    from rich.console import Console

    from heedful.cli.console import table_console
    from heedful.toy.baselines import all_baselines
    from heedful.toy.writer import SIZES

    if out is None and not baselines:
        raise click.UsageError("give a folder to write to, or --baselines")
    if out is not None:
        _write(out, SIZES[size], seed, overwrite)
    if baselines:
        with Console(stderr=True).status("training the baselines"):
            table = _table(all_baselines(SIZES[size], seed))
        table_console().print(table)


def _write(out: str, size: Size, seed: int, overwrite: bool) -> None:
    from rich.console import Console

    from heedful.atomic import atomic_folder
    from heedful.toy.writer import write

    with atomic_folder(out, overwrite) as folder, Console(stderr=True).status("writing") as status:
        write(folder, size, seed, on_file=status.update)
    click.echo(f"{out}: {size.documents} documents and {size.train} rows of each task to train on")


def _table(lines: Iterable[Baseline]) -> Table:
    from rich.table import Table

    table = Table("task", "language", "measure", "chance", "words alone", "rules")
    for line in lines:
        form = ".2f" if line.metric == "correlation" else ".1%"
        solved = "–" if line.solver is None else f"{line.solver:.1%}"
        table.add_row(line.task, line.language, line.metric, f"{line.chance:{form}}", f"{line.baseline:{form}}", solved)
    return table
