"""`heedful score`: how natural does a model find each line?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heedful.cli.shared_options import encoding_option, force_option, text_option
from heedful.errors import HeedfulError

if TYPE_CHECKING:
    from heedful.inference.pseudo_perplexity import Score


@click.command()
@click.argument("model", type=click.Path())
@click.argument("input", type=click.Path(allow_dash=True))
@click.option("--max-length", type=click.IntRange(min=3), help="Limit in tokens.  [default: the model's positions]")
@text_option
@encoding_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, the whole as the last one.")
@force_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(
    model: str, input: str, max_length: int | None, column: str | None, as_json: bool, force: bool, device: str | None
) -> None:
    """The pseudo-perplexity of each line of INPUT (text, or - for standard input) and of the whole.

    A .csv, .tsv or .jsonl is read row by row. Any of them may be .gz.

    Every token is hidden in turn and guessed from all the others; the pseudo-perplexity is exp of the mean negative
    log-probability of the right tokens (Salazar et al., 2020). Lower is more natural. Only models with the same
    vocabulary can be compared.

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
    from heedful.inference.pseudo_perplexity import Score, score_texts

    loaded = load_embedder(model, device, force)
    lm, limit = loaded.masked_lm, loaded.limit(max_length)
    whole, out = Score(), sys.stdout  # kept, because a bar takes the name over
    # On a terminal the lines themselves show how far it is.
    bar = nullcontext(lambda done, new: None) if out.isatty() else progress_bar("scoring", count_texts(input), "lines")
    with bar as advance:
        for number, score in enumerate(score_texts(lm, read_texts(input, column), limit), start=1):
            whole += score
            click.echo(_line({"line": number}, score, as_json), file=out)
            advance(number, number)
    if not whole.tokens:
        raise HeedfulError("there is no text to score", where=input, remedy="give lines with words in them")
    click.echo(_line({"whole": True}, whole, as_json), file=out)
    _warn(whole, limit)


def _line(name: dict[str, Any], score: Score, as_json: bool) -> str:
    import json

    from heedful.json_files import finite

    if as_json:
        counts = {k: v for k, v in vars(score).items() if k != "loss_sum"}
        return json.dumps(finite({**name, "perplexity": score.perplexity, "loss": score.loss, **counts}))
    title = f"line {name['line']}" if "line" in name else f"whole ({score.texts - score.empty:,} lines)"
    if not score.tokens:
        return f"{title:<24} {'empty':>14}   0 tokens"
    return f"{title:<24} {score.perplexity:14,.3f}   {score.tokens:,} tokens"


def _warn(whole: Score, limit: int) -> None:
    if whole.empty:
        click.echo(f"{whole.empty:,} lines are empty and count for nothing in the whole", err=True)
    if whole.truncated:
        click.echo(f"warning: {whole.truncated:,} lines were longer than {limit} tokens and were cut", err=True)
    if whole.unknown:
        share = whole.unknown / whole.tokens
        click.echo(f"warning: {share:.1%} of the tokens are [UNK], which is easily guessed", err=True)
