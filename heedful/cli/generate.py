"""`heedful generate`: go on with a text."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand
from heedful.cli.shared_options import (
    encoding_option,
    force_int8_option,
    overwrite_option,
    precision_option,
    text_option,
)

AT_LEAST_ONE = click.IntRange(min=1)


@click.command(cls=RunCommand)
@click.argument("model", type=click.Path())
@click.argument("prompt", required=False)
@click.option("--file", type=click.Path(allow_dash=True), help="Many prompts, one a line, table row or JSON object.")
@text_option
@encoding_option
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="A file to write.  [default: print]")
@click.option("--max-tokens", default=100, show_default=True, type=AT_LEAST_ONE, help="New ones, at most.")
@click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be given several times.")
@click.option("--beam", default=1, show_default=True, type=AT_LEAST_ONE, help="Hypotheses kept; 1 is greedy search.")
@click.option("--length-penalty", default=1.0, show_default=True, type=float, help="Of --beam: α in log P(y) / |y|^α.")
@click.option("--n-best", default=1, show_default=True, type=AT_LEAST_ONE, help="Of --beam: texts for each prompt.")
@click.option("--sample", is_flag=True, help="Draw at random instead of searching the likeliest.")
@click.option("--temperature", default=1.0, show_default=True, type=float, help="Of --sample: below 1 more cautious.")
@click.option("--top-k", default=0, type=click.IntRange(min=0), help="Of --sample: the K likeliest.  [default: all]")
@click.option("--top-p", default=1.0, show_default=True, type=float, help="Of --sample: the likeliest that reach P.")
@click.option("--count", default=1, show_default=True, type=AT_LEAST_ONE, help="Of --sample: texts for each prompt.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of --sample.")
@click.option("--repetition-penalty", default=1.0, show_default=True, type=float, help="Above 1: fewer repetitions.")
@click.option(
    "--when-full",
    default="stop",
    show_default=True,
    type=click.Choice(["stop", "slide"]),
    help="Where the model has no room left: end, or go on from the newer half of the text.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON lines: prompt, text, why it ends, log-probability.")
@overwrite_option
@precision_option
@force_int8_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
def command(**options: object) -> None:
    """Go on with PROMPT by a language model (GPT, LSTM, XLNet …): the prompt and what follows it, as it is written.

    Without a PROMPT a text begins from nothing, and so does that of a blank line. With --file there is a line for each
    prompt, in the same order; line breaks inside a text become spaces, or use --json.

    \b
    Examples:
      heedful generate MODEL "Once upon a time"
      heedful generate MODEL "The cat" --sample --temperature 0.8 --top-p 0.95 --seed 7 --max-tokens 200
      heedful generate MODEL --file prompts.txt --sample --count 3 --json -o texts.jsonl
      heedful generate MODEL "Q: why?" --stop "Q:" --beam 4
    """
    from heedful.cli.generate_texts import Options, generate_texts

    generate_texts(Options(**options))  # type: ignore[arg-type]
