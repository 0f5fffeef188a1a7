"""Translations of a file, of standard input or of what is typed, written as they come."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from heedful.atomic import check_free
from heedful.cli.precision import own_texts, tell_int8
from heedful.cli.progress import counting_bar
from heedful.cli.sink import sink
from heedful.data.tables import column_named, ending, is_table, read_table, text_under
from heedful.data.text_files import refuse_ragged
from heedful.decoding import Beam, Sampling
from heedful.errors import counted
from heedful.inference.load import load_translator
from heedful.inference.translator import TEXTS_PER_CHUNK, Translated, Translator
from heedful.models.transformer import Transformer
from heedful.text.documents import count_texts, text_lines
from heedful.views.alignments import Matrix, write_alignments

# More matrices than this make a page that nobody reads and a browser hardly opens.
MOST_MATRICES = 100


@dataclass(frozen=True)
class Options:
    """The options of `heedful translate run`."""

    run: str
    input: str | None = None
    output: str | None = None
    beam: int = 5
    length_penalty: float = 1.0
    n_best: int = 1
    sample: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    max_length: int | None = None
    column: str | None = None
    as_json: bool = False
    alignments: str | None = None
    layer: int = -1
    head: int | None = None
    overwrite: bool = False
    precision: str = "auto"
    force: bool = False
    engine: str = "auto"
    device: str | None = None

    @property
    def how(self) -> Beam | Sampling:
        """The way to search."""
        if self.sample:
            temperature = 1.0 if self.temperature is None else self.temperature
            return Sampling(temperature, self.top_k or 0, 1.0 if self.top_p is None else self.top_p, self.n_best)
        if (self.temperature, self.top_k, self.top_p) != (None, None, None):
            raise click.UsageError("--temperature, --top-k and --top-p go with --sample")
        return Beam(self.beam, self.length_penalty, self.n_best)

    @property
    def typed(self) -> bool:
        """Whether somebody at a terminal is asked for texts."""
        return self.input is None and sys.stdin.isatty()


def translate_file(options: Options) -> None:
    """Translate as the options say."""
    how = options.how
    for file in filter(None, (options.output, options.alignments)):
        check_free(file, options.overwrite)
    own = () if options.input is None or is_table(Path(options.input)) else own_texts(options.input)
    how_exact = (options.precision, options.force, own)
    translator = load_translator(options.run, options.device, options.engine, *how_exact)
    tell_int8(translator.int8)
    if options.alignments:  # what cannot be drawn is refused before the work, by drawing the least there is
        translator.alignments(["."], ["."], options.layer, options.head)
    texts = _typed() if options.typed else _texts(options.input or "-", options.column or translator.folder.names[0])
    looked_at: list[Translated] = []
    count, truncated, blank, start = 0, 0, 0, time.perf_counter()
    with sink(options.output) as out, _bar(options) as advance:
        stream = translator.stream(
            texts,
            how,
            options.max_length,
            options.seed,
            at_once=1 if options.typed else TEXTS_PER_CHUNK,
            advance=advance,
            scores=options.as_json or options.n_best > 1,
        )
        for count, one in enumerate(stream, start=1):
            click.echo(_lines(one, count, options), file=out, nl=False)
            truncated, blank = truncated + one.truncated, blank + one.empty
            if options.alignments and len(looked_at) < MOST_MATRICES and one.best:
                looked_at.append(one)
    seconds = time.perf_counter() - start
    if options.alignments:
        _draw(translator, looked_at, count, options)
    tell_truncated(truncated, translator)
    if blank:
        click.echo(f"{blank:,} of {count:,} texts are blank, and so are their translations", err=True)
    if options.output:
        click.echo(
            f"{options.output}: {counted(count, 'text')} in {seconds:.1f} s ({count / seconds:,.1f} texts/s)", err=True
        )


def tell_truncated(texts: int, translator: Translator) -> None:
    """Say on standard error how many texts the model has not seen whole."""
    if texts:
        limit = translator.folder.max_length
        click.echo(f"warning: {texts:,} texts were longer than {limit} tokens and were cut", err=True)


def _typed() -> Iterator[str]:
    while True:
        try:
            click.echo("> ", nl=False, err=True)
            yield input()
        except EOFError:
            return


def _texts(path: str, column: str) -> Iterator[str]:
    if not is_table(Path(path)):
        yield from text_lines(path)
        return
    refuse_ragged(Path(path))
    table = read_table(Path(path))
    name = column_named(column, table, "column")
    for row in table.rows:
        yield text_under(name, row)


def _lines(one: Translated, number: int, options: Options) -> str:
    """What is written of a text; a line end inside a translation would break the order and becomes a space."""
    if options.as_json:
        found: dict[str, object] = {"text": one.text, "translations": [asdict(each) for each in one.translations]}
        found |= {"empty": True} if one.empty else {}
        return json.dumps(found, ensure_ascii=False) + "\n"
    if options.n_best == 1:
        return one_line(one.best) + "\n"
    listed = (f"{number}\t{found.score:.4f}\t{one_line(found.text)}\n" for found in one.translations)
    return "".join(listed)


def one_line(text: str) -> str:
    """A text without line ends."""
    return " ".join(text.splitlines())


def _draw(translator: Translator, chosen: list[Translated], count: int, options: Options) -> None:
    assert options.alignments is not None
    texts, said = [one.text for one in chosen], [one.best for one in chosen]
    found = translator.alignments(texts, said, options.layer, options.head) if chosen else []
    matrices = (Matrix(one.source, one.target, one.weights.tolist()) for one in found)
    write_alignments(options.alignments, " → ".join(translator.folder.names), _whose(translator, options), matrices)
    some = f" ({len(chosen):,} of {count:,} texts)" if len(chosen) < count else ""
    click.echo(f"alignments: {options.alignments}{some}", err=True)


def _whose(translator: Translator, options: Options) -> str:
    """Which attention of the decoder is drawn; an RNN has only one."""
    model = translator.folder.model
    if not isinstance(model, Transformer):
        return "The decoder's attention."
    heads = "the mean of all heads" if options.head is None else f"head {options.head}"
    return f"Decoder layer {model.layer_number(options.layer)} of {model.config.decoder_layers}, {heads}."


@contextmanager
def _bar(options: Options) -> Iterator[Callable[[int], None]]:
    """A bar where nothing else shows how far it is; it hears how many more texts are done."""
    if options.output is None and sys.stdout.isatty():
        yield lambda more: None
        return
    path = None if options.input is None else Path(options.input)
    countable = path is not None and path.is_file() and ending(path) != ".csv"
    with counting_bar("translating", count_texts(path) if path and countable else None, "texts") as more:
        yield more
