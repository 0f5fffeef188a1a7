"""What the command line says of the precision a model is computed in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from heedful.checkpoints.int8_scheme import Int8Scheme
    from heedful.inference.onnx_export import Comparison


def tell_int8(scheme: Int8Scheme | Comparison | None) -> None:
    """Say on standard error what int8 costs, if a model is in int8, or another engine."""
    if scheme is not None:
        click.echo(f"note: {scheme}", err=True)


def own_texts(path: str | None, column: str | None = None) -> Iterator[str]:
    """The texts of the user's file, read only as far as they are asked for; of standard input none."""
    from heedful.data.text_files import read_texts

    if path is not None and Path(path).is_file():
        yield from read_texts(path, column)
