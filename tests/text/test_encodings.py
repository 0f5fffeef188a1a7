"""Files in other encodings: read when asked to, recognised when not, and binary ones called so."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from heedful.errors import HeedfulError
from heedful.text.documents import count_texts, read_lines, read_objects
from heedful.text.encodings import binary_kind, known, likely_encoding, reading_as

CHINESE = "今天天气很好，我们去公园。\r\n他说：“你好”！\n价格是 30 元。\n"
FRENCH = "Un café très agréable, naïf et cher.\nÇa coûte 12 €.\n"


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gbk", "utf-8"])
def test_lines_are_read_in_the_encoding_that_is_asked_for(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.txt.gz"
    text = CHINESE.replace("“", "").replace("”", "")
    file.write_bytes(gzip.compress(text.encode(encoding)))
    with reading_as(encoding):
        assert list(read_lines(file)) == [line.removesuffix("\r") for line in text.split("\n")[:-1]]
        assert count_texts(file) == 3


def test_only_the_block_reads_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes('{"text": "中"}\n'.encode("utf-16"))
    with reading_as("UTF-16"):
        assert [row for _, row in read_objects(file)] == [{"text": "中"}]
    with pytest.raises(HeedfulError, match="not UTF-8"):
        list(read_objects(file))
    with reading_as(None), pytest.raises(HeedfulError, match="not UTF-8"):
        list(read_objects(file))


@pytest.mark.parametrize(
    ("text", "encoding", "likely"),
    [
        (CHINESE, "gb18030", "gb18030"),
        (CHINESE * 3000, "gb18030", "gb18030"),  # longer than the sample, which ends within a character
        (CHINESE, "utf-16", "utf-16"),
        (CHINESE + "and much more in Latin letters " * 20, "utf-16-le", "utf-16-le"),
        (FRENCH, "cp1252", "cp1252"),
        (FRENCH, "utf-16-be", "utf-16-be"),
        (CHINESE, "utf-32", "utf-32"),
    ],
)
def test_the_error_names_the_likely_encoding(tmp_path: Path, text: str, encoding: str, likely: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(text.encode(encoding))
    assert likely_encoding(file.read_bytes()[:65_536]) == likely
    if not (encoding.startswith("utf-16-") and len(text) < 128):  # else all of it happens to be UTF-8, and is short
        with pytest.raises(HeedfulError, match="not UTF-8") as caught:
            list(read_lines(file))
        assert f"`encoding` {likely}," in str(caught.value.remedy)
    with reading_as(likely):
        assert "\n".join(read_lines(file)) == text.replace("\r\n", "\n").removesuffix("\n")


def test_a_wrong_encoding_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"good\nbad \x81\x20\n")
    with reading_as("gb18030"), pytest.raises(HeedfulError, match="not gb18030") as caught:
        list(read_lines(file))
    assert f"{file}: after line" in str(caught.value.where)


@pytest.mark.parametrize("name", ["latin-9000", "base64", ""])
def test_what_is_no_encoding_of_texts_is_refused(name: str) -> None:
    with pytest.raises(HeedfulError, match="no encoding is called"):
        known(name)


def test_binary_files_are_called_binary(tmp_path: Path) -> None:
    workbook = tmp_path / "a.csv"
    with zipfile.ZipFile(workbook, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>" * 50)
    numbers = tmp_path / "b.tsv"
    numbers.write_bytes(bytes(range(256)) * 8)
    zeros = tmp_path / "c.tsv"
    zeros.write_bytes(b"\x02\x00\x00\x00\x07\x00\x00\x01" * 64)  # which is UTF-8
    for file, kind in ((workbook, "Excel"), (numbers, "no text"), (zeros, "no text")):
        with pytest.raises(HeedfulError, match="binary file") as caught:
            list(read_lines(file))
        assert kind in str(caught.value.remedy)
    assert binary_kind(CHINESE.encode()) is None and binary_kind(FRENCH.encode("cp1252")) is None
