"""`heedful predict`: files and texts told apart, every input with its answer, and answers that know their input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.cli.main import cli
from heedful.config import to_mapping
from heedful.errors import HeedfulError
from heedful.tasks.answer import Answer
from heedful.tasks.classify import Classify
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task

TASKS: dict[str, Task[Any]] = {
    "classify": Classify(labels=("bad", "good")),
    "tag": Tag(labels=("O", "B-X", "I-X")),
    "answer": Answer(),
}


@pytest.fixture(scope="module")
def models(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of random models, by their task."""
    folder, path = read_folder(tiny_folder), tmp_path_factory.mktemp("predict")
    for name, task in TASKS.items():
        model = load_for_task(folder, task.model, seed=0)
        settings = {"task": name, **to_mapping(task)}
        save_for_task(model, path / name, folder.tokenizer, task=settings, architecture=task.architecture)
    return {name: path / name for name in TASKS}


def predict(*arguments: object, given: str | None = None) -> list[dict[str, Any]]:
    done = run(*arguments, given=given)
    assert done.exit_code == 0, (done.output, done.exception)
    return [json.loads(line) for line in done.stdout.splitlines()]


def run(*arguments: object, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["predict", *map(str, arguments)], input=given)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_tables_and_standard_input_give_the_same_answers(models: dict[str, Path], tmp_path: Path) -> None:
    lines = predict(models["classify"], write(tmp_path / "a.txt", "the cat\na dog, 中国\n"))
    assert len(lines) == 2 and lines[0] != lines[1]
    assert lines == predict(models["classify"], write(tmp_path / "b.txt", "id\ttext\n1\tthe cat\n2\ta dog, 中国\n"))
    assert lines == predict(models["classify"], "-", given="the cat\na dog, 中国\n")
    (alone,) = predict(models["classify"], "the cat")
    assert alone["probabilities"] == pytest.approx(lines[0]["probabilities"], abs=1e-5)


def test_a_txt_file_of_words_and_tags_is_no_running_text(models: dict[str, Path], tmp_path: Path) -> None:
    tagged = predict(models["tag"], write(tmp_path / "a.txt", "the O\ncat B-X\n\ndog B-X\n"))
    assert [one["words"] for one in tagged] == [["the", "cat"], ["dog"]]
    running = predict(models["tag"], write(tmp_path / "b.txt", "the cat\ndog\n"))
    assert running == tagged
    (one, _) = tagged
    assert one["spans"] == [[0, 3], [4, 7]] and len(one["probabilities"]) == 2 and 0 < one["probability"] < 1


def test_answers_in_a_file_know_their_input(models: dict[str, Path], tmp_path: Path) -> None:
    path, output = write(tmp_path / "a.txt", "the cat\n\na dog\n"), tmp_path / "answers.jsonl"
    assert predict(models["classify"], path, "-o", output) == []
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [one.pop("where") for one in written] == [f"{path}:1", f"{path}:2", f"{path}:3"]
    assert written == predict(models["classify"], path)


def test_answers_to_questions_carry_the_id(models: dict[str, Path], tmp_path: Path) -> None:
    asked = [{"id": f"q{n}", "question": "who?", "context": "the cat " * n} for n in (1, 2)]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(one) + "\n" for one in asked))
    assert [one["id"] for one in predict(models["answer"], path)] == ["q1", "q2"]
    assert "id" not in predict(models["answer"], "who?", "--context", "the cat")[0]


def test_a_row_that_cannot_be_read_is_an_error_and_leaves_no_output(models: dict[str, Path], tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "id\ttext\n" + "1\tthe cat\n" * 60 + "2\n")
    done = run(models["classify"], path, "-o", tmp_path / "answers.jsonl")
    assert isinstance(done.exception, HeedfulError) and "a.tsv:62" in str(done.exception)
    assert not (tmp_path / "answers.jsonl").exists()


@pytest.mark.parametrize("name", ["dve.tsv", "no/such.jsonl", "x.CSV.gz", "dev.conll", "a.txt", "b.json"])
def test_a_mistyped_file_name_is_not_predicted_as_a_text(models: dict[str, Path], name: str) -> None:
    done = run(models["classify"], name)
    assert isinstance(done.exception, HeedfulError) and "no such file" in str(done.exception)


@pytest.mark.parametrize("text", ["see the a.txt", "a.b", "the cat.", "txt"])
def test_a_text_with_a_full_stop_is_a_text(models: dict[str, Path], text: str) -> None:
    assert len(predict(models["classify"], text)) == 1


@pytest.mark.parametrize("source", ["file", "-"])
def test_a_pair_goes_with_a_text_only(models: dict[str, Path], tmp_path: Path, source: str) -> None:
    path = write(tmp_path / "a.txt", "the cat\n") if source == "file" else source
    done = run(models["classify"], path, "--pair", "a dog", given="the cat\n")
    assert done.exit_code == 2 and "--pair-column" in done.stderr


