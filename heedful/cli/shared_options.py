"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])


def _read_as(ctx: click.Context, parameter: click.Parameter, encoding: str | None) -> None:
    from heedful.text.encodings import reading_as

    ctx.with_resource(reading_as(encoding))


peek_option = click.option(
    "--peek",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show the first N examples as the model sees them, and stop.",
)
_SESSION = (
    click.option("--config", type=click.Path(dir_okay=False), help="A file of settings; options come before it."),
    click.option("--dry-run", is_flag=True, help="Write OUTPUT/config.toml, which --config takes, and stop."),
    click.option("--tensorboard", is_flag=True, help="Write event files for TensorBoard into the run's folder."),
    click.option(
        "--resume",
        is_flag=True,
        help="Go on with the run in the folder, or start it if there is none; what it was told need not be said again.",
    ),
)


def session_options(function: C) -> C:
    """Give a command that trains the options about how, which change nothing of what comes out."""
    for option in reversed(_SESSION):
        function = option(function)
    return function


force_option = click.option(
    "--force", is_flag=True, help="Take a tokenizer that has far fewer pieces than the model has rows."
)
# The same for commands that compute in a precision: one word for all that is done against advice.
force_int8_option = click.option(
    "--force",
    is_flag=True,
    help="Take a tokenizer with far fewer pieces than the model has rows; compute in int8 where it hardly pays.",
)
precision_option = click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "int8"]),
    default="auto",
    show_default=True,
    help="auto is as the folder is stored; int8 is faster where the processor has VNNI.",
)
engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "heedful", "onnxruntime"]),
    default="auto",
    show_default=True,
    help="auto is heedful's own, and ONNX Runtime for a folder with nothing but model.onnx.",
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
