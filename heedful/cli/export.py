"""`heedful export`: a model in the format of another engine."""

from __future__ import annotations

import click


@click.command()
@click.argument("run", type=click.Path())
@click.option("--to", "engine", required=True, type=click.Choice(["ctranslate2"]), help="The engine to write for.")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The folder to write.")
@click.option("--quantization", default="float32", show_default=True, help="float16, int8 …; smaller and less exact.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
def command(run: str, engine: str, output: str, quantization: str, overwrite: bool) -> None:
    """Write the Transformer of RUN (a run folder or its model folder) for CTranslate2.

    What comes out is a folder for `ctranslate2.Translator`: it takes pieces without [CLS] and [SEP] and gives pieces.
    The tokenizer lies beside it.

    \b
    Examples:
      heedful export run --to ctranslate2 -o exported
      heedful export run --to ctranslate2 -o exported --quantization int8
    """
    from heedful.checkpoints.ctranslate2_export import export_ctranslate2
    from heedful.checkpoints.translation_folder import load_translation
    from heedful.inference.load import model_path

    export_ctranslate2(load_translation(model_path(run)), output, quantization, overwrite)
    click.echo(f"{output}: {quantization} for {engine}", err=True)
