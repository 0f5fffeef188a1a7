"""The quickstart beside that of an older version, in turns: the minutes it takes, and the scores it ends with.

    git worktree add ../before VERSION
    python benchmarks/quickstart.py --before ../before [--rounds 2]

Each is `recipes/quickstart.sh` of its checkout, run by the code of that checkout in this environment. Needs an idle
machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from results_file import RESULTS, Table, load, write_results

from heedful.views.comparison import read_runs

HERE = Path(__file__).resolve().parent.parent
# What a run's folder holds -> the scores of it that are shown, by their names in the table.
SHOWN: Mapping[str, Mapping[str, str]] = {
    "run": {"nsp_accuracy": "next sentence", "mlm_accuracy": "hidden words"},
    "classifier-pretrained": {"accuracy": "classifier"},
    "tagger-pretrained": {"f1": "tagger"},
    "answerer-pretrained": {"exact": "answerer"},
}
NAMES = [name for scores in SHOWN.values() for name in scores.values()]


def main() -> None:
    """Run both as often as asked, and write what they took and reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the older version")
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    checkouts, busy = {"before": asked.before.resolve(), "now": HERE}, load()
    seconds: dict[str, list[float]] = {name: [] for name in checkouts}
    scores: dict[str, dict[str, float]] = {}
    for _ in range(asked.rounds):
        for name, checkout in checkouts.items():
            with tempfile.TemporaryDirectory() as scratch:
                seconds[name].append(quickstart(checkout, Path(scratch)))
                scores[name] = reached(Path(scratch) / "quickstart")
    ratios = [now / before for now, before in zip(seconds["now"], seconds["before"], strict=True)]
    write_results(
        RESULTS / "quickstart.json",
        "The quickstart",
        f"Seconds of `recipes/quickstart.sh` on {cores()}, in an environment that is installed already, and the scores "
        f"it ends with: the older version and this one in turns; rounds: {asked.rounds}",
        [Table(["version", "seconds, median", *NAMES], [row(name, seconds[name], scores[name]) for name in checkouts])],
        [
            f"Time, now / before: {statistics.median(ratios):.2f} ({min(ratios):.2f} … {max(ratios):.2f}). The scores "
            "are those of the last round.",
            f"Before is {version(checkouts['before'])}; {busy}.",
        ],
    )


def quickstart(checkout: Path, folder: Path) -> float:
    """The seconds of a checkout's quickstart, which is written to `folder`/quickstart."""
    command = folder / "heedful"  # the recipe calls it by this name
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m heedful "$@"\n')
    command.chmod(0o755)
    environment = {"PYTHONPATH": str(checkout), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    start = time.perf_counter()
    subprocess.run(
        ["sh", str(checkout / "recipes" / "quickstart.sh"), "quickstart"],
        cwd=folder,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - start


def reached(folder: Path) -> dict[str, float]:
    """The scores of the runs in a quickstart's folder, by their names in the table."""
    runs = read_runs([folder / name for name in SHOWN])
    return {
        shown: run.scores[score]
        for run, scores in zip(runs, SHOWN.values(), strict=True)
        for score, shown in scores.items()
    }


def row(name: str, seconds: list[float], scores: Mapping[str, float]) -> list[str]:
    """A row of the table."""
    return [name, f"{statistics.median(seconds):.0f}", *(f"{scores[shown]:.3f}" for shown in NAMES)]


def cores() -> str:
    """How many cores this process may use, and so those it starts."""
    count = len(os.sched_getaffinity(0))
    return "one core" if count == 1 else f"{count} cores"


def version(checkout: Path) -> str:
    """The day and the name of a checkout's commit."""
    told = ["git", "-C", str(checkout), "log", "-1", "--date=short", "--format=the code of %ad (%h)"]
    return subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
