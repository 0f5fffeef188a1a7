"""The options of `heedful finetune` mean what they say, or are refused before anything is written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heedful.checkpoints.task_folder import read_task
from heedful.cli.evaluate import command as evaluate
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.runs.finetuning import dev, seeds
from heedful.runs.finetuning.material import Material
from heedful.runs.finetuning.plan import Plan, plan_of
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.run import Run, Stage
from heedful.runs.score_file import write_scores
from heedful.training import budget
from heedful.training.events import Outcome
from heedful.training.run_folder import RunFolder

ROWS = [f"{n % 2}\tthe {'cat sees' if n % 2 else 'dog loves'} {letter}" for n, letter in enumerate("abcdefghijkl")]
Finetune = Callable[..., Result]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tsv"
    path.write_text("label\tsentence\n" + "\n".join(ROWS) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def finetune(tiny_folder: Path, table: Path, tmp_path: Path) -> Finetune:
    """The command in this process; the folder is `run` unless another is named."""

    def called(*arguments: object, task: str = "classify", train: Path = table, folder: str = "run") -> Result:
        usual = {"--model": tiny_folder, "--train": train, "-o": tmp_path / folder, "--dropout": 0}
        given = [task, *(part for option in usual.items() if option[0] not in arguments for part in option), *arguments]
        done = CliRunner().invoke(cli, ["finetune", *map(str, given)])
        unforeseen = not isinstance(done.exception, SystemExit | HeedfulError | None)
        if unforeseen and done.exception is not None:
            raise done.exception
        return done

    return called


def settings(task: str = "classify", **given: Any) -> FinetuningSettings:
    return FinetuningSettings(task, **{"model": "m", "train": "t.tsv", "output": "run", **given})


def plan(task: str = "classify", **given: Any) -> Plan:
    return plan_of(settings(task, **given), steps=1, eval_every=1)


def refused(done: Result) -> str:
    """What the user reads."""
    assert isinstance(done.exception, HeedfulError), done.output
    return str(done.exception)


@pytest.mark.parametrize(
    "given",
    [
        ("--stride", -5),
        ("--limit", -1),
        ("--dropout", 1),
        ("--dropout", 1.5),
        ("--lstm-layers", 0),
        ("--lstm-width", 0),
        ("--seed", -1),
        ("--lr", 0),
        ("--head-rate", 0),
        ("--peek", -1),
        ("--max-length", 0),
    ],
)
def test_numbers_out_of_range_are_refused(finetune: Finetune, tmp_path: Path, given: tuple[str, float]) -> None:
    done = finetune(*given)
    assert done.exit_code == 2
    assert given[0] in done.output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--dev", "rows.tsv", "--metric", "acuracy"), "the scores are accuracy, f1, matthews"),
        (("--patience", 2), "--patience has no effect without dev data"),
        (("--metric", "f1"), "--metric has no effect"),
        (("--keep", "best"), "--keep has no effect"),
        (("--eval-every", 5), "--eval-every has no effect"),
        (("--keep", "worst", "--dev", "rows.tsv"), "write best or last"),
        (("--epochs", "nan"), "nan epochs"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(
    finetune: Finetune, tmp_path: Path, given: tuple[object, ...], said: str
) -> None:
    assert said in refused(finetune(*given))
    assert not (tmp_path / "run").exists()


def test_a_word_that_a_task_does_not_know_is_refused_before_training(finetune: Finetune, tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("the O\ncat B-X\n\nthe O\ndog B-X\n", encoding="utf-8")
    arguments = ("--features", "-1,-2", "--combine", "avg")
    assert "not one of 'concat', 'sum'" in refused(finetune(*arguments, task="tag", train=tmp_path / "train.conll"))
    assert not (tmp_path / "run").exists()


def test_defaults_depend_on_other_options() -> None:
    plain = plan()
    assert (plain.batch_size, plain.keep, plain.training.learning_rate, plain.head_rate) == (32, "last", 5e-5, None)
    assert plan(by_tokens=True).batch_size == 4096
    assert plan(by_tokens=True, batch_size=7).batch_size == 7
    assert plan(dev="d.tsv").keep == "best"
    assert plan("tag", head="crf").head_rate == 1e-3


@pytest.mark.parametrize(("metric", "upwards"), [("squared_error", False), ("pearson", True)])
def test_an_error_is_kept_small_and_a_score_great(
    finetune: Finetune, table: Path, tmp_path: Path, metric: str, upwards: bool
) -> None:
    recipe = ("--epochs", 4, "--lr", 0.02, "--batch-size", 4, "--eval-every", 1)
    finetune("--dev", table, "--metric", metric, *recipe, task="regress")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    values = [line["evaluation"][metric] for line in lines if "evaluation" in line]
    assert len(set(values)) > 1
    kept = json.loads((tmp_path / "run" / "scores.json").read_text())[metric]
    assert kept == (max if upwards else min)(value for value in values if value is not None)


def test_a_resumed_run_is_not_made_longer_silently(finetune: Finetune, tmp_path: Path) -> None:
    assert finetune("--epochs", 1).exit_code == 0
    longer = finetune("--epochs", 2, "--resume")
    assert longer.exit_code == 0
    assert "epochs was 1.0, is now 2.0: from here on the learning rate follows" in longer.stderr.replace("\n", " ")
    assert _plan(tmp_path / "run").epochs == 2
    assert "has taken 2 steps already" in refused(finetune("--epochs", 1, "--resume"))
    assert finetune("--resume").exit_code == 0


def test_a_budget_of_steps_is_kept_to_the_step(finetune: Finetune, tmp_path: Path) -> None:
    arguments = ("--budget", "7steps", "--by-tokens", "--batch-size", 20)
    assert finetune(*arguments).exit_code == 0
    assert _plan(tmp_path / "run").training.steps == 7
    assert finetune(*arguments, "--resume").exit_code == 0


def test_a_budget_of_time_goes_with_data_of_one_step(
    finetune: Finetune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def each_look_at_the_clock_takes(seconds: float) -> None:
        monkeypatch.setattr(budget, "time", SimpleNamespace(perf_counter=count(step=seconds).__next__))

    each_look_at_the_clock_takes(0.5)  # and so each step that is measured
    assert finetune("--budget", "6s").exit_code == 0
    assert _plan(tmp_path / "run").training.steps == 11  # a twentieth of the time is kept back
    each_look_at_the_clock_takes(9.0)
    assert finetune("--budget", "6s", "--resume").exit_code == 0
    assert _plan(tmp_path / "run").training.steps == 11


def test_seeds_share_the_steps_of_a_budget_and_the_data(
    finetune: Finetune, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: Iterator[int] = iter([5, 9])
    monkeypatch.setattr("heedful.runs.budget.steps_for", lambda *given: next(measured))
    read: list[FinetuningSettings] = []
    whole = Material.of
    monkeypatch.setattr(Material, "of", lambda settings: read.append(settings) or whole(settings))
    assert finetune("--dev", table, "--seeds", 2, "--budget", "1h", "--checkpoint-every", 0).exit_code == 0
    assert [_plan(tmp_path / "run" / f"seed-{seed}").training.steps for seed in (1, 2)] == [5, 5]
    assert len(read) == 1


def test_one_kind_of_run_does_not_overwrite_another(finetune: Finetune, table: Path, tmp_path: Path) -> None:
    short = ("--dev", table, "--epochs", 1, "--checkpoint-every", 0)
    several = (*short, "--seeds", 2)
    finetune(*short, folder="one")
    before = (tmp_path / "one" / "model" / "model.safetensors").read_bytes()
    for arguments in (several, (*several, "--resume")):
        assert "a run of a single seed" in refused(finetune(*arguments, folder="one"))
    assert (tmp_path / "one" / "model" / "model.safetensors").read_bytes() == before
    assert finetune(*several).exit_code == 0
    assert "there are runs in this folder already" in refused(finetune(*several))
    assert finetune(*short, "--resume").exit_code == 0  # both seeds, as they were started
    assert set(json.loads((tmp_path / "run" / "seeds.json").read_text())["runs"]) == {"1", "2"}


def test_only_the_first_process_chooses_among_seeds(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_folder: Path
) -> None:
    outcome = Outcome(1, 1, None, None, None, 0, 1)
    monkeypatch.setattr(seeds, "finetune", lambda settings, stage, *more: Run(stage.folder.path, outcome, {}))
    monkeypatch.setenv("RANK", "1")
    given = settings(dev=str(table), seeds=2, model=str(tiny_folder), train=str(table))
    assert seeds.run_seeds(given, Stage(RunFolder(tmp_path / "run"))).best is None
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ([0.9, 0.5], [False, True]),
        ([0.9, 0.88], [False, False]),
        ([0.9, math.nan], [False, True]),
        ([math.nan, math.nan], [True, True]),
        ([0.5, 0.9, 0.91], [True, False, False]),
        ([0.9, 0.5, math.nan, 0.91], [False, True, True, False]),
        ([0.7, 0.8, 0.9, 0.6], [False, False, False, False]),
    ],
)
def test_runs_that_collapsed(values: list[float], lost: list[bool]) -> None:
    assert seeds.collapsed(values) == lost


def test_the_best_of_seeds_by_an_error_and_never_nan(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_folder: Path
) -> None:
    errors = {1: math.nan, 2: 0.5, 3: 0.1, 4: 0.7}
    outcome = Outcome(1, 1, None, None, None, 0, 1)

    def run(settings: FinetuningSettings, stage: Stage, *more: object) -> Run:
        model = stage.folder.model
        model.mkdir(parents=True)
        (model / "seed").write_text(str(settings.seed))
        return Run(stage.folder.path, outcome, {"squared_error": errors[settings.seed]})

    monkeypatch.setattr(seeds, "finetune", run)
    files = {"model": str(tiny_folder), "train": str(table), "dev": str(table)}
    seeds.run_seeds(settings("regress", metric="squared_error", seeds=4, **files), Stage(RunFolder(tmp_path / "run")))
    found = json.loads((tmp_path / "run" / "seeds.json").read_text(), parse_constant=pytest.fail)
    assert found["best"] == 3
    assert found["runs"]["1"] == {"squared_error": None}
    assert (tmp_path / "run" / "model" / "seed").read_text() == "3"


def test_scores_on_disk_are_whole_and_plain_json(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    write_scores(path, {"f1": 0.5, "pearson": math.nan, "more": {"error": math.inf}})
    assert json.loads(path.read_text()) == {"f1": 0.5, "pearson": None, "more": {"error": None}}
    with pytest.raises(TypeError):
        write_scores(path, {"f1": object()})
    assert json.loads(path.read_text())["f1"] == 0.5
    assert list(tmp_path.iterdir()) == [path]


def test_the_columns_asked_for_are_kept_with_the_model(finetune: Finetune, tmp_path: Path) -> None:
    finetune("--epochs", 0.1, "--text", "sentence")
    finetune("--epochs", 0.1, folder="plain")
    assert read_task(tmp_path / "run" / "model")["columns"] == {"text": "sentence"}
    assert "columns" not in read_task(tmp_path / "plain" / "model")


def test_a_run_goes_on_from_another_run(finetune: Finetune, tmp_path: Path) -> None:
    finetune("--epochs", 0.1)
    done = finetune("--epochs", 0.1, "--model", tmp_path / "run", folder="next")
    assert done.exit_code == 0
    assert "classifier is kept as the folder has it" in done.stderr
    assert (tmp_path / "next" / "model" / "model.safetensors").is_file()


def test_texts_that_do_not_fit_are_counted(finetune: Finetune) -> None:
    assert "6 of 12 examples do not fit into 6 tokens and are cut" in finetune("--max-length", 6, "--peek", 1).output
    assert "are cut" not in finetune("--max-length", 6, "--stride", 2, "--peek", 1, folder="read").output


def test_the_best_checkpoint_is_judged_with_its_own_threshold(
    finetune: Finetune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each evaluation tunes the threshold first, so that the one that is kept needs no further look at the model."""
    passes: list[object] = []
    outputs_of = dev.outputs_of
    monkeypatch.setattr(dev, "outputs_of", lambda *given: passes.append(given) or outputs_of(*given))
    context = "the cat sees the dog"
    rows = [
        {"id": f"{n}", "question": word, "context": context, "answers": [{"text": word, "answer_start": start}] * keep}
        for n, (word, start, keep) in enumerate([("cat", 4, 1), ("love", 0, 0), ("dog", 17, 1), ("un", 0, 0)])
    ]
    file = tmp_path / "questions.json"
    squad = {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": rows}]}]}
    file.write_text(json.dumps(squad), encoding="utf-8")
    recipe = ("--epochs", 6, "--batch-size", 2, "--lr", "1e-3", "--eval-every", 2, "--max-length", 64, "--stride", 16)
    done = finetune("--dev", file, *recipe, task="answer", train=file)
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    values = [line["evaluation"]["f1"] for line in lines if "evaluation" in line]
    kept = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert kept["f1"] == max(values) >= 0.5  # to say "no answer" to all is right for a half
    assert len(passes) == len(values) == 6
    assert read_task(tmp_path / "run" / "model")["threshold"] != 0


def _plan(run: Path) -> Plan:
    return RunFolder(run).stored_as(Plan)


@pytest.mark.parametrize("features", [(), ("--features", "-1,-2")])
def test_pooling_is_kept_with_the_model(features: tuple[str, ...], tiny_folder: Path, tmp_path: Path) -> None:
    rows = [f"{word}\t{word} {letter}" for letter in "abcd" for word in ("cat", "dog")]
    (tmp_path / "a.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    files = ("--train", tmp_path / "a.tsv", "--dev", tmp_path / "a.tsv", "-o", tmp_path / "run", *features)
    recipe = ("--pooling", "mean", "--epochs", "20", "--lr", "5e-3", "--batch-size", "8", "--dropout", "0")
    done = CliRunner().invoke(cli, ["finetune", "classify", "--model", str(tiny_folder), *map(str, (*files, *recipe))])
    assert done.exit_code == 0, (done.output, done.exception)
    task, config = (json.loads((tmp_path / "run/model" / name).read_text()) for name in ("task.json", "config.json"))
    assert task["pooling"] == "mean" and "problem_type" not in config
    assert config.get("architectures") != ["BertForSequenceClassification"]
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    said = CliRunner().invoke(evaluate, [str(tmp_path / "run"), str(tmp_path / "a.tsv"), "--json"])
    assert json.loads(said.stdout)["scores"] == pytest.approx(scores) and scores["accuracy"] > 0.5


def test_pooling_does_not_go_with_tags(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("cat B-X\nsees O\n", encoding="utf-8")
    files = ("--train", tmp_path / "a.conll", "-o", tmp_path / "run", "--pooling", "mean")
    done = CliRunner().invoke(cli, ["finetune", "tag", "--model", str(tiny_folder), *map(str, files)])
    assert isinstance(done.exception, HeedfulError) and "--pooling does not go with tag" in str(done.exception)
