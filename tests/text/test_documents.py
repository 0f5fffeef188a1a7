"""Readers: formats, streaming, and errors that name file and line."""

import gzip
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.text.documents import (
    count_texts,
    has_byte_order_mark,
    parse_json,
    read_documents,
    read_lines,
    read_objects,
    read_texts,
)


def test_lines_lose_their_ends_and_the_mark_at_the_start(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\n \xe4\xb8\xad\rx\nlast")
    assert list(read_lines(file)) == ["one", "two", "", " 中\rx", "last"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff"))))
def test_lines_come_back_as_they_were_written(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("lines") / "a.txt"
    file.write_bytes("".join(line + "\n" for line in lines).encode())
    assert list(read_lines(file)) == lines


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("一\n二".encode())))
    assert list(read_lines("-")) == ["一", "二"]


def test_reading_is_lazy(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"good\n\xff\n")
    lines = read_lines(file)
    assert next(lines) == "good"
    with pytest.raises(HeedfulError, match="not UTF-8: byte 0xff at column 1") as caught:
        next(lines)
    assert caught.value.where == f"{file}:2"


def test_plain_documents_stand_between_blank_lines(tmp_path):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"\n\na\nb\n \nc\n\n"))
    assert list(read_documents(file)) == [["a", "b"], ["c"]]


def test_json_documents(tmp_path):
    rows = [{"text": "a\r\n\nb\u2028c", "body": "x"}, {"text": "中", "body": "y"}]
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    assert list(read_documents(file)) == [["a", "b\u2028c"], ["中"]]
    assert list(read_documents(file, field="body")) == [["x"], ["y"]]


def test_texts_are_lines_or_fields_and_can_be_counted(tmp_path):
    plain, rows = tmp_path / "a.txt", tmp_path / "a.jsonl.gz"
    plain.write_bytes(b"a\n\nb")
    rows.write_bytes(gzip.compress(b'{"text": "a\\nb"}\n\n \n{"text": ""}\n'))
    assert list(read_texts(plain)) == ["a", "", "b"] and count_texts(plain) == 3
    assert list(read_texts(rows)) == ["a\nb", ""] and count_texts(rows) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not valid JSON"),
        (b'{"body": "x"}', "no text under 'text' in this line \\(it has: body\\)"),
        (b'{"text": 3}', "no text under 'text'"),
        (b"[1]", "it has: list"),
        (b'{"text": "\\ud800"}', "surrogate"),
        (b'{"text": "\xff"}', "not UTF-8"),
    ],
)
def test_bad_json_lines_are_named(tmp_path, line, message):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"text": "good \\ud83d\\ude00"}\n\n' + line + b"\n")
    with pytest.raises(HeedfulError, match=message) as caught:
        list(read_documents(file))
    assert caught.value.where == f"{file}:3"


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_an_empty_file_is_an_error(tmp_path, name):
    (tmp_path / name).write_bytes(b"\n \n")
    with pytest.raises(HeedfulError, match="no text"):
        list(read_documents(tmp_path / name))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(HeedfulError, match="cannot be read: No such file"):
        list(read_lines(tmp_path / "missing"))
    packed = gzip.compress(b"line\n" * 9)
    for name, content in (("no.gz", b"plain"), ("cut.gz", packed[:-9])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(HeedfulError, match="broken gzip"):
            list(read_lines(tmp_path / name))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_byte_order_mark_can_be_asked_for(tmp_path, name):
    for content, marked in ((b"\xef\xbb\xbfx", True), (b"x\xef\xbb\xbf", False), (b"", False)):
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        assert has_byte_order_mark(tmp_path / name) is marked
    assert not has_byte_order_mark("-") and not has_byte_order_mark(tmp_path / "missing")


def test_objects_come_with_their_place(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"a": 1}\n\n{}\n')
    assert list(read_objects(file)) == [(f"{file}:1", {"a": 1}), (f"{file}:3", {})]


def test_json_is_refused_at_the_line_of_the_file_where_it_breaks():
    assert parse_json('{"a": "\\ud83d\\ude00"}', "f") == {"a": "😀"}
    with pytest.raises(HeedfulError, match="not valid JSON") as caught:
        parse_json("[1,\n2,,\n3]", "f", line=5)
    assert caught.value.where == "f:6"
