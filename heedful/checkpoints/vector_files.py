"""Files of word vectors as word2vec wrote them, text and binary, which gensim and fastText read and write too.

Both begin with a line `words width`. In text a word and its numbers follow, a line each; in binary a word, a space and
its numbers as 4-byte floats. A name that ends in .bin is binary, and .gz after it is unpacked on the way.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError

Matrix = NDArray[np.float32]
ENDINGS = (".txt", ".vec", ".bin")
_REMEDY = "fetch or write it again; it begins with a line such as `71290 100`, words and width"
_LONGEST_WORD = 10_000  # bytes; a longer one is no word but a wrong place in the file


class NamedVectors(NamedTuple):
    """Words and their vectors, a row each."""

    words: list[str]
    matrix: Matrix


def is_vector_file(path: str | Path) -> bool:
    """Whether a path is a file of word vectors, by its name."""
    return Path(path).is_file() and Path(str(path).removesuffix(".gz")).suffix in ENDINGS


def read_vectors(path: str | Path) -> NamedVectors:
    """Read a file of word vectors; one that is cut off is refused with the place where it ends."""
    with _opened(path) as file:
        count, width = _header(file.readline(200), path)
        rows = _binary_rows if str(path).removesuffix(".gz").endswith(".bin") else _text_rows
        words, vectors = [], []
        for word, vector in rows(file, count, width, path):
            words.append(word)
            vectors.append(vector)
    return NamedVectors(words, np.stack(vectors))


def write_vectors(path: str | Path, words: Sequence[str], matrix: Matrix) -> None:
    """Write words and their vectors, whole or not at all; spaces inside a word become no-break spaces."""
    binary = str(path).endswith(".bin")
    with atomic_file(path, "wb") as file:
        file.write(f"{len(words)} {matrix.shape[1]}\n".encode())
        for word, row in zip(words, matrix, strict=True):
            name = word.replace(" ", "\u00a0").encode()
            numbers = row.astype("<f4").tobytes() if binary else " ".join(f"{x:.6g}" for x in row.tolist()).encode()
            file.write(name + b" " + numbers + b"\n")


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    try:
        opened = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "rb") as file:
            yield cast(IO[bytes], file)
    except (OSError, EOFError) as error:
        raise HeedfulError(f"cannot be read: {error}", where=path, remedy=_REMEDY) from error


def _header(line: bytes, path: str | Path) -> tuple[int, int]:
    try:
        count, width = map(int, line.split())
    except ValueError:
        what = "no file of word vectors: its first line is not a number of words and a width"
        raise HeedfulError(what, where=f"{path}:1", remedy=_REMEDY) from None
    if count < 1 or not 1 <= width <= 100_000:
        raise HeedfulError(f"{count} words of width {width}", where=f"{path}:1", remedy=_REMEDY)
    return count, width


def _text_rows(file: IO[bytes], count: int, width: int, path: str | Path) -> Iterator[tuple[str, Matrix]]:
    for number in range(count):
        line = file.readline().rstrip(b" \r\n")
        word, *numbers = line.split(b" ")
        try:
            vector = np.array(numbers, dtype=np.float32)
            if len(vector) != width:
                raise ValueError
        except ValueError:
            what = f"word {number + 1} of {count} has no {width} numbers" if line else _cut_off(number, count)
            raise HeedfulError(what, where=f"{path}:{number + 2}", remedy=_REMEDY) from None
        yield _decoded(word), vector


def _binary_rows(file: IO[bytes], count: int, width: int, path: str | Path) -> Iterator[tuple[str, Matrix]]:
    for number in range(count):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b"") and len(word) < _LONGEST_WORD:
            word += byte
        numbers = file.read(4 * width)
        if byte != b" " or len(numbers) != 4 * width:
            raise HeedfulError(_cut_off(number, count), where=path, remedy=_REMEDY)
        yield _decoded(bytes(word).lstrip(b"\n")), np.frombuffer(numbers, "<f4").astype(np.float32)


def _cut_off(number: int, count: int) -> str:
    return f"the file ends in word {number + 1} of {count}"


def _decoded(word: bytes) -> str:
    return word.decode("utf-8", errors="replace")
