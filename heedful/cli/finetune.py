"""`heedful finetune`: a pretrained encoder, a task and labelled data."""

from __future__ import annotations

import click

from heedful.cli.run_options import RunCommand, given_settings, run_options
from heedful.cli.shared_options import peek_option, resume_option
from heedful.runs.finetuning.settings import FinetuningSettings


@click.command(cls=RunCommand)
@run_options(FinetuningSettings)
@peek_option
@resume_option
def command(peek: int, resume: bool, **options: object) -> None:
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
      heedful finetune classify --model MODEL --train train.tsv --peek 3 -o run
    """
    settings = given_settings(FinetuningSettings)
    from functools import partial

    if peek:
        from heedful.cli.peek import peek_at
        from heedful.runs.finetuning.material import Material

        peek_at(Material.of(settings), peek)
        return
    from heedful.cli.training import trained

    if settings.seeds > 1:
        from heedful.cli.seeds_table import show_seeds
        from heedful.runs.finetuning.seeds import run_seeds

        seeds = trained(partial(run_seeds, settings), settings.output, resume)
        show_seeds(seeds)
        raise SystemExit(seeds.last.outcome.exit_code)
    from heedful.runs.finetuning.run import finetune

    raise SystemExit(trained(partial(finetune, settings), settings.output, resume).outcome.exit_code)
