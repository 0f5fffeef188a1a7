"""Tables: three formats, right line numbers, and what is not as it should be."""

import csv
import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.tables import BLANK, RAGGED, read_table
from heedful.errors import HeedfulError

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00\ufeff"), min_size=1)


def write(folder, name, content):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def rows_of(path):
    table = read_table(path)
    return table.columns, [(row.where, dict(row.cells)) for row in table.rows], table.oddities.remarks


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "label\ttext\n1\tsaid \"no\n0\t'x',\n"),
        ("a.txt.gz", "label\ttext\r\n1\tsaid \"no\r\n0\t'x',\r\n"),
        ("a.csv", 'label,text\n1,"said ""no"\n0,"\'x\',"\n'),
        ("a.csv.gz", 'label,text\n1,said "no\n0,"\'x\',"\n'),
        ("a.jsonl", '{"label": "1", "text": "said \\"no"}\n{"label": "0", "text": "\'x\',"}\n'),
        ("a.json.gz", '{"label": "1", "text": "said \\"no"}\n{"label": "0", "text": "\'x\',"}\n'),
    ],
)
def test_the_same_rows_in_every_format(tmp_path, name, content):
    path = write(tmp_path, name, content)
    columns, rows, remarks = rows_of(path)
    first = 1 if "json" in name else 2
    assert columns == ("label", "text") and remarks == ()
    assert rows == [
        (f"{path}:{first}", {"label": "1", "text": 'said "no'}),
        (f"{path}:{first + 1}", {"label": "0", "text": "'x',"}),
    ]


def test_json_lines_count_from_the_first_object(tmp_path):
    path = write(tmp_path, "a.jsonl", '\n{"a": 1}\n\n{"a": null, "b": [2]}\n')
    assert rows_of(path) == (("a",), [(f"{path}:2", {"a": 1}), (f"{path}:4", {"a": None, "b": [2]})], ())


def test_a_quoted_newline_keeps_the_line_numbers_right(tmp_path):
    path = write(tmp_path, "a.csv", 'a,b\n"one\n\ntwo",1\n"x",2\n\n"y\r\nz",3\n')
    _, rows, remarks = rows_of(path)
    assert rows == [
        (f"{path}:2", {"a": "one\n\ntwo", "b": "1"}),
        (f"{path}:5", {"a": "x", "b": "2"}),
        (f"{path}:7", {"a": "y\nz", "b": "3"}),
    ]
    assert [(remark.what, remark.count, remark.places) for remark in remarks] == [(BLANK, 1, (f"{path}:6",))]


@given(st.lists(st.tuples(CELL, CELL), min_size=1))
def test_csv_comes_back_as_it_was_written(tmp_path_factory, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("a", "b"), *rows])
    path = write(tmp_path_factory.mktemp("csv"), "a.csv", text.getvalue())
    table = read_table(path)
    assert [tuple(row.cells.values()) for row in table.rows] == rows


def test_ragged_rows_are_left_out_and_counted(tmp_path):
    lines = ["a\tb", *(f"{i}\tx" for i in range(50)), "only one", "1\t2\t3", "", "4\t"]
    path = write(tmp_path, "a.tsv", "\n".join(lines) + "\n")
    _, rows, remarks = rows_of(path)
    assert len(rows) == 51 and rows[-1] == (f"{path}:55", {"a": "4", "b": ""})
    assert {remark.what: (remark.count, remark.places) for remark in remarks} == {
        RAGGED: (2, (f"{path}:52", f"{path}:53")),
        BLANK: (1, (f"{path}:54",)),
    }


@pytest.mark.parametrize(("ragged", "refused"), [(2, False), (3, True)])
def test_too_many_ragged_rows_are_refused(tmp_path, ragged, refused):
    path = write(tmp_path, "a.tsv", "a\tb\n" + "1\t2\n" * 10 + "no tab\n" * ragged)
    if not refused:
        assert len(rows_of(path)[1]) == 10
        return
    with pytest.raises(HeedfulError, match="3 of 13 rows do not have the 2 columns") as caught:
        rows_of(path)
    assert caught.value.where == f"{path}:12" and "really tab separated" in caught.value.remedy


def test_few_ragged_rows_among_many_are_not_too_many(tmp_path):
    path = write(tmp_path, "a.csv", "a,b\n" + "1,2\n" * 200 + "1,2,3\n" * 10)
    assert len(rows_of(path)[1]) == 200
    path = write(tmp_path, "b.csv", "a,b\n" + "1,2\n" * 200 + "1,2,3\n" * 11)
    with pytest.raises(HeedfulError, match="really comma separated"):
        rows_of(path)


def test_rows_that_are_all_ragged_are_refused(tmp_path):
    path = write(tmp_path, "a.tsv", "a\tb\none\n")
    with pytest.raises(HeedfulError, match="1 of 1 rows"):
        rows_of(path)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.tsv.gz"])
@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_an_error(tmp_path, name, content):
    path = write(tmp_path, name, content)
    with pytest.raises(HeedfulError, match="empty") as caught:
        rows_of(path)
    assert caught.value.where == path


@pytest.mark.parametrize(("name", "content"), [("a.tsv", "a\tb\n"), ("a.csv", "a,b\n\n")])
def test_a_header_alone_is_an_error(tmp_path, name, content):
    with pytest.raises(HeedfulError, match="a header but no row"):
        rows_of(write(tmp_path, name, content))


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.tsv", b"a\tb\n1\t2\n1\t\xff\n", 3),
        ("a.csv", b'a,b\n"1\n2",3\n\xff,4\n', 4),
        ("a.jsonl", b'{"a": "\xff"}\n', 1),
    ],
)
def test_broken_utf8_is_told_with_its_line(tmp_path, name, content, line):
    path = write(tmp_path, name, content)
    with pytest.raises(HeedfulError, match="not UTF-8") as caught:
        rows_of(path)
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("content", "line"),
    [('a,b\n1,2\n"open,3\n4,5\n', 3), ('a,b\n"x"y,2\n', 2)],
)
def test_broken_csv_is_told_with_its_line(tmp_path, content, line):
    path = write(tmp_path, "a.csv", content)
    with pytest.raises(HeedfulError, match="not valid CSV") as caught:
        rows_of(path)
    assert caught.value.where == f"{path}:{line}"


def test_a_csv_cell_may_hold_a_whole_book(tmp_path):
    book = "said, " * 40_000
    assert rows_of(write(tmp_path, "a.csv", f'a,b\n"{book}",2\n'))[1][0][1] == {"a": book, "b": "2"}


@pytest.mark.parametrize(
    ("line", "message"), [("{", "not valid JSON"), ("[1]", "no object"), ('"\\ud800"', "surrogate")]
)
def test_broken_json_lines_are_told_with_their_line(tmp_path, line, message):
    path = write(tmp_path, "a.jsonl", json.dumps({"a": "1"}) + "\n" + line + "\n")
    with pytest.raises(HeedfulError, match=message) as caught:
        rows_of(path)
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.tsv.gz"])
def test_a_byte_order_mark_is_dropped_and_told(tmp_path, name):
    path = write(tmp_path, name, "\ufefftext\nx\n")
    columns, rows, remarks = rows_of(path)
    assert columns == ("text",) and rows == [(f"{path}:2", {"text": "x"})]
    assert [(remark.count, remark.places) for remark in remarks] == [(1, (f"{path}:1",))]
    assert "byte order mark" in str(remarks[0])


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(HeedfulError, match="cannot be read"):
        read_table(tmp_path / "nowhere.tsv")
