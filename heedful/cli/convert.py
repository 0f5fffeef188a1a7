"""`heedful convert`: a model in any format that can be read, as a folder of Hugging Face's."""

from __future__ import annotations

import click

from heedful.cli.shared_options import force_option


@click.command()
@click.argument("folder", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="The folder to write.")
@force_option
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
def command(folder: str, output: str, force: bool, overwrite: bool) -> None:
    """Write the model of FOLDER as a folder of Hugging Face's: config.json, model.safetensors and the tokenizer.

    FOLDER may hold a TensorFlow checkpoint of Google's (bert_config.json, bert_model.ckpt.*, vocab.txt), a
    pytorch_model.bin, safetensors, or be a run. Neither TensorFlow nor a pickle is run. All heads come along; what the
    two folders compute is compared at the end.

    \b
    Examples:
      heedful convert chinese_L-12_H-768_A-12 -o bert-base-chinese
      heedful convert folder-with-a-bin -o folder-with-safetensors
    """
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
