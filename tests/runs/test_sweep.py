"""Sweeps: every combination once, the best by dev kept, gone on with where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.sweep import combinations, name_of
from heedful.training.events import Event, Progress

ROWS = [(f"the {'cat sees' if n % 2 else 'dog loves'} {letter}", str(n % 2)) for n, letter in enumerate("abcdefgh")]


def points(sweep: dict[str, Any]) -> list[dict[str, Any]]:
    return combinations(FinetuningSettings("classify", model="m", train="t", dev="d", output="o", sweep=sweep))


def test_combinations_and_their_names() -> None:
    found = points({"lr": "1e-5,3e-5", "epochs": [2, 3]})
    assert [tuple(one.values()) for one in found] == [(1e-5, 2), (1e-5, 3), (3e-5, 2), (3e-5, 3)]
    assert list(found[0]) == ["learning_rate", "epochs"]
    assert name_of(found[2]) == "learning_rate=3e-05,epochs=2"
    assert name_of({"model": "some/where else"}) == "model=some-where-else"


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ({"epoch": "1,2"}, "did you mean epochs?"),
        ({"seed": "1,2"}, "no such field to try values of"),
        ({"epochs": "1,two"}, "`sweep` epochs=two is not understood"),
        ({"lr": "1e-5,1e-5"}, "a value twice"),
        ({"lr": 1e-5}, "give several values"),
    ],
)
def test_what_cannot_be_tried(sweep: dict[str, Any], said: str) -> None:
    with pytest.raises(HeedfulError) as error:
        points(sweep)
    assert said in str(error.value)


def test_a_sweep_stopped_and_gone_on_with(tiny_folder: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": tiny_folder, "train": ROWS, "dev": ROWS, "epochs": 1, "batch_size": 4}
    given |= {"sweep": {"lr": [1e-4, 5e-3]}, "seeds": 2, "dropout": 0.0, "progress": False}
    taken = 0

    def stop(event: Event) -> None:
        nonlocal taken
        taken += isinstance(event, Progress)
        if taken == 5:  # in the first run of the second rate
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heedful.finetune("classify", output=tmp_path / "sweep", on_event=stop, **given)
    with pytest.raises(HeedfulError, match="there are runs in this folder already"):
        heedful.finetune("classify", output=tmp_path / "sweep", **given)
    run = heedful.finetune(train=ROWS, dev=ROWS, output=tmp_path / "sweep", resume=True, progress=False)
    assert [trial.values for trial in run.trials] == [{"learning_rate": 1e-4}, {"learning_rate": 5e-3}]
    assert all(trial.spread["accuracy"] >= 0 for trial in run.trials)
    best = max(run.trials, key=lambda trial: trial.scores["accuracy"])
    told = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert told["decides"] == "accuracy" and len(told["runs"]) == 2
    assert max(one["scores"]["accuracy"] for one in told["runs"]) == best.scores["accuracy"] == run.scores["accuracy"]
    assert run.kept is not None and run.metrics[-1]["step"] == 2
    model = (tmp_path / "sweep" / "model" / "model.safetensors").read_bytes()
    assert model == (run.kept / "model" / "model.safetensors").read_bytes()
    assert "learning_rate=0.005" in run.report.read_text(encoding="utf-8")
    assert len(run.load("cpu").predict(["the cat"])) == 1


def test_the_command_line_shows_a_table(tiny_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "rows.tsv"
    table.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS), encoding="utf-8")
    files = ["--model", tiny_folder, "--train", table, "--dev", table, "-o", tmp_path / "run"]
    options = ["--sweep", "lr=1e-4,1e-3", "--sweep", "epochs=0.5,1"]
    done = CliRunner().invoke(cli, ["finetune", "classify", *map(str, files), *options])
    assert done.exit_code == 0, done.output
    rows = [line.split("│") for line in done.stdout.splitlines() if "│" in line]
    assert [tuple(cell.strip() for cell in row[1:3]) for row in rows] == [
        ("0.0001", "0.5"), ("0.0001", "1.0"), ("0.001", "0.5"), ("0.001", "1.0")
    ]  # fmt: skip
    assert sum("best, kept" in row[-2] for row in rows) == 1
