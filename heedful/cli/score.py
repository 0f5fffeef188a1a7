"""`heedful score`: how natural does a model find each line?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heedful.cli.shared_options import encoding_option, force_option, text_option
from heedful.errors import HeedfulError, counted

if TYPE_CHECKING:
    from heedful.inference.scoring import Kind, LineScore


@click.command()
@click.argument("model", type=click.Path())
@click.argument("input", type=click.Path(allow_dash=True))
@click.option(
    "--max-length",
    type=click.IntRange(min=3),
    help="Tokens of a window; a longer line has several.  [default: the model's positions]",
)
@text_option
@encoding_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, the whole as the last one.")
@force_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(
    model: str, input: str, max_length: int | None, column: str | None, as_json: bool, force: bool, device: str | None
) -> None:
    """The perplexity of each line of INPUT (text, or - for standard input) and of the whole. Lower is more natural.

    A .csv, .tsv or .jsonl is read row by row. Any of them may be .gz.

    A language model (GPT, LSTM, XLNet …) predicts every token from those before it, and the end of the line: exp of the
    mean negative log-probability of a token; and "a word", over the words of the raw text, parted by white space, which
    compares models of different vocabularies. ELMo does so forwards and backwards: the perplexity of each way, and exp
    of the mean of both losses; it says words of its own vocabulary (words.txt), all others as <UNK>, which is told.
    A masked one (BERT …) has every token hidden in turn and guessed from all the others: its pseudo-perplexity
    (Salazar et al., 2020) is another quantity, has a name of its own, and compares with its like alone.

    A line longer than the model is read in windows that overlap by half, and each token is scored once.

    \b
    Examples:
      heedful score MODEL lines.txt
      echo "the cat sat on the mat" | heedful score MODEL -
      heedful score MODEL lines.txt --json > scores.jsonl
    """
    import sys
    from contextlib import nullcontext

    from heedful.cli.progress import progress_bar
    from heedful.data.text_files import count_texts, read_texts
    from heedful.inference.load import load_embedder
    from heedful.inference.scoring import LineScore, kind_of_score, score_lines, window_of

    loaded = load_embedder(model, device, force)
    kind, window = kind_of_score(loaded), window_of(loaded, max_length)
    whole, out = LineScore(), sys.stdout  # kept, because a bar takes the name over
    # On a terminal the lines themselves show how far it is.
    bar = nullcontext(lambda done, new: None) if out.isatty() else progress_bar("scoring", count_texts(input), "lines")
    with bar as advance:
        for number, score in enumerate(score_lines(loaded, read_texts(input, column), max_length), start=1):
            whole += score
            click.echo(_line({"line": number}, score, kind, as_json), file=out)
            advance(number, number)
    if not whole.score.tokens:
        raise HeedfulError("there is no text to score", where=input, remedy="give lines with words in them")
    click.echo(_line({"whole": True}, whole, kind, as_json), file=out)
    _warn(whole, window)
    if kind == "both directions":
        _warn_of_words(whole, len(loaded.two_way_lm.words))
    elif whole.score.unknown:
        share = whole.score.unknown / whole.score.tokens
        click.echo(f"warning: {share:.1%} of the tokens are [UNK], which is easily guessed", err=True)


def _line(name: dict[str, Any], line: LineScore, kind: Kind, as_json: bool) -> str:
    import json

    from heedful.inference.pseudo_perplexity import perplexity
    from heedful.inference.scoring import score_told
    from heedful.json_files import finite

    score = line.score
    if as_json:
        return json.dumps(finite({**name, **score_told(line, kind)}))
    title = f"line {name['line']}" if "line" in name else f"whole ({counted(score.texts - score.empty, 'line')})"
    if not score.tokens:
        return f"{title:<24} {'empty':>14}   0 tokens"
    if kind == "pseudo":
        return f"{title:<24} {score.perplexity:14,.3f} pseudo   {score.tokens:,} tokens"
    ways = "".join(f"   {name} {perplexity(loss, score.tokens):,.3f}" for name, loss in line.ways.items())
    return f"{title:<24} {score.perplexity:14,.3f}{ways}   {score.tokens:,} tokens   {line.per_word:,.3f} a word"


def _warn(line: LineScore, window: int | None) -> None:
    whole = line.score
    if line.marks:
        click.echo(f"note: {line.marks:,} of the {line.words:,} words are <unk> in the text itself", err=True)
    if whole.empty:
        click.echo(f"{whole.empty:,} lines are empty and count for nothing in the whole", err=True)
    if whole.windowed:
        what = f"{whole.windowed:,} lines are longer than {window} tokens and were read in windows that overlap by half"
        click.echo(f"note: {what}", err=True)


def _warn_of_words(line: LineScore, words: int) -> None:
    """How many words the softmax of an ELMo lacks, in which the perplexity is too low."""
    click.echo(f"note: the model says one of {words:,} words (words.txt in its folder)", err=True)
    if line.score.unknown:
        share = line.score.unknown / line.score.tokens
        what = f"{share:.1%} of the words are not among them and count as <UNK>, which is easily guessed"
        click.echo(f"warning: {what}", err=True)
