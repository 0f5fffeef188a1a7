"""What training survives: killed, told to stop, its disk full, its checkpoints damaged, its loss NaN, a rank lost.

    python benchmarks/faults.py                         the long run; writes docs/results/faults.json
    python benchmarks/faults.py --kills 3 --damages 20 --output faults.json

Each experiment trains a small network (tests/faults/trainee.py) in processes of its own, does it harm, resumes it, and
compares the sha256 of the final weights with those of a run that was left in peace.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
from heedful.training.checkpoint import Checkpoints, verify

ROOT = Path(__file__).resolve().parents[1]
TRAINEE = ROOT / "tests" / "faults" / "trainee.py"
PATIENCE = 300  # seconds after which a process counts as hanging
LARGE = ("--width", "20000", "--checkpoint-every", "2")  # a good part of its time goes into writing checkpoints


def train(run: Path, *options: str, ranks: int = 1, restarts: int = 0) -> subprocess.CompletedProcess[str]:
    """Train in `run` to the end of the process."""
    return subprocess.run(
        command(run, *options, ranks=ranks, restarts=restarts), capture_output=True, text=True, timeout=PATIENCE
    )


def command(run: Path, *options: str, ranks: int = 1, restarts: int = 0) -> list[str]:
    """The command line that trains in `run`, under torchrun if there are several ranks."""
    launcher = [sys.executable]
    if ranks > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        launcher += [f"--max-restarts={restarts}", "--monitor-interval=0.1"]
    return [*launcher, str(TRAINEE), str(run), *options]


@contextmanager
def training(run: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has taken its first step in `run`; it is gone after the block."""
    said = run.with_name(f"{run.name}.events")
    with said.open("wb") as out, said.with_suffix(".errors").open("wb") as errors:
        process = subprocess.Popen(command(run, *options), stdout=out, stderr=errors)
        try:
            until = time.monotonic() + PATIENCE
            while b"Progress" not in said.read_bytes() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            yield process
        finally:
            process.kill()
            process.wait()


def fingerprint(run: Path) -> str:
    """The sha256 of the weights in the newest checkpoint."""
    kept = Checkpoints(run / "checkpoints")
    weights = kept.path(kept.steps()[-1]) / "weights" / "model.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def unreadable(run: Path) -> int:
    """How many checkpoints that stand under their final name are not sound."""
    kept = Checkpoints(run / "checkpoints")
    return sum(_refused(partial(verify, kept.path(step))) for step in kept.steps())


