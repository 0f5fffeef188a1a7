"""A group of commands that imports the file of a command only when that command is wanted."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import click


class Lazy(click.Group):
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
