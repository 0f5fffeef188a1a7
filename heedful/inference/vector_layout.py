"""How vectors are laid out in a file, in three formats that can all be written front to back.

npy          a header, then the rows; for words and tokens a second file `NAME.lengths.npy` tells how many rows each
             text has
safetensors  a header, then the rows `vectors` and, for words and tokens, their `lengths`
jsonl        one object a text, in the layout of Google's extract_features
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from heedful.errors import HeedfulError
from heedful.inference.embedder import Chunk

FORMATS = ("npy", "safetensors", "jsonl")
# Room for a header whose row count is known only at the end. Both formats allow padding with spaces.
HEADER_BYTES = 256


@dataclass(frozen=True)
class VectorLayout:
    """The format of a file, the width of its vectors, and whether a text has several of them."""

    kind: str
    width: int
    ragged: bool

    @property
    def text_bytes(self) -> int | None:
        """The bytes of a text's row, if it has one, so that its place is known beforehand."""
        return None if self.ragged else 4 * self.width

    @property
    def start(self) -> int:
        """Where the rows begin."""
        return 0 if self.kind == "jsonl" else HEADER_BYTES

    def rows(self, chunk: Chunk, lines: Iterable[str] | None = None) -> bytes:
        """The vectors of a chunk; for jsonl, its lines."""
        if lines is not None:
            return "".join(lines).encode()
        return b"".join(np.ascontiguousarray(v, "<f4").tobytes() for v in chunk.vectors)

    def lengths(self, chunk: Chunk) -> bytes:
        """How many rows each text of a chunk has, 8 bytes a text."""
        return np.array([len(np.atleast_2d(v)) for v in chunk.vectors], "<i8").tobytes()

    def lengths_name(self, name: str) -> str | None:
        """The name of the second file, if there is one."""
        return name.removesuffix(".npy") + ".lengths.npy" if self.kind == "npy" and self.ragged else None

    def header(self, rows: int, texts: int) -> bytes:
        """What stands before so many rows."""
        if self.kind == "jsonl":
            return b""
        if self.kind == "npy":
            described = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, self.width)}).encode()
            body = described.ljust(HEADER_BYTES - 11) + b"\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body
        size = rows * self.width * 4
        tensors: dict[str, Any] = {"vectors": {"dtype": "F32", "shape": [rows, self.width], "data_offsets": [0, size]}}
        if self.ragged:
            tensors["lengths"] = {"dtype": "I64", "shape": [texts], "data_offsets": [size, size + 8 * texts]}
        body = json.dumps(tensors).encode().ljust(HEADER_BYTES - 8)
        return struct.pack("<Q", len(body)) + body

    def footer(self, lengths: bytes) -> bytes:
        """What stands after them."""
        return lengths if self.kind == "safetensors" and self.ragged else b""


class RowWriter(Protocol):
    """What a worker writes the rows of some texts with; what it is told twice it writes twice, to no harm."""

    def __call__(self, first: int, lengths: bytes, rows: bytes) -> Mapping[str, Any]:
        """Write the rows of the texts from number `first` on; gives what the one who asks has to know of it."""
        ...


def other_request(where: object) -> HeedfulError:
    """The error that an unfinished output is one of something else."""
    return HeedfulError(
        "an unfinished output of other settings, another model or another input is in the way",
        where=where,
        remedy="finish it with the settings it was started with, or start over with `restart`",
    )
