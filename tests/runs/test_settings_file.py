"""Settings in files, runs gone on with alone, made longer or refused, and folders of version 0.1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import heedful
from heedful.cli.main import cli
from heedful.config import read_toml_values, write_toml_values
from heedful.errors import HeedfulError
from heedful.training.checkpoint import MANIFEST, write_manifest
from heedful.training.events import Event, Note, Progress

ROWS = "".join(f"{n % 2}\tthe {'cat sees' if n % 2 else 'dog loves'} {letter}\n" for n, letter in enumerate("abcdefgh"))
Finetune = Callable[..., Result]


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def invoke(*arguments: object) -> Result:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit | HeedfulError):
        raise done.exception
    return done


def refused(done: Result) -> str:
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tsv"
    path.write_text("label\tsentence\n" + ROWS, encoding="utf-8")
    return path


@pytest.fixture
def files(tiny_folder: Path, table: Path) -> tuple[object, ...]:
    return ("classify", "--model", tiny_folder, "--train", table, "--batch-size", 4, "--dropout", 0)


@pytest.fixture
def given(tiny_folder: Path, table: Path) -> dict[str, Any]:
    """The same for a call."""
    return {"model": tiny_folder, "train": table, "batch_size": 4, "dropout": 0.0, "epochs": 2}


def interrupted(folder: Path, step: int, **given: Any) -> None:
    """A run from Python that is stopped after a step."""

    def stop(event: Event) -> None:
        if isinstance(event, Progress) and event.step == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        heedful.finetune("classify", output=folder, on_event=stop, progress=False, **given)


def test_a_dry_run_writes_what_a_config_takes(files: tuple[object, ...], tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = invoke("finetune", *files, "--epochs", 1, "--lr", "1e-3", "-o", run, "--dry-run")
    assert done.exit_code == 0 and done.stdout.strip() == str(run / "config.toml")
    assert [path.name for path in run.iterdir()] == ["config.toml"]
    assert read_toml_values(run / "config.toml")["settings"]["learning_rate"] == 1e-3
    assert invoke("finetune", "--config", run / "config.toml").exit_code == 0
    again = invoke("finetune", "--config", run / "config.toml", "--lr", "2e-3", "-o", tmp_path / "other")
    assert again.exit_code == 0  # an option wins
    assert read_toml_values(tmp_path / "other" / "config.toml")["training"]["learning_rate"] == 2e-3
    assert weights(run) != weights(tmp_path / "other")
    assert "there is a run in this folder already" in refused(invoke("finetune", "--config", run / "config.toml"))


def test_a_file_written_by_hand_and_its_mistakes(tiny_folder: Path, table: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    known: dict[str, Any] = {"task": "classify", "model": str(tiny_folder), "train": str(table), "portions": 2}
    write_toml_values({**known, "output": str(tmp_path / "run"), "epochs": 1}, file)
    assert invoke("finetune", "--config", file).exit_code == 0
    assert read_toml_values(tmp_path / "run" / "config.toml")["training"]["accumulate"] == 2
    write_toml_values({**known, "epoch": 1}, file)
    said = refused(invoke("finetune", "--config", file, "-o", tmp_path / "no"))
    assert "did you mean 'epochs'?" in said and "my.toml" in said
    write_toml_values({"training": {"steps": 3}}, file)
    assert "of a version that did not keep" in refused(invoke("finetune", "--config", file, "-o", tmp_path / "no"))


def test_resume_alone_goes_on_bit_for_bit(
    files: tuple[object, ...], table: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    assert invoke("finetune", *files, "--epochs", 2, "-o", tmp_path / "whole").exit_code == 0
    given = {"model": tiny_folder, "train": table, "batch_size": 4, "dropout": 0.0, "epochs": 2}
    interrupted(tmp_path / "stopped", 3, **given)
    assert invoke("finetune", "--resume", "-o", tmp_path / "stopped").exit_code == 0
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")


def test_resume_without_a_run_to_go_on_with(files: tuple[object, ...], tmp_path: Path) -> None:
    said = refused(invoke("finetune", "--resume", "-o", tmp_path / "none"))
    assert "there is no run here to go on with" in said and str(tmp_path / "none") in said
    with pytest.raises(HeedfulError, match="no run here to go on with"):
        heedful.pretrain(output=tmp_path / "none", resume=True, progress=False)
    assert "output is missing" in refused(invoke("finetune", "--resume"))
    # A scheduler gives the same command each time, the first one too.
    assert invoke("finetune", *files, "--epochs", 1, "--resume", "-o", tmp_path / "run").exit_code == 0


def test_the_name_of_an_option_leads_to_that_of_its_field(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match=r"unknown key 'lr'[^$]*did you mean 'learning_rate'"):
        heedful.finetune("classify", output=tmp_path / "run", lr=1e-3, **given)


def test_a_callback_that_cannot_be_called_is_refused(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(HeedfulError, match="on_event is 3"):
        heedful.finetune("classify", output=tmp_path / "run", on_event=3, **given)  # type: ignore[arg-type]
    assert not (tmp_path / "run" / "config.toml").exists()


def test_a_sweep_without_values_shows_how_to_write_one(files: tuple[object, ...], tmp_path: Path) -> None:
    assert "as lr=1e-5,3e-5" in refused(invoke("finetune", *files, "--sweep", "lr", "-o", tmp_path / "run"))


def test_a_longer_run_says_so_and_others_are_refused(files: tuple[object, ...], table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert invoke("finetune", *files, "--epochs", 1, "-o", run).exit_code == 0
    assert "learning_rate was 5e-05, is now 0.001" in refused(invoke("finetune", "--resume", "-o", run, "--lr", "1e-3"))
    both = invoke("finetune", "--resume", "-o", run, "--epochs", 2, "--seed", 5)
    assert "seed was 1, is now 5" in refused(both) and "epochs" not in str(both.exception).split("remedy")[0]
    longer = invoke("finetune", "--resume", "-o", run, "--epochs", 2, "--checkpoint-every", 3)
    assert longer.exit_code == 0, longer.output
    assert "follows the schedule of the new length" in longer.stderr
    stored = read_toml_values(run / "config.toml")
    assert (stored["training"]["steps"], stored["epochs"], stored["settings"]["epochs"]) == (4, 2.0, 2.0)
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()][-1] == 4
    assert "has taken 4 steps already" in refused(invoke("finetune", "--resume", "-o", run, "--epochs", 1))
    table.write_text("label\tsentence\n" + ROWS * 2, encoding="utf-8")
    assert "steps was 4, is now 8" in refused(invoke("finetune", "--resume", "-o", run))  # other data, not a wish


def test_a_run_on_rows_in_memory_asks_for_them_again(tiny_folder: Path, tmp_path: Path) -> None:
    rows = [("the cat", "a"), ("the dog", "b")] * 4
    interrupted(tmp_path / "run", 1, model=tiny_folder, train=rows, batch_size=4)
    with pytest.raises(HeedfulError, match=r"rows in memory .* as `train`"):
        heedful.finetune(output=tmp_path / "run", resume=True, progress=False)
    with pytest.raises(HeedfulError, match="started with other settings: train was"):
        heedful.finetune(train=rows[:-1], output=tmp_path / "run", resume=True, progress=False)
    assert heedful.finetune(train=rows, output=tmp_path / "run", resume=True, progress=False).outcome.finished


def make_older(run: Path) -> None:
    """Make a folder what version 0.1 would have written."""
    stored = read_toml_values(run / "config.toml")
    for name in ("settings", "set", "force"):
        stored.pop(name, None)
    stored["training"]["portions"] = stored["training"].pop("accumulate")
    write_toml_values(stored, run / "config.toml")
    for checkpoint in (run / "checkpoints").iterdir():
        state = json.loads((checkpoint / "state.json").read_text())
        state["portions"] = state.pop("accumulate")
        del state["arithmetic"]
        (checkpoint / "state.json").write_text(json.dumps(state))
        (checkpoint / MANIFEST).unlink()
        write_manifest(checkpoint)


def test_a_run_of_version_0_1_goes_on(
    files: tuple[object, ...], tiny_folder: Path, table: Path, tmp_path: Path
) -> None:
    given = {"model": tiny_folder, "train": table, "batch_size": 4, "dropout": 0.0, "epochs": 2}
    interrupted(tmp_path / "old", 3, precision="float32", **given)
    make_older(tmp_path / "old")
    assert "`task` is missing" in refused(invoke("finetune", "--resume", "-o", tmp_path / "old")).replace(
        "TASK", "`task`"
    )
    heard: list[Event] = []
    old = heedful.finetune(
        "classify", output=tmp_path / "old", resume=True, on_event=heard.append, progress=False, **given
    )
    told = [event.text for event in heard if isinstance(event, Note)]
    assert "resumed from step-000003" in told
    assert "precision float32: as the run was started" in told  # though auto is asked for now
    new = heedful.finetune("classify", output=tmp_path / "new", precision="float32", progress=False, **given)
    assert weights(old.folder) == weights(new.folder)
