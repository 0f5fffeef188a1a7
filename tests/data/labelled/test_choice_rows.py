"""Choices: JSON lines and SWAG's table."""

import json

import pytest

from heedful.data.labelled.choice_rows import read_choices
from heedful.data.labelled.dataset import Choice
from heedful.errors import HeedfulError

SWAG = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"


def write(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def test_json_lines(tmp_path):
    rows = [
        {"id": "a", "context": "C", "question": "Q", "choices": ["x", "y", "z"], "label": 2},
        {"context": "", "question": "Q", "endings": ["x", "y"], "choices": ["u", "v"], "label": "0"},
        {"question": "Q", "choices": ["x", "y"], "label": 1},
    ]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_choices(path).examples == [
        Choice("C", "Q", ("x", "y", "z"), 2, f"{path}:1"),
        Choice("", "Q", ("u", "v"), 0, f"{path}:2"),
        Choice("", "Q", ("x", "y"), 1, f"{path}:3"),
    ]


def test_endings_is_another_name_for_choices(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"context": "C", "endings": ["x", "y"], "label": 1}\n')
    assert read_choices(path).examples == [Choice("C", "", ("x", "y"), 1, f"{path}:1")]


def test_swag(tmp_path):
    row = '0,lsmdc,17,"A boy waves, then he","A boy waves, then","he",gold,"runs, fast.",sits.,sings.,sleeps.,3\n'
    path = write(tmp_path, "train.csv", SWAG + row)
    expected = Choice("A boy waves, then", "he", ("runs, fast.", "sits.", "sings.", "sleeps."), 3, f"{path}:2")
    assert read_choices(path).examples == [expected]


def test_swag_with_the_start_phrase_alone(tmp_path):
    path = write(tmp_path, "a.tsv", "startphrase\tending0\tending1\tlabel\nHe\truns.\tsits.\t1\n")
    assert read_choices(path).examples == [Choice("", "He", ("runs.", "sits."), 1, f"{path}:2")]


def test_without_labels_they_are_not_looked_at(tmp_path):
    path = write(
        tmp_path,
        "a.jsonl",
        '{"question": "Q", "choices": ["x", "y"]}\n{"question": "Q", "choices": ["x", "y"], "label": 9}\n',
    )
    assert [one.label for one in read_choices(path, labelled=False).examples] == [None, None]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "Q", "choices": ["x", "y"]}, "the label is None"),
        ({"question": "Q", "choices": ["x", "y"], "label": 2}, "the label is 2, not the number of one of the 2"),
        ({"question": "Q", "choices": ["x", "y"], "label": -1}, "the label is -1"),
        ({"question": "Q", "choices": ["x", "y"], "label": True}, "the label is True"),
        ({"question": "Q", "choices": ["x", "y"], "label": "B"}, "the label is 'B'"),
        ({"question": "Q", "choices": ["x"], "label": 0}, "not two choices"),
        ({"question": "Q", "choices": ["x", 3], "label": 0}, "not two choices"),
        ({"question": "Q", "label": 0}, "not two choices"),
        ({"question": "", "choices": ["x", "y"], "label": 0}, "no text under 'context' nor 'question'"),
        ({"question": 5, "choices": ["x", "y"], "label": 0}, "no text under"),
        ({"choices": ["x", "y"], "label": 0}, "no text under"),
    ],
)
def test_bad_rows_are_told_with_their_line(tmp_path, row, message):
    good = {"question": "Q", "choices": ["x", "y"], "label": 0}
    path = write(tmp_path, "a.jsonl", json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(HeedfulError, match=message) as caught:
        read_choices(path).settled()
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", "a,b\n1,2\n"), ("a.jsonl", '{"question": "Q", "ending1": "x"}\n')]
)
def test_a_file_without_choices_is_an_error(tmp_path, name, content):
    path = write(tmp_path, name, content)
    with pytest.raises(HeedfulError, match="no choices") as caught:
        read_choices(path).settled()
    assert caught.value.where == f"{path}:1"


def test_an_empty_file_is_an_error(tmp_path):
    with pytest.raises(HeedfulError, match="empty"):
        read_choices(write(tmp_path, "a.jsonl", "")).settled()
