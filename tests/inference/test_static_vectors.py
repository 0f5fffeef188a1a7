"""The static word matrix in files that others read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heedful.checkpoints.encoder_folder import save_model
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder
from heedful.inference.nearest import Term, WordVectors, parse_terms
from heedful.inference.static_vectors import write_static_vectors
from heedful.models.elmo import ElmoForPretraining, initialise, sized
from heedful.text.elmo_pipeline import character_tokenizer


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


def test_an_elmo_has_the_words_it_says_and_reads_any_other(tmp_path: Path) -> None:
    words = ["<UNK>", "<S>", "</S>", "cat", "cats", "house"]
    config = sized("nano", len(words))
    model = ElmoForPretraining(config)
    initialise(model, config, seed=0)
    save_model(model, tmp_path / "elmo", character_tokenizer())
    with pytest.raises(HeedfulError, match=r"words\.txt"):
        WordVectors.open(tmp_path / "elmo")
    (tmp_path / "elmo" / "words.txt").write_text("".join(f"{word}\n" for word in words))
    elmo = load_embedder(tmp_path / "elmo")
    vectors = WordVectors.of_model(elmo)
    assert [word for word, _ in vectors.nearest([Term("catz")])] == ["cats", "cat", "house"]
    (read,) = elmo.embed(["cats"], layers=[0], unit="word", normalize=True)
    np.testing.assert_allclose(vectors.vector("cats"), read[0], atol=1e-6)
    assert write_static_vectors(elmo, tmp_path / "v.txt") == (3, config.width)


def test_signs_may_stand_at_their_words() -> None:
    assert parse_terms(["king", "-man", "+woman"]) == parse_terms(["king - man + woman"])
    assert parse_terms(["well-known", "x-"]) == [[Term("well-known")], [Term("x-")]]
    with pytest.raises(HeedfulError, match="follows a sign"):
        parse_terms(["king", "-", "-man"])
