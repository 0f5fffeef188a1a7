"""`heedful bench`: how fast something that runs already is."""

from __future__ import annotations

import click

from heedful.cli.lazy import Lazy


@click.group(cls=Lazy, names=("serve",), folder="heedful.cli.bench")
def command() -> None:
    """Load something that runs and tell how it bears it.

    \b
    Examples:
      heedful bench serve http://127.0.0.1:8000 --clients 64 --seconds 20
    """
