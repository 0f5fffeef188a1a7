"""A stretch of a text file that can be read by itself, so that several processes can share a file.

A stretch has the documents that begin in it, and the last of them to its end. Where one begins is seen from the lines
around it, so that a file's stretches have each of its documents once, wherever they were cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO


class Stretch(str):
    """The name of a file, plain text in UTF-8, and which of its bytes are meant."""

    __slots__ = ("start", "stop")

    start: int
    stop: int

    # A pickle makes it from the name alone, and sets the rest.
    def __new__(cls, file: str, start: int = 0, stop: int = 0) -> Stretch:
        """The bytes start … stop of a file."""
        made = super().__new__(cls, file)
        made.start, made.stop = start, stop
        return made

    @property
    def opened_at(self) -> int:
        """Where the file is to be opened: the byte before the stretch tells whether a line begins with it."""
        return max(self.start - 1, 0)

    def lines(self, stream: BinaryIO, alone: bool) -> Iterator[bytes]:
        """The lines of the documents that begin here, from the file opened at its place.

        Each line is a document if they stand `alone`; else one begins after each blank line, and at the file's start.
        """
        place = self._first(stream, alone)
        if place is None:
            return
        for line in stream:
            if place >= self.stop and (alone or _is_blank(line)):
                return
            yield line
            place += len(line)

    def _first(self, stream: BinaryIO, alone: bool) -> int | None:
        """Where the first document begins, to which the stream is brought; None if none does in this stretch."""
        if not self.start:
            return 0
        place = self.opened_at + len(stream.readline())
        if alone:
            return place
        # Nobody looks for a blank line beyond the stretch: what follows belongs to the document that is being read.
        while place < self.stop and (line := stream.readline()):
            place += len(line)
            if _is_blank(line):
                return place
        return None


def _is_blank(line: bytes) -> bool:
    """Whether any reader takes the line for blank; one of foreign spaces alone may be, but is no place to cut."""
    return not line.strip()
