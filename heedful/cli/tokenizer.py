"""`heedful tokenizer`: train a vocabulary on one's own text, add words to one, and look at what it does to a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.lazy import Verbs
from heedful.cli.run_options import given_settings, run_options
from heedful.cli.shared_options import encoding_option, text_option
from heedful.errors import HeedfulError
from heedful.runs.preparation.settings import TokenizerSettings

if TYPE_CHECKING:
    from rich.table import Table
    from tokenizers import Encoding

    from heedful.text.domain_words import SortedOut
    from heedful.text.tokenizer import Tokenizer

# Of a long list of words the first ones are enough to see what it is.
_WORDS_SHOWN = 40


@click.group(cls=Verbs)
def command() -> None:
    """Train a tokenizer on your own text, add words to one, or see how one cuts a text into pieces."""


@command.command()
@run_options(TokenizerSettings)
def train(**options: object) -> None:
    """Learn a vocabulary from FILES: plain text, tables (.csv, .tsv) or JSON lines, packed with gzip or not.

    The same text always gives the same files, byte for byte.

    \b
    Examples:
      heedful tokenizer train book.txt -o tokenizer --vocab-size 8000
      heedful tokenizer train wiki.jsonl.gz -o tokenizer --kind bpe --cased
      heedful tokenizer train reviews.jsonl -o tokenizer --field body
    """
    settings = given_settings(TokenizerSettings)
    from heedful.cli.progress import progress_bar
    from heedful.runs.preparation.tokenizer import train_tokenizer

    tokenizer = train_tokenizer(settings, progress_bar)
    fewer = ", all that the text gives" if tokenizer.vocab_size < settings.vocab_size else ""
    click.echo(f"{settings.output}: {settings.kind}, {tokenizer.vocab_size} pieces{fewer}")


@command.command()
@click.argument("folder", metavar="MODEL")
@click.option("-o", "--output", required=True, metavar="DIR", help="Folder for the new tokenizer's files.")
@click.option("--words", metavar="FILE", help="Words to add, one a line.")
@click.option("--from-text", multiple=True, metavar="FILE", help="Add frequent words of this text; may be repeated.")
@click.option("--count", type=click.IntRange(min=1), default=500, show_default=True, help="Words from texts at most.")
@click.option("--min-count", type=click.IntRange(min=1), default=5, show_default=True, help="Leave out rarer words.")
@text_option
@encoding_option
@click.option("--overwrite", is_flag=True, help="Replace the folder if it holds something.")
def extend(
    folder: str,
    output: str,
    words: str | None,
    from_text: tuple[str, ...],
    count: int,
    min_count: int,
    column: str | None,
    overwrite: bool,
) -> None:
    """Add the words of your field, which are cut into pieces now, to the vocabulary of MODEL (or a tokenizer).

    All ids stay and the new ones follow, so that `heedful pretrain --from MODEL` goes on with a corpus built with it.
    --from-text takes the most frequent words that are cut into several pieces, numbers apart. Chinese gains nothing by
    it: BERT reads every ideograph by itself, so only words in other letters are found.

    \b
    Examples:
      heedful tokenizer extend MODEL --words terms.txt -o tokenizer
      heedful tokenizer extend MODEL --from-text papers.jsonl.gz --count 1000 -o tokenizer
      heedful tokenizer extend MODEL --words terms.txt --from-text a.txt --from-text b.txt -o tokenizer
    """
    from heedful.atomic import atomic_folder
    from heedful.cli.progress import progress_bar
    from heedful.runs.preparation.tokenizer import lines_of, watched
    from heedful.text.documents import read_lines
    from heedful.text.domain_words import sort_out, split_words, with_words
    from heedful.text.tokenizer import Tokenizer

    if words is None and not from_text:
        raise HeedfulError("no words to add", remedy="give --words FILE, --from-text FILE, or both")
    old = Tokenizer.load(folder)
    with atomic_folder(output, overwrite) as target:
        asked = sort_out(read_lines(words) if words is not None else (), old)
        new = with_words(old, asked.new)
        lines = watched(lines_of(from_text, column), progress_bar)
        new = with_words(new, split_words(lines, new, count, min_count))
        _tell_words(old, new, asked)
        new.save(target)
    click.echo(f"{output}: {old.vocab_size} pieces + {new.vocab_size - old.vocab_size} = {new.vocab_size}")


@command.command()
@click.argument("folder", metavar="DIR")
@click.argument("text")
@click.option("--pair", metavar="TEXT", help="A second text, as in [CLS] A [SEP] B [SEP].")
def show(folder: str, text: str, pair: str | None) -> None:
    """Show the pieces of TEXT with their ids, character offsets and word numbers.

    \b
    Examples:
      heedful tokenizer show tokenizer "Unaffable 中文 😀"
      heedful tokenizer show MODEL "Who wrote it?" --pair "Lu Xun wrote it."
    """
    from rich.console import Console

    from heedful.text.tokenizer import Tokenizer

    Console().print(_table(Tokenizer.load(folder).encode(text, pair), (text, pair or "")))


def _tell_words(old: Tokenizer, new: Tokenizer, asked: SortedOut) -> None:
    """Say what is added, with the pieces it was cut into, and what is not; adding nothing is an error."""
    added = new.vocabulary[old.vocab_size :]
    spelled = [f"{word} ({' '.join(pieces.tokens)})" for word, pieces in zip(added, old.pieces(added), strict=True)]
    refused = [f"{text} (line {number})" for number, text in asked.refused.items()]
    for title, some in (("added", spelled), ("there already", asked.known), ("not one word to BERT", refused)):
        if some:
            more = f", and {len(some) - _WORDS_SHOWN} more" if len(some) > _WORDS_SHOWN else ""
            click.echo(f"{title}, {len(some)}: {', '.join(some[:_WORDS_SHOWN])}{more}")
    if not added:
        remedy = "give words that it cuts into pieces; with --from-text, more text or a lower --min-count"
        raise HeedfulError("the tokenizer has all of these words already, or cannot have them", remedy=remedy)


def _table(encoding: Encoding, sides: tuple[str, str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("piece", "id", "text", "offsets", "word", "side")
    rows = zip(encoding.tokens, encoding.ids, encoding.offsets, encoding.word_ids, encoding.sequence_ids, strict=True)
    last = None
    for piece, number, (start, end), word, side in rows:
        # Of a character that is cut into bytes, each piece has the place; the character is shown once.
        text = "" if side is None or (start, end, side) == last else sides[side][start:end]
        # A special token stands nowhere in the text.
        place = [] if side is None else [text, f"{start}–{end}", str(word), "AB"[side]]
        table.add_row(*map(Text, [piece, str(number), *place]))
        last = (start, end, side)
    return table
