"""`heedful translate train`: a translation model of your own from pairs of sentences."""

from __future__ import annotations

import click

from heedful.cli.shared_options import peek_option, portions_option, precision_option, resume_option

POSITIVE, AT_LEAST_ONE = click.FloatRange(min=0, min_open=True), click.IntRange(min=1)
SHARE = click.FloatRange(0, 1, max_open=True)


@click.command()
@click.option(
    "--train",
    required=True,
    multiple=True,
    type=click.Path(dir_okay=False),
    help="Pairs: one TSV, CSV or JSON lines; or --train a.en --train a.de, two texts that go line by line.",
)
@click.option("--dev", multiple=True, type=click.Path(dir_okay=False), help="Pairs to choose the best weights by.")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The run's folder.")
@click.option("--source", help="The column to translate from.  [default: source; of two texts, as they end]")
@click.option("--target", help="The column to translate to.  [default: target; of two texts, as they end]")
@click.option("--limit", default=0, type=click.IntRange(min=0), help="Train on the first N pairs only.")
@click.option("--model", default="transformer", show_default=True, help="transformer, attention (an RNN) or rnn.")
@click.option("--size", default="small", show_default=True, help="tiny, small, medium, base or big.")
@click.option("--set", "fields", multiple=True, metavar="FIELD=VALUE", help="Any field of the model's config.")
@click.option("--cell", help="Of an RNN: rnn, gru or lstm.  [default: gru]")
@click.option("--decoder", help="Of an RNN without attention: 1, 2 or 3.  [default: 3]")
@click.option("--encoder", type=click.Path(file_okay=False), help="A BERT folder to be the encoder.")
@click.option("--encoder-rate", default=5e-5, show_default=True, type=POSITIVE, help="Learning rate of that BERT.")
@click.option("--vocab-size", default=8000, show_default=True, type=AT_LEAST_ONE, help="Pieces of byte-level BPE.")
@click.option("--separate", is_flag=True, help="A vocabulary for each side, not one for both.")
@click.option(
    "--tokenizer",
    multiple=True,
    type=click.Path(),
    help="A tokenizer that is there already, for both sides; or twice, source and target.",
)
@click.option(
    "--max-length", default=128, show_default=True, type=AT_LEAST_ONE, help="Leave out longer pairs (tokens)."
)
@click.option("--max-ratio", default=9.0, show_default=True, type=float, help="Leave out more unequal pairs.")
@click.option("--epochs", default=20.0, show_default=True, type=float)
@click.option("--budget", help="30m, 2h or 20000steps instead of epochs.")
@click.option(
    "--learning-rate",
    "--lr",
    type=POSITIVE,
    help="[default: 2e-3; 1e-3 for base and big; the paper's for inverse_sqrt]",
)
@click.option("--warmup", default=0.1, show_default=True, type=float, help="Share of the steps, or steps from 1 on.")
@click.option(
    "--schedule",
    default="linear",
    show_default=True,
    type=click.Choice(["linear", "cosine", "inverse_sqrt", "constant"]),
    help="After the warm-up; inverse_sqrt is the Transformer paper's.",
)
@click.option("--weight-decay", default=0.0, show_default=True, type=click.FloatRange(min=0))
@click.option("--clip", default=1.0, show_default=True, type=float, help="Largest norm of the gradient; 0 for none.")
@click.option("--dropout", type=SHARE, help="[default: 0.3; 0.1 for base and big]")
@click.option("--label-smoothing", default=0.1, show_default=True, type=SHARE)
@click.option(
    "--forcing", default="1", show_default=True, help="An RNN's teacher forcing: a share, or 1:0.5 over time."
)
@click.option("--batch-size", default=2048, show_default=True, type=AT_LEAST_ONE, help="Tokens of both sides.")
@portions_option
@precision_option
@click.option("--seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--average", default=5, show_default=True, type=click.IntRange(min=0), help="The last N checkpoints.")
@click.option("--metric", type=click.Choice(["bleu", "chrf", "loss"]), help="What decides on dev.  [default: bleu]")
@click.option("--bleu-tokenizer", help="sacreBLEU's: 13a, intl, zh, char, none.  [default: by the target's name]")
@click.option("--beam", default=1, show_default=True, type=AT_LEAST_ONE, help="Of evaluations.")
@click.option("--patience", default=0, help="Stop after so many evaluations without a better one.")
@click.option("--eval-every", default=0, help="In steps.  [default: once an epoch, at most 20 times]")
@click.option("--checkpoint-every", default=0, help="In steps.  [default: with every evaluation]")
@peek_option
@resume_option
def command(**options: object) -> None:
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
    """
    from heedful.cli.translate_train_run import train

    raise SystemExit(train(options))
