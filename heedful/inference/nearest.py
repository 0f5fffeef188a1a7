"""Nearest words by their static vectors, and analogies: `king - man + woman`.

    vectors = WordVectors.open("model")          # a folder of any encoder, or a file of word vectors
    vectors.nearest([Term("king"), Term("man", -1), Term("woman")])

A word that a model spells with several pieces has the mean of their vectors; ELMo reads any word by its characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.checkpoints.vector_files import Matrix, NamedVectors, is_vector_file, read_vectors
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder
from heedful.inference.static_vectors import reads_characters, static_vectors, vectors_by_characters

SIGNS = {"+": 1, "-": -1}
_SIGN_AT_WORD = re.compile(r"(?<!\S)([+-])(?=[^\s+-])")


class Term(NamedTuple):
    """A word that is added or taken away."""

    word: str
    sign: int = 1


class WordVectors:
    """Words with vectors of length 1; `spelled` gives the vectors of the parts of a word that is not among them."""

    def __init__(
        self,
        vectors: NamedVectors,
        spelled: Callable[[str], Matrix] = lambda word: np.empty((0, 1), np.float32),
        special: frozenset[str] = frozenset(),
    ) -> None:
        """The `special` words are never an answer, nor are those whose vector is zero."""
        self.words, self._spelled = vectors.words, spelled
        norms = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
        self._raw, self._unit = vectors.matrix, vectors.matrix / np.maximum(norms, 1e-12)
        self._answers = (norms[:, 0] > 0) & np.array([word not in special for word in self.words])
        self._ids = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def open(cls, path: str | Path, force: bool = False) -> WordVectors:
        """Those of a model folder, or of a file."""
        if is_vector_file(path):
            vectors = read_vectors(path)
            known = {word: number for number, word in enumerate(vectors.words)}
            return cls(vectors, lambda word: vectors.matrix[[known[word.lower()]] if word.lower() in known else []])
        return cls.of_model(load_embedder(path, "cpu", force))

    @classmethod
    def of_model(cls, model: Embedder) -> WordVectors:
        """Those of a model, of any family."""
        vectors = static_vectors(model)
        if reads_characters(model):
            return cls(vectors, lambda word: vectors_by_characters(model, [word]))
        special = frozenset(model.tokenizer.special_tokens.values())
        return cls(vectors, lambda word: vectors.matrix[known_pieces(model, word)], special)

    def vector(self, word: str) -> Matrix | None:
        """The vector of a word, of length 1; None where there is none."""
        row = self._ids.get(word)
        parts = self._raw[[row]] if row is not None and self._answers[row] else self._spelled(word)
        mean = parts.mean(0) if len(parts) else np.zeros(1, np.float32)
        norm = float(np.linalg.norm(mean))
        return mean / norm if norm > 0 else None

    def nearest(self, terms: Sequence[Term], top: int = 10) -> list[tuple[str, float]]:
        """The words whose vectors have the largest cosine with the sum of the terms', themselves left out."""
        total = np.zeros(self._raw.shape[1], np.float32)
        for word, sign in terms:
            vector = self.vector(word)
            if vector is None:
                raise no_vector(word)
            total += sign * vector
        cosines = self._unit @ (total / max(float(np.linalg.norm(total)), 1e-12))
        asked = {self._ids[form] for word, _ in terms for form in (word, word.lower()) if form in self._ids}
        cosines[[*asked, *np.flatnonzero(~self._answers)]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:top]
        return [(self.words[i], float(cosines[i])) for i in best.tolist() if np.isfinite(cosines[i])]


def known_pieces(model: Embedder, word: str) -> list[int]:
    """The pieces of a word; none if one of them would be [UNK]."""
    ids: list[int] = model.tokenizer.pieces([word])[0].ids
    return [] if model.tokenizer.id_of(model.tokenizer.special_tokens.get("unk", "")) in ids else ids


def no_vector(word: str) -> HeedfulError:
    """What to tell of a word that the text never had, or too seldom."""
    what = f"{word!r} has no vector: the model has not seen it, or too seldom"
    return HeedfulError(what, remedy="check the spelling, or train with a lower `min_count`")


def parse_terms(arguments: Sequence[str]) -> list[list[Term]]:
    """Words, and words joined by + and -, as they come from the command line: `king - man + woman`, `paris berlin`.

    A sign may stand at its word, as in `king -man +woman`.
    """
    groups: list[list[Term]] = []
    sign: int | None = None
    for token in _SIGN_AT_WORD.sub(r"\1 ", " ".join(arguments)).split():
        if token in SIGNS:
            if sign is not None:
                raise HeedfulError(
                    f"{token!r} follows a sign", remedy="write a word between them, as king - man + woman"
                )
            sign = SIGNS[token]
        elif sign is not None and groups:
            groups[-1].append(Term(token, sign))
            sign = None
        else:
            groups.append([Term(token, sign or 1)])
            sign = None
    if sign is not None or not groups:
        raise HeedfulError("a word is missing", remedy="write words, as king - man + woman")
    return groups
