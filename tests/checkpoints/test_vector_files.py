"""Files of word vectors: gensim reads ours, we read gensim's, and a damaged one is refused with its place."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from heedful.checkpoints.vector_files import is_vector_file, read_vectors, write_vectors
from heedful.errors import HeedfulError

WORDS = ["the", "中国", "naïve", "New\u00a0York"]
MATRIX = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)


@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    write_vectors(tmp_path / name, WORDS, MATRIX)
    assert is_vector_file(tmp_path / name)
    words, matrix = read_vectors(tmp_path / name)
    assert words == WORDS
    np.testing.assert_allclose(matrix, MATRIX, rtol=0 if name == "v.bin" else 1e-5)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert read_vectors(packed).words == WORDS


@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
def test_gensim_reads_ours_and_we_read_theirs(tmp_path: Path, name: str) -> None:
    keyed = pytest.importorskip("gensim.models", reason="needs the extra bench").KeyedVectors
    binary = name.endswith(".bin")
    write_vectors(tmp_path / name, WORDS[:3], MATRIX[:3])
    theirs = keyed.load_word2vec_format(str(tmp_path / name), binary=binary)
    assert theirs.index_to_key == WORDS[:3]
    np.testing.assert_allclose(theirs.vectors, MATRIX[:3], rtol=1e-5)
    theirs.save_word2vec_format(str(tmp_path / f"theirs-{name}"), binary=binary)
    words, matrix = read_vectors(tmp_path / f"theirs-{name}")
    assert words == WORDS[:3]
    np.testing.assert_allclose(matrix, theirs.vectors, rtol=1e-5)


def test_the_original_writes_a_line_end_after_each_binary_vector(tmp_path: Path) -> None:
    rows = b"".join(w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(WORDS[:2], MATRIX, strict=False))
    (tmp_path / "v.bin").write_bytes(b"2 7\n" + rows)
    assert read_vectors(tmp_path / "v.bin").words == WORDS[:2]


@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
@pytest.mark.parametrize("lost", [1, 0.5])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, name: str, lost: float) -> None:
    """By its last number, or by half of it."""
    write_vectors(tmp_path / name, WORDS, MATRIX)
    whole = (tmp_path / name).read_bytes()
    numberless = whole.rstrip().rpartition(b" ")[0] if name == "v.txt" else whole[:-3]
    (tmp_path / name).write_bytes(numberless if lost == 1 else whole[: len(whole) // 2])
    with pytest.raises(HeedfulError, match=f"word {4 if lost == 1 else '[23]'} of 4"):
        read_vectors(tmp_path / name)


@pytest.mark.parametrize("head", ["", "the 0.1 0.2\n", "0 5\n", "x y\n", "3\n"])
def test_what_is_no_file_of_vectors_is_refused(tmp_path: Path, head: str) -> None:
    (tmp_path / "v.txt").write_text(head)
    with pytest.raises(HeedfulError, match="words"):
        read_vectors(tmp_path / "v.txt")
