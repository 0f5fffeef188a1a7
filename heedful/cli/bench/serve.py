"""`heedful bench serve`: load a server, and check every answer."""

from __future__ import annotations

import click


@click.command()
@click.argument("url")
@click.option("--model", help="Its name.  [default: the only one]")
@click.option("--clients", default=16, show_default=True, type=click.IntRange(min=1), help="Asking one after another.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Requests a second instead, come what may.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(min=0, min_open=True))
@click.option("--inputs", default=1, show_default=True, type=click.IntRange(min=1), help="Texts of a request.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the texts and arrivals.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool, **how: object) -> None:
    """Ask a running server for vectors of short sentences and tell throughput, percentiles and errors.

    By default so many clients ask one after another (a closed loop); with --rate, requests arrive at random times at
    that rate whether or not the server keeps up (an open loop). Each text's vector is learnt first, one by one, and
    every later answer is compared with it: an answer that belongs to another text is counted as wrong. The key is
    read from HEEDFUL_API_KEY.

    \b
    Examples:
      heedful bench serve http://127.0.0.1:8000 --clients 64 --seconds 20
      heedful bench serve http://127.0.0.1:8000 --model mini --rate 300
    """
    import asyncio
    import json
    import os

    from heedful.serving.load_test import Load, run_load

    found = asyncio.run(run_load(Load(**how, api_key=os.environ.get("HEEDFUL_API_KEY"))))  # type: ignore[arg-type]
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name.replace('_', ' '):<22} {value:,.2f}" if isinstance(value, float) else f"{name:<22} {value}")
