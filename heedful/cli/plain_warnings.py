"""Warnings about the user's files and models as one plain line each on standard error."""

from __future__ import annotations

import warnings
from typing import Any

import click

from heedful.errors import PrecisionWarning, TextWarning


def show_warnings_plainly() -> None:
    """From here on, what our readers warn of is shown without the line of the program that did; others as before."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, TextWarning | PrecisionWarning):
            click.echo(f"warning: {message}", err=True)
        else:
            before(message, category, *rest, **more)

    warnings.showwarning = show
