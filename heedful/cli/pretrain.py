"""`heedful pretrain`: a model of your own, of any family, from a built corpus."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, run_options
from heedful.cli.shared_options import session_options
from heedful.runs.pretraining.settings import PretrainingSettings


@click.command(cls=RunCommand)
@run_options(PretrainingSettings)
@session_options
def command(**options: object) -> None:
    """Pretrain a BERT, or with --model one of another family, on CORPUS, a folder made by `heedful corpus build`.

    The run folder gets config.toml, metrics.jsonl, timing.json, report.html, checkpoints/ and, at the end, model/,
    which loads here and in Hugging Face. Ctrl-C writes a checkpoint first; --resume goes on from it, bit for bit.

    \b
    Examples:
      heedful pretrain corpus -o run --budget 30m
      heedful pretrain corpus -o run --model gpt2 --budget 30m
      heedful pretrain corpus -o run --size base --phases 128:90%,512:10% --budget 100000steps --resume
      heedful pretrain corpus -o run --from MODEL --budget 50Mtokens
      heedful pretrain corpus -o run --set hidden_size=192 --set num_attention_heads=3
      torchrun --nproc-per-node 2 -m heedful pretrain corpus -o run --resume
    """
    from functools import partial

    from heedful.cli.training import told_settings, trained
    from heedful.runs.pretraining.run import pretrain

    settings = told_settings(PretrainingSettings)
    raise SystemExit(trained(partial(pretrain, settings), settings, settings.output).outcome.exit_code)
