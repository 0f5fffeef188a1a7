"""`heedful fill`: the most probable words for every [MASK]."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option


@click.command()
@click.argument("model", type=click.Path())
@click.argument("text")
@click.option("--pair", help="A second text, after the first.")
@click.option("--top", default=5, show_default=True, type=click.IntRange(min=1), help="Guesses for each [MASK].")
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str, text: str, pair: str | None, top: int, force: bool, as_json: bool) -> None:
    """The most probable words for every [MASK] in TEXT, with their probabilities.

    Several are guessed one by one: no guess knows of the others.

    \b
    Examples:
      heedful fill MODEL "The capital of France is [MASK]."
      heedful fill MODEL "北京是中国的首[MASK]。" --top 3
      heedful fill MODEL "Where is the [MASK]?" --pair "It is on the [MASK]." --json
    """
    import json
    from dataclasses import asdict

    from heedful.inference.load import load_embedder

    blanks = load_embedder(model, force=force).fill(text, top, pair)
    if as_json:
        answer = {"text": text, "pair": pair, "masks": [asdict(blank) for blank in blanks]}
        click.echo(json.dumps(answer, ensure_ascii=False))
        return
    for number, blank in enumerate(blanks, start=1):
        if len(blanks) > 1:
            click.echo(f"[MASK] {number}")
        for guess in blank.guesses:
            click.echo(f"{guess.probability:8.4f}  {guess.word}")
