"""Rows for sentence vectors: pairs, triplets, scored pairs and lines, and what is left out or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.data.labelled.dataset import Columns, SentencePair
from heedful.data.labelled.sentence_pairs import read_sentence_pairs
from heedful.errors import HeedfulError
from heedful.text.rows import Rows


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path: Path, columns: Columns | None = None, labelled: bool = True) -> list[SentencePair]:
    return list(read_sentence_pairs(path, columns or Columns(), labelled).settled().examples)


def test_pairs_triplets_and_scores_are_told_by_the_header(tmp_path: Path) -> None:
    (one,) = read(write(tmp_path / "a.tsv", "anchor\tpositive\tnegative\tnegative_2", "a\tb\tc\t"))
    assert one == SentencePair("a", "b", ("c",), None, f"{tmp_path}/a.tsv:2")
    (one,) = read(write(tmp_path / "b.csv", "sentence1,sentence2,score", "a,b,4.5"))
    assert (one.text, one.pair, one.score, one.truth) == ("a", "b", 4.5, "4.5")
    (one,) = read(write(tmp_path / "c.tsv", "text\tpair\tlabel", "a\tb\tyes"))  # a label is no score unless it is named
    assert one.score is None
    with pytest.raises(HeedfulError, match=r"'yes' under 'label' is not a number(.|\n)*c\.tsv:2"):
        read(tmp_path / "c.tsv", Columns(label="label"))
    (one,) = read(tmp_path / "b.csv", labelled=False)
    assert one.score is None


def test_lines_are_read_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "lines.txt", "the cat sees", "", "dog", "a dog")
    found = read_sentence_pairs(path, Columns())
    assert [(one.text, one.pair) for one in found.examples] == [("the cat sees", None), ("dog", None), ("a dog", None)]
    told = {remark.what.partition(",")[0]: remark.places for remark in found.remarks}
    assert told["rows with an empty text"] == (f"{path}:2",) and told["lines of one word"] == (f"{path}:3",)
    assert len(read(path, labelled=False)) == 4  # each row gets an answer


def test_lines_of_one_word_are_told_in_any_script(tmp_path: Path) -> None:
    path = write(tmp_path / "lines.txt", "naïve", "сад", "猫", "这是猫", "これはペンです", "le chat", "dog.")
    (told,) = read_sentence_pairs(path, Columns()).remarks
    assert told.what.startswith("lines of one word") and told.count == 4
    assert [int(place[-1]) for place in told.places] == [1, 2, 3]


def test_the_text_alone_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tpair\tbody", "a\tb\tc")
    assert [(one.text, one.pair) for one in read(path, Columns(text="body"))] == [("c", None)]


def test_rows_in_memory() -> None:
    (one,) = read_sentence_pairs(Rows([{"text": "a", "pair": "b", "score": 3}]), Columns()).examples
    assert (one.text, one.pair, one.score) == ("a", "b", 3.0)


def test_rows_without_any_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="no rows with a text"):
        read(write(tmp_path / "a.tsv", "text\tpair", " \t "))
