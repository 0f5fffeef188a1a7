"""`classify --multi` from a table to answers: training, evaluation, tables of answers, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from transformers import BertForSequenceClassification

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError


def command(*arguments: object) -> str:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


WORDS = {"cat": "cat", "dog": "dog", "love": "big love"}  # a word -> the label it stands for


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same rows with labels in one column, and with a column for each."""
    folder = tmp_path_factory.mktemp("multi")
    texts = [f"{first} {second} {letter}" for first in (*WORDS, "un") for second in (*WORDS, "un") for letter in "xyz"]
    one, many = folder / "one.csv", folder / "many.csv"
    with one.open("w", encoding="utf-8") as cells, many.open("w", encoding="utf-8") as switches:
        csv.writer(cells).writerows(
            [("text", "label"), *((text, "; ".join(dict.fromkeys(_labels(text)))) for text in texts)]
        )
        rows = ([text, *(int(label in _labels(text)) for label in WORDS.values())] for text in texts)
        csv.writer(switches).writerows([("text", *WORDS.values()), *rows])
    return one, many


def _labels(text: str) -> list[str]:
    return [WORDS[word] for word in text.split() if word in WORDS]


OPTIONS = ("--epochs", 25, "--lr", "4e-3", "--batch-size", 8, "--dropout", 0, "--multi", "--balance")


@pytest.fixture(scope="module")
def runs(tables: tuple[Path, Path], tiny_folder: Path) -> list[Path]:
    folders = []
    for table, label in zip(tables, ((), ("--label", ",".join(WORDS.values()))), strict=True):
        run = table.with_suffix("")
        command(
            *("finetune", "classify", "--model", tiny_folder, "--train", table, "--dev", table, "-o", run),
            *(*OPTIONS, *label),
        )
        folders.append(run)
    return folders


def test_both_ways_to_write_labels_train_the_same_model(runs: list[Path], tables: tuple[Path, Path]) -> None:
    one, many = (json.loads(command("evaluate", run, table, "--json")) for run, table in zip(runs, tables, strict=True))
    assert one["scores"] == many["scores"] and one["scores"]["f1"] > 0.75
    assert one["details"][0]["rows"][0][0] == "big love"
    task = json.loads((runs[0] / "model" / "task.json").read_text(encoding="utf-8"))
    assert task["task"] == "multilabel" and len(task["weights"]) == 3 and 0 < task["threshold"] < 1


def test_the_folder_is_hugging_face_s_multi_label_class(runs: list[Path]) -> None:
    theirs, info = BertForSequenceClassification.from_pretrained(runs[0] / "model", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert theirs.config.problem_type == "multi_label_classification"
    assert theirs.config.id2label == {0: "big love", 1: "cat", 2: "dog"}


def test_answers_are_the_same_everywhere(runs: list[Path], tables: tuple[Path, Path], tmp_path: Path) -> None:
    texts = ["cat un z", "love dog z", "un un y"]
    answers = heedful.load(runs[0]).predict(texts)
    (tmp_path / "new.csv").write_text("text\n" + "\n".join(texts) + "\n", encoding="utf-8")
    command("predict", runs[0], tmp_path / "new.csv", "-o", tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["labels"]) if row["labels"][:1] == "[" else row["labels"].split() for row in rows] == [
        answer["labels"] for answer in answers
    ]
    assert float(rows[1]["probability_big love"]) == pytest.approx(answers[1]["probabilities"]["big love"], abs=1e-4)


def test_an_unknown_label_is_told_and_wrong_rows_are_written(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("text,label\ncat un x,cat; bird\ndog dog x,dog\n", encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["evaluate", str(runs[0]), str(tmp_path / "test.csv"), "--errors", str(tmp_path / "wrong.jsonl")]
    )
    assert done.exit_code == 0 and "'bird'" in done.stderr and "bird (not in training)" in done.stdout
    row = json.loads((tmp_path / "wrong.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["label"] == "cat | bird" and row["prediction"] and row["where"].endswith("test.csv:2")


def test_multi_goes_with_classify_only(tables: tuple[Path, Path], tiny_folder: Path, tmp_path: Path) -> None:
    files = ("--model", tiny_folder, "--train", tables[0], "-o", tmp_path / "run", "--multi")
    done = CliRunner().invoke(cli, ["finetune", "regress", *map(str, files)])
    assert isinstance(done.exception, HeedfulError) and "--multi does not go with regress" in str(done.exception)
    done = CliRunner().invoke(cli, ["finetune", "classify", *map(str, files), "--decide-by", "f1", "--dev", "20%"])
    assert isinstance(done.exception, HeedfulError) and "--decide-by does not go with --multi" in str(done.exception)
