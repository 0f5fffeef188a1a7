"""A model folder to be written: its tokenizer is in it, and it appears as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.atomic import atomic_folder
from heedful.checkpoints.folder import CONFIG, check_vocabulary
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer


@contextmanager
def new_folder(path: str | Path, tokenizer: Tokenizer | None, vocab_size: int, overwrite: bool) -> Iterator[Path]:
    """A model folder with its tokenizer, to be filled; it becomes `path` when the block ends well."""
    target = Path(path)
    if tokenizer is not None:
        check_vocabulary(tokenizer, vocab_size, target)
    _check_is_model(target)
    with atomic_folder(target, overwrite) as folder:
        if tokenizer is not None:
            tokenizer.save(folder)
        yield folder


def _check_is_model(target: Path) -> None:
    """Overwriting is for models: never replace a folder that holds something else."""
    if target.is_dir() and any(target.iterdir()) and not (target / CONFIG).is_file():
        raise HeedfulError("the folder holds something that is not a model", where=target, remedy="name a new folder")
