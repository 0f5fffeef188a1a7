"""The console that tables are printed on."""

from __future__ import annotations

from rich.console import Console

WIDTH_OF_FILES = 110


def table_console(least_width: int = 0) -> Console:
    """Standard output; where it is no terminal, wide enough for a table of `least_width` columns."""
    console = Console()
    return console if console.is_terminal else Console(width=max(WIDTH_OF_FILES, least_width))
