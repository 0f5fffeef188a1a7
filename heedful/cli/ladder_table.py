"""The ladder as a table: a column for each model, a line for each quantity, and below it what is missing and why."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from heedful.cli.console import table_console
from heedful.runs.ladder.climb import Ladder
from heedful.views.ladder_page import reasons
from heedful.views.ladder_quantities import quantities

COLUMN = 17


def show_ladder(ladder: Ladder) -> None:
    """Print the table."""
    rows, found = ladder.rows, quantities(ladder.rows)
    table = Table()
    for name in ("", *(row["model"] for row in rows)):
        table.add_column(Text(name), no_wrap=not name)
    table.add_row("sees", *(Text(row["sees"]) for row in rows))
    for quantity in found:
        if any(quantity.value(row) for row in rows):
            table.add_row(Text(quantity.title), *(Text(quantity.told(row)) for row in rows))
    table_console(COLUMN * (len(rows) + 2)).print(table)
    for model, what, why in reasons(rows, found):
        click.echo(f"{model}, {what}: {why}")
    click.echo(f"page:   {ladder.report}", err=True)
    if ladder.signal is not None:
        click.echo("go on with --resume and the same folder", err=True)
