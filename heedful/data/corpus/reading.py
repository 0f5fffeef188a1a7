"""From text files to units of work: whole documents, cut where it depends on nothing but the text.

A unit is plain text again, a line a paragraph or sentence and a blank line between documents, and becomes one shard.
Because the cuts depend on the input alone, so does every shard, whoever makes it and when. What is cut may be the
documents themselves, or only where each of them is to be found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Generic, Literal, TypeVar

from heedful.data.text_files import is_delimited, read_documents
from heedful.text.documents import is_json_lines, no_text, text_lines
from heedful.text.stretch import Stretch

Layout = Literal["paragraphs", "sentences", "running"]
LAYOUTS: tuple[Layout, ...] = ("paragraphs", "sentences", "running")
Part = Literal["train", "held_out"]
T = TypeVar("T")

BETWEEN = b"\n\n"  # documents
UNIT_BYTES = 4_000_000
# A plain text without blank lines would be one endless document; it is cut after so many characters.
LONGEST_DOCUMENT = 1_000_000


@dataclass(frozen=True)
class Unit:
    """Some documents that become one shard: the number of its part, and their text in UTF-8.

    As a Python string a single rare character would make all of it four times as large.
    """

    part: Part
    number: int
    text: bytes

    @property
    def digest(self) -> str:
        """What tells this text from any other."""
        return hashlib.blake2b(self.text, digest_size=16).hexdigest()


@dataclass(frozen=True)
class Dealt(Generic[T]):
    """A document that belongs to a part by the hash of its text: the text, or where it is, and its bytes."""

    part: Part
    key: int
    size: int
    document: T


@dataclass
class Cutter:
    """Deals documents into units: a share by the hash of their text is held out, repeated ones may be dropped.

    Dropping repeated documents keeps 8 bytes of hash for each document, about 80 bytes of memory with Python's set
    around them: 100 MB for a million and a quarter documents.
    """

    held_out_share: float = 0.0
    deduplicate: bool = False
    unit_bytes: int = UNIT_BYTES
    documents: int = 0
    duplicates: int = 0
    size: int = 0
    _seen: set[int] = field(default_factory=set)

    def cut(self, train: Iterable[list[str]], held_out: Iterable[list[str]] = ()) -> Iterator[Unit]:
        """The units of all documents; those of `held_out` are held out whatever their hash."""
        # What is held out by name is read first: a copy of it in the training text is the one to drop.
        dealt = chain(deal(held_out, 1.0), deal(train, self.held_out_share))
        for part, number, texts in self.fill(dealt):
            yield Unit(part, number, BETWEEN.join(texts))

    def fill(self, dealt: Iterable[Dealt[T]]) -> Iterator[tuple[Part, int, list[T]]]:
        """The part of each unit, its number there, and its documents."""
        waiting: dict[Part, list[T]] = {"train": [], "held_out": []}
        sizes: dict[Part, int] = {"train": 0, "held_out": 0}
        numbers: dict[Part, int] = {"train": 0, "held_out": 0}
        for one in self._counted(dealt):
            part = one.part
            waiting[part].append(one.document)
            sizes[part] += one.size
            if sizes[part] >= self.unit_bytes:
                yield part, numbers[part], waiting[part]
                waiting[part], sizes[part] = [], 0
                numbers[part] += 1
        for part, documents in waiting.items():
            if documents:
                yield part, numbers[part], documents

    def _counted(self, dealt: Iterable[Dealt[T]]) -> Iterator[Dealt[T]]:
        for one in dealt:
            self.documents += 1
            self.size += one.size + 1
            if self.deduplicate:
                if one.key in self._seen:
                    self.duplicates += 1
                    continue
                self._seen.add(one.key)
            yield one


def deal(documents: Iterable[list[str]], held_out_share: float) -> Iterator[Dealt[bytes]]:
    """Documents, each with the part that it belongs to."""
    for lines in documents:
        text = "\n".join(lines).encode()
        key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        yield Dealt(part_of(key, held_out_share), key, len(text), text)


def part_of(key: int, held_out_share: float) -> Part:
    """The part of a document by the hash of its text, not by its place: copies of it stay on the same side."""
    return "held_out" if key < held_out_share * 2**64 else "train"


def documents_of(
    files: Iterable[str | Path], field: str | None = None, layout: Layout = "paragraphs"
) -> Iterator[list[str]]:
    """The documents of all files in order, each as its lines without blank ones, none longer than can be held.

    An object of JSON lines is one, and so is a row of a table.
    """
    for file in files:
        if is_json_lines(file) or is_delimited(file):
            documents = read_documents(file, field)
        elif layout == "running":
            documents = _running(file)
        else:
            documents = _between_blank_lines(file)
        empty = True
        for document in documents:
            empty = False
            yield [line.strip() for line in document]
        if empty and not isinstance(file, Stretch):
            raise no_text(file)


def _between_blank_lines(path: str | Path) -> Iterator[list[str]]:
    document: list[str] = []
    size = 0
    for line in text_lines(path):
        blank = not line.strip()
        if not blank:
            document.append(line)
            size += len(line)
        if document and (blank or size >= LONGEST_DOCUMENT):
            yield document
            document, size = [], 0
    if document:
        yield document


def _running(path: str | Path) -> Iterator[list[str]]:
    """A file as one document whose lines are wrapped anywhere and whose paragraphs stand between blank lines."""
    document: list[str] = []
    size = 0
    for paragraph in _between_blank_lines(path):
        document.append(" ".join(line.strip() for line in paragraph))
        size += len(document[-1])
        if size >= LONGEST_DOCUMENT:
            yield document
            document, size = [], 0
    if document:
        yield document
