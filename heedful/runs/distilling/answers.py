"""The teacher's answers, computed once and kept in the run's folder: one row a text, read by mapping the file.

An interrupted attempt is gone on with, and its bits are those of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.checkpoints.folder import ModelFolder
from heedful.errors import HeedfulError
from heedful.inference.embedder import Chunk
from heedful.inference.vector_file import VectorFile
from heedful.inference.vector_layout import VectorLayout
from heedful.runs.distilling.lesson import Lesson

TELL_EVERY = 10.0  # seconds


@dataclass(frozen=True)
class Limits:
    """How much of the texts a teacher reads."""

    least: int
    most: int | None = None  # None: all
    seconds: float | None = None  # after which it ends, if it has read the least


def kept_answers(
    path: Path,
    lesson: Lesson,
    teacher: ModelFolder,
    examples: Sequence[Any],
    limits: Limits,
    tell: Callable[[str], object],
) -> float:
    """Write the answers to `examples`, or as many as the limits allow, unless they are there; gives the seconds."""
    request = _request(lesson, teacher, examples)
    file = VectorFile(path, VectorLayout("npy", lesson.width, ragged=False), request)
    if path.exists():
        if file.origin is None or file.origin["request"] != request:
            what, remedy = "these are the answers of another teacher or to other texts", "name another folder"
            raise HeedfulError(what, where=path, remedy=remedy)
        return 0.0
    examples = examples[: limits.most]
    began = committed = told = time.monotonic()
    with file:
        first = done = int(file.done.get("texts", 0))
        tell(f"the teacher reads {len(examples):,} texts" + (f", from text {first:,} on" if first else ""))
        for vectors in lesson.answers(examples[done:]):
            file.append(Chunk([], [], vectors))
            done += len(vectors)
            now = time.monotonic()
            if file.is_due(now - committed):
                file.commit(done, "", 0)
                committed = now
            if now - told > TELL_EVERY:
                speed = (done - first) / (now - began)
                tell(f"the teacher has read {done:,} of {len(examples):,} texts, {speed:,.0f} a second")
                told = now
            if limits.seconds is not None and now - began > limits.seconds and done >= limits.least:
                break
        file.finish(done, "", 0)
    return time.monotonic() - began


def read_answers(path: Path) -> NDArray[np.float32]:
    """The answers (texts, K) of a finished file, mapped and not read."""
    found: NDArray[np.float32] = np.load(path, mmap_mode="r")
    return found


def _request(lesson: Lesson, teacher: ModelFolder, examples: Sequence[Any]) -> dict[str, Any]:
    """What makes the answers the same ones: the teacher's weights, what is asked of it, and the texts."""
    digest = blake2b(digest_size=16)
    for one in examples:
        digest.update(f"{one.text}\n{one.pair}\n".encode())
    files = sorted((file.name, file.stat().st_size) for file in teacher.weights.iterdir() if file.is_file())
    return {"teacher": [list(file) for file in files], "lesson": type(lesson).__name__, "texts": digest.hexdigest()}
