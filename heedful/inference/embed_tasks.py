"""Embedding shared out to workers: a chunk of texts is a task, and its vectors are those this process would compute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import torch

from heedful.data.processes import Engine
from heedful.inference.embedder import TEXTS_PER_CHUNK, Chunk, Embedder
from heedful.inference.features import Features
from heedful.inference.load import load_embedder


class ChunkEmbedder:
    """A model in a worker, which computes on one core; the folder must be found there by the same path."""

    def __init__(self, folder: Path, wanted: Features, max_length: int | None) -> None:
        torch.set_num_threads(1)
        # Whoever shares out the work has looked at the folder.
        self.model = load_embedder(folder, "cpu", force=True, precision="float32")
        self.wanted, self.max_length = wanted, max_length

    def __call__(self, texts: list[str]) -> Chunk:
        """The vectors of as many texts as make a chunk, or of the last few."""
        (chunk,) = self.model.chunks(texts, self.wanted, self.max_length, shortcut=False)
        return chunk


def chunks_by(
    engine: Engine, model: Embedder, texts: Iterable[str], wanted: Features, max_length: int | None = None
) -> Iterator[Chunk]:
    """What `model.chunks` gives, computed by the workers of an engine."""
    arguments = (model.folder.path.absolute(), wanted, max_length)
    return engine.mapped(ChunkEmbedder, arguments, _cut(iter(texts), TEXTS_PER_CHUNK[wanted.unit]))


def _cut(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    while chunk := list(islice(texts, size)):
        yield chunk
