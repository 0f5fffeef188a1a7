"""`heedful evaluate`: JSON that any reader takes, labels shown as they are, and resamples scored once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import heedful
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.cli.main import cli
from heedful.cli.report import command as report_command
from heedful.config import to_mapping
from heedful.errors import HeedfulError
from heedful.tasks.classify import Classify
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Rescorer, Task

LABELS = ("[/INST]", "[bold]", ":cat:")


def save(path: Path, start: Path, task: Task[Any], seed: int = 0, **more: Any) -> Path:
    """The folder of a random model for a task."""
    folder = read_folder(start)
    model = load_for_task(folder, task.model, seed)
    settings = {"task": task.name, **to_mapping(task), **more}
    save_for_task(model, path, folder.tokenizer, task=settings, architecture=task.architecture)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["evaluate", *map(str, arguments)])


def read(*arguments: object) -> dict[str, Any]:
    """The report, by a reader who knows no NaN."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    done = run(*arguments, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    report: dict[str, Any] = json.loads(done.stdout, parse_constant=refuse)
    return report


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def labelled(path: Path, count: int = 30) -> Path:
    words = ("cat", "dog", "love")
    return write(path, "label\ttext", *(f"{LABELS[n % 3]}\tthe {words[n * n % 3]} {n}" for n in range(count)))


def test_a_score_that_is_no_number_is_null(tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Regress())
    report = read(model, model, write(tmp_path / "a.tsv", "label\ttext", "1\tthe cat", "1\ta dog"), "--rounds", 20)
    assert report["scores"]["pearson"] is None and report["intervals"]["pearson"] == [None, None]
    assert report["compared"]["differences"]["pearson"]["p"] is None
    assert report["scores"]["squared_error"] > 0


def test_labels_that_look_like_markup_are_shown_as_they_are(tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Classify(labels=LABELS))
    done = run(model, labelled(tmp_path / "a.tsv"), "--rounds", 5)
    assert done.exit_code == 0, done.exception
    header = next(line for line in done.stdout.splitlines() if all(label in line for label in LABELS))
    assert [cell.strip() for cell in header.strip("┃").split("┃")][1:] == list(LABELS)


