"""An option that is given twice where one value is meant is an error, in every verb."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import click

from heedful.errors import HeedfulError


def refuse_repeats(command: click.Command, arguments: Sequence[str]) -> None:
    """Refuse a value that a later one would replace without a word; a switch may be repeated."""
    collected = _collected(command, arguments)
    single = [option for option in command.params if isinstance(option, click.Option) and not option.multiple]
    for option in single:
        given = collected.get(option.name or "", ())
        values = list(dict.fromkeys(map(str, given))) if option.is_flag else list(map(str, given))
        if len(values) > 1 and not option.count:
            name = max(option.opts, key=len)
            what = f"{name} is given {len(values)} times: {' and '.join(values)}"
            raise HeedfulError(what, remedy="give it once")


def _collected(command: click.Command, arguments: Sequence[str]) -> dict[str, Sequence[object]]:
    """All values of each option; what cannot be parsed is told by the command itself."""
    collector = copy.copy(command)
    collector.params = [_many(option) for option in command.params]
    try:
        found, _, _ = collector.make_parser(click.Context(collector)).parse_args(list(arguments))
    except click.UsageError:
        return {}
    return {name: values for name, values in found.items() if isinstance(values, list)}


def _many(parameter: click.Parameter) -> click.Parameter:
    many = copy.copy(parameter)
    if isinstance(many, click.Option) and not many.count:
        many.multiple = True
    return many
