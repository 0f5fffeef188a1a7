"""`heedful pretrain`: a BERT of your own from a built corpus."""

from __future__ import annotations

import click

from heedful.cli.shared_options import portions_option, precision_option, resume_option


@click.command()
@click.argument("corpus", type=click.Path(file_okay=False))
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The run's folder.")
@click.option("--size", default="mini", show_default=True, help="tiny, mini, small, medium, base or large.")
@click.option("--set", "fields", multiple=True, metavar="FIELD=VALUE", help="Any field of the model's config.")
@click.option(
    "--from",
    "start",
    type=click.Path(file_okay=False),
    help="Go on from this model folder; CORPUS has its tokenizer, or one that `heedful tokenizer extend` made of it.",
)
@click.option("--budget", default="30m", show_default=True, help="30m, 2h, 20000steps or 50Mtokens.")
@click.option("--phases", default="128:100%", show_default=True, help="Lengths and their shares of the steps.")
@click.option("--batch-size", default=32, show_default=True, type=click.IntRange(min=1), help="At the first length.")
@portions_option
@precision_option
@click.option("--masking", default="token", show_default=True, help="token, word or phrase.")
@click.option("--mask-rate", default=0.15, show_default=True, type=float, help="Share of the tokens to predict.")
@click.option("--pairs", default="nsp", show_default=True, help="nsp, sop (sentence order) or none.")
@click.option("--duplicates", default=0, help="Use what `corpus build --static --duplicates N` wrote.  [default: none]")
@click.option("--single-sentences", is_flag=True, help="A and B are one sentence each, not runs that fill the length.")
@click.option("--learning-rate", "--lr", default=1e-4, show_default=True, type=float)
@click.option("--warmup", default=0.1, show_default=True, type=float, help="Share of the steps, or steps from 1 on.")
@click.option("--weight-decay", default=0.01, show_default=True, type=float)
@click.option("--clip", default=1.0, show_default=True, type=float, help="Largest norm of the gradient; 0 for none.")
@click.option("--dropout", type=float, help="Of states and attention.  [default: 0.1, or the folder's own]")
@click.option("--seed", default=0, show_default=True)
@click.option("--eval-every", default=500, show_default=True, help="In steps; 0 for the end only.")
@click.option("--checkpoint-every", default=500, show_default=True, help="In steps; 0 for the end only.")
@resume_option
def command(**options: object) -> None:
    """Pretrain a BERT on CORPUS, a folder made by `heedful corpus build`.

    The run folder gets config.toml, metrics.jsonl, timing.json, report.html, checkpoints/ and, at the end, model/,
    which loads here and in Hugging Face. Ctrl-C writes a checkpoint first; --resume goes on from it, bit for bit.

    \b
    Examples:
      heedful pretrain corpus -o run --size mini --budget 30m --lr 1e-3
      heedful pretrain corpus -o run --size base --phases 128:90%,512:10% --budget 100000steps --resume
      heedful pretrain corpus -o run --from MODEL --budget 50Mtokens
      heedful pretrain corpus -o run --set hidden_size=192 --set num_attention_heads=3
      torchrun --nproc-per-node 2 -m heedful pretrain corpus -o run --resume
    """
    from heedful.cli.pretrain_run import Options, pretrain

    raise SystemExit(pretrain(Options(**options)).exit_code)  # type: ignore[arg-type]
