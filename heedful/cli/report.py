"""`heedful report`: the page of a run."""

from __future__ import annotations

import click


@click.command()
@click.argument("run", type=click.Path())
def command(run: str) -> None:
    """Write RUN/report.html: curves, the last values, where the time went, settings and examples of a training run.

    One file that needs no network. It can be written at any moment, also while the run goes on.

    \b
    Examples:
      heedful report runs/mini
    """
    from heedful.views.report import write_report

    click.echo(write_report(run))
