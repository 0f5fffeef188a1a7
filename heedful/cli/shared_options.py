"""Options that several commands have."""

from __future__ import annotations

import click


def _read_as(ctx: click.Context, parameter: click.Parameter, encoding: str | None) -> None:
    from heedful.text.encodings import reading_as

    ctx.with_resource(reading_as(encoding))


peek_option = click.option(
    "--peek",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show the first N examples as the model sees them, and stop.",
)
resume_option = click.option(
    "--resume", is_flag=True, help="Go on with the run in the folder, or start it if there is none."
)
force_option = click.option(
    "--force", is_flag=True, help="Take a tokenizer that has far fewer pieces than the model has rows."
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace a file that is there already.")
text_option = click.option(
    "--text",
    "--field",
    "column",
    metavar="NAME",
    help="The column of a table, or the field of JSON lines.  [default: found by the header; text]",
)
encoding_option = click.option(
    "--encoding",
    callback=_read_as,
    expose_value=False,
    help="Of the files that are read: gb18030, utf-16, cp1252 …  [default: utf-8]",
)
