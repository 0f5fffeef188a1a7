"""Checkpoints, the journal, the clock, the folder's lock, and micro-batches made ahead."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.distributed import HashStore

from heedful.checkpoints.own_weights import fill_tensors, weights_of
from heedful.errors import HeedfulError
from heedful.training.checkpoint import Checkpoints, verify
from heedful.training.distributed import World
from heedful.training.journal import Journal
from heedful.training.prefetch import Prefetch
from heedful.training.rendezvous import rendezvous
from heedful.training.run_folder import RunFolder
from heedful.training.timing import PARTS, Clock
from heedful.training.training_config import TrainingConfig

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(1.5)}


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    path = kept.write(12, TENSORS, {"c": torch.randn(4)}, {"step": 12})
    assert path.name == "step-000012" and kept.steps() == [12]
    verify(path)
    empty = {name: torch.zeros_like(tensor) for name, tensor in TENSORS.items()}
    fill_tensors(empty, path / "weights")
    assert all(torch.equal(empty[name], tensor) for name, tensor in TENSORS.items())


def test_another_models_checkpoint_is_refused(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path).write(1, TENSORS, TENSORS, {})
    with pytest.raises(HeedfulError, match=r"another model.*b"):
        fill_tensors({"a": torch.zeros(2, 3)}, path / "weights")
    with pytest.raises(HeedfulError, match=r"\(2, 3\), not \(3, 2\)"):
        fill_tensors({"a": torch.zeros(3, 2), "b": torch.zeros(())}, path / "weights")


def test_the_last_and_the_best_are_kept_and_left_overs_swept(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    for step in (1, 2, 3, 4, 5):
        kept.write(step, TENSORS, TENSORS, {})
    (tmp_path / ".step-000006.ab.tmp").mkdir()
    kept.keep(last=2, best=2)
    kept.sweep()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000002", "step-000004", "step-000005"]


def test_a_process_killed_while_it_removes_a_checkpoint_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Checkpoints(tmp_path)
    for step in (1, 2):
        kept.write(step, TENSORS, TENSORS, {})

    def killed(path: Path, ignore_errors: bool) -> None:
        (path / "state.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        kept.keep(last=1, best=None)
    assert kept.steps() == [2] and kept.newest_sound() == (2, [])
    monkeypatch.undo()
    kept.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["step-000002"]


def test_tied_parameters_are_kept_once(trainee: ModuleType) -> None:
    model = trainee.Net(16, 0.0)
    model.twin = model.fit
    assert not any("twin" in name for name in weights_of(model)) and "seen" in weights_of(model)


def test_the_journal_is_cut_at_the_step_it_is_resumed_at(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    journal = Journal(path, 0)
    for step in (5, 10, 15):
        journal.write(step, {"losses": {"x": float("nan")}})
    journal.close()
    with path.open("a") as file:
        file.write('{"step": 16, "los')
    Journal(path, 10).close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [{"step": 5, "losses": {"x": None}}, {"step": 10, "losses": {"x": None}}]


def test_what_json_cannot_say_becomes_null_however_deep_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    journal = Journal(path, 0)
    nan, infinite = float("nan"), float("inf")
    journal.write(1, {"examples": [{"guesses": [["cat", nan], ("dog", 0.25)]}], "norms": (infinite, 1)})
    journal.close()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    told = json.loads(path.read_text(), parse_constant=refuse)
    assert told == {"step": 1, "examples": [{"guesses": [["cat", None], ["dog", 0.25]]}], "norms": [None, 1]}


def test_the_parts_of_the_time_add_up_and_grow_over_sessions(tmp_path: Path) -> None:
    path, total = tmp_path / "timing.json", 0.0
    for session in (1, 2):
        clock, began = Clock(), time.perf_counter()
        clock.resume(path)
        for part in PARTS:
            time.sleep(0.002)
            clock.lap(part)
        clock.write(path, background=0.0)
        total += time.perf_counter() - began
        told = json.loads(path.read_text())
        assert told["sessions"] == session
        assert sum(told["parts"].values()) == pytest.approx(told["wall"], rel=0.02)
        assert 0.016 * session <= told["wall"] <= total


def test_a_folder_is_one_process_at_a_time_and_one_run_for_ever(tmp_path: Path) -> None:
    config = TrainingConfig(steps=3)
    first, second = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "run")
    first.claim(config, resume=True)
    with pytest.raises(HeedfulError, match=r"another process \(number \d+\)"):
        second.claim(config, resume=True)
    first.release()
    with pytest.raises(HeedfulError, match="a run in this folder already"):
        second.claim(config, resume=False)
    second.release()
    with pytest.raises(HeedfulError, match="steps was 3, is now 4"):
        first.claim(TrainingConfig(steps=4), resume=True)
    first.release()


def test_micro_batches_come_in_order_cut_anew_after_a_restart_and_errors_come_through() -> None:
    class Numbers:
        def step(self, number: int, rank: int, world: int, accumulate: int) -> list[tuple[int, int]]:
            if number == 6:
                raise HeedfulError("a damaged shard")
            return [(number, accumulate)]

    with Prefetch(Numbers(), World(), steps=8) as prefetch:
        prefetch.start(2, 1)
        assert prefetch.take() == [(2, 1)]
        prefetch.fill()
        assert prefetch.take() == [(3, 1)]
        prefetch.start(3, 2)
        assert [prefetch.take(), prefetch.take(), prefetch.take()] == [[(3, 2)], [(4, 2)], [(5, 2)]]
        with pytest.raises(HeedfulError, match="damaged shard"):
            prefetch.take()


def test_processes_meet_under_a_new_name_though_the_store_remembers_old_ones() -> None:
    store = HashStore()
    names: list[str] = []
    for _ in range(3):
        threads = [
            threading.Thread(target=lambda rank=rank: names.append(rendezvous(store, rank, 3, timedelta(seconds=20))))
            for rank in (2, 0, 1)
        ]
        for thread in threads:
            thread.start()
            time.sleep(0.03)
        for thread in threads:
            thread.join()
    assert len(names) == 9 and len(set(names)) == 3
    assert all(len(set(names[i : i + 3])) == 1 for i in (0, 3, 6))
