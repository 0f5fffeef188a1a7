"""Training that is killed, stopped, starved and lied to; benchmarks/faults.py does the same at larger counts."""

from __future__ import annotations

import json
import random
import re
import signal
from pathlib import Path
from types import ModuleType

import pytest
from safetensors.torch import load_file


def test_killed_at_random_moments_it_ends_with_the_same_weights(faults: ModuleType, tmp_path: Path) -> None:
    report = faults.kills(tmp_path, 3, random.Random(1))
    assert report["kills"] > 0
    assert report["unreadable"] == 0
    assert report["repeated steps"] == 0
    assert report["equal"]


def test_every_damaged_checkpoint_is_refused_and_the_one_before_used(
    faults: ModuleType, peace: Path, tmp_path: Path
) -> None:
    report = faults.damages(tmp_path, peace, 20, random.Random(1))
    assert report == {"damaged": 20, "detected": 20, "fell back": 20, "resumed equal": 1}


def test_sigterm_stops_after_the_step_and_the_run_goes_on_from_there(
    faults: ModuleType, peace: Path, tmp_path: Path
) -> None:
    report = faults.one_signal(tmp_path, peace, signal.SIGTERM)
    assert report["exit code"] == 143
    assert len(report["stopped after"]) == 1 and report["stopped after"][0] < 40
    assert report["equal"]
    assert "it can be resumed" in (tmp_path / "SIGTERM.errors").read_text()


def test_a_second_signal_ends_it_at_once(faults: ModuleType, tmp_path: Path) -> None:
    report = faults.second_signal(tmp_path)
    assert report["exit code"] in (130, 143)
    assert report["checkpoints"] == 0


def test_when_a_checkpoint_cannot_be_written_the_old_one_is_intact(
    faults: ModuleType, peace: Path, tmp_path: Path
) -> None:
    report = faults.small_files(tmp_path, peace)
    assert report["exit code"] == 2
    assert re.search(r"cannot write.*the last checkpoint, step-000030, is sound", report["said"])
    assert (report["checkpoints kept"], report["unreadable"], report["equal"]) == (1, 0, True)


def test_too_little_memory_halves_the_micro_batches_and_keeps_the_batch(faults: ModuleType, tmp_path: Path) -> None:
    options = ("--width", "8000", "--batch", "2500", "--steps", "2", "--dropout", "0")
    plenty, little = tmp_path / "plenty", tmp_path / "little"
    assert faults.train(plenty, *options).returncode == 0
    done = faults.train(little, *options, "--memory", "400000000")
    assert done.returncode == 0, done.stderr
    state, whole = (json.loads((run / "checkpoints/step-000002/state.json").read_text()) for run in (little, plenty))
    assert state["accumulate"] >= 2 and whole["accumulate"] == 1
    assert "micro-batches of half the size" in done.stdout and "memory: about" in done.stdout
    assert "half the size" in (little / "metrics.jsonl").read_text()
    assert state["tokens"] == whole["tokens"]
    ours, theirs = (load_file(run / "checkpoints/step-000002/weights/model.safetensors") for run in (little, plenty))
    for name, weight in ours.items():
        assert (weight - theirs[name]).norm() <= 1e-3 * theirs[name].norm() + 1e-6, name


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux: to limit the address space")
def test_an_example_that_never_fits_is_a_clear_error(faults: ModuleType, tmp_path: Path) -> None:
    done = faults.train(tmp_path / "run", "--width", "4000000", "--batch", "2", "--memory", "1000000000")
    assert done.returncode == 2, done.stderr
    assert "memory" in done.stderr
