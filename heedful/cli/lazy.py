"""Groups of commands: none takes an option twice, and some import the file of a command only when it is wanted."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import click

from heedful.cli.once import refuse_repeats
from heedful.cli.spelling import in_options, spellings
from heedful.errors import HeedfulError

_SPELLED = "heedful.cli.spelled"  # where a context keeps the options of the command that runs, by the names of fields


class Verbs(click.Group):
    """A group whose commands refuse an option given twice where one value is meant, and name options in errors."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what went wrong below names fields in backticks, which become the command's options."""
        try:
            return super().invoke(ctx)
        except HeedfulError as error:
            spelled = ctx.meta.get(_SPELLED, {})
            what, remedy = in_options(error.what, spelled), in_options(error.remedy or "", spelled)
            raise HeedfulError(what, where=error.where, remedy=remedy or None) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            refuse_repeats(command, rest)
            ctx.meta[_SPELLED] = spellings(command.params)
        return name, command, rest


class Lazy(Verbs):
    """Finds the command NAME as `command` in the file of that name in a folder, which is this one or one inside it."""

    def __init__(self, *args: Any, names: Sequence[str], folder: str = "heedful.cli", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.names, self.folder = names, folder

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.names)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.names:
            return None
        command: click.Command = importlib.import_module(f"{self.folder}.{name}").command
        return command
