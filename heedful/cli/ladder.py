"""`heedful ladder`: every kind of language model on one corpus, and one table."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, run_options
from heedful.cli.shared_options import session_options
from heedful.runs.ladder.settings import LadderSettings


@click.command(cls=RunCommand)
@run_options(LadderSettings)
@session_options
def command(**options: object) -> None:
    """Train word2vec, an LSTM, ELMo, GPT, BERT and XLNet on CORPUS with the same budget each, and compare them.

    BERT comes twice: from random weights, and from an informed start. CORPUS is a folder made by `heedful corpus build
    --words`; without words, word2vec and ELMo have no place in the table. Each model has its run in OUTPUT/NAME; then
    are measured: the perplexity of a word, the similarity of words (--pairs), each --task by a linear layer over
    the frozen model and by fine-tuning all of it, speed, memory and size. BERT's pseudo-perplexity is another quantity
    than a perplexity and has a line of its own. OUTPUT gets ladder.html and ladder.json.

    Ctrl-C writes a checkpoint; --resume goes on, and does nothing again that is finished. A model that fails is told
    with its reason, and is tried again by --resume.

    A --task is KIND:TRAIN:DEV, perhaps with a name before it; the kinds are those of `heedful finetune`.

    \b
    Examples:
      heedful ladder corpus -o ladder --budget 10m
      heedful ladder corpus -o ladder --budget 5Mtokens --models lstm-lm,gpt --task none --valid text.txt
      heedful ladder corpus -o ladder --task sst2=classify:train.tsv:dev.tsv --task names=tag:train.conll:dev.conll
      heedful ladder corpus -o ladder --pairs wordsim353.tsv --at-once 2 --set gpt.learning_rate=1e-3
      heedful ladder --resume -o ladder
    """
    from functools import partial

    from heedful.cli.ladder_table import show_ladder
    from heedful.cli.training import told_settings, trained
    from heedful.runs.ladder.climb import climb

    settings = told_settings(LadderSettings)
    ladder = trained(partial(climb, settings), settings, settings.output)
    show_ladder(ladder)
    raise SystemExit(ladder.exit_code)
