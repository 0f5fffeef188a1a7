"""`heedful export`: a model in the format of another engine."""

from __future__ import annotations

import click


@click.command()
@click.argument("model", type=click.Path())
@click.option(
    "--to", "engine", required=True, type=click.Choice(["onnx", "ctranslate2"]), help="The engine to write for."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    help="The folder to write.  [default: for ONNX, model.onnx beside the weights]",
)
@click.option(
    "--precision",
    "--quantization",
    default="float32",
    show_default=True,
    help="float32 or int8; for CTranslate2 also float16 and its others. Smaller and less exact.",
)
@click.option("--texts", type=click.Path(dir_okay=False), help="For ONNX: lines to compare on, the first 100.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
def command(model: str, engine: str, output: str | None, precision: str, texts: str | None, overwrite: bool) -> None:
    """Write MODEL (a model folder or a run) for ONNX Runtime or, a translation Transformer, for CTranslate2.

    An ONNX folder holds model.onnx for any batch and length, with pooling or the head of its task, and the tokenizer.
    What it says is compared with ours after it is written, and the differences are printed; one that says something
    else is not kept. `heedful embed`, `similarity`, `predict`, `evaluate` and `serve` take such a folder like any
    other. Without -o, model.onnx is written beside the weights of MODEL, for `--engine onnxruntime`.

    \b
    Examples:
      heedful export MODEL --to onnx -o exported
      heedful export MODEL --to onnx
      heedful export run --to onnx --precision int8 -o small
      heedful export run --to ctranslate2 -o translator
    """
    from heedful.inference.load import model_path

    if engine == "onnx":
        from itertools import islice

        from heedful.checkpoints.folder import read_folder
        from heedful.inference.onnx_export import SENTENCES, export_beside, export_onnx
        from heedful.text.documents import read_lines

        lines = [line for line in islice(read_lines(texts), 100) if line.strip()] if texts else SENTENCES
        folder = read_folder(model_path(model))
        if output is None:
            found = export_beside(folder, precision, lines, overwrite)
        else:
            found = export_onnx(folder, output, precision, lines, overwrite)
        click.echo(f"{output or folder.weights / 'model.onnx'}: {found}", err=True)
        return
    if output is None:
        raise click.UsageError("name the folder to write with -o")
    from heedful.checkpoints.translation_folder import load_translation
    from heedful.export.ctranslate2_folder import export_ctranslate2

    export_ctranslate2(load_translation(model_path(model)), output, precision, overwrite)
    click.echo(f"{output}: {precision} for {engine}", err=True)
