"""Runs of every kind in one process, in several, and in slices over several: the loss of each step, to be compared.

    python benchmarks/sliced_runs.py RUNS FOLDER [shard] [resume]      what each process of a run does

RUNS is a JSON file of runs by their names, each with the `call` of heedful that it is, its `settings`, and perhaps
`of_rank_1`, settings that rank 1 has instead, and `dtype`, what it computes in if not float32; FOLDER gets a folder for
each of them, and `losses.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

import heedful
from heedful.errors import HeedfulError
from heedful.training.events import Progress

PATIENCE = 1800  # seconds after which a process counts as hanging
LOSSES = "losses.json"
# The number of a step and its loss, one after the other; or, of a run that is refused, what it says.
Losses = list[tuple[int, float]] | str


def trained(runs: Mapping[str, Any], folder: Path, ranks: int, *options: str) -> dict[str, Losses]:
    """The losses of each run, carried out below `folder` in so many processes; what is finished is not repeated."""
    if not (folder / LOSSES).exists():
        if "resume" not in options:
            shutil.rmtree(folder, ignore_errors=True)
        _train(runs, folder, ranks, *options)
    return {name: _losses(found) for name, found in json.loads((folder / LOSSES).read_text()).items()}


def _train(runs: Mapping[str, Any], folder: Path, ranks: int, *options: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "runs.json"
    file.write_text(json.dumps(runs, default=str))
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    command = [sys.executable, *launcher, __file__, str(file), str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(done.stderr)


def gone_on(runs: Mapping[str, Any], source: Path, ranks: int, *options: str) -> dict[str, Losses]:
    """The losses of copies of the runs in `source` that lose their last checkpoint and go on from the one before."""
    folder = source.with_name("-".join([source.name, "on", str(ranks), *options]))
    if not (folder / LOSSES).exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(LOSSES))
        lose_the_end(folder)
    return trained(runs, folder, ranks, "resume", *options)


def lose_the_end(folder: Path) -> None:
    """Take the finished model and the last checkpoint from all runs below a folder."""
    for checkpoints in folder.rglob("checkpoints"):
        shutil.rmtree(max(checkpoints.glob("step-*")))
        shutil.rmtree(checkpoints.parent / "model")


def difference(found: Losses, expected: Losses) -> float:
    """The largest difference of a step's loss; infinite where a step is missing, or there is none."""
    if isinstance(found, str) or isinstance(expected, str) or not found:
        return float("inf")
    first = min(step for step, _ in found)
    same = [(step, loss) for step, loss in expected if step >= first]
    if [step for step, _ in same] != [step for step, _ in found]:
        return float("inf")
    return max(abs(a - b) for (_, a), (_, b) in zip(found, same, strict=True))


def _losses(found: Any) -> Losses:
    return found if isinstance(found, str) else [(step, loss) for step, loss in found]


def carried_out(run: Mapping[str, Any], output: Path, *options: str) -> Losses:
    """The losses of a run in this process, and in those that torchrun has started beside it."""
    losses: list[tuple[int, float]] = []

    def hear(event: Any) -> None:
        if isinstance(event, Progress):
            losses.append((event.step, sum(event.losses.values())))

    torch.set_default_dtype(getattr(torch, run.get("dtype", "float32")))
    own = run.get("of_rank_1", {}) if os.environ.get("RANK") == "1" else {}
    try:
        getattr(heedful, run["call"])(
            **{**run["settings"], **own}, output=str(output), shard="shard" in options, resume="resume" in options,
            on_event=hear, progress=False,
        )  # fmt: skip
    except HeedfulError as error:
        return error.what
    return losses


def main() -> None:
    """One process of all runs."""
    file, folder, *options = sys.argv[1:]
    runs = json.loads(Path(file).read_text())
    found = {name: carried_out(run, Path(folder) / name, *options) for name, run in runs.items()}
    if os.environ.get("RANK", "0") == "0":
        (Path(folder) / LOSSES).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
