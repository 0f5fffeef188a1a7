"""Embedding shared out to workers: a chunk of texts is a task, and its vectors are those this process would compute.

The vectors are sent back, or written by the worker that has computed them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from heedful.data.processes import Engine
from heedful.inference.embedder import TEXTS_PER_CHUNK, Chunk, Embedder
from heedful.inference.feature_lines import extract_features_lines
from heedful.inference.features import Features
from heedful.inference.load import load_embedder
from heedful.inference.vector_layout import RowWriter, VectorLayout


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


@dataclass(frozen=True)
class WrittenChunk:
    """Consecutive texts whose vectors a worker has written: how many rows each has, and the part that they are in."""

    texts: list[str]
    cut: list[bool]
    tokens: int
    lengths: bytes
    part: Mapping[str, Any]

    @property
    def truncated(self) -> int:
        """How many texts were longer than the limit."""
        return sum(self.cut)


class ChunkWriter:
    """A model in a worker, which also writes the vectors it computes."""

    def __init__(
        self, folder: Path, wanted: Features, max_length: int | None, layout: VectorLayout, writer: RowWriter
    ) -> None:
        self.embed = ChunkEmbedder(folder, wanted, max_length)
        self.layout, self.writer = layout, writer

    def __call__(self, task: tuple[int, list[str]]) -> WrittenChunk:
        """The number of the first text and the texts in, what is to be known of them out; not the texts again."""
        first, texts = task
        chunk = self.embed(texts)
        jsonl = self.layout.kind == "jsonl"
        lines = extract_features_lines(chunk, first, self.embed.model, self.embed.wanted) if jsonl else None
        lengths = self.layout.lengths(chunk)
        part = self.writer(first, lengths, self.layout.rows(chunk, lines))
        return WrittenChunk([], chunk.cut, chunk.tokens, lengths, part)


def chunks_by(
    engine: Engine, model: Embedder, texts: Iterable[str], wanted: Features, max_length: int | None = None
) -> Iterator[Chunk]:
    """What `model.chunks` gives, computed by the workers of an engine."""
    arguments = (model.folder.path.absolute(), wanted, max_length)
    return engine.mapped(ChunkEmbedder, arguments, _cut(iter(texts), TEXTS_PER_CHUNK[wanted.unit]))


def written_by(
    engine: Engine,
    model: Embedder,
    texts: Iterable[str],
    wanted: Features,
    max_length: int | None,
    layout: VectorLayout,
    writer: RowWriter,
    first: int,
) -> Iterator[WrittenChunk]:
    """What is to be known of `model.chunks`, written by the workers of an engine; `first` numbers the first text."""
    under_way: deque[list[str]] = deque()

    def tasks() -> Iterator[tuple[int, list[str]]]:
        number = first
        for some in _cut(iter(texts), TEXTS_PER_CHUNK[wanted.unit]):
            under_way.append(some)
            yield number, some
            number += len(some)

    arguments = (model.folder.path.absolute(), wanted, max_length, layout, writer)
    for chunk in engine.mapped(ChunkWriter, arguments, tasks()):
        yield replace(chunk, texts=under_way.popleft())


def _cut(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    while chunk := list(islice(texts, size)):
        yield chunk
