"""The first examples as the model sees them: pieces, ids, segments, the rows looked at, and targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from heedful.runs.finetuning.material import Material


def peek_at(material: Material, count: int) -> None:
    """Print the items of the first `count` training examples."""
    pieces = material.tokenizer.vocabulary
    for remark in material.remarks():
        click.echo(remark)
    labels = getattr(material.task, "labels", ())
    if labels:
        click.echo(f"labels: {', '.join(f'{number} = {label}' for number, label in enumerate(labels))}")
    for item in material.train_items:
        if item.example >= count:
            break
        click.echo(f"\nexample {item.example + 1}  {material.train.examples[item.example].where}")
        for window in item.windows:
            click.echo(f"  tokens    {' '.join(pieces[i] for i in window.ids)}")
            click.echo(f"  ids       {' '.join(map(str, window.ids))}")
            click.echo(f"  segments  {' '.join(map(str, window.segments))}")
            click.echo(f"  looked at {' '.join(map(str, window.rows))}")
        click.echo(f"  target    {' '.join(f'{value:g}' for value in item.target)}")
