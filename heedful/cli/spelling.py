"""How the command line spells what a run calls a field: texts from below name fields in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import click

_FIELD = re.compile(r"`(\w+)`")


def in_options(text: str, spelled: Mapping[str, str]) -> str:
    """A text with the command line's word for each `field`."""
    return _FIELD.sub(lambda found: spelled.get(found[1], found[0]), text)


def spellings(parameters: Iterable[click.Parameter]) -> dict[str, str]:
    """What each field of a command is called there, by the name of the field and by each long name of its option."""
    found: dict[str, str] = {}
    for parameter in parameters:
        names = parameter.opts if isinstance(parameter, click.Option) else []
        found |= {name.lstrip("-").replace("-", "_"): name for name in names}
        found[parameter.name or ""] = spelling(parameter)
    return found


def spelling(parameter: click.Parameter) -> str:
    """The longest name of an option, or an argument's in capitals."""
    if isinstance(parameter, click.Argument):
        return (parameter.name or "").upper()
    return max(parameter.opts, key=len)
