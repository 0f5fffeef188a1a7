"""`finetune classify --decide-by`: a threshold that holds wherever the model answers, and is told where it cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import heedful
from heedful.checkpoints.task_folder import read_task
from heedful.cli.main import cli
from heedful.json_files import write_json

TEXTS = [f"the {word} {letter}" for word in ("cat", "dog", "love") for letter in "pqrst"]


def command(*arguments: object) -> str:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of which few have the second label."""
    path = tmp_path_factory.mktemp("decide") / "rows.tsv"
    rows = [f"{int(n % 8 == 0)}\tthe {'love' if n % 8 == 0 else 'cat sees'} {'abcdefgh'[n % 5]}" for n in range(48)]
    path.write_text("label\tsentence\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(table: Path, tiny_folder: Path) -> Path:
    files = ("--model", tiny_folder, "--train", table, "--dev", table, "-o", table.parent / "run")
    command("finetune", "classify", *files, "--decide-by", "f1", "--budget", "8steps", "--lr", "1e-3", "--dropout", 0)
    return table.parent / "run"


def test_the_threshold_is_the_same_on_every_way(run: Path, tmp_path: Path) -> None:
    model = shutil.copytree(run / "model", tmp_path / "model")
    threshold = float(np.median([one["probabilities"]["1"] for one in heedful.load(run, "cpu").predict(TEXTS)]))
    write_json(model / "task.json", {**read_task(model), "threshold": threshold})
    answers = heedful.load(model, "cpu").predict(TEXTS)
    labels = [str(int(one["probabilities"]["1"] >= threshold)) for one in answers]
    assert [one["label"] for one in answers] == labels and set(labels) == {"0", "1"}
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    assert [json.loads(line) for line in command("predict", model, tmp_path / "texts.txt").splitlines()] == answers
    command("export", model, "--to", "onnx", "-o", tmp_path / "exported")
    assert read_task(tmp_path / "exported")["threshold"] == threshold
    exported = heedful.load(tmp_path / "exported", "cpu").predict(TEXTS)
    unsure = [abs(one["probabilities"]["1"] - threshold) < 1e-5 for one in answers]
    assert all(one["label"] == label or near for one, label, near in zip(exported, labels, unsure, strict=True))


def test_python_finds_the_same_threshold(run: Path, table: Path, tiny_folder: Path, tmp_path: Path) -> None:
    options = {"decide_by": "f1", "budget": "8steps", "learning_rate": 1e-3, "dropout": 0.0, "progress": False}
    again = heedful.finetune("classify", model=tiny_folder, train=table, dev=table, output=tmp_path / "run", **options)
    assert read_task(again.model)["threshold"] == read_task(run / "model")["threshold"]
    assert heedful.evaluate(again, table, rounds=0, progress=False).scores == pytest.approx(again.scores)


def test_whoever_takes_the_likeliest_label_is_told_of_the_threshold(run: Path, table: Path, tmp_path: Path) -> None:
    rule = f"'1' is given from a probability of {read_task(run / 'model')['threshold']:.3g} on"
    assert f"- {rule}: other programs do not know it" in (run / "model" / "README.md").read_text(encoding="utf-8")
    assert f"by label; {rule}" in " ".join(command("evaluate", run, table, "--rounds", 0).split())
    command("export", run, "--to", "onnx", "-o", tmp_path / "exported")
    assert f"Of the answers, {rule}." in (tmp_path / "exported" / "README.md").read_text(encoding="utf-8")
