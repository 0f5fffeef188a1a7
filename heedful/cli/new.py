"""`heedful new`: a model folder with random weights."""

from __future__ import annotations

import click


@click.command()
@click.argument("output", type=click.Path(file_okay=False))
@click.option("--tokenizer", required=True, type=click.Path(), help="A tokenizer folder, or any model folder.")
@click.option("--size", default="tiny", show_default=True, help="tiny, mini, small, medium, base or large.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="The same seed, size and vocabulary give the same weights.",
)
@click.option("--overwrite", is_flag=True, help="Replace a model folder that is there already.")
def command(output: str, tokenizer: str, size: str, seed: int, overwrite: bool) -> None:
    """Write a BERT with random weights and its pretraining heads: a starting point, or a baseline.

    \b
    Examples:
      heedful new model --tokenizer tokenizer --size tiny
      heedful new baseline --tokenizer MODEL --size base --seed 7
    """
    from heedful.checkpoints.encoder_folder import save_model
    from heedful.models.bert import BertForPretraining, initialise, sized
    from heedful.text.tokenizer import Tokenizer

    words = Tokenizer.load(tokenizer)
    config = sized(size, words.vocab_size)
    model = BertForPretraining(config)
    initialise(model, config, seed)
    save_model(model, output, words, overwrite=overwrite)
    count = sum(p.numel() for p in model.parameters())
    click.echo(f"{output}: BERT-{size}, {count:,} parameters, {config.vocab_size:,} pieces", err=True)
