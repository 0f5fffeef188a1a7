"""`heedful translate`: learn from pairs of sentences, translate with what was learned, and judge translations."""

from __future__ import annotations

import click

from heedful.cli.lazy import Lazy


@click.group(cls=Lazy, names=("evaluate", "run", "score", "train"), folder="heedful.cli.translate")
def command() -> None:
    """Learn to translate, or to reply, from pairs of sentences; translate; score and evaluate translations.

    \b
    Examples:
      heedful translate train --train train.tsv --dev dev.tsv --source en --target de -o run
      heedful translate run run input.txt
      heedful translate evaluate run test.tsv
      heedful translate score run pairs.tsv
    """
