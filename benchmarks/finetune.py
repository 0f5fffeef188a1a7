"""Fine-tuning on real data: scores, times, and the reference trainer beside them.

    python benchmarks/finetune.py EXPERIMENT… [--work DIR] [--reference SCRIPT]

EXPERIMENT is one of those in finetune_experiments.py, or transfer, which is transfer.py. Every run of the others is
one `heedful finetune` and one `heedful evaluate`; what came out is written to docs/results after each, and a run that
is there already is not done again. With --reference SCRIPT, which fine-tunes by Hugging Face's Trainer and prints its
scores and seconds, the experiments that ask for it run it alternately with ours, for the ratio of the times; it too is
run only where its scores are missing.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import transfer
from finetune_experiments import EXPERIMENTS, Experiment, Run, expand
from results_file import RESULTS, Table, write_results
from transfer_tasks import tasks_named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="+", choices=sorted([*EXPERIMENTS, "transfer"]))
    parser.add_argument("--work", type=Path, help="keep the runs here")
    parser.add_argument("--reference", help="the script of the reference trainer")
    parser.add_argument("--only", default="", help="only runs whose name holds this; of transfer this task")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name in a.experiments:
            work = a.work or Path(scratch)
            if name == "transfer":
                transfer.measure(tasks_named([a.only] if a.only else []), work=work)
            else:
                experiment(EXPERIMENTS[name], work, a.reference, a.only)


def experiment(asked: Experiment, work: Path, reference: str | None, only: str) -> None:
    """Do the runs that are not done yet, and write the results after each."""
    path = RESULTS / f"finetune_{asked.name}.json"
    done: dict[str, dict[str, Any]] = {}
    if path.exists():
        done = {row["run"]: row for row in json.loads(path.read_text(encoding="utf-8"))["runs"]}
    wanted = [run for run in asked.runs if only in run.name]
    for run in wanted:  # what is missing is told before hours have passed
        if run.name not in done:
            expand((*run.arguments, run.dev), work / asked.name)
    for run in wanted:
        if run.name not in done:
            _add(asked, done, ours(run, work / asked.name), path)
        if reference and run.reference and "reference" not in done[run.name]:
            _add(asked, done, {**done[run.name], **theirs(run, reference)}, path)


def _add(asked: Experiment, done: dict[str, dict[str, Any]], row: dict[str, Any], path: Path) -> None:
    done[row["run"]] = row
    _write(asked, done, path)
    print(row["run"], {k: v for k, v in row.items() if k not in ("run", "command")}, flush=True)


def ours(run: Run, work: Path) -> dict[str, Any]:
    """Train and evaluate; scores with their intervals, and the seconds of training without evaluation."""
    folder = work / run.name.replace(" ", "-").replace("/", "-")
    exact = () if "--precision" in run.arguments else ("--precision", "float32")
    given = (*expand(run.arguments, work), *exact)
    command = ["finetune", *given, "-o", str(folder), "--checkpoint-every", "0", "--resume"]
    _heedful(command)
    timing = json.loads((folder / "timing.json").read_text(encoding="utf-8"))
    evaluated = [str(folder), *expand((run.dev,), work), *run.columns, "--json", "--worst", "0"]
    report = json.loads(_heedful(["evaluate", *evaluated]))
    evaluation = timing["parts"].get("evaluation", 0.0)
    return {
        "run": run.name,
        "scores": {name: _rounded(value) for name, value in report["scores"].items()},
        "intervals": {name: [_rounded(x) for x in both] for name, both in report["intervals"].items()},
        "seconds": round(timing["wall"] - evaluation, 1),
        "threads": int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1),
        "command": "heedful finetune " + " ".join(run.arguments),
    }


def theirs(run: Run, script: str) -> dict[str, Any]:
    """The reference trainer on the same files: its scores and seconds."""
    assert run.reference is not None
    done = subprocess.run(
        [sys.executable, script, *expand(run.reference, Path())], capture_output=True, text=True, check=True
    )
    line = done.stdout.strip().splitlines()[-1]
    scores = ast.literal_eval(line[: line.index("}") + 1])
    seconds = re.search(r"train ([\d.]+) s", line)
    assert seconds is not None
    return {
        "reference": {name.removeprefix("eval_"): value for name, value in scores.items()},
        "reference seconds": float(seconds[1]),
    }


def _heedful(arguments: Sequence[str]) -> str:
    done = subprocess.run([sys.executable, "-m", "heedful", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"heedful {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def _write(asked: Experiment, done: dict[str, dict[str, Any]], path: Path) -> None:
    rows = []
    compared = any("reference" in one for one in done.values())
    for run in asked.runs:
        found = done.get(run.name)
        if found is None:
            continue
        scores = ", ".join(f"{m} {_shown(found, m)}" for m in run.metrics)
        row = [run.name, scores, found["seconds"], found["threads"]]
        if compared:
            theirs_scores = found.get("reference", {})
            seconds = found.get("reference seconds")
            row += [
                ", ".join(f"{m} {theirs_scores[m]:.4f}" for m in run.metrics if m in theirs_scores),
                seconds or "",
                f"{found['seconds'] / seconds:.2f}×" if seconds else "",
            ]
        rows.append(row)
    columns = ["run", "scores (95 % bootstrap interval)", "seconds", "threads"]
    if compared:
        columns += ["reference", "its seconds", "time, ours / its"]
    tables = [Table(columns, rows)]
    means = _means(asked, done)
    if means:
        tables.append(Table(["runs", "seeds", "metric", "mean", "spread"], means))
    arguments = asked.name + (" --reference SCRIPT" if compared else "")
    runs = [done[run.name] for run in asked.runs if run.name in done]
    write_results(path, asked.title, asked.what, tables, asked.remarks, arguments, {"runs": runs})


def _rounded(value: float | None) -> float | None:
    """Four digits; a score that these predictions leave undefined is null."""
    return None if value is None or math.isnan(value) else round(value, 4)


def _shown(found: dict[str, Any], metric: str) -> str:
    score, both = found["scores"][metric], found["intervals"].get(metric)
    if score is None:
        return "undefined"
    return f"{score:.4f}" + (f" ({both[0]:.3f} to {both[1]:.3f})" if both and None not in both else "")


def _means(asked: Experiment, done: dict[str, dict[str, Any]]) -> list[list[Any]]:
    """Mean and spread of runs that differ in the seed alone."""
    groups: dict[tuple[str, str], list[float]] = {}
    for run in asked.runs:
        if run.name in done and " seed " in run.name:
            for metric in run.metrics:
                key = (run.name.partition(" seed ")[0], metric)
                score = done[run.name]["scores"][metric]
                groups.setdefault(key, []).extend([] if score is None else [score])
    return [
        [name, len(values), metric, f"{statistics.mean(values):.4f}", f"{statistics.stdev(values):.4f}"]
        for (name, metric), values in groups.items()
        if len(values) > 1
    ]


if __name__ == "__main__":
    main()
