"""The first pairs as the model sees them: pieces and ids of both sides."""

from __future__ import annotations

import click

from heedful.runs.translation.material import Material
from heedful.text.piece_labels import piece_labels


def peek_at(material: Material, count: int) -> None:
    """Print the first `count` training pairs: what the encoder sees, what the decoder is given, what it is to say."""
    for number in range(min(count, len(material.train))):
        source, target = material.train.source[number], material.train.target[number]
        click.echo(f"\npair {number + 1}")
        shown = (("source", source, 0), ("given", target[:-1], 1), ("to say", target[1:], 1))
        for name, ids, side in shown:
            click.echo(f"  {name:7}{' '.join(piece_labels(material.sides[side], ids))}")
            click.echo(f"  {'':7}{' '.join(map(str, ids))}")
