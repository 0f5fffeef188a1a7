"""`heedful new`: a model folder with random weights."""

from __future__ import annotations

import click


@click.command()
@click.argument("output", type=click.Path(file_okay=False))
@click.option("--tokenizer", required=True, type=click.Path(), help="A tokenizer folder, or any model folder.")
@click.option("--model", default="bert", show_default=True, help="The family of the model.")
@click.option("--size", default="tiny", show_default=True, help="tiny, mini, small, medium, base or large.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="The same seed, size and vocabulary give the same weights.",
)
@click.option("--overwrite", is_flag=True, help="Replace a model folder that is there already.")
def command(output: str, tokenizer: str, model: str, size: str, seed: int, overwrite: bool) -> None:
    """Write a model with random weights and its pretraining heads: a starting point, or a baseline.

    \b
    Examples:
      heedful new model --tokenizer tokenizer --size tiny
      heedful new baseline --tokenizer MODEL --size base --seed 7
    """
    from heedful.checkpoints.encoder_folder import save_model
    from heedful.checkpoints.families import family_named
    from heedful.text.tokenizer import Tokenizer

    words, family = Tokenizer.load(tokenizer), family_named(model)
    config = family.config_of_size(size, words.vocab_size)
    fresh = family.pretraining_model(config)
    family.initialise(fresh, config, seed)
    save_model(fresh, output, words, overwrite=overwrite)
    count = sum(p.numel() for p in fresh.parameters())
    click.echo(f"{output}: {model} {size}, {count:,} parameters, {config.vocab_size:,} pieces", err=True)
