"""`metrics.jsonl`: one JSON object a line, each with its step, in order, no step told twice."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from heedful.atomic import make_folder
from heedful.errors import HeedfulError
from heedful.json_files import finite


class Journal:
    """The open file of a run's metrics; whatever lies past the step it is resumed at is cut away."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        with _plain_errors(path):
            if path.exists():
                os.truncate(path, _length_up_to(path, step))
            self._file: IO[str] = path.open("a", encoding="utf-8")

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Add a line; what is infinite or not a number becomes null, which JSON can say."""
        with _plain_errors(self.path):
            if not self.path.exists():  # removed under a running process: what follows is kept
                self.close()
                make_folder(self.path.parent)
                self._file = self.path.open("a", encoding="utf-8")
            self._file.write(json.dumps({"step": step, **finite(values)}, ensure_ascii=False) + "\n")
            self._file.flush()

    def sync(self) -> None:
        """Bring all lines to the disk."""
        with _plain_errors(self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()


def evaluation_at(path: Path, step: int) -> dict[str, float] | None:
    """What the journal says of the evaluation after a step, if there was one; null is not a number."""
    with path.open(encoding="utf-8") as file:
        told = [line for line in map(json.loads, file) if line["step"] == step and "evaluation" in line]
    return (
        {name: math.nan if value is None else value for name, value in told[-1]["evaluation"].items()} if told else None
    )


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise HeedfulError(
            f"cannot write: {error.strerror}; the checkpoints are unchanged",
            where=path,
            remedy="free some space, then go on with `resume`" if full else "see that it may be written",
        ) from error


def _length_up_to(path: Path, step: int) -> int:
    """Bytes of the sound lines that tell of steps up to `step`; a line cut short by a crash ends them."""
    length = 0
    with path.open("rb") as file:
        for line in file:
            try:
                told = json.loads(line)["step"]
            except (ValueError, KeyError, TypeError):
                break
            if not line.endswith(b"\n") or told > step:
                break
            length += len(line)
    return length