def repeated_steps(run: Path) -> int:
    """How many lines of the journal tell of losses at a step that was told before."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return sum(n - 1 for n in Counter(line["step"] for line in lines if "losses" in line).values())


def kills(folder: Path, count: int, rng: random.Random) -> dict[str, Any]:
    """kill -9 at random moments; "while writing" counts those that left a half-written checkpoint behind."""
    options = (*LARGE, "--steps", str(40 + 20 * count))
    peace, run = folder / "peace", folder / "killed"
    train(peace, *options)
    wall = json.loads((peace / "timing.json").read_text())["wall"]
    report = Counter({"kills": 0, "while writing": 0, "unreadable": 0})
    for _ in range(count):
        with training(run, *options, "--resume") as process:
            time.sleep(rng.uniform(0, wall / count))
            report["kills"] += process.poll() is None
            process.kill()
        report["while writing"] += any((run / "checkpoints").glob(".step-*.tmp"))
        report["unreadable"] += unreadable(run)
    train(run, *options, "--resume")
    return {**report, "repeated steps": repeated_steps(run), "equal": fingerprint(run) == fingerprint(peace)}


def damages(folder: Path, peace: Path, count: int, rng: random.Random) -> dict[str, Any]:
    """Damage the newest checkpoint in many ways; each time it must be refused and the one before it chosen."""
    report = Counter({"damaged": 0, "detected": 0, "fell back": 0})
    for number in range(count):
        run = folder / f"damaged-{number}"
        shutil.copytree(peace, run)
        kept = Checkpoints(run / "checkpoints")
        before, newest = kept.steps()
        rng.choice(DAMAGES)(rng.choice([p for p in kept.path(newest).rglob("*") if p.is_file()]), rng)
        step, found = kept.newest_sound()
        report["damaged"] += 1
        report["detected"] += [one.name for one in found] == [kept.path(newest).name]
        report["fell back"] += step == before
        if number == 0:
            report["resumed equal"] = int(
                train(run, "--resume").returncode == 0 and fingerprint(run) == fingerprint(peace)
            )
        shutil.rmtree(run)
    return dict(report)


def _flip_a_bit(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _cut_short(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def _append(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(1 + rng.randrange(100)))


def _overwrite_a_block(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content))
    content[start : start + 64] = rng.randbytes(len(content[start : start + 64]))
    path.write_bytes(content)


def _take_from_the_one_before(path: Path, rng: random.Random) -> None:
    newest = next(parent for parent in path.parents if parent.parent.name == "checkpoints")
    before = min(newest.parent.glob("step-*"))
    # A manifest from elsewhere comes alone; it fits no file here.
    shutil.copy(before / path.relative_to(newest), path)


def _remove(path: Path, rng: random.Random) -> None:
    path.unlink()


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    _flip_a_bit,
    _cut_short,
    _append,
    _overwrite_a_block,
    _take_from_the_one_before,
    _remove,
)


def one_signal(folder: Path, peace: Path, number: signal.Signals) -> dict[str, Any]:
    """The run stops after the step in hand, and ends with the same weights when it is gone on with."""
    run = folder / number.name
    options = ("--checkpoint-every", "0", "--pause", "0.05")
    with training(run, *options) as process:
        process.send_signal(number)
        code = process.wait(PATIENCE)
    stopped = Checkpoints(run / "checkpoints").steps()
    train(run, *options, "--resume")
    return {"exit code": code, "stopped after": stopped, "equal": fingerprint(run) == fingerprint(peace)}


def second_signal(folder: Path) -> dict[str, Any]:
    """Two signals in one step: the process ends there and then, without a checkpoint."""
    with training(folder / "run", "--pause", "0.01", "--steps", "1000000", "--checkpoint-every", "0") as process:
        process.send_signal(signal.SIGSTOP)  # so that both signals are there before the next step
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        code = process.wait(PATIENCE)
    return {"exit code": code, "checkpoints": len(Checkpoints(folder / "run" / "checkpoints").steps())}


def small_files(folder: Path, peace: Path) -> dict[str, Any]:
    """Writing fails by a limit on the size of files: the old checkpoint stays, and the run can be gone on with."""
    run = folder / "run"
    shutil.copytree(peace, run)
    kept = Checkpoints(run / "checkpoints")
    shutil.rmtree(kept.path(kept.steps()[-1]))
    failed = train(run, "--resume", "--file-size", "8000")
    return _after_failure(run, failed, lambda: train(run, "--resume"), peace)


def full_disk(folder: Path) -> dict[str, Any]:
    """A tmpfs of 64 MB with room for two checkpoints and not for a third (needs the right to mount)."""
    peace, disk = folder / "peace", folder / "disk"
    options = ("--width", "60000", "--checkpoint-every", "5", "--steps", "20")
    train(peace, *options)
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], capture_output=True).returncode:
        return {"skipped": "mounting a tmpfs is not allowed here"}
    try:
        failed = train(disk / "run", *options)

        def again() -> subprocess.CompletedProcess[str]:
            subprocess.run(["mount", "-o", "remount,size=128m", str(disk)], check=True)
            return train(disk / "run", *options, "--resume")

        return _after_failure(disk / "run", failed, again, peace)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _after_failure(
    run: Path,
    failed: subprocess.CompletedProcess[str],
    again: Callable[[], subprocess.CompletedProcess[str]],
    peace: Path,
) -> dict[str, Any]:
    kept, broken = Checkpoints(run / "checkpoints").steps(), unreadable(run)
    again()
    return {
        "exit code": failed.returncode,
        "said": failed.stderr.strip().splitlines()[0],
        "checkpoints kept": len(kept),
        "unreadable": broken,
        "equal": fingerprint(run) == fingerprint(peace),
    }


def not_a_number(folder: Path) -> dict[str, Any]:
    """Two NaN losses are skipped; a third in a row ends the run and names the last good checkpoint."""
    few = train(folder / "few", "--nan", "15", "16")
    lines = [json.loads(line) for line in (folder / "few" / "metrics.jsonl").read_text().splitlines()]
    many = train(folder / "many", "--nan", "15", "1000")
    return {
        "few": {"exit code": few.returncode, "skipped": lines[-1]["skipped"]},
        "many": {"exit code": many.returncode, "said": many.stderr.strip().splitlines()[0]},
    }


def lost_rank(folder: Path, *options: str) -> dict[str, Any]:
    """One of two ranks kills itself; torchrun restarts both, and they go on from the last checkpoint."""
    train(folder / "peace", *options, ranks=2)
    done = train(folder / "lost", *options, "--die", "1", "25", ranks=2, restarts=1)
    resumed = [line for line in done.stdout.splitlines() if "resumed from" in line]
    return {
        "exit code": done.returncode,
        "resumed": json.loads(resumed[0])["text"] if resumed else None,
        "equal": done.returncode == 0 and fingerprint(folder / "lost") == fingerprint(folder / "peace"),
    }


def _refused(call: Callable[[], None]) -> bool:
    try:
        call()
    except HeedfulError:
        return True
    return False


def main() -> None:
    """Run every experiment and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "results" / "faults.json")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    experiments: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
        "kill -9": lambda folder, peace: kills(folder, options.kills, rng),
        "damaged checkpoints": lambda folder, peace: damages(folder, peace, options.damages, rng),
        "SIGTERM": lambda folder, peace: one_signal(folder, peace, signal.SIGTERM),
        "SIGINT": lambda folder, peace: one_signal(folder, peace, signal.SIGINT),
        "second signal": lambda folder, peace: second_signal(folder),
        "file size limit": small_files,
        "full disk": lambda folder, peace: full_disk(folder),
        "NaN": lambda folder, peace: not_a_number(folder),
        "lost rank": lambda folder, peace: lost_rank(folder),
    }
    counts = f"--kills {options.kills} --damages {options.damages} --seed {options.seed}"
    report: dict[str, Any] = {
        "what": "faults done to small training runs, and whether they ended with the weights of a run left in peace",
        "command": f"python benchmarks/faults.py {counts}",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    with tempfile.TemporaryDirectory() as folder:
        peace = Path(folder) / "peace"
        train(peace)
        for number, (name, experiment) in enumerate(experiments.items()):
            place = Path(folder) / str(number)
            place.mkdir()
            report[name] = experiment(place, peace)
            shutil.rmtree(place)
            print(f"{name}: {json.dumps(report[name])}", flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
