"""`heedful report`: the page of a run, or of several side by side."""

from __future__ import annotations

import click

from heedful.cli.shared_options import overwrite_option


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="One page for all the runs.")
@overwrite_option
def command(runs: tuple[str, ...], output: str | None, overwrite: bool) -> None:
    """Write RUN/report.html: curves, the last values, where the time went, settings and examples of a training run.

    One file that needs no network. It can be written at any moment, also while the run goes on. Of several runs each
    gets its page; with -o instead, a table of their scores is printed and written to one page with their evaluations
    side by side.

    \b
    Examples:
      heedful report runs/mini
      heedful report runs/pretrained runs/random -o report.html
    """
    if output is None:
        from heedful.views.report import write_report

        for path in runs:
            click.echo(write_report(path))
        return
    from rich.table import Table
    from rich.text import Text

    from heedful.atomic import check_free
    from heedful.cli.console import table_console
    from heedful.views.comparison import read_runs, write_comparison

    check_free(output, overwrite)
    found = read_runs(runs)
    names = list(dict.fromkeys(name for run in found for name in run.scores))
    table = Table()
    for column in ("run", *names):
        table.add_column(Text(column.replace("_", " ")))
    for run in found:
        table.add_row(Text(run.name), *(f"{run.scores[name]:.4f}" if name in run.scores else "" for name in names))
    table_console().print(table)
    click.echo(write_comparison(found, output))
