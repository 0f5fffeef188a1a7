"""`heedful translate train`: a translation model of your own from pairs of sentences."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, run_options
from heedful.cli.shared_options import peek_option, session_options
from heedful.runs.translation.settings import TranslationSettings


@click.command(cls=RunCommand)
@run_options(TranslationSettings)
@peek_option
@session_options
def command(peek: int, **options: object) -> None:
    """Train a model that translates, or replies, from pairs of sentences.

    A byte-level BPE is learned from both sides and keeps case, so that raw text goes in and comes out. Pairs with an
    empty side, too long or too unequal ones are left out and counted. At each evaluation the dev loss, sacreBLEU,
    chrF and three translations are shown. At the end the last checkpoints are averaged, and the average or the best
    checkpoint, whichever is better on dev, becomes model/.

    \b
    Examples:
      heedful translate train --train train.tsv --dev dev.tsv --source en --target de -o run
      heedful translate train --train a.en --train a.de --dev b.en --dev b.de --budget 60m -o run
      heedful translate train --train pairs.jsonl --dev dev.jsonl --source en --target zh --separate -o run
      heedful translate train --train qa.tsv --source question --target reply --model attention -o run
      heedful translate train --train train.tsv --dev dev.tsv --source en --target de --size base \\
          --schedule inverse_sqrt --warmup 4000 --budget 100000steps -o run --resume
      heedful translate train --from run --train letters.tsv --dev dev.tsv --lr 3e-4 -o run-of-letters
    """
    from functools import partial

    from heedful.cli.training import told_settings, trained

    settings = told_settings(TranslationSettings)
    if peek:
        from heedful.cli.translate.peek import peek_at
        from heedful.runs.translation.material import Material
        from heedful.runs.translation.run import check

        check(settings)
        peek_at(Material.of(settings, click.echo), peek)
        return
    from heedful.runs.translation.run import train_translator

    raise SystemExit(trained(partial(train_translator, settings), settings, settings.output).outcome.exit_code)
