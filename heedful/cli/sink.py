"""Where a command writes what it finds: a file, which is there as a whole or not at all, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from heedful.atomic import atomic_file


@contextmanager
def sink(output: str | None) -> Iterator[IO[str]]:
    """The file of that name, or standard output for None."""
    if output is None:
        yield sys.stdout
    else:
        with atomic_file(output) as file:
            yield file
