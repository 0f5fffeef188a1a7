"""The first pairs as the model sees them: pieces and ids of both sides."""

from __future__ import annotations

import click

from heedful.cli.translate_material import Material


def peek(material: Material, count: int) -> None:
    """Print the first `count` training pairs: what the encoder sees, what the decoder is given, what it is to say."""
    for number in range(min(count, len(material.train))):
        source, target = material.train.source[number], material.train.target[number]
        click.echo(f"\npair {number + 1}")
        shown = (("source", source, 0), ("given", target[:-1], 1), ("to say", target[1:], 1))
        for name, ids, side in shown:
            pieces = material.sides[side].vocabulary
            click.echo(f"  {name:7}{' '.join(pieces[i] for i in ids)}")
            click.echo(f"  {'':7}{' '.join(map(str, ids))}")
