"""Text rows: the files of GLUE as released, columns found or named, and what is wrong with labels."""

from pathlib import Path

import pytest

from heedful.data.labelled.dataset import Columns, TextRow
from heedful.data.labelled.text_rows import LABELS, PAIRS, TEXTS, read_text_rows
from heedful.errors import HeedfulError

GLUE = Path(__file__).parent.parent.parent / "fixtures" / "glue"
# Where text, pair and label stand by position in the released files: the layout as GLUE documents it, header aside.
LABELLED = {
    "CoLA/train": (3, None, 1),
    "SST-2/train": (0, None, 1),
    "MRPC/train": (3, 4, 0),
    "QQP/train": (3, 4, 5),
    "STS-B/train": (7, 8, 9),
    "MNLI/train": (8, 9, 11),
    "MNLI/dev_matched": (8, 9, 15),
    "QNLI/train": (1, 2, 3),
    "RTE/train": (1, 2, 3),
    "WNLI/train": (1, 2, 3),
}
UNLABELLED = {
    "CoLA/test": (1, None),
    "SST-2/test": (1, None),
    "MRPC/test": (3, 4),
    "QQP/test": (1, 2),
    "STS-B/test": (7, 8),
    "MNLI/test_matched": (8, 9),
    "QNLI/test": (1, 2),
    "RTE/test": (1, 2),
    "WNLI/test": (1, 2),
}


