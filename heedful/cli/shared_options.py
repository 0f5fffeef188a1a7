"""Options that several commands have."""

from __future__ import annotations

import click

precision_option = click.option(
    "--precision",
    default="float32",
    show_default=True,
    type=click.Choice(["float32", "bfloat16"]),
    help="Of products in training; bfloat16 is faster where the processor has it.",
)
