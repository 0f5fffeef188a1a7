"""`heedful inspect`: look at labelled data before training on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from heedful.cli.shared_options import encoding_option
from heedful.errors import counted

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.data.labelled.dataset import Columns, Remark
    from heedful.data.labelled.inspection import Findings, Lengths
    from heedful.data.labelled.samples import Sample
    from heedful.text.tokenizer import Tokenizer

MOST_BAD_ROWS = 20
MOST_LABELS = 20  # in a table; JSON has all of them
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILES…", type=_FILE)
@click.option("--dev", type=_FILE, metavar="FILE", help="Also look at this one, and for what leaks from FILES into it.")
@click.option(
    "--task",
    type=click.Choice(["classify", "multilabel", "regress", "tag", "answer", "choose"]),
    help="What it is for.  [default: as the file looks]",
)
@click.option("--model", metavar="DIR", help="Count the tokens of this model or tokenizer.")
@click.option("--max-length", type=click.IntRange(min=1), help="Limit in tokens.  [default: the model's own]")
@click.option("--text", help="Column of the text.  [default: by the header]")
@click.option("--pair", help="Column of the second text.  [default: by the header]")
@click.option("--label", help="Column of the label.  [default: by the header]")
@encoding_option
@click.option("--unlabelled", is_flag=True, help="Do not look at labels, which may be missing.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(
    files: tuple[Path, ...],
    dev: Path | None,
    task: str | None,
    model: str | None,
    max_length: int | None,
    text: str | None,
    pair: str | None,
    label: str | None,
    unlabelled: bool,
    as_json: bool,
) -> None:
    """Lengths, labels, repeats, leaks and bad rows of labelled FILES: TSV, CSV, JSON lines, CoNLL or SQuAD, or .gz.

    Lengths are in characters and words, or with --model in tokens; then it also says how many examples are longer
    than the model can take, and how much of the text its vocabulary cannot spell.

    \b
    Examples:
      heedful inspect train.tsv --dev dev.tsv
      heedful inspect train.tsv --dev dev.tsv --model MODEL
      heedful inspect reviews.csv --text body --label stars --task regress
      heedful inspect comments.csv --task multilabel --label toxic,insult,threat
      heedful inspect train.conll train.json choices.jsonl --json
    """
    from heedful.data.labelled.dataset import Columns
    from heedful.data.labelled.inspection import leaks

    tokenizer, limit = _tokenizer(model, max_length) if model else (None, None)
    columns = Columns(text, pair, label)
    everything = [
        _look_at(file, task, columns, not unlabelled, tokenizer, limit) for file in (*files, *([dev] if dev else []))
    ]
    found = [findings for findings, _ in everything]
    shared: tuple[Remark, ...] = ()
    if dev:
        train = [sample for _, samples in everything[:-1] for sample in samples]
        shared = leaks(train, everything[-1][1])
    if as_json:
        _print_json(found, shared if dev else None)
    else:
        _print(found, shared if dev else None)


def _tokenizer(model: str, max_length: int | None) -> tuple[Tokenizer, int | None]:
    """A folder's tokenizer, and how many tokens the model can take if anything tells."""
    from heedful.checkpoints.sentence_transformers import read_layout
    from heedful.json_files import read_json
    from heedful.text.tokenizer import Tokenizer

    folder = read_layout(Path(model)).encoder if Path(model).is_dir() else Path(model)
    tokenizer = Tokenizer.load(folder)
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    limits = (config.get("max_position_embeddings"), tokenizer.model_max_length)
    return tokenizer, max_length or min((limit for limit in limits if isinstance(limit, int)), default=None)


