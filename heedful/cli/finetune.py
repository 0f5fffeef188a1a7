"""`heedful finetune`: a pretrained encoder, a task and labelled data."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, run_options
from heedful.cli.shared_options import peek_option, session_options
from heedful.runs.finetuning.settings import FinetuningSettings


@click.command(cls=RunCommand)
@run_options(FinetuningSettings)
@peek_option
@session_options
def command(peek: int, **options: object) -> None:
    """Fine-tune a model folder for TASK: classify (several labels with --multi), regress, tag, answer, choose or embed.

    The run folder gets config.toml, metrics.jsonl, timing.json, report.html, checkpoints/ and, at the end, model/,
    which loads here and, where Hugging Face has such a class, there. Columns are found by the header.

    embed makes sentence vectors of your own: from pairs that mean the same (the others of a batch are what does not,
    and so are columns called negative), from pairs with a score, or from lines alone, each twice through dropout.
    Batches may be as large as you like with --accumulate. The folder loads in sentence-transformers too.

    \b
    Examples:
      heedful finetune classify --model MODEL --train train.tsv --dev dev.tsv -o run
      heedful finetune classify --multi --model MODEL --train topics.csv --dev dev.csv -o run
      heedful finetune classify --multi --model MODEL --train train.csv --label toxic,insult,threat --balance -o run
      heedful finetune classify --model MODEL --train train.tsv --dev dev.tsv --pooling mean -o run
      heedful finetune regress --model MODEL --train sts.tsv --dev dev.tsv --label score -o run
      heedful finetune tag --model MODEL --train train.conll --dev dev.conll --head bilstm-crf -o run
      heedful finetune answer --model MODEL --train squad.json --dev dev.json --epochs 2 --lr 3e-5 -o run
      heedful finetune choose --model MODEL --train train.jsonl --dev dev.jsonl --seeds 5 -o run
      heedful finetune embed --model MODEL --train pairs.tsv --dev sts.tsv --batch-size 256 --accumulate 8 -o run
      heedful finetune embed --model MODEL --train lines.txt --dev sts.tsv --lr 3e-5 --epochs 1 -o run
      heedful finetune classify --model MODEL --train train.tsv --dev dev.tsv --sweep lr=1e-5,3e-5 -o run
      heedful finetune classify --model MODEL --train train.tsv --peek 3 -o run
      heedful finetune --resume -o run
    """
    from functools import partial

    from heedful.cli.training import told_settings, trained

    settings = told_settings(FinetuningSettings)
    if peek:
        from heedful.cli.peek import peek_at
        from heedful.runs.finetuning.material import Material

        peek_at(Material.of(settings), peek)
        return
    from heedful.cli.trials_table import show_trials
    from heedful.runs.finetuning.trials import finetune_all

    run = trained(partial(finetune_all, settings), settings, settings.output)
    show_trials(run)
    raise SystemExit(run.outcome.exit_code)