def test_runs_that_look_like_markup_are_reported_as_they_are(tmp_path: Path) -> None:
    for name in ("[INST]", "[bold]"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "metrics.jsonl", '{"step": 1, "losses": {"mlm": 2.5}}')
        write(tmp_path / name / "scores.json", '{"[red]": 0.5}')
    runs = [str(tmp_path / name) for name in ("[INST]", "[bold]")]
    done = CliRunner().invoke(report_command, [*runs, "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.exception
    assert "[INST]" in done.stdout and "[bold]" in done.stdout and "[red]" in done.stdout


def test_each_resample_is_scored_once_for_each_model(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, seen = Classify(labels=LABELS), Counter[bytes]()
    usual = Classify.rescorer

    def counted(self: Classify, *given: Any) -> Rescorer:
        rescored = usual(self, *given)

        def count(chosen: Any) -> Any:
            seen[chosen.tobytes()] += 1
            return rescored(chosen)

        return count

    monkeypatch.setattr(Classify, "rescorer", counted)
    models = [save(tmp_path / str(seed), tiny_folder, task, seed) for seed in (1, 2)]
    report = read(*models, labelled(tmp_path / "a.tsv"), "--rounds", 40)
    assert len(seen) == 40 and set(seen.values()) == {2}
    found = report["compared"]["differences"]["accuracy"]
    second = report["compared"]["scores"]["accuracy"]
    assert found["difference"] == pytest.approx(report["scores"]["accuracy"] - second)


def test_the_interval_is_that_of_scoring_every_resample_anew(tiny_folder: Path, tmp_path: Path) -> None:
    task = Tag(labels=("O", "B-X", "I-X"))
    lines = [line for n in range(12) for line in ("the O", f"{'abcdefghijkl'[n]} B-X", "dog I-X", "cat B-X", "")]
    path = write(tmp_path / "a.conll", *lines)
    model = save(tmp_path / "model", tiny_folder, task)
    report = read(model, path, "--rounds", 60)
    from heedful.inference.load import predictor

    one = predictor(model, "cpu")
    result = one.evaluate(one.read(path))
    rng, again = np.random.default_rng(0), []
    for _ in range(60):
        chosen = rng.integers(12, size=12)
        picked = [result.data.examples[i] for i in chosen], [result.predictions[i] for i in chosen]
        again.append(one.task.score(*picked)["accuracy"])
    assert report["intervals"]["accuracy"] == pytest.approx(np.quantile(again, [0.025, 0.975]).tolist())
    assert report["scores"] == pytest.approx(dict(result.scores))


def test_wrong_tags_are_shown_with_their_words(tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Tag(labels=("X", "Y")))
    path = write(tmp_path / "a.conll", *(line for word in "abcdef" for line in (f"{word} X", "dog Y", "")))
    done = run(model, path, "--rounds", 0)
    said = [line for line in done.stdout.splitlines() if "said:" in line]
    assert said and all("dog/" in line.split("said:")[1] for line in said)


def test_columns_of_training_are_used(tiny_folder: Path, tmp_path: Path) -> None:
    task = Classify(labels=("0", "1"))
    path = write(tmp_path / "a.tsv", "label\tmine\ttext\tsaid", "9\t1\tthe cat\ta dog", "9\t0\tthe dog\ta cat")
    named = save(tmp_path / "named", tiny_folder, task, columns={"text": "said", "label": "mine"})
    plain = save(tmp_path / "plain", tiny_folder, task)
    asked = read(plain, path, "--text", "said", "--label", "mine", "--rounds", 0, "--worst", 2)
    assert read(named, path, "--rounds", 0, "--worst", 2) == asked
    assert isinstance(run(plain, path).exception, HeedfulError)


def test_two_models_are_compared_by_the_same_labels_only(tiny_folder: Path, tmp_path: Path) -> None:
    task = Classify(labels=("0", "1"))
    models = [save(tmp_path / name, tiny_folder, task, columns={"label": name}) for name in ("one", "two")]
    path = write(tmp_path / "a.tsv", "one\ttwo\ttext", "1\t0\tthe cat", "0\t0\tthe dog")
    done = run(*models, path)
    assert isinstance(done.exception, HeedfulError) and "different columns of labels" in str(done.exception)
    assert run(*models, path, "--label", "two", "--rounds", 3).exit_code == 0


@pytest.mark.parametrize("option", ["--rounds", "--worst"])
def test_negative_numbers_are_refused(option: str, tmp_path: Path) -> None:
    done = run("run", tmp_path / "a.tsv", option, -1)
    assert done.exit_code == 2 and option in done.stderr


def test_a_label_that_training_never_showed_is_told_and_evaluated(tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Classify(labels=("bad", "good")))
    path = write(tmp_path / "a.tsv", "label\ttext", "good\tthe cat", "new\ta dog", "bad\tlove")
    done = run(model, path, "--rounds", 5)
    assert done.exit_code == 0, done.exception
    assert "'new'" in done.stderr and f"{path}:3" in done.stderr and "new (not in training)" in done.stdout


def test_rows_without_a_label_are_refused_or_left_out(tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Classify(labels=("bad", "good")))
    path = write(tmp_path / "a.tsv", "label\ttext", "good\tthe cat", "\ta dog", "bad\tlove")
    assert "skip leaves such rows out" in str(run(model, path).exception)
    done = run(model, path, "--bad-rows", "skip", "--rounds", 5)
    assert done.exit_code == 0, done.exception
    assert f"1 rows that cannot be used, left out (first: {path}:3" in done.stderr and "2 examples" in done.stdout
    assert heedful.evaluate(model, path, bad_rows="skip", rounds=0).examples == 2


@pytest.mark.parametrize("name", ["wrong.csv", "wrong.tsv", "wrong.jsonl"])
def test_every_wrong_answer_is_written_with_its_place(name: str, tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Classify(labels=LABELS))
    data, output = labelled(tmp_path / "a.tsv"), tmp_path / name
    report = read(model, data, "--rounds", 0, "--errors", output)
    lines = output.read_text(encoding="utf-8").splitlines()
    columns = ["where", "text", "label", "prediction", "probability"]
    if name.endswith("jsonl"):
        rows = [json.loads(line) for line in lines]
    else:
        separator = "\t" if name.endswith("tsv") else ","
        assert lines[0].split(separator) == columns
        rows = [dict(zip(columns, line.split(separator), strict=True)) for line in lines[1:]]
    assert len(rows) == round(30 * (1 - report["scores"]["accuracy"])) and rows
    places = {f"{data}:{n + 2}": LABELS[n % 3] for n in range(30)}
    assert all(places[row["where"]] == row["label"] != row["prediction"] in LABELS for row in rows)
    assert [row["where"] for row in rows] == [place for place in places if place in {row["where"] for row in rows}]
    assert all(0 < float(row["probability"]) < 1 for row in rows)


def test_a_file_of_errors_is_not_replaced_by_chance(tiny_folder: Path, tmp_path: Path) -> None:
    model = save(tmp_path / "model", tiny_folder, Classify(labels=LABELS))
    data, output = labelled(tmp_path / "a.tsv"), write(tmp_path / "wrong.csv", "mine")
    done = run(model, data, "--rounds", 0, "--errors", output)
    assert isinstance(done.exception, HeedfulError) and "--overwrite" in str(done.exception)
    assert output.read_text(encoding="utf-8") == "mine\n"
    assert run(model, data, "--rounds", 0, "--errors", output, "--overwrite").exit_code == 0
    assert output.read_text(encoding="utf-8").startswith("where,text,label,prediction,probability")
    done = run(model, data, "--errors", tmp_path / "wrong.txt")
    assert isinstance(done.exception, HeedfulError) and ".csv" in str(done.exception)


def test_of_numbers_the_farthest_comes_first(tiny_folder: Path, tmp_path: Path) -> None:
    model, output = save(tmp_path / "model", tiny_folder, Regress()), tmp_path / "wrong.jsonl"
    read(model, write(tmp_path / "a.tsv", "label\ttext", "1\tthe cat", "9\ta dog", "3\tlove"), "--errors", output)
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [row["label"] for row in rows] == ["9", "3", "1"] and rows[0]["error"] > rows[1]["error"] > 0


def test_a_sentence_without_entities_says_so(tiny_folder: Path, tmp_path: Path) -> None:
    model, output = save(tmp_path / "model", tiny_folder, Tag(labels=("O", "B-X"))), tmp_path / "wrong.csv"
    lines = [line for word in "abcdefgh" for line in (f"{word} O", "dog O", "", f"{word} B-X", "cat B-X", "")]
    done = run(model, write(tmp_path / "a.conll", *lines), "--rounds", 0, "--errors", output)
    assert done.exit_code == 0, done.exception
    rows = output.read_text(encoding="utf-8").splitlines()[1:]
    assert rows and all("(no entities)" in row or row.count("/B-X") > 1 for row in rows)
    assert any("(no entities)" in row for row in rows)
