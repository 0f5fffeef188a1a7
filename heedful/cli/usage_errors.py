"""What click finds wrong with a command line, told as every other error: what, where, and a remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

import click

from heedful.errors import HeedfulError

_NUMBERS = {"integer": "a whole number", "float": "a number"}
NEAR, SHOWN = 3, 5  # names like the one that was written, and files of a folder, at most


def explained(error: click.ClickException) -> HeedfulError:
    """The error with a remedy; where it is, is the command that was given."""
    ctx = getattr(error, "ctx", None)
    command = ctx.command_path if ctx is not None else "heedful"
    return HeedfulError(_what(error), where=command, remedy=f"{_remedy(error, ctx)}; see {command} --help")


def _what(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"there is no option {error.option_name}"
    if isinstance(error, click.MissingParameter):
        return error.format_message().rstrip(".")
    told = error.format_message().splitlines()[0].rstrip(".")
    # Of a number with bounds, click says that text is "not a valid integer range".
    return re.sub(r"is not a valid (integer|float)( range)?$", lambda found: f"is not {_NUMBERS[found[1]]}", told)


def _remedy(error: click.ClickException, ctx: click.Context | None) -> str:
    if isinstance(error, click.NoSuchOption):
        return _did_you_mean(error.option_name, _options(ctx)) or "leave it out"
    if isinstance(error, click.MissingParameter) and ctx is not None:
        return f"write {_usage(ctx)}"
    if isinstance(error, click.BadParameter):
        return _files_inside(error) or "give another value"
    if isinstance(ctx and ctx.command, click.Group) and ctx is not None:
        group: click.Group = ctx.command  # type: ignore[assignment]
        names = group.list_commands(ctx)
        written = error.format_message().split("'")[1:2]
        return (_did_you_mean(written[0], names) if written else "") or f"choose one of {', '.join(names)}"
    return f"write {_usage(ctx)}" if ctx is not None else "look at the options"


def _did_you_mean(written: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(written, names, NEAR)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _options(ctx: click.Context | None) -> list[str]:
    if ctx is None:
        return []
    return [name for parameter in ctx.command.params for name in parameter.opts if name.startswith("-")]


def _usage(ctx: click.Context) -> str:
    return " ".join((ctx.command_path, *ctx.command.collect_usage_pieces(ctx)))


def _files_inside(error: click.BadParameter) -> str:
    """What a folder holds that was given where a file is wanted."""
    quoted = error.message.split("'")[1:2]
    if "is a directory" not in error.message or not quoted or not Path(quoted[0]).is_dir():
        return ""
    files = sorted(path.name for path in Path(quoted[0]).iterdir() if path.is_file())
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return f"give one of its files: {', '.join(files[:SHOWN])}{more}" if files else "give a file; there is none in it"
