"""The static word matrix in files that others read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heedful.inference.embedder import Embedder
from heedful.inference.static_vectors import write_static_vectors


def test_word2vec_text_can_be_read_back(tiny: Embedder, tmp_path: Path) -> None:
    assert write_static_vectors(tiny, tmp_path / "v.txt") == (tiny.tokenizer.vocab_size, 32)
    head, *lines = (tmp_path / "v.txt").read_text(encoding="utf-8").splitlines()
    assert head == f"{len(lines)} 32"
    rows = [line.split(" ") for line in lines]
    assert [row[0] for row in rows] == tiny.tokenizer.vocabulary
    matrix = tiny.encoder.embeddings.token.weight.detach().numpy()
    np.testing.assert_allclose(np.array([row[1:] for row in rows], dtype=float), matrix, rtol=1e-5, atol=1e-9)


def test_an_id_without_a_piece_has_a_name_in_word2vec_text(
    tiny: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = tiny.tokenizer.vocabulary
    monkeypatch.setattr(tiny.tokenizer, "vocabulary", [*pieces[:7], "", *pieces[8:]])
    write_static_vectors(tiny, tmp_path / "v.txt")
    lines = (tmp_path / "v.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(" ")[0] for line in lines] == [*pieces[:7], "[unused7]", *pieces[8:]]


def test_npy_has_its_pieces_beside_it(tiny: Embedder, tmp_path: Path) -> None:
    write_static_vectors(tiny, tmp_path / "v.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), tiny.encoder.embeddings.token.weight.detach().numpy())
    assert (tmp_path / "v.vocab.txt").read_text(encoding="utf-8").split("\n")[:-1] == tiny.tokenizer.vocabulary
