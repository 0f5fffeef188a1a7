"""SentencePiece's own file of a vocabulary, such as `spiece.model`, read without its library.

It is a protocol buffer: field 1 the pieces in the order of their ids, each with its text (1), log-probability (2) and
kind (3); field 2 how it was trained, with the algorithm (3) and the id of what is unknown (40); field 3 how texts are
normalised before, with the table of replacements (2).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import HeedfulError
from heedful.wire_format import fields

_UNIGRAM = 1
_UNKNOWN, _CONTROL = 2, 3
_REMEDY = "fetch the file again, or convert it to a tokenizer.json with transformers (AutoTokenizer, save_pretrained)"


@dataclass(frozen=True)
class SentencePieceModel:
    """A unigram vocabulary."""

    pieces: list[tuple[str, float]]  # with log-probabilities, in the order of the ids
    unknown: int  # the id of what cannot be spelled
    special: tuple[str, ...]  # pieces that are no text, such as <cls>
    replacements: bytes  # a table for the `Precompiled` normalizer of the tokenizers library; may be empty


def read_sentencepiece(file: Path) -> SentencePieceModel:
    """The vocabulary in a SentencePiece file; another algorithm than unigram is refused."""
    try:
        return _model(file.read_bytes(), file)
    except OSError as error:
        raise HeedfulError(f"cannot be read: {error.strerror}", where=file, remedy="check the path") from error
    except (ValueError, struct.error, AttributeError, TypeError) as error:
        raise HeedfulError(f"not a SentencePiece model: {error}", where=file, remedy=_REMEDY) from error


def _model(data: bytes, file: Path) -> SentencePieceModel:
    pieces: list[tuple[str, float]] = []
    kinds: list[int] = []
    trained: dict[int, int | bytes] = {}
    normalised: dict[int, int | bytes] = {}
    for number, value in fields(data):
        if number == 1:
            piece, kind = _piece(_bytes(value))
            pieces.append(piece)
            kinds.append(kind)
        elif number == 2:
            trained = dict(fields(_bytes(value)))
        elif number == 3:
            normalised = dict(fields(_bytes(value)))
    if trained.get(3, _UNIGRAM) != _UNIGRAM:
        raise HeedfulError("the vocabulary is not a unigram model (model_type)", where=file, remedy=_REMEDY)
    if _UNKNOWN not in kinds:
        raise ValueError("it has no piece for what is unknown")
    special = tuple(text for (text, _), kind in zip(pieces, kinds, strict=True) if kind in (_UNKNOWN, _CONTROL))
    return SentencePieceModel(pieces, kinds.index(_UNKNOWN), special, _bytes(normalised.get(2, b"")))


def _piece(message: bytes) -> tuple[tuple[str, float], int]:
    found = dict(fields(message))
    score = found.get(2, 0)
    if not isinstance(score, int):
        raise ValueError("a score is no number")
    (number,) = struct.unpack("<f", struct.pack("<I", score))
    kind = found.get(3, 1)
    return (_bytes(found[1]).decode("utf-8"), number), kind if isinstance(kind, int) else 0


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where a message should")
    return value
