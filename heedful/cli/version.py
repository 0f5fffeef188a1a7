"""`heedful --version`: the version, the processor, and the precision that it trains and answers in."""

from __future__ import annotations

import click


def show_version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    """Print it and end; nothing slow is imported for it."""
    if not asked or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    from heedful.training.processor_name import instructions, processor_name

    found = instructions()
    there = {"bfloat16", "AMX"} & set(found)
    precision = "bfloat16 for the products of training" if there else "float32, for want of bfloat16 instructions"
    click.echo(f"heedful, version {version('heedful')}")
    click.echo(f"processor: {processor_name()}" + (f" ({', '.join(found)})" if found else ""))
    click.echo(f"precision: {precision}; answers are in float32 (heedful doctor measures)")
    ctx.exit()