def test_what_the_model_has_not_seen_whole_is_told(models: dict[str, Path]) -> None:
    done = run(models["classify"], "-", given="the cat\n" + "the cat " * 200 + "\n")
    short, long = (json.loads(line) for line in done.stdout.splitlines())
    assert "cut" not in short and long["cut"] is True
    assert "1 of 2 inputs are longer than the model reads and were cut" in done.stderr
    (answer,) = predict(models["answer"], "cat?", "--context", "the cat " * 600)
    assert "cut" not in answer  # a long context is read in windows
    (answer,) = predict(models["answer"], "cat? " * 400, "--context", "the cat " * 600)
    assert answer["cut"] is True


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_blank_line_is_a_text_and_its_answer_is_marked(models: dict[str, Path], tmp_path: Path, task: str) -> None:
    path = write(tmp_path / "a.txt", "\nthe cat\n\n  \na dog\n")
    answers = predict(models[task], path)
    assert [one.get("empty", False) for one in answers] == [True, False, True, True, False]
    assert "3 of 5 inputs are empty" in run(models[task], path).stderr
    assert predict(models[task], "-", given=path.read_text()) == answers


def test_an_empty_cell_is_a_text_too(models: dict[str, Path], tmp_path: Path) -> None:
    answers = predict(models["classify"], write(tmp_path / "a.csv", "id,text\n1,the cat\n2,\n3,a dog\n"))
    assert [one.get("empty") for one in answers] == [None, True, None]
    question = {"question": "who", "context": "", "id": "1"}
    (answer,) = predict(models["answer"], write(tmp_path / "a.jsonl", json.dumps(question)))
    assert answer["empty"] and answer["answer"] == ""


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        delimiter = "," if path.suffix == ".csv" else "\t"
        quoting = csv.QUOTE_MINIMAL if path.suffix == ".csv" else csv.QUOTE_NONE
        return list(csv.DictReader(file, delimiter=delimiter, quoting=quoting, strict=True))


MESSY = 'id,label,text\n7,old,"the cat,\nand ""a"" dog"\n8,,\n'


def test_a_table_keeps_its_columns_and_gets_the_answers(models: dict[str, Path], tmp_path: Path) -> None:
    path, output = write(tmp_path / "a.csv", MESSY), tmp_path / "b.csv"
    assert predict(models["classify"], path, "-o", output) == []
    rows, answers = table(output), predict(models["classify"], path)
    own = ["predicted_label", "probability", "probability_bad", "probability_good", "empty"]
    assert list(rows[0]) == ["id", "label", "text", *own]
    assert [(row["id"], row["label"], row["text"]) for row in rows] == [
        ("7", "old", 'the cat,\nand "a" dog'),
        ("8", "", ""),
    ]
    for row, answer in zip(rows, answers, strict=True):
        assert row["predicted_label"] == answer["label"] and row["empty"] == str(answer.get("empty", "")).lower()
        assert float(row["probability_good"]) == answer["probabilities"]["good"]
    predict(models["classify"], path, "-o", tmp_path / "b.tsv")
    assert [row["text"] for row in table(tmp_path / "b.tsv")] == ['the cat, and "a" dog', ""]


def test_what_is_no_table_becomes_one(models: dict[str, Path], tmp_path: Path) -> None:
    plain, output = write(tmp_path / "a.txt", "the cat\n\n"), tmp_path / "b.csv"
    predict(models["classify"], plain, "-o", output)
    assert [row["text"] for row in table(output)] == ["the cat", ""]
    predict(models["tag"], plain, "-o", tmp_path / "c.csv")
    first = table(tmp_path / "c.csv")[0]
    assert (first["text"], first["words"], len(first["labels"].split())) == ("the cat", "the cat", 2)
    assert isinstance(json.loads(first["entities"]), list)
    asked = write(tmp_path / "a.jsonl", json.dumps({"question": "who?", "context": "the cat", "id": "x"}))
    predict(models["answer"], asked, "-o", tmp_path / "d.csv")
    (answer,) = table(tmp_path / "d.csv")
    assert (answer["id"], answer["question"]) == ("x", "who?") and answer["answer"] in "the cat"
    predict(models["classify"], "the cat", "-o", tmp_path / "e.csv")
    assert table(tmp_path / "e.csv")[0]["text"] == "the cat"


def test_other_names_and_files_that_are_there_are_refused_before_the_work(
    models: dict[str, Path], tmp_path: Path
) -> None:
    path = write(tmp_path / "a.txt", "the cat\n")
    refused = run("nowhere", path, "-o", tmp_path / "b.xlsx").exception
    assert isinstance(refused, HeedfulError) and "format" in refused.what and ".csv" in str(refused.remedy)
    there = write(tmp_path / "b.csv", "precious")
    refused = run("nowhere", path, "-o", there).exception
    assert (
        isinstance(refused, HeedfulError) and "--overwrite" in str(refused.remedy) and there.read_text() == "precious"
    )
    assert predict(models["classify"], path, "-o", there, "--overwrite") == [] and len(table(there)) == 1
