"""Options that several of the commands have which train, beside those that their settings make."""

from __future__ import annotations

import click

peek_option = click.option(
    "--peek",
    default=0,
    type=click.IntRange(min=0),
    metavar="N",
    help="Show the first N examples as the model sees them, and stop.",
)
resume_option = click.option(
    "--resume", is_flag=True, help="Go on with the run in the folder, or start it if there is none."
)
