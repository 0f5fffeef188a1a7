"""Options that several of the commands have which train."""

from __future__ import annotations

import click

precision_option = click.option(
    "--precision",
    default="float32",
    show_default=True,
    type=click.Choice(["float32", "bfloat16"]),
    help="Of products in training; bfloat16 is faster where the processor has it.",
)
portions_option = click.option(
    "--portions", default=1, show_default=True, type=click.IntRange(min=1), help="Gradient accumulation."
)
peek_option = click.option(
    "--peek",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show the first N examples as the model sees them, and stop.",
)
resume_option = click.option(
    "--resume", is_flag=True, help="Go on with the run in the folder, or start it if there is none."
)
