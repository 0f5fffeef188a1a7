"""`heedful embed`: a vector for each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.run_options import RunCommand
from heedful.cli.shared_options import (
    encoding_option,
    engine_option,
    force_int8_option,
    overwrite_option,
    precision_option,
    text_option,
)
from heedful.errors import HeedfulError, counted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from heedful.data.ray_engine import RayEngine
    from heedful.inference.embed_file import EmbedProgress


@click.command(cls=RunCommand)
@click.argument("model", type=click.Path())
@click.argument("input", type=click.Path(allow_dash=True))
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write.")
@click.option("--layers", default="-1", show_default=True, help="Layers, by commas: 0 = embeddings, -1 = last.")
@click.option("--combine", default="concat", show_default=True, help="Join several layers: concat, sum or mean.")
@click.option("--pooling", help="cls, mean, max, mean-max, weighted-mean, last.  [default: the folder's own or mean]")
@click.option("--unit", help="sentence, word or token.  [default: sentence; token for jsonl]")
@click.option("--normalize", is_flag=True, help="Scale every vector to length 1.")
@click.option("--prompt", metavar="NAME", help="Put this prompt of the folder before each text, such as query.")
@click.option("--max-length", type=click.IntRange(min=1), help="Limit in tokens.  [default: the folder's own]")
@click.option("--format", "kind", help="npy, safetensors or jsonl.  [default: by the ending of the output]")
@click.option("--truncate", default="warn", show_default=True, help="Texts over the limit: warn or error.")
@text_option
@encoding_option
@click.option("--restart", is_flag=True, help="Throw away an unfinished output instead of continuing it.")
@precision_option
@force_int8_option
@engine_option
@overwrite_option
@click.option("--device", help="cpu, cuda, cuda:1 …  [default: a GPU if there is one]")
@click.option("--ray", metavar="ADDRESS", help="Compute on the machines of this Ray cluster, HOST:PORT.")
@click.option("-v", "--verbose", is_flag=True, help="Also tell what is unusual about the model folder.")
def command(
    model: str,
    input: str,
    output: str,
    layers: str,
    combine: str,
    pooling: str | None,
    unit: str | None,
    normalize: bool,
    prompt: str | None,
    max_length: int | None,
    kind: str | None,
    truncate: str,
    column: str | None,
    restart: bool,
    precision: str,
    force: bool,
    engine: str,
    overwrite: bool,
    device: str | None,
    ray: str | None,
    verbose: bool,
) -> None:
    """A vector for each line of INPUT, a text file or - for standard input, or for each row of a .csv, .tsv or .jsonl
    (any of them .gz). A blank line is a text too and gets the vector of the empty sequence.

    The output is streamed to disk. Interrupted, by Ctrl-C or worse, the same command goes on where it stopped.
    NAME.origin.json beside it says what it was made of: done with the same input and settings again, nothing is
    computed, and a file of any other is replaced only with --overwrite.

    \b
    Examples:
      heedful embed MODEL lines.txt -o vectors.npy
      heedful embed E5 questions.txt -o questions.npy --prompt query --normalize
      heedful embed MODEL reviews.csv --text body -o vectors.npy
      heedful embed MODEL lines.txt -o features.npy --layers -1,-2,-3,-4 --combine sum
      heedful embed MODEL lines.txt -o words.safetensors --unit word
      heedful embed MODEL lines.txt -o vectors.npy --precision int8
      heedful embed MODEL lines.txt -o vectors.npy --engine onnxruntime
      heedful embed MODEL lines.txt -o tokens.jsonl --layers -1,-2
      heedful embed MODEL s3://texts/lines.txt.gz -o s3://vectors/lines.npy --ray 10.0.0.1:6379
      zcat lines.gz | heedful embed MODEL - -o vectors.npy --normalize
    """
    from heedful.cli.precision import own_texts, tell_int8
    from heedful.cli.progress import progress_bar
    from heedful.data.text_files import count_texts, read_texts
    from heedful.inference.embed_file import embed_file
    from heedful.inference.load import load_embedder

    kind = kind or _kind_of(output)
    unit = unit or ("token" if kind == "jsonl" else "sentence")
    with _cluster(ray, device, precision, engine) as cluster:
        device, precision = (device, precision) if cluster is None else ("cpu", "float32")
        embedder = load_embedder(model, device, force, precision, own_texts(input, column), engine)
        tell_int8(embedder.int8 or embedder.exported)
        _tell_notes(embedder.folder.notes if verbose else ())
        wanted = embedder.features(layer_list(layers), combine, pooling, unit, normalize, prompt)
        with _ToldWhenStopped(), progress_bar("embedding", count_texts(input), "texts") as advance:
            result = embed_file(
                embedder,
                read_texts(input, column),
                output,
                wanted,
                kind=kind,
                max_length=max_length,
                truncate=truncate,
                restart=restart,
                overwrite=overwrite,
                on_progress=lambda p: advance(p.texts, p.texts - p.resumed),
                engine=cluster,
            )
    _tell(result, output, embedder.limit(max_length))


def _tell_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"note: {note}", err=True)


class _ToldWhenStopped:
    """After Ctrl-C within this block, it is said what is left."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is KeyboardInterrupt:
            click.echo("stopped; the same command goes on where it was, but for the last two seconds", err=True)
            raise SystemExit(130) from None


def _cluster(
    ray: str | None, device: str | None, precision: str, engine: str
) -> AbstractContextManager[RayEngine | None]:
    """The cluster that computes, if one is named."""
    from contextlib import nullcontext

    from heedful.data.ray_engine import ray_engine

    if ray and (device not in (None, "cpu") or precision == "int8" or engine == "onnxruntime"):
        what = "--ray computes in float32 on the cluster's processors: leave --device, int8 and onnxruntime out"
        raise click.UsageError(what)
    return ray_engine(ray) if ray else nullcontext()


def _tell(result: EmbedProgress, output: str, limit: int) -> None:
    """Say on standard error what was done, and what of it may not be meant."""
    if result.there:
        click.echo(
            f"{output}: {counted(result.texts, 'text')}, there already from the same input and settings", err=True
        )
        return
    if result.resumed:
        click.echo(f"continued after {counted(result.resumed, 'text')}", err=True)
    if result.blank:
        click.echo(f"{result.blank:,} of {result.texts:,} texts are blank", err=True)
    if result.truncated:
        click.echo(f"warning: {result.truncated:,} texts were longer than {limit} tokens and were cut", err=True)
    new, seconds = result.texts - result.resumed, max(result.seconds, 1e-9)
    speed = f"{new / seconds:,.1f} texts/s, {result.tokens / seconds:,.0f} tokens/s"
    click.echo(f"{output}: {counted(result.texts, 'text')} in {seconds:.1f} s ({speed})", err=True)


def layer_list(text: str) -> list[int]:
    """The numbers in `-1,-2`; anything else is a usage error."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as -1,-2", param_hint="--layers") from None


def _kind_of(output: str) -> str:
    ending = output.rsplit(".", 1)[-1]
    if ending not in ("npy", "safetensors", "jsonl"):
        remedy = "end it in .npy, .safetensors or .jsonl, or say which with --format"
        raise HeedfulError("the output's name does not tell its format", where=output, remedy=remedy)
    return ending