def _look_at(
    path: Path, task: str | None, columns: Columns, labelled: bool, tokenizer: Tokenizer | None, limit: int | None
) -> tuple[Findings, list[Sample]]:
    from rich.console import Console

    from heedful.cli.progress import progress_bar
    from heedful.data.labelled.inspection import count_tokens, findings, read_samples

    console = Console(stderr=True)
    with console.status(f"reading {path.name}"):
        kind, samples, data = read_samples(path, task, columns, labelled)
    tokens = None
    if tokenizer is not None:
        with progress_bar(f"tokenizing {path.name}", len(samples), "examples") as advance:
            tokens = count_tokens(samples, tokenizer, lambda done: advance(done, done))
    with console.status(f"looking at {path.name}"):
        return findings(path, kind, samples, data.remarks, tokens, limit, data.bad), samples


def _print_json(found: list[Findings], shared: tuple[Remark, ...] | None) -> None:
    import json
    from dataclasses import asdict

    whole = {"files": [asdict(findings) for findings in found]}
    if shared is not None:
        whole["leaks"] = [asdict(remark) for remark in shared]
    click.echo(json.dumps(whole, ensure_ascii=False, indent=2))


def _print(found: list[Findings], shared: tuple[Remark, ...] | None) -> None:
    from heedful.cli.console import table_console

    console = table_console()
    for findings in found:
        console.print(f"{findings.file}: {counted(findings.examples, 'example')} to {findings.task}", markup=False)
        for lengths in findings.lengths:
            console.print(_lengths_table(lengths))
        if findings.labels:
            console.print(_labels_table(findings))
        click.echo("".join(f"  {line}\n" for line in _lines(findings)))
    if shared is not None:
        click.echo("".join(f"{remark}\n" for remark in shared) or "train and dev have nothing in common\n", nl=False)


def _lines(findings: Findings) -> list[str]:
    lines = []
    if findings.scale:
        lines.append(
            f"numbers from {findings.scale.least:g} to {findings.scale.most:g}, mean {findings.scale.mean:.4g}"
        )
    if findings.unknown_share is not None:
        lines.append(f"{findings.unknown_share:.3%} of the pieces are [UNK]")
    if findings.limit:
        lines.append(f"the model takes {findings.limit} tokens")
    return [*lines, *map(str, findings.remarks), *_bad_rows(findings)] or ["nothing odd"]


def _bad_rows(findings: Findings) -> list[str]:
    if not findings.bad:
        return []
    count = len(findings.bad)
    listed = [f"  {row.where}  {row.what}" for row in findings.bad[:MOST_BAD_ROWS]]
    more = [f"  … and {count - MOST_BAD_ROWS:,} more, which --json lists"] if count > MOST_BAD_ROWS else []
    return [
        f"{counted(count, 'row')} cannot be used (`heedful finetune --bad-rows skip` leaves them out):",
        *listed,
        *more,
    ]


def _lengths_table(lengths: Lengths) -> Table:
    from rich.table import Table

    numbers = f"least {lengths.least:,}, median {lengths.median:,}, 95 % up to {lengths.p95:,}, most {lengths.most:,}"
    table = Table(lengths.unit, "examples", "", title=numbers, title_justify="left", box=None)
    highest = max(count for _, _, count in lengths.histogram)
    for first, last, count in lengths.histogram:
        table.add_row(
            f"{first} – {last}" if first != last else f"{first}", f"{count:,}", "█" * round(30 * count / highest)
        )
    return table


def _labels_table(findings: Findings) -> Table:
    from itertools import islice

    from rich.table import Table
    from rich.text import Text

    total = sum(findings.labels.values())
    table = Table({"tag": "entity", "choose": "right choice"}.get(findings.task, "label"), "count", "share", box=None)
    for label, count in islice(findings.labels.items(), MOST_LABELS):
        table.add_row(Text(label), f"{count:,}", f"{count / total:.1%}")
    if len(findings.labels) > MOST_LABELS:
        rest = sum(islice(findings.labels.values(), MOST_LABELS, None))
        table.add_row(f"{len(findings.labels) - MOST_LABELS:,} others", f"{rest:,}", f"{rest / total:.1%}")
    return table
