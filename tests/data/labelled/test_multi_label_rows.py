"""Several labels a row: separated in a cell, listed, or in columns of 0 and 1; what is odd is told or refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.data.labelled.dataset import Columns
from heedful.data.labelled.inspection import read_samples
from heedful.data.labelled.multi_label_rows import read_multi_label_rows
from heedful.errors import HeedfulError
from heedful.text.rows import Rows


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [";", "|", "; "])
def test_labels_in_one_cell(separator: str, tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.tsv", "text\tlabels", f"one\tnews{separator}big sport", "two\tnews", "three\t", "four\tnews;news"
    )
    found = read_multi_label_rows(path, Columns(separator=separator))
    labels = [row.labels for row in found.examples]
    assert labels[:3] == [("news", "big sport"), ("news",), ()]
    assert [remark.count for remark in found.remarks if "without a label" in remark.what] == [1]


def test_the_separator_is_found_and_told(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", "text,label", 'one,"a, b"', "two,b", 'three,"a;b"')
    found = read_multi_label_rows(path, Columns())
    assert [row.labels for row in found.examples] == [("a, b",), ("b",), ("a", "b")]
    assert any("';'" in remark.what and remark.places == (f"{path}:4",) for remark in found.remarks)
    path = table(tmp_path / "b.csv", "text,label", 'one,"a, b"', "two,b c")
    assert [row.labels for row in read_multi_label_rows(path, Columns()).examples] == [("a", "b"), ("b c",)]
    assert read_multi_label_rows(path, Columns(separator=" ")).examples[1].labels == ("b", "c")


def test_a_column_for_each_label(tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", "id\ttext\ttoxic\tmild threat", "1\tone\t1\t0", "2\ttwo\t1\t1", "3\tthree\t0\t0")
    found = read_multi_label_rows(path, Columns(label="toxic, mild threat"))
    assert [row.labels for row in found.examples] == [("toxic",), ("toxic", "mild threat"), ()]
    table(path, "text\ta\tb", "one\t1\t2")
    with pytest.raises(HeedfulError, match=r"'2' under 'b' is neither 0 nor 1(.|\n)*a\.tsv:2"):
        read_multi_label_rows(path, Columns(label="a,b")).settled()
    with pytest.raises(HeedfulError, match=r"no column 'c'"):
        read_multi_label_rows(path, Columns(label="a,c")).settled()
    with pytest.raises(HeedfulError, match=r"no column is known to hold the labels(.|\n)*`label`"):
        read_multi_label_rows(path, Columns()).settled()
    with pytest.raises(HeedfulError, match="both a text and a label"):
        read_multi_label_rows(path, Columns(label="text,a")).settled()


def test_lists_and_rows_in_memory(tmp_path: Path) -> None:
    objects = [{"text": "one", "label": ["a", "b"]}, {"text": "two", "label": []}, {"text": "three", "label": "b"}]
    path = table(tmp_path / "a.jsonl", *map(json.dumps, objects))
    for source in (path, Rows(objects)):
        assert [row.labels for row in read_multi_label_rows(source, Columns()).examples] == [("a", "b"), (), ("b",)]
    switches = Rows([{"text": "one", "a": 1, "b": False}, {"text": "two", "a": 0.0, "b": True}])
    found = read_multi_label_rows(switches, Columns(label="a,b")).examples
    assert [row.labels for row in found] == [("a",), ("b",)]
    with pytest.raises(HeedfulError, match="no labels under 'label'"):
        read_multi_label_rows(Rows([{"text": "one", "label": {"a": 1}}]), Columns()).settled()


def test_without_labels_no_column_of_them_is_needed(tmp_path: Path) -> None:
    path = table(tmp_path / "a.txt", "the cat", "a dog")
    assert [row.labels for row in read_multi_label_rows(path, Columns(), labelled=False).examples] == [None, None]


def test_inspection_counts_each_label(tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", "text\tlabels", "one\ta;b", "two\tb", "three\t")
    kind, samples, _ = read_samples(path, "multilabel", Columns(), True)
    assert kind == "multilabel" and [sample.counted for sample in samples] == [("a", "b"), ("b",), ()]
