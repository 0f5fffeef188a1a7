"""Options of a task of one's own: by `set`, by keyword, and refused where the task has no such field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

import heedful
from heedful.checkpoints.task_folder import read_task
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.tasks import registry
from heedful.tasks.classify import Classify

ROWS = [("the cat", "a"), ("a dog", "b")] * 3


@dataclass(frozen=True)
class Careful(Classify):
    name: ClassVar[str] = "careful"

    sureness: float = 0.5
    rounds: int = 1
    loud: bool = False


@pytest.fixture(autouse=True)
def careful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_known", {**registry._known, "careful": Careful})
    yield


@pytest.fixture
def given(tiny_folder: Path, tmp_path: Path) -> dict[str, Any]:
    return {"model": tiny_folder, "train": ROWS, "output": tmp_path / "run", "epochs": 1, "progress": False}


def test_keywords_of_the_task_alone(given: dict[str, Any]) -> None:
    run = heedful.finetune("careful", **given, sureness=0.7, set={"rounds": 3})  # type: ignore[call-arg]
    told = read_task(run.model)
    assert (told["sureness"], told["rounds"], told["loud"]) == (0.7, 3, False)
    assert heedful.finetune(train=ROWS, output=run.folder, resume=True, progress=False).outcome.finished
    with pytest.raises(HeedfulError, match=r"set was .*0.7.* is now .*0.6"):
        heedful.finetune("careful", **given, resume=True, set={"sureness": 0.6, "rounds": 3})


def test_options_become_what_the_field_holds(tiny_folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "rows.tsv"
    table.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS), encoding="utf-8")
    files = ["--model", str(tiny_folder), "--train", str(table), "-o", str(tmp_path / "run"), "--epochs", "1"]
    options = ["--set", "sureness=0.7", "--set", "rounds=3", "--set", "loud=true"]
    done = CliRunner().invoke(cli, ["finetune", "careful", *files, *options])
    assert done.exit_code == 0, done.output
    told = read_task(tmp_path / "run" / "model")
    assert (told["sureness"], told["rounds"], told["loud"]) == (0.7, 3, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"set": {"surenes": 0.7}}, "did you mean sureness?"),
        ({"set": {"rounds": "many"}}, "rounds=many is not understood"),
        ({"set": {"rounds": 0.5}}, "rounds is 0.5, which is not a whole number"),
        ({"set": {"labels": ["a"]}}, "labels of careful is found in the training data"),
        ({"surenes": 0.7}, "unknown key 'surenes'"),
    ],
)
def test_what_the_task_does_not_have_is_refused(given: dict[str, Any], more: dict[str, Any], said: str) -> None:
    with pytest.raises(HeedfulError) as error:
        heedful.finetune("careful", **given, **more)
    assert said in str(error.value)
