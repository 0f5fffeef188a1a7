"""`heedful convert`: a model in any format that can be read, as a folder of Hugging Face's."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option


@click.command()
@click.argument("folder", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The folder to write.")
@click.option("--precision", type=click.Choice(["float32", "int8"]), default="float32", show_default=True)
@click.option("--texts", type=click.Path(dir_okay=False), help="Of int8: lines to find out on what it costs.")
@force_option
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
def command(folder: str, output: str, precision: str, texts: str | None, force: bool, overwrite: bool) -> None:
    """Write the model of FOLDER as a folder of Hugging Face's: config.json, model.safetensors and the tokenizer.

    FOLDER may hold a TensorFlow checkpoint of Google's (bert_config.json, bert_model.ckpt.*, vocab.txt), a
    pytorch_model.bin, safetensors, or be a run. Neither TensorFlow nor a pickle is run. All heads come along; what the
    two folders compute is compared at the end.

    In int8 the matrices take a quarter of the room, and only heedful reads them; translation models too. It is faster
    where the processor has VNNI. Matrices that lose too much on a few texts stay in float32, and what the others cost
    is told.

    \b
    Examples:
      heedful convert chinese_L-12_H-768_A-12 -o bert-base-chinese
      heedful convert folder-with-a-bin -o folder-with-safetensors
      heedful convert MODEL -o small --precision int8 --texts lines.txt
    """
    if precision == "int8":
        _in_int8(folder, output, texts, force, overwrite)
        return
    if texts is not None:
        raise click.UsageError("--texts goes with --precision int8")
    from heedful.checkpoints.conversion import convert
    from heedful.inference.load import model_path
    from heedful.inference.verification import verify

    done = convert(model_path(folder), output, overwrite=overwrite, force=force)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    size = f"{done.tensors} tensors, {done.parameters:,} parameters"
    click.echo(f"{output}: {done.architecture or 'a model of ours'}, {size}", err=True)
    found = verify(folder, output, force=force)
    same = "the same" if found.same else "NOT the same"
    click.echo(f"compared with the source: {same}, largest difference {found.largest:.1e}", err=True)
    if not found.same:
        raise SystemExit(1)


def _in_int8(folder: str, output: str, texts: str | None, force: bool, overwrite: bool) -> None:
    from pathlib import Path

    from heedful.cli.precision import own_texts
    from heedful.inference.int8_folder import convert_to_int8, weights_size
    from heedful.inference.load import model_path

    source = model_path(folder)
    found = convert_to_int8(source, output, own_texts(texts), overwrite=overwrite, force=force)
    before, after = weights_size(source), weights_size(Path(output))
    size = f"{after / 1e6:,.1f} MB of weights, {after / before:.2f} of the source's {before / 1e6:,.1f}"
    click.echo(f"{output}: {size}", err=True)
    click.echo(str(found), err=True)
