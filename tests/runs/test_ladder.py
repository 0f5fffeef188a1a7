"""The ladder: one table of all models, nothing done twice, failures told as such, and nothing lost by a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from safetensors import safe_open

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.runs.ladder.rungs import RUNGS, pretraining_of, rungs_of
from heedful.runs.ladder.settings import LadderSettings
from heedful.toy.writer import SIZES, files
from heedful.training.events import Event, Note, Progress

SMALL: dict[str, Any] = {"size": "nano", "phases": "32:100%", "batch_size": 4, "progress": False}
TRIED: dict[str, Any] = {"tasks": ["toy:sentiment.en"], "rows": 24, "seeds": 2, "epochs": 1}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two corpora of the toy world's stories, one with its words and one without."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "text.txt").write_text(next(files(SIZES["small"], 0))[1], encoding="utf-8")
    (folder / "pairs.tsv").write_text("dog\tcat\t8\nmiller\tdog\t2\nhen\tbird\t7\nhen\tmiller\t1\n", encoding="utf-8")
    heedful.train_tokenizer(folder / "text.txt", folder / "tokenizer", vocab_size=600, progress=False)
    for name, words in (("corpus", True), ("wordless", False)):
        built = {"tokenizer": folder / "tokenizer", "lines": "sentences", "words": words, "held_out": 0.05}
        heedful.build_corpus(folder / "text.txt", folder / name, progress=False, **built)
    return folder


def weights(model: Path) -> bytes:
    return (model / "model.safetensors").read_bytes()


def test_the_whole_table_and_nothing_of_it_twice(world: Path, tmp_path: Path) -> None:
    output, told = tmp_path / "ladder", dict[str, Any]()
    told |= {"budget": "12steps", "models": "bert,lstm-lm", "pairs": [world / "pairs.tsv"], **SMALL, **TRIED}
    ladder = heedful.ladder(world / "corpus", output, **told)
    lstm, bert = ladder.rows
    assert (lstm["model"], lstm["sees"], bert["sees"]) == ("lstm-lm", "left", "both, deep")
    assert not lstm["reason"] and not bert["reason"] and lstm["training"]["steps"] == 12
    assert lstm["perplexity"]["word_perplexity"] > 1 and "pseudo_perplexity" not in lstm["perplexity"]
    assert bert["perplexity"]["pseudo_perplexity"] > 1 and "word_perplexity" not in bert["perplexity"]
    for row in ladder.rows:
        tries = row["tasks"]["sentiment.en"]
        assert {len(tries[way]["values"]) for way in ("frozen", "tuned")} == {2} and tries["tuned"]["spread"] >= 0
        assert -1 <= row["pairs"]["pairs"]["spearman"] <= 1 and row["pairs"]["pairs"]["pairs"] == 4
        assert row["speed"]["words_per_second"] > 0 and row["training"]["peak_memory"] > 1e7
        with safe_open(output / row["model"] / "model" / "model.safetensors", "np") as stored:
            names = [name for name in stored.keys() if not name.startswith(("cls.", "decoder"))]  # noqa: SIM118
            assert row["size"]["parameters"] == sum(stored.get_tensor(name).size for name in names)
    assert json.loads((output / "ladder.json").read_text())["rows"] == [dict(row) for row in ladder.rows]
    page = ladder.report.read_text(encoding="utf-8")
    assert "bert" in page and "seconds" in page and "://" not in page and "<script" not in page

    before = {path: path.stat().st_mtime_ns for path in output.rglob("measured.json")}
    shown = CliRunner().invoke(cli, ["ladder", "--resume", "-o", str(output)])
    assert shown.exit_code == 0 and "left" in shown.stdout and "both, deep" in shown.stdout, shown.output
    assert "step" not in shown.stderr and {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(HeedfulError, match="there are runs in this folder already"):
        heedful.ladder(world / "corpus", output, **told)


def test_a_model_that_fails_is_a_row_with_its_reason(world: Path, tmp_path: Path) -> None:
    output, notes = tmp_path / "ladder", list[str]()

    def hear(event: Event) -> None:
        """Kill the process of GPT in the middle of its work."""
        lock = output / "gpt" / ".lock"
        if isinstance(event, Progress) and lock.exists() and not (output / "gpt" / "model").exists():
            os.kill(int(lock.read_text()), signal.SIGKILL)
        if isinstance(event, Note):
            notes.append(event.text)

    models = "word2vec,gpt,lstm-lm"
    told = {"budget": "60steps", "models": models, "tasks": ["none"], "on_event": hear, **SMALL}
    ladder = heedful.ladder(world / "wordless", output, **told)
    rows = {row["model"]: row for row in ladder.rows}
    assert "does not hold the words" in rows["word2vec"]["reason"]
    assert "SIGKILL" in rows["gpt"]["reason"] and any("gpt: the process ended" in note for note in notes)
    assert rows["lstm-lm"]["reason"] is None and rows["lstm-lm"]["training"]["steps"] == 60
    assert "does not hold the words" in rows["lstm-lm"]["perplexity"]["reason"]  # there is no text to take it of
    assert ladder.exit_code == 0
    page = ladder.report.read_text(encoding="utf-8")
    assert "failed" in page and "SIGKILL" in page


def start(world: Path, output: Path, *more: str) -> subprocess.Popen[str]:
    """The command in a process of its own, with a checkpoint every ten steps."""
    told = ("--budget", "200steps", "--models", "gpt", "--task", "none", "--checkpoint-every", "10", "--resume")
    shape = ("--size", "nano", "--phases", "32:100%", "--batch-size", "4")
    command = [sys.executable, "-m", "heedful", "ladder", str(world / "corpus"), "-o", str(output), *told, *shape]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def until_a_checkpoint(output: Path, after: int) -> int:
    """Wait for a checkpoint past this step; gives its step."""
    for _ in range(2400):
        steps = [int(path.name.rpartition("-")[2]) for path in (output / "gpt" / "checkpoints").glob("step-*")]
        if max(steps, default=0) > after:
            return max(steps)
        time.sleep(0.05)
    raise AssertionError("no checkpoint came")


def last_journalled(output: Path) -> int:
    lines = (output / "gpt" / "metrics.jsonl").read_text().splitlines()
    return int(json.loads(lines[-1])["step"])


def test_stopped_and_killed_it_goes_on_from_its_last_checkpoint(world: Path, tmp_path: Path) -> None:
    output, steps = tmp_path / "ladder", list[int]()
    stopped = start(world, output)
    first = until_a_checkpoint(output, 0)
    stopped.send_signal(signal.SIGINT)
    said, _ = stopped.communicate(timeout=120)
    assert stopped.returncode == 130 and "go on with --resume" in said, said
    killed = start(world, output)
    until_a_checkpoint(output, first + 10)
    child = int((output / "gpt" / ".lock").read_text())
    killed.kill()
    killed.communicate(timeout=120)
    for _ in range(600):  # the process of the model ends when the one that started it is no more
        if not Path(f"/proc/{child}").exists() if Path("/proc").exists() else True:
            break
        time.sleep(0.05)
    done = last_journalled(output)

    def hear(event: Event) -> None:
        if isinstance(event, Progress):
            steps.append(event.step)

    ladder = heedful.ladder(output=output, resume=True, on_event=hear, progress=False)
    assert steps[0] > max(first, done - 10) and steps[-1] == 200
    (rung,) = rungs_of("gpt")
    alone = pretraining_of(rung, LadderSettings(world / "corpus", output, budget="200steps", **_shape()))
    undisturbed = heedful.pretrain(world / "corpus", tmp_path / "alone", **{**_given(alone), "progress": False})
    assert weights(output / "gpt" / "model") == weights(undisturbed.model) and ladder.exit_code == 0


def _shape() -> dict[str, Any]:
    return {name: value for name, value in SMALL.items() if name != "progress"}


def _given(settings: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(settings).items() if name not in ("corpus", "output")}


def test_every_rung_has_its_own_recipe_and_set_changes_it() -> None:
    told = LadderSettings("corpus", "out", set={"gpt.learning_rate": "2e-3", "warmup": "0.2"})
    found = {rung.name: pretraining_of(rung, told) for rung in RUNGS}
    assert len(found) == 7 and {one.warmup for one in found.values()} == {0.2}
    assert [rung.name for rung in rungs_of("bert,gpt2")] == ["gpt", "bert"]  # by the names of `pretrain` too
    assert found["gpt"].learning_rate == 2e-3 and found["lstm-lm"].learning_rate == 1e-3
    assert {name for name, one in found.items() if one.init == "informed"} == {"bert-informed"}
    assert found["bert"].mask_rate == found["bert-informed"].mask_rate and found["word2vec"].set == {"vector_size": 256}
    assert {one.size for one in found.values()} == {"mini"} and {one.budget for one in found.values()} == {"10m"}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"models": "berd"}, "did you mean bert"),
        ({"set": {"bert.learning": "1"}}, "did you mean learning_rate"),
        ({"set": {"bart.warmup": "1"}}, "there is no model 'bart'"),
        ({"set": {"budget": "1h"}}, "pretraining has no such field"),
        ({"budget": "soon"}, "is not understood"),
        ({"phases": "128"}, "are not understood"),
        ({"tasks": ["classify:train.tsv"]}, "KIND:TRAIN:DEV"),
        ({"tasks": ["toy:chess.en"]}, "the toy world has no task"),
        ({"tasks": ["a=tag:x:y", "a=tag:x:z"]}, "two tasks are called 'a'"),
        ({"tasks": ["sing:x.tsv:y.tsv"]}, "sing"),
        ({"tasks": ["tag:missing.conll:missing.conll"]}, "missing.conll"),
        ({"pairs": ["missing.tsv"]}, "missing.tsv"),
        ({"valid": "missing.txt"}, "there is no such file"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(
    told: dict[str, Any], said: str, world: Path, tmp_path: Path
) -> None:
    with pytest.raises(HeedfulError) as error:
        heedful.ladder(world / "corpus", tmp_path / "ladder", progress=False, **told)
    assert said in str(error.value)
    assert not [*(tmp_path / "ladder").glob("*/*.toml")]
