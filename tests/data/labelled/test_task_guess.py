"""Which task a file is for."""

import gzip
import json
from pathlib import Path

import pytest

from heedful.data.labelled.task_guess import guess_task
from heedful.toy.writer import Size, files

GLUE = Path(__file__).parent.parent.parent / "fixtures" / "glue"
SQUAD = {"data": [{"paragraphs": [{"context": "c", "qas": []}]}]}


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("a.conll", "Ann\tPROPN\n", "tag"),
        ("a.txt", "-DOCSTART- -X- O\n\nAnn NNP B-PER\nsings VBZ O\n", "tag"),
        ("a.tsv", "Ann\tB-PER\nsings\tO\n", "tag"),
        ("a.jsonl", '{"tokens": [], "tags": []}\n', "tag"),
        ("a.json", json.dumps(SQUAD), "answer"),
        ("b.json", json.dumps(SQUAD, indent=1), "answer"),
        ("a.jsonl", '{"question": "q", "context": "c", "answers": []}\n', "answer"),
        ("a.jsonl", '{"question": "q", "context": "c", "choices": []}\n', "choose"),
        ("a.csv", "id,startphrase,ending0,ending1,label\n", "choose"),
        ("a.json", '{"sentence1": "a", "sentence2": "b", "label": "0"}\n', "classify"),
        ("a.csv", "text,label\n", "classify"),
        ("a.tsv", "", "classify"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_by_name_and_first_lines(tmp_path, name, content, task, packed):
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert guess_task(path) == task


@pytest.mark.parametrize("path", sorted(GLUE.glob("*/*.tsv")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_glue_is_no_other_task(path):
    assert guess_task(path) == "classify"


def test_the_toy_world(tmp_path):
    tasks = {"tags": "tag", "roles": "answer", "questions": "answer", "choices": "choose"}
    seen = set()
    for name, text in files(Size(documents=1, heldout=1, train=20, dev=5), seed=1):
        if "/" in name:
            path = tmp_path / Path(name).name
            path.write_text(text, encoding="utf-8")
            seen.add(guess_task(path))
            assert guess_task(path) == tasks.get(name.split(".")[0], "classify"), name
    assert seen == {*tasks.values(), "classify"}
