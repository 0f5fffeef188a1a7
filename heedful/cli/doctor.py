"""`heedful doctor`: what this machine has, and what suits it."""

from __future__ import annotations

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> None:
    """Versions, cores, memory, disk, and the number of threads that works best here, by a short measurement.

    \b
    Examples:
      heedful doctor
      heedful doctor --json
    """
    import json

    from heedful.inference.machine import examine

    findings = examine()
    if as_json:
        click.echo(json.dumps(findings, indent=2))
        return
    width = max(map(len, findings))
    for name, value in findings.items():
        click.echo(f"{name:<{width}}  {value}")
