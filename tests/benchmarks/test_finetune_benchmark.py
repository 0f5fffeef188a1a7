"""benchmarks/finetune.py: what it writes, what a kill leaves, and what it says when something is missing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Script = Callable[[str], ModuleType]


class Bench:
    """finetune.py with training replaced: every run takes no time, and says what was asked of it."""

    def __init__(self, script: Script, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module, self.experiments = script("finetune"), script("finetune_experiments")
        self.results, self.asked = results, []
        monkeypatch.setattr(self.module, "RESULTS", results)
        monkeypatch.setattr(self.module, "expand", lambda arguments, work: list(arguments))
        monkeypatch.setattr(self.module, "ours", self._ours)
        monkeypatch.setattr(self.module, "theirs", self._theirs)
        monkeypatch.setattr("sys.argv", ["benchmarks/finetune.py"])

    def _ours(self, run: Any, work: Path) -> dict[str, Any]:
        self.asked.append(run.name)
        scores = dict.fromkeys(run.metrics, 0.5 + len(self.asked) / 100)
        told = {"seconds": 30.0, "threads": 2, "command": "heedful finetune …"}
        return {"run": run.name, "scores": scores, "intervals": {}, **told}

    def _theirs(self, run: Any, script: str) -> dict[str, Any]:
        self.asked.append(f"{run.name} by {script}")
        return {"reference": dict.fromkeys(run.metrics, 0.25), "reference seconds": 60.0}

    def run(self, name: str, reference: str | None = None, only: str = "") -> dict[str, Any]:
        self.module.experiment(self.experiments.EXPERIMENTS[name], self.results, reference, only)
        return self.written(name)

    def written(self, name: str) -> dict[str, Any]:
        return json.loads((self.results / f"finetune_{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def bench(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(script, tmp_path, monkeypatch)


def test_the_command_is_the_whole_one(bench: Bench) -> None:
    assert bench.run("conll")["command"] == "python benchmarks/finetune.py conll"
    assert (
        bench.run("glue", reference="trainer.py")["command"] == "python benchmarks/finetune.py glue --reference SCRIPT"
    )
    again = bench.run("glue")  # what was compared stays compared
    assert again["command"].endswith("--reference SCRIPT")


def test_no_run_is_done_twice_and_a_reference_that_is_missing_is_added(bench: Bench) -> None:
    first = bench.run("glue", only="MRPC seed")
    assert bench.asked == [f"MRPC seed {n}" for n in (1, 2, 3)] and len(first["tables"][0]["columns"]) == 4
    bench.asked.clear()
    second = bench.run("glue", "trainer.py", only="MRPC seed")
    assert bench.asked == ["MRPC seed 1 by trainer.py"]
    columns, rows = second["tables"][0]["columns"], second["tables"][0]["rows"]
    assert [dict(zip(columns, row, strict=True))["time, ours / its"] for row in rows] == ["0.50×", "", ""]
    bench.asked.clear()
    assert bench.run("glue", "trainer.py", only="MRPC seed") == second and not bench.asked


def test_a_kill_while_writing_loses_no_row(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bench.run("conll", only="linear")

    def killed(*_: Any, **__: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("json.dumps", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.run("conll")
    assert bench.written("conll") == before and [row["run"] for row in before["runs"]] == ["linear"]
    assert [row["run"] for row in bench.run("conll")["runs"]] == ["linear", "BiLSTM-CRF"]
    assert [file.name for file in bench.results.iterdir()] == ["finetune_conll.json"]


def test_the_file_is_never_there_without_its_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append(json.loads(self.read_text(encoding="utf-8")))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    bench.run("conll")
    assert [len(found["runs"]) for found in seen] == [1, 2]


def test_the_page_shows_the_tables_and_not_the_raw_runs(bench: Bench, script: Script) -> None:
    bench.run("glue", only="MRPC")
    shown = script("report").section(bench.results / "finetune_glue.json")
    assert "| MRPC seed 1 | accuracy 0.5100, f1 0.5100 | 30 |" in shown and "Runs:" not in shown
    assert "RTE accuracy 0.5596" in shown


def test_a_score_that_is_undefined_is_said_to_be_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def undefined(run: Any, work: Path) -> dict[str, Any]:
        scores = dict.fromkeys(run.metrics, bench.module._rounded(float("nan")))
        intervals = {name: [None, None] for name in run.metrics}
        told = {"seconds": 1.0, "threads": 1, "command": ""}
        return {"run": run.name, "scores": scores, "intervals": intervals, **told}

    monkeypatch.setattr(bench.module, "ours", undefined)
    found = bench.run("glue", only="STS-B")
    assert found["tables"][0]["rows"] == [["STS-B", "pearson undefined, spearman undefined", 1.0, 1]]


@pytest.mark.parametrize(
    ("placeholder", "variable", "named"),
    [
        ("{en}", "HEEDFUL_EN", "recipes/pretrain_enwiki.sh"),
        ("{zh}", "HEEDFUL_ZH", "recipes/pretrain_zhwiki.sh"),
        ("{data}/x.tsv", "HEEDFUL_DATA", "the data sets"),
    ],
)
def test_a_folder_that_is_not_given_is_asked_for(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, placeholder: str, variable: str, named: str
) -> None:
    expand = script("finetune_experiments").expand
    for value, told in (("", "not set"), ("nowhere", "nowhere")):
        monkeypatch.setenv(variable, value)
        with pytest.raises(SystemExit) as stopped:
            expand((placeholder,), tmp_path)
        assert f"${variable} is {told}" in str(stopped.value) and named in str(stopped.value)
    monkeypatch.setenv(variable, str(tmp_path))
    assert expand((placeholder, "--lr", "1e-4"), tmp_path)[0].startswith(str(tmp_path))


def squad(name: str) -> dict[str, Any]:
    """Two articles of ten paragraphs, each with its question."""
    return {"data": [{"title": title, "paragraphs": [paragraph(title, n) for n in range(10)]} for title in (name, "B")]}


def paragraph(title: str, number: int) -> dict[str, Any]:
    context = f"{title} {number} likes tea and lives in town {number}."
    answers = [{"text": f"town {number}", "answer_start": context.index("town")}]
    return {"context": context, "qas": [{"id": f"{title}-{number}", "question": "Where?", "answers": answers}]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in ("squad1.1/practice_train.json.gz", "squad1.1/practice_dev.json", "cmrc2018/trial.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        raw = json.dumps(squad(name)).encode()
        (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return folder


def test_made_data_is_there_as_a_whole_or_not_at_all(
    script: Script, monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path
) -> None:
    experiments, made = script("finetune_experiments"), tmp_path / "work" / "made"
    monkeypatch.setenv("HEEDFUL_DATA", str(data))
    module = script("finetune_data")
    write, count = module.write_squad, 0

    def killed(articles: Any, path: Path) -> Path:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return write(articles, path)

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_squad", killed)
        with pytest.raises(KeyboardInterrupt):
            experiments.expand(("{made}/squad_train.json",), tmp_path / "work")
    assert not made.exists()
    used = {
        argument
        for asked in experiments.EXPERIMENTS.values()
        for run in asked.runs
        for argument in (*run.arguments, run.dev)
        if "{made}" in argument
    }
    for path in map(Path, experiments.expand(sorted(used), tmp_path / "work")):
        assert json.loads(path.read_text(encoding="utf-8"))["data"], path
    assert len(used) == len(list(made.iterdir())) == 6
