"""What of a text is read at a time where many read it: a stretch of a large file, a whole file, or several small ones.

A file can be cut if its documents can be told apart from anywhere in it: JSON lines, and documents between blank lines,
both unpacked and in UTF-8. A .gz can be read only from its beginning, a table needs its header, and of running text all
of a file is one document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from heedful.addresses import Address, place
from heedful.data.corpus.reading import Layout
from heedful.data.text_files import is_delimited
from heedful.errors import HeedfulError
from heedful.text.documents import is_json_lines
from heedful.text.encodings import UTF8, current_encoding
from heedful.text.stretch import Stretch

STRETCH_BYTES = 16_000_000
# Stores are asked for sizes together, since each answer takes its time.
_AT_ONCE = 8


@dataclass(frozen=True)
class Piece:
    """Files to be read one after the other, or a stretch of one, and how much of it is held out."""

    number: int
    files: tuple[str, ...]
    sizes: tuple[int, ...]  # of whole files in bytes, as far as they are known; else 0
    held_out_share: float

    def check(self) -> None:
        """Refuse to read what is not there, or something else that has the same name on this machine."""
        for file, size in zip(self.files, self.sizes, strict=True):
            where = place(str(file))
            remedy = "put the text where all machines find it by the same path, or at an address, or give it through -"
            if not where.is_file():
                raise HeedfulError("the text is not found here", where=file, remedy=remedy)
            if size and _size(where) != size:
                raise HeedfulError("not the file that the build began with", where=file, remedy=remedy)


def pieces_of(
    files: Sequence[str], held_out_files: Sequence[str], held_out_share: float, layout: Layout
) -> list[Piece] | None:
    """The pieces of a text in the order of its documents; None if another process cannot read it."""
    if any(_is_only_here(file) for file in (*files, *held_out_files)):
        return None
    found: list[Piece] = []
    for some, share in ((held_out_files, 1.0), (files, held_out_share)):
        for group in _grouped([str(place(file).absolute()) for file in some], layout):
            names, sizes = zip(*group, strict=True)
            found.append(Piece(len(found), names, sizes, share))
    return found


def _grouped(files: Sequence[str], layout: Layout) -> Iterator[list[tuple[str, int]]]:
    """The names and sizes that make a piece each."""
    can_cut = [_can_be_cut(file, layout) for file in files]
    small: list[tuple[str, int]] = []
    for file, size, cut in zip(files, _sizes(files, can_cut), can_cut, strict=True):
        if not cut or size <= STRETCH_BYTES:
            small.append((file, size))
            if all(size for _, size in small) and sum(size for _, size in small) < STRETCH_BYTES:
                continue
        if small:
            yield small
            small = []
        if cut and size > STRETCH_BYTES:
            for start in range(0, size, STRETCH_BYTES):
                yield [(Stretch(file, start, min(start + STRETCH_BYTES, size)), size)]
    if small:
        yield small


def _sizes(files: Sequence[str], can_cut: Sequence[bool]) -> list[int]:
    """The size of each file on a path, and of those at addresses that can be cut."""
    places = [place(file) for file in files]
    wanted = [isinstance(where, Path) or cut for where, cut in zip(places, can_cut, strict=True)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda where, want: _size(where) if want else 0, places, wanted))


def _size(where: Path | Address) -> int:
    return where.size() if isinstance(where, Address) else where.stat().st_size


def _can_be_cut(file: str, layout: Layout) -> bool:
    where = place(file)
    if file.endswith(".gz") or current_encoding() != UTF8 or (isinstance(where, Address) and not where.has_ranges):
        return False
    return is_json_lines(file) or (layout != "running" and not is_delimited(file))


def _is_only_here(file: str) -> bool:
    where = place(file)
    return file == "-" or (isinstance(where, Address) and where.scheme == "memory")
