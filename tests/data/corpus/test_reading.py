"""Documents and units of text files."""

import gzip
import json

import pytest

from heedful.data.corpus import reading
from heedful.data.corpus.reading import Cutter, documents_of
from heedful.errors import HeedfulError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_layouts(tmp_path):
    plain = write(tmp_path / "a.txt", "One. Two.\n Three. \n\n\nFour.\n")
    assert list(documents_of([plain])) == [["One. Two.", "Three."], ["Four."]]
    assert list(documents_of([plain], layout="running")) == [["One. Two. Three.", "Four."]]
    rows = [json.dumps({"body": "x\n\ny"}), json.dumps({"body": "z"})]
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write("\n".join(rows))
    assert list(documents_of([plain, tmp_path / "b.jsonl.gz"], "body"))[2:] == [["x", "y"], ["z"]]


def test_text_without_blank_lines_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_DOCUMENT", 100)
    plain = write(tmp_path / "a.txt", "0123456789\n" * 35)
    for layout in ("paragraphs", "running"):
        found = list(documents_of([plain], layout=layout))
        assert sum(len(line.split()) for document in found for line in document) == 35
        assert max(sum(map(len, document)) for document in found) <= 110


@pytest.mark.parametrize("layout", ["paragraphs", "running"])
def test_empty_file(tmp_path, layout):
    with pytest.raises(HeedfulError, match="no text"):
        list(documents_of([write(tmp_path / "a.txt", "\n \n")], layout=layout))


def test_broken_utf8_names_the_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"good\nb\xffd\n")
    with pytest.raises(HeedfulError, match=r"a\.txt:2"):
        list(documents_of([tmp_path / "a.txt"]))


def test_units_hold_everything_once():
    documents = [[f"document {i}", "x" * (i % 50 + 1)] for i in range(500)]
    cutter = Cutter(held_out_share=0.2, unit_bytes=1000)
    units = list(cutter.cut(documents))
    texts = [text for unit in units for text in unit.text.decode().split("\n\n")]
    assert sorted(texts) == sorted("\n".join(document) for document in documents)
    for part in ("train", "held_out"):
        mine = [unit for unit in units if unit.part == part]
        assert [unit.number for unit in mine] == list(range(len(mine))) and len(mine) > 2
        assert all(len(unit.text) < 1200 for unit in mine)
    held_out = sum(len(unit.text.split(b"\n\n")) for unit in units if unit.part == "held_out")
    assert 60 < held_out < 140


def test_repeated_documents_are_dropped():
    cutter = Cutter(deduplicate=True)
    (unit,) = cutter.cut([["a"], ["b"], ["a"], ["a", "b"]])
    assert unit.text == b"a\n\nb\n\na\nb" and cutter.duplicates == 1 and cutter.documents == 4


def test_copies_of_held_out_documents_are_dropped_from_training():
    units = {unit.part: unit.text for unit in Cutter(deduplicate=True).cut([["a"], ["b"]], held_out=[["b"], ["c"]])}
    assert units == {"train": b"a", "held_out": b"b\n\nc"}
