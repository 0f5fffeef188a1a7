"""`heedful finetune`: a pretrained encoder, a task and labelled data."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option, peek_option, portions_option, precision_option, resume_option

POSITIVE, AT_LEAST_ONE = click.FloatRange(min=0, min_open=True), click.IntRange(min=1)


@click.command()
@click.argument("task")
@click.option("--model", required=True, type=click.Path(file_okay=False), help="A model or run folder to start from.")
@click.option("--train", required=True, type=click.Path(dir_okay=False), help="TSV, CSV, JSON lines, CoNLL or SQuAD.")
@click.option("--dev", type=click.Path(dir_okay=False), help="Labelled data to choose the best checkpoint by.")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The run's folder.")
@click.option("--text", help="The column with the text.  [default: found by the header]")
@click.option("--pair", help="The column with the second text.")
@click.option("--label", help="The column with the label.")
@click.option("--limit", type=AT_LEAST_ONE, metavar="N", help="Train on the first N rows only.  [default: all]")
@click.option("--epochs", default=3.0, show_default=True, type=float)
@click.option("--budget", help="30m, 2h or 2000steps instead of epochs.")
@click.option("--learning-rate", "--lr", type=POSITIVE, help="[default: 5e-5; 1e-3 with --features]")
@click.option("--head-rate", type=POSITIVE, help="Of the head.  [default: the same; 1e-3 for bilstm, crf]")
@click.option("--warmup", default=0.1, show_default=True, type=float, help="Share of the steps, or steps from 1 on.")
@click.option("--weight-decay", default=0.01, show_default=True, type=float)
@click.option("--layer-decay", default=1.0, show_default=True, type=float, help="Each lower layer learns so much less.")
@click.option(
    "--dropout",
    type=click.FloatRange(0, 1, max_open=True),
    help="Of states and attention.  [default: the folder's own]",
)
@click.option("--batch-size", type=AT_LEAST_ONE, help="[default: 32; 4096 with --by-tokens]")
@click.option("--by-tokens", is_flag=True, help="The batch size counts tokens, not examples.")
@portions_option
@precision_option
@click.option("--max-length", type=AT_LEAST_ONE, help="Tokens of a window.  [default: 128; 384 for answer]")
@click.option("--stride", type=click.IntRange(min=0), help="Read longer texts in windows so many tokens apart.")
@click.option("--freeze", help="embeddings, encoder, or a number: the embeddings and so many lowest layers.")
@click.option("--features", help="Layers of the frozen encoder, as -1,-2,-3,-4; computed once, only the head learns.")
@click.option("--head", help="For tag: linear, bilstm, crf or bilstm-crf.  [default: linear]")
@click.option("--combine", help="How the layers of --features are joined, for tag: concat or sum.")
@click.option("--lstm-width", type=AT_LEAST_ONE, help="Of each direction of a bilstm head.  [default: 256]")
@click.option("--lstm-layers", type=AT_LEAST_ONE, help="Of a bilstm head.  [default: 1]")
@click.option("--random-weights", is_flag=True, help="The model's shape only, to see what pretraining is worth.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--seeds", default=1, show_default=True, type=AT_LEAST_ONE, help="So many runs, the best kept.")
@click.option("--keep", help="best (on dev) or last: the weights to end with.  [default: best; last without --dev]")
@click.option("--metric", help="The score that decides.  [default: the task's own]")
@click.option("--patience", default=0, help="Stop after so many evaluations without a better one.")
@click.option("--eval-every", default=0, help="In steps.  [default: once an epoch]")
@click.option("--checkpoint-every", default=500, show_default=True, help="In steps; 0 for the end only.")
@force_option
@peek_option
@resume_option
def command(**options: object) -> None:
    """Fine-tune a model folder for TASK: classify, regress, tag, answer or choose.

    The run folder gets config.toml, metrics.jsonl, timing.json, report.html, checkpoints/ and, at the end, model/,
    which loads here and, where Hugging Face has such a class, there. Columns are found by the header.

    \b
    Examples:
      heedful finetune classify --model MODEL --train train.tsv --dev dev.tsv -o run
      heedful finetune regress --model MODEL --train sts.tsv --dev dev.tsv --label score -o run
      heedful finetune tag --model MODEL --train train.conll --dev dev.conll --head bilstm-crf -o run
      heedful finetune answer --model MODEL --train squad.json --dev dev.json --epochs 2 --lr 3e-5 -o run
      heedful finetune choose --model MODEL --train train.jsonl --dev dev.jsonl --seeds 5 -o run
      heedful finetune classify --model MODEL --train train.tsv --peek 3 -o run
    """
    from heedful.cli.finetune_run import finetune

    raise SystemExit(finetune(options))
