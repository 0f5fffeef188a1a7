"""From text files to units of work: whole documents, cut where it depends on nothing but the text.

A unit is plain text again, a line a paragraph or sentence and a blank line between documents, and becomes one shard.
Because the cuts depend on the input alone, so does every shard, whoever makes it and when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from heedful.data.text_files import is_delimited, read_documents
from heedful.errors import HeedfulError
from heedful.text.documents import is_json_lines, text_lines

Layout = Literal["paragraphs", "sentences", "running"]
LAYOUTS: tuple[Layout, ...] = ("paragraphs", "sentences", "running")
Part = Literal["train", "held_out"]

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
        dealt = chain(self._dealt(held_out, 1.0), self._dealt(train, self.held_out_share))
        waiting: dict[Part, list[bytes]] = {"train": [], "held_out": []}
        sizes: dict[Part, int] = {"train": 0, "held_out": 0}
        numbers: dict[Part, int] = {"train": 0, "held_out": 0}
        for part, text in dealt:
            waiting[part].append(text)
            sizes[part] += len(text)
            if sizes[part] >= self.unit_bytes:
                yield Unit(part, numbers[part], b"\n\n".join(waiting[part]))
                waiting[part], sizes[part] = [], 0
                numbers[part] += 1
        for part, texts in waiting.items():
            if texts:
                yield Unit(part, numbers[part], b"\n\n".join(texts))

    def _dealt(self, documents: Iterable[list[str]], held_out_share: float) -> Iterator[tuple[Part, bytes]]:
        for lines in documents:
            text = "\n".join(lines).encode()
            self.documents += 1
            self.size += len(text) + 1
            key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
            if self.deduplicate:
                if key in self._seen:
                    self.duplicates += 1
                    continue
                self._seen.add(key)
            # The hash of the text, not the place: copies of a document stay on the same side.
            yield ("held_out" if key < held_out_share * 2**64 else "train"), text


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
        if empty:
            raise HeedfulError("no text in this file", where=file, remedy="give a file that holds text")


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
