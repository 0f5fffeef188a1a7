"""`heedful translate`: learn from pairs of sentences, translate with what was learned, and score translations."""

from __future__ import annotations

import click

from heedful.cli.lazy import Lazy


@click.group(cls=Lazy, names=("run", "score", "train"), prefix="translate_")
def command() -> None:
    """Learn to translate, or to reply, from pairs of sentences; translate; score translations.

    \b
    Examples:
      heedful translate train --train train.tsv --dev dev.tsv --source en --target de -o run
      heedful translate run run input.txt
      heedful translate score run pairs.tsv
    """
