"""Texts and documents out of tables, JSON lines and plain files, and what looks like a table under another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.data.corpus.reading import documents_of
from heedful.data.text_files import count_texts, read_documents, read_texts
from heedful.errors import HeedfulError, TextWarning
from heedful.text.table_look import table_kind


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_is_a_text_and_a_document(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", 'title,n\n"one,\n\ntwo",1\n,2\nthree,3\n')
    assert list(read_texts(table)) == ["one,\n\ntwo", "", "three"] and count_texts(table) == 3
    assert list(read_documents(table)) == [["one,", "two"], ["three"]] == list(documents_of([table]))
    assert list(read_texts(table, "n")) == ["1", "2", "3"]


def test_json_lines_and_lines_are_read_as_before(tmp_path: Path) -> None:
    objects = write(tmp_path / "a.jsonl", '{"text": "one", "b": "two"}\n')
    assert list(read_texts(objects)) == ["one"] and list(read_texts(objects, "b")) == ["two"]
    plain = write(tmp_path / "a.txt", "one\n\ntwo\n")
    assert list(read_texts(plain)) == ["one", "", "two"] and count_texts(plain) == 3 and count_texts("-") is None


def test_a_broken_row_is_refused_and_not_left_out(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "text\tn\n" + "a\t1\n" * 50 + "b\n")
    with pytest.raises(HeedfulError, match=r"1 rows(.|\n)*a\.tsv:52"):
        read_texts(table)


def test_a_missing_column_is_asked_for_by_the_one_option_there_is(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", "id,subject\n1,one\n")
    for column in (None, "body"):
        with pytest.raises(HeedfulError, match="say which column it is with `text`; the first line") as caught:
            read_texts(table, column)
        assert "`label`" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (["a\tb", "", "c\td"], "tsv"),
        (["id,text", '1,"one, two"', '2,"three"'], "csv"),
        (["a\tb", "c"], None),
        (["One, two.", "Three, four."], None),
        (['"One," he said, "two."', "Three."], None),
        (["a\tb"], None),
    ],
)
def test_what_looks_like_a_table(lines: list[str], kind: str | None) -> None:
    assert table_kind(lines) == kind


def test_documents_of_a_table_under_another_name_are_warned_of(tmp_path: Path) -> None:
    with pytest.warns(TextWarning, match=r"looks like a table \(\.tsv\)"):
        assert len(list(documents_of([write(tmp_path / "a.txt", "a\tb\n\nc\td\n")]))) == 2


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv"])
def test_zero_bytes_are_warned_of(tmp_path: Path, name: str) -> None:
    with pytest.warns(TextWarning, match=r"1 zero bytes .* line 2"):
        assert list(read_texts(write(tmp_path / name, "text\na\0\n")))[-1] == "a\0"