def by_position(path, places):
    """The rows of a released file, read by the position of the columns alone."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    first = 0 if path.parent.name == "CoLA" and path.stem == "train" else 1
    width = len(lines[0].split("\t"))
    cells = [(number, line.split("\t")) for number, line in enumerate(lines, start=1)][first:]
    whole = [(number, row) for number, row in cells if len(row) == width and row[-1] != "-"]
    return [
        TextRow(*(None if place is None else row[place] for place in places), where=f"{path}:{number}")
        for number, row in whole
    ]


def write(folder, name, content):
    (folder / name).write_bytes(content.encode())
    return folder / name


@pytest.mark.parametrize("name", LABELLED)
def test_glue_as_released(name):
    path = GLUE / f"{name}.tsv"
    read = read_text_rows(path, Columns())
    assert list(read.examples) == by_position(path, LABELLED[name]) and len(read.examples) >= 2


@pytest.mark.parametrize("name", UNLABELLED)
def test_glue_without_labels_as_released(name):
    path = GLUE / f"{name}.tsv"
    read = read_text_rows(path, Columns(), labelled=False)
    assert list(read.examples) == by_position(path, UNLABELLED[name]) and read.examples


def test_all_nine_tasks_have_a_fixture():
    assert len({name.split("/")[0] for name in LABELLED}) == len({name.split("/")[0] for name in UNLABELLED}) == 9


@pytest.mark.parametrize(
    ("name", "what", "line"),
    [
        ("MRPC/train", "byte order mark", 1),
        ("QQP/train", "another number of columns", 3),
        ("MNLI/dev_matched", "'-'", 3),
    ],
)
def test_what_is_odd_about_glue_is_told(name, what, line):
    path = GLUE / f"{name}.tsv"
    (remark,) = read_text_rows(path, Columns()).remarks
    assert what in remark.what and remark.count == 1 and remark.places == (f"{path}:{line}",)


def test_quotes_are_only_signs_in_tsv():
    rows = read_text_rows(GLUE / "MRPC" / "train.tsv", Columns()).examples
    assert rows[0].text.startswith('"We open') and rows[1].pair.endswith('"iron')


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_known_pairs(tmp_path, first, second):
    path = write(tmp_path, "a.tsv", f"id\t{second}\tlabel\t{first.upper()}\n7\tB\tyes\tA\n")
    assert read_text_rows(path, Columns()).examples == [TextRow("A", "B", "yes", f"{path}:2")]


@pytest.mark.parametrize(
    ("text", "label"), [*((text, "label") for text in TEXTS), *(("text", label) for label in LABELS)]
)
def test_known_columns(tmp_path, text, label):
    path = write(tmp_path, "a.csv", f"id,{label.title()},{text}\n7,yes,A\n")
    assert read_text_rows(path, Columns()).examples == [TextRow("A", None, "yes", f"{path}:2")]


def test_columns_can_be_named(tmp_path):
    path = write(tmp_path, "a.tsv", "label\trelatedness\tsentence1\tsentence2\tNote\nneutral\t3.6\tA\tB\tN\n")

    def first(**names):
        return read_text_rows(path, Columns(**names)).examples[0]

    assert first() == TextRow("A", "B", "neutral", f"{path}:2")
    assert first(label="relatedness") == TextRow("A", "B", "3.6", f"{path}:2")
    assert first(text="note") == TextRow("N", None, "neutral", f"{path}:2")
    assert first(text="sentence2", pair="sentence1") == TextRow("B", "A", "neutral", f"{path}:2")
    assert first(pair="Note") == TextRow("A", "N", "neutral", f"{path}:2")


@pytest.mark.parametrize(
    ("names", "header", "message", "option"),
    [
        ({}, "a\tlabel", r"hold the text \(there are: a, label\)", "`text`"),
        ({}, "text\tb", r"hold the label \(there are: text, b\)", "`label`"),
        ({"text": "x"}, "text\tlabel", "there is no column 'x'", "`text`"),
        ({"pair": "x"}, "text\tlabel", "there is no column 'x'", "`pair`"),
        ({"label": "x"}, "text\tlabel", "there is no column 'x'", "`label`"),
        ({}, "relatedness\ttext", "hold the label", "`label`"),
    ],
)
def test_a_missing_column_names_those_there_are(tmp_path, names, header, message, option):
    path = write(tmp_path, "a.tsv", f"{header}\n1\t2\n")
    with pytest.raises(HeedfulError, match=message) as caught:
        read_text_rows(path, Columns(**names)).settled()
    assert caught.value.where == f"{path}:1" and option in caught.value.remedy


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = write(tmp_path, "a.tsv", "text\ttext\tlabel\na\tb\t1\n")
    with pytest.raises(HeedfulError, match="2 columns are called 'text'"):
        read_text_rows(path, Columns()).settled()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "label\ttext\n1\ta\n \tb\n"),
        ("a.csv", "text,label\na,1\nb,\n"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n'),
        ("b.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": null}\n'),
        ("c.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": [1]}\n'),
    ],
)
def test_a_missing_label_is_an_error_unless_nobody_asks(tmp_path, name, content):
    path = write(tmp_path, name, content)
    with pytest.raises(HeedfulError, match="no label under 'label'") as caught:
        read_text_rows(path, Columns()).settled()
    assert caught.value.where == (f"{path}:2" if "json" in name else f"{path}:3")
    rows = read_text_rows(path, Columns(), labelled=False).examples
    assert [(row.text, row.label) for row in rows] == [("a", None), ("b", None)]


def test_labels_of_json_are_spelled_as_json(tmp_path):
    content = "".join(f'{{"text": "a", "label": {value}}}\n' for value in ("0", "2.50", "true", '" good "'))
    rows = read_text_rows(write(tmp_path, "a.jsonl", content), Columns()).examples
    assert [row.label for row in rows] == ["0", "2.5", "true", "good"]


@pytest.mark.parametrize("line", ['{"label": 1}', '{"text": 5, "label": 1}', '{"text": null, "label": 1}'])
def test_a_text_that_is_none_is_an_error(tmp_path, line):
    path = write(tmp_path, "a.jsonl", '{"text": "a", "label": 1}\n' + line + "\n")
    with pytest.raises(HeedfulError, match="no text under 'text'") as caught:
        read_text_rows(path, Columns()).settled()
    assert caught.value.where == f"{path}:2"


def test_minus_is_a_label_beside_plus(tmp_path):
    path = write(tmp_path, "a.tsv", "text\tlabel\na\t+\nb\t-\n")
    assert [row.label for row in read_text_rows(path, Columns()).examples] == ["+", "-"]
    path = write(tmp_path, "b.tsv", "text\tlabel\nb\t-\n")
    with pytest.raises(HeedfulError, match="no row has a label"):
        read_text_rows(path, Columns()).settled()


def test_plain_lines_without_labels(tmp_path):
    path = write(tmp_path, "a.txt", "the first text, with a comma\nthe second\n")
    read = read_text_rows(path, Columns(), labelled=False)
    assert read.examples == [
        TextRow("the first text, with a comma", where=f"{path}:1"),
        TextRow("the second", where=f"{path}:2"),
    ]
    path = write(tmp_path, "b.txt", "Sentence\nthe only text\n")
    assert [row.text for row in read_text_rows(path, Columns(), labelled=False).examples] == ["the only text"]
    path = write(tmp_path, "c.txt", "mine\nthe only text\n")
    assert [row.text for row in read_text_rows(path, Columns(text="mine"), labelled=False).examples] == [
        "the only text"
    ]


def test_empty_texts_are_kept(tmp_path):
    path = write(tmp_path, "a.tsv", "text\tlabel\n\t1\nx\t0\n")
    assert [row.text for row in read_text_rows(path, Columns()).examples] == ["", "x"]


def test_a_column_is_not_both_text_and_label(tmp_path):
    path = write(tmp_path, "a.tsv", "sentence\tlabel\nA film.\tgood\n")
    with pytest.raises(HeedfulError, match="'sentence' cannot be both a text and the label"):
        read_text_rows(path, Columns(label="sentence")).settled()


def test_semicolons_between_columns_are_named(tmp_path):
    path = write(tmp_path, "a.csv", "id;text;label\n1;A film.;good\n")
    with pytest.raises(HeedfulError, match="no column is known") as told:
        read_text_rows(path, Columns()).settled()
    assert "semicolons" in told.value.remedy
