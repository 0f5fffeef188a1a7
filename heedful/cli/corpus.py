"""`heedful corpus`: turn text into token shards for pretraining, and look at what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from heedful.cli.lazy import Verbs
from heedful.cli.run_options import given_settings, run_options
from heedful.runs.preparation.settings import CorpusSettings

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.data.corpus.corpus import Corpus, TokenText
    from heedful.data.corpus.examples import Examples, Recipe

_PAIRS = click.Choice(["nsp", "sop", "none"])
_MASKINGS = click.Choice(["token", "word", "phrase"])


@click.group(cls=Verbs)
def command() -> None:
    """Build a corpus to pretrain on, or look into one."""


@command.command()
@run_options(CorpusSettings)
def build(**options: object) -> None:
    """Turn FILES into token shards: plain text, tables or JSON lines, packed with gzip or not, - for standard input.

    A blank line ends a document of plain text; a row of a .csv or .tsv is one, as an object is. Lines are split into
    sentences. Memory does not grow with the text, the result is the same for any number of workers, and a build that
    was killed goes on where it was.

    \b
    Examples:
      heedful corpus build wiki.jsonl.gz -o corpus --tokenizer tokenizer --workers 8
      heedful corpus build wiki.jsonl.gz -o SHARED/corpus --tokenizer tokenizer --ray 10.0.0.1:6379
      heedful corpus build 's3://texts/*.jsonl.gz' -o s3://corpora/wiki --tokenizer tokenizer
      heedful corpus build book.txt -o corpus --tokenizer tokenizer --lines running
      heedful corpus build zh.jsonl -o corpus --tokenizer tokenizer --words --drop-headings --deduplicate
      heedful corpus build news.txt -o corpus --tokenizer tokenizer --static --duplicates 10
    """
    settings = given_settings(CorpusSettings)
    from heedful.cli.progress import progress_bar
    from heedful.data.corpus.written import WrittenExamples
    from heedful.runs.preparation.corpus import build_corpus, recipe_of

    corpus = build_corpus(settings, progress_bar)
    _report(corpus)
    if settings.static:
        written = WrittenExamples(corpus, recipe_of(settings), settings.duplicates)
        click.echo(f"  examples written ahead: {len(written)}")


@command.command()
@click.argument("folder", metavar="DIR")
@click.option("--examples", type=click.IntRange(min=0), default=2, show_default=True, help="How many to show.")
@click.option("--length", type=click.IntRange(min=8), default=128, show_default=True, help="Tokens of an example.")
@click.option("--pairs", type=_PAIRS, default="nsp", show_default=True)
@click.option("--masking", type=_MASKINGS, default="token", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--verify", is_flag=True, help="Read everything and check it against the checksums.")
def show(
    folder: str,
    examples: int,
    length: int,
    pairs: Literal["nsp", "sop", "none"],
    masking: Literal["token", "word", "phrase"],
    seed: int,
    verify: bool,
) -> None:
    """Show counts, sentence lengths, the share of [UNK], and the first examples as a model will see them.

    \b
    Examples:
      heedful corpus show corpus
      heedful corpus show corpus --examples 1 --length 32 --masking word
      heedful corpus show corpus --verify
    """
    from heedful.cli.console import table_console
    from heedful.data.corpus.corpus import Corpus
    from heedful.data.corpus.examples import Recipe

    corpus = Corpus.open(folder, verify)
    console = table_console()
    console.print(_counts(corpus))
    console.print(_histogram(corpus.train))
    if examples:
        recipe = Recipe(max_length=length, pairs=pairs, masking=masking, seed=seed)
        for table in _example_tables(corpus, recipe, examples):
            console.print(table)


def _report(corpus: Corpus) -> None:
    read = corpus.manifest["input"]
    dropped = f", {read['duplicates']} repeated ones dropped" if corpus.manifest["settings"]["deduplicate"] else ""
    click.echo(f"{corpus.folder}: {read['documents']} documents read{dropped}")
    # What the manifest says: of a corpus at an address nothing else is on this machine.
    counts = {
        part: [sum(entry.get(what, 0) for entry in entries) for what in ("tokens", "documents", "words")]
        for part, entries in corpus.manifest["shards"].items()
    }
    click.echo("  to train on: {} tokens in {} documents".format(*counts["train"]))
    if counts["train"][2]:
        click.echo(f"  words:       {counts['train'][2]}")
    click.echo("  held out:    {} tokens in {} documents".format(*counts["held_out"]))
    if not counts["held_out"][1]:
        click.echo("  note: nothing is held out, so pretraining cannot be evaluated; see --held-out", err=True)


def _counts(corpus: Corpus) -> Table:
    from rich.table import Table

    table = Table("", "shards", "documents", "sentences", "tokens", "[UNK]", title=str(corpus.folder))
    for name, part in (("train", "train"), ("held out", "held_out")):
        entries = corpus.manifest["shards"][part]
        totals = {key: sum(entry[key] for entry in entries) for key in ("documents", "sentences", "tokens", "unknown")}
        share = totals.pop("unknown") / max(totals["tokens"], 1)
        table.add_row(name, str(len(entries)), *(f"{count:,}" for count in totals.values()), f"{share:.3%}")
    return table


def _histogram(text: TokenText) -> Table:
    from itertools import pairwise

    import numpy as np
    from rich.table import Table

    lengths = np.diff(text.sentence_starts)
    edges = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    counts = np.histogram(lengths, [*edges, max(1024, int(lengths.max()) + 1)])[0]
    table = Table("tokens in a sentence", "sentences", "", title="lengths (train)")
    names = [f"{low} – {high - 1}" for low, high in pairwise(edges)] + [f"{edges[-1]} and more"]
    for name, count in zip(names, counts.tolist(), strict=True):
        table.add_row(name, f"{count:,}", "█" * round(40 * count / int(counts.max())))
    return table


def _example_tables(corpus: Corpus, recipe: Recipe, count: int) -> list[Table]:
    import numpy as np

    from heedful.data.corpus.examples import ExampleMaker, split_examples

    maker = ExampleMaker(corpus, recipe)
    return [_example_table(corpus, one) for one in split_examples(maker.take(np.arange(count)))]


def _example_table(corpus: Corpus, example: Examples) -> Table:
    from rich.table import Table
    from rich.text import Text

    pieces = corpus.tokenizer.vocabulary
    follows = "" if example.nsp is None else ("B as it stands in the text", "B not in its place")[int(example.nsp[0])]
    table = Table("position", "piece", "id", "segment", "to predict", title=f"example {example.numbers[0]}  {follows}")
    wanted = dict(zip(example.masked.tolist(), example.labels.tolist(), strict=True))
    for position, (number, segment) in enumerate(zip(example.ids.tolist(), example.segments.tolist(), strict=True)):
        hidden = pieces[wanted[position]] if position in wanted else ""
        table.add_row(*map(Text, [str(position), pieces[number], str(number), "AB"[segment], hidden]))
    return table
