"""`heedful finetune`, `evaluate` and `predict`: from a table to answers, the same on every way."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from transformers import BertForSequenceClassification

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError

GOOD, BAD = ("love", "loves"), ("sees", "un")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def command(*arguments: object) -> str:
    """What a command that succeeds prints."""
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments: object) -> str:
    """What the user of a command reads that is refused."""
    done = invoke(*arguments)
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in which one word decides, in training and dev rows."""
    folder = tmp_path_factory.mktemp("finetune")
    rows = [
        f"{int(word in GOOD)}\t{' '.join(['the cat'] * (n % 3 + 1))} {word} {letter}"
        for n, letter in enumerate("abcdefghij")
        for word in (*GOOD, *BAD)
    ]
    (folder / "train.tsv").write_text("label\tsentence\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "dev.tsv").write_text("label\tsentence\n1\tdog love z\n0\tdog sees y\n1\tx loves\n0\tun dog\n", "utf-8")
    return folder


OPTIONS = ("--epochs", 15, "--lr", "2e-3", "--batch-size", 8, "--dropout", 0)


@pytest.fixture(scope="module")
def run(data: Path, tiny_folder: Path) -> Path:
    """A finished run."""
    files = ("--train", data / "train.tsv", "--dev", data / "dev.tsv")
    command("finetune", "classify", "--model", tiny_folder, *files, "-o", data / "run", *OPTIONS)
    return data / "run"


def test_it_learns_and_leaves_a_whole_run_folder(run: Path) -> None:
    names = {path.name for path in run.iterdir()}
    assert {"config.toml", "metrics.jsonl", "timing.json", "report.html", "model", "checkpoints"} <= names
    report = json.loads(command("evaluate", run, run.parent / "dev.tsv", "--json"))
    assert report["scores"]["accuracy"] == 1.0
    assert "| accuracy | 1.0000 |" in (run / "model" / "README.md").read_text("utf-8")
    assert "- computed on " in (run / "model" / "README.md").read_text("utf-8")


def test_command_line_and_python_give_the_same_answers(run: Path, data: Path) -> None:
    texts = ["dog love z", "dog sees y", "x loves", "un dog"]
    lines = command("predict", run, data / "dev.tsv").splitlines()
    answers = [json.loads(line) for line in lines]
    assert answers == heedful.load(run, "cpu").predict(texts)
    assert json.loads(command("predict", run, texts[0]))["label"] == "1"


def test_the_model_loads_in_hugging_face(run: Path) -> None:
    model, info = BertForSequenceClassification.from_pretrained(run / "model", output_loading_info=True)
    assert model.config.id2label == {0: "0", 1: "1"}
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]


def test_evaluate_prints_scores_as_lines(run: Path, data: Path) -> None:
    printed = command("evaluate", run, data / "dev.tsv")
    assert "accuracy 1.0000" in printed
    assert "by label" in printed


def test_two_runs_are_compared_on_the_same_examples(run: Path, data: Path) -> None:
    report = json.loads(command("evaluate", run, run / "model", data / "dev.tsv", "--json"))
    difference = report["compared"]["differences"]["accuracy"]
    assert difference["difference"] == 0
    assert difference["p"] == 1


def test_resuming_is_exact(run: Path, data: Path, tiny_folder: Path) -> None:
    """A run that is stopped by a step limit of the test and gone on with ends with the same weights."""
    files = ("--train", data / "train.tsv", "--dev", data / "dev.tsv", "--checkpoint-every", 3)
    again = data / "again"
    arguments = ("finetune", "classify", "--model", tiny_folder, *files, "-o", again, *OPTIONS)
    first = subprocess.Popen([sys.executable, "-m", "heedful", *map(str, arguments)], stderr=subprocess.DEVNULL)
    while first.poll() is None and not list((again / "checkpoints").glob("step-*")):
        time.sleep(0.01)
    first.kill()
    first.wait()
    command(*arguments, "--resume")
    assert _digest(again) == _digest(run)


def test_peek_shows_tokens_and_trains_nothing(data: Path, tiny_folder: Path) -> None:
    files = ("--train", data / "train.tsv", "-o", data / "nothing", "--peek", 2)
    printed = command("finetune", "classify", "--model", tiny_folder, *files)
    assert "[CLS] the cat love a [SEP]" in printed
    assert printed.count("example ") == 2
    assert not (data / "nothing").exists()


def test_several_seeds_end_with_a_table_and_the_best_model(data: Path, tiny_folder: Path) -> None:
    files = ("--train", data / "train.tsv", "--dev", data / "dev.tsv", "-o", data / "seeds", "--seeds", 2)
    printed = command("finetune", "classify", "--model", tiny_folder, *files, "--epochs", 1)
    assert "±" in printed
    assert len(heedful.load(data / "seeds", "cpu").predict(["the dog"])) == 1
    assert set(json.loads((data / "seeds" / "seeds.json").read_text())["runs"]) == {"1", "2"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--dev", "label\tsentence\n7\tdog\n"), "'7' does not occur in the training data"),
        (("--train", "sentence\nthe dog\n"), "label"),
        (("--train", ""), "train.tsv"),
    ],
)
def test_bad_data_is_told_with_file_and_remedy(
    change: tuple[str, str], said: str, data: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    option, text = change
    bad = tmp_path / "train.tsv"
    bad.write_text(text, encoding="utf-8")
    files = {"--train": data / "train.tsv", "--dev": data / "dev.tsv", option: bad}
    arguments = [part for pair in files.items() for part in pair]
    assert said in refused("finetune", "classify", "--model", tiny_folder, *arguments, "-o", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_option_of_another_task_is_refused(data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    files = ("--train", data / "train.tsv", "-o", tmp_path / "run", "--head", "crf")
    assert "--head does not go with classify" in refused("finetune", "classify", "--model", tiny_folder, *files)


def test_a_folder_that_was_not_fine_tuned_cannot_predict(tiny_folder: Path) -> None:
    assert "fine-tuned" in refused("predict", tiny_folder, "the cat")


def _digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()
