"""kill -9 during real runs: pretraining, fine-tuning and translation training, half of the kills inside a save.

    python benchmarks/kills.py                          70 kills each; writes docs/results/kills.json
    python benchmarks/kills.py --kills 2 --only pretraining --output kills.json

Each run is started by the command line on the toy world, killed, gone on with by --resume, and killed again. Every
second kill waits until a checkpoint is being written. After each kill all checkpoints under their final names must be
sound, and the weights at the end must be those of a run that was left in peace, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from results_file import RESULTS, Table, write_results

from heedful.errors import HeedfulError
from heedful.training.checkpoint import Checkpoints, verify

PATIENCE = 600  # seconds after which a process counts as hanging
MATERIAL = (
    "toy world --size small",
    "tokenizer train world/documents.en.txt -o tokenizer --vocab-size 400",
    "corpus build world/documents.en.txt -o corpus --tokenizer tokenizer",
    "new model --tokenizer tokenizer --size tiny",
)
# Each kill comes within a few steps of the start, so a run of so many steps for each kill is not over too soon.
STEPS = 8
KINDS: Mapping[str, str] = {
    "pretraining": "pretrain corpus -o {run} --size tiny --phases 32:100% --batch-size 8 --budget {steps}steps"
    " --eval-every 0 --checkpoint-every 1 --precision float32",
    "fine-tuning": "finetune classify --model model --train world/sentiment.en/train.tsv -o {run} --batch-size 8"
    " --budget {steps}steps --checkpoint-every 1 --precision float32",
    "translation": "translate train --train world/parallel.en-zh/train.tsv --source en --target zh --size tiny"
    " --vocab-size 500 --batch-size 256 --budget {steps}steps --checkpoint-every 1 --precision float32 -o {run}",
}


def heedful(arguments: str, folder: Path) -> list[str]:
    """A command of the command line in a folder, carried out."""
    command = [sys.executable, "-m", "heedful", *arguments.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        sys.exit(f"{arguments}\n{done.stderr}")
    return command


def prepare(folder: Path) -> None:
    """The toy world, and what runs start from."""
    for arguments in MATERIAL:
        heedful(arguments, folder)


def fingerprint(run: Path) -> str:
    """The sha256 of the finished model's weights."""
    return hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()


def killed(command: Sequence[str], folder: Path, run: Path, in_save: bool, rng: random.Random) -> tuple[bool, bool]:
    """Start the command, kill it at its moment; whether it was still there, and whether it was writing a checkpoint."""
    kept = Checkpoints(run / "checkpoints")
    before = kept.steps()[-1:]

    def begun() -> bool:
        return kept.steps()[-1:] != before

    def saving() -> bool:
        return begun() and any(kept.folder.glob(".step-*.tmp"))

    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _wait(saving if in_save else begun, process)
        time.sleep(rng.uniform(0, 0.02 if in_save else 0.3))
        there = process.poll() is None
        process.kill()
    return there, any(kept.folder.glob(".step-*.tmp"))


def _wait(until: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end and not until():
        time.sleep(0.001)


def unreadable(run: Path) -> int:
    """How many checkpoints that stand under their final name are not sound."""
    kept, found = Checkpoints(run / "checkpoints"), 0
    for step in kept.steps():
        try:
            verify(kept.path(step))
        except HeedfulError:
            found += 1
    return found


def kills(folder: Path, kind: str, count: int, rng: random.Random) -> dict[str, Any]:
    """Kill a run so often, then let it end, and compare it with one left in peace."""
    arguments = {
        name: KINDS[kind].format(run=f"{kind}-{name}", steps=STEPS * (count + 1)) for name in ("peace", "killed")
    }
    heedful(arguments["peace"], folder)
    run = folder / f"{kind}-killed"
    command = [sys.executable, "-m", "heedful", *arguments["killed"].split(), "--resume"]
    report = {"kills": 0, "while a checkpoint was written": 0, "unreadable checkpoints": 0}
    for number in range(count):
        there, writing = killed(command, folder, run, number % 2 == 0, rng)
        report["kills"] += there
        report["while a checkpoint was written"] += there and writing
        report["unreadable checkpoints"] += unreadable(run)
    heedful(f"{arguments['killed']} --resume", folder)
    return {
        **report,
        "weights at the end": "equal" if fingerprint(run) == fingerprint(folder / f"{kind}-peace") else "OTHER",
    }


def main() -> None:
    """Kill all kinds of runs and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=70)
    parser.add_argument("--only", choices=[*KINDS], action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "kills.json")
    options = parser.parse_args()
    rng, rows = random.Random(options.seed), []
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for kind in options.only or KINDS:
            report = kills(Path(name), kind, options.kills, rng)
            print(kind, report, flush=True)
            rows.append([kind, *report.values()])
    write_results(
        options.output,
        "kill -9 during real runs",
        "killed at random moments and inside saves, gone on with, and compared with runs left in peace",
        [Table(["run", *report], rows)],
        arguments=f"--kills {options.kills} --seed {options.seed}",
    )


if __name__ == "__main__":
    main()
