"""`heedful verify`: are these two folders the same model?"""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option, text_option


@click.command()
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@click.argument("texts", type=click.Path(allow_dash=True), required=False)
@text_option
@click.option("--limit", default=200, show_default=True, type=click.IntRange(min=1), help="Compare on so many texts.")
@click.option(
    "--tolerance", default=1e-4, show_default=True, type=click.FloatRange(min=0), help="What still is the same."
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
def command(
    first: str,
    second: str,
    texts: str | None,
    column: str | None,
    limit: int,
    tolerance: float,
    force: bool,
    as_json: bool,
) -> None:
    """Compare two model folders in any format, on the lines or rows of TEXTS or on a few built-in sentences.

    The largest difference of every layer's states, of every head's outputs and of the vectors of sentence-transformers
    folders is printed. The exit code is 0 if the two are the same model within the tolerance, and 1 if not.

    \b
    Examples:
      heedful verify chinese_L-12_H-768_A-12 bert-base-chinese
      heedful verify model copy lines.txt --tolerance 1e-5
    """
    from itertools import islice

    from heedful.data.text_files import read_texts
    from heedful.inference.verification import SENTENCES, verify

    given = SENTENCES if texts is None else list(islice(read_texts(texts, column), limit))
    found = verify(first, second, given, tolerance=tolerance, force=force)
    if as_json:
        import json

        differences = {one.what: one.largest for one in found.differences}
        values = {"same": found.same, "differences": differences, "apart": found.apart, "notes": found.notes}
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        width = max((len(one.what) for one in found.differences), default=0)
        for one in found.differences:
            mark = "" if one.largest <= tolerance else "  above the tolerance"
            click.echo(f"{one.what:{width}}  {one.largest:.2e}{mark}")
        for line in (*found.apart, *found.notes):
            click.echo(line)
        click.echo("the same model" if found.same else f"not the same model (tolerance {tolerance:g})")
    if not found.same:
        raise SystemExit(1)
