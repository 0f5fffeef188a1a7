"""The consoles that tables are printed on, and that long work is told on."""

from __future__ import annotations

from rich.console import Console

WIDTH_OF_FILES = 110


def table_console(least_width: int = 0) -> Console:
    """Standard output; where it is no terminal, wide enough for a table of `least_width` columns."""
    console = Console()
    return console if console.is_terminal else Console(width=max(WIDTH_OF_FILES, least_width))


class ProgressConsole(Console):
    """Standard error; where nobody reads it any more, as behind a closed pipe, the work goes on unseen.

    rich's own would end the program there, and what it has computed would be lost.
    """

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def on_broken_pipe(self) -> None:
        """Say nothing more."""
        self.quiet = True
