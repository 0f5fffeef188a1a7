"""The batcher merges what waits, splits it among free threads, forgets what is cancelled, and survives its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest

from heedful.serving.batcher import BatchDone, Batcher, Bounds, Closed, Crashed, Full, Late
from heedful.serving.fair_queue import Job

PATIENCE = 20.0


class Gate:
    """A program that notes its batches and computes each only when it is let through."""

    one_pass: ClassVar[bool] = False

    def __init__(self, open: bool = False) -> None:
        self.batches: list[list[Any]] = []
        self.arrived, self.may_go = threading.Semaphore(0), threading.Event()
        if open:
            self.may_go.set()

    def compute(self, units: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(units))
        self.arrived.release()
        assert self.may_go.wait(PATIENCE)
        if "bad" in units:
            raise ValueError("bad")
        if "deadly" in units:
            raise SystemExit
        return [f"<{unit}>" for unit in units]


Make = Callable[..., Batcher]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Batcher] = []

    def batcher(**how: Any) -> Batcher:
        made.append(Batcher(**how))
        return made[-1]

    yield batcher
    for one in made:
        one.close(PATIENCE)


def ask(batcher: Batcher, program: Gate, *units: str, client: str = "a", size: int = 10, **more: Any) -> Job:
    return batcher.submit(Job(client, program, units, [size] * len(units), **more))


def busy(batcher: Batcher, gate: Gate) -> Job:
    """A job that occupies the only thread."""
    first = ask(batcher, gate, "first")
    assert gate.arrived.acquire(timeout=PATIENCE)
    return first


def test_a_free_thread_takes_a_job_at_once_and_what_gathers_meanwhile_is_one_batch(make: Make) -> None:
    gate, batcher = Gate(), make()
    first = busy(batcher, gate)
    others = [ask(batcher, gate, f"text {i}", client=f"client {i}") for i in range(20)]
    gate.may_go.set()
    assert first.future.result(PATIENCE) == ["<first>"]
    assert [job.future.result(PATIENCE) for job in others] == [[f"<text {i}>"] for i in range(20)]
    assert [len(batch) for batch in gate.batches] == [1, 20]


def test_free_threads_share_what_waits(make: Make) -> None:
    gate, batcher = Gate(), make(threads=3, bounds=Bounds(least_share=10))
    for _ in range(3):
        busy(batcher, gate)
    jobs = [ask(batcher, gate, f"{i}") for i in range(4)]
    with batcher.changed:
        batcher.computing.clear()  # as if all three were free
        assert batcher._budget() == 14  # 40 tokens for three
        assert make(bounds=Bounds(least_share=128))._budget() == 128
    gate.may_go.set()
    assert all(job.future.result(PATIENCE) for job in jobs)


def test_a_thread_takes_its_share_of_what_waits_and_is_computed(make: Make) -> None:
    gate, batcher = Gate(), make(threads=2, bounds=Bounds(least_share=10))
    for size in (10, 60):
        ask(batcher, gate, "busy", size=size)
        assert gate.arrived.acquire(timeout=PATIENCE)
    jobs = [ask(batcher, gate, f"{i}") for i in range(7)]
    with batcher.changed:
        assert batcher._budget() == 70  # of 140 tokens, half of them computed now
        batcher.computing.popitem()
        assert batcher._budget() == 40
    gate.may_go.set()
    assert all(job.future.result(PATIENCE) for job in jobs)


def test_those_who_were_answered_together_are_waited_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.serving.batcher.GATHERING", 1e9)  # as long as it takes
    gate, batcher = Gate(), make()
    busy(batcher, gate)
    together = [ask(batcher, gate, f"{i}", client=f"{i}") for i in range(3)]
    gate.may_go.set()
    for job in together:
        job.future.result(PATIENCE)
    again = [ask(batcher, gate, f"again {i}", client=f"{i}") for i in range(3)]
    for job in again:
        job.future.result(PATIENCE)
    assert [len(batch) for batch in gate.batches] == [1, 3, 3]


def test_one_alone_is_not_waited_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.serving.batcher.GATHERING", 1e9)
    gate, batcher = Gate(open=True), make()
    for size in (100, 1):
        assert ask(batcher, gate, "x", size=size).future.result(PATIENCE) == ["<x>"]


def test_an_idle_thread_takes_what_comes_while_another_gathers(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.serving.batcher.GATHERING", 1e9)
    gate, batcher = Gate(), make(threads=2)
    first = [busy(batcher, gate) for _ in range(2)]
    together = [ask(batcher, gate, f"{i}", client=f"{i}", size=100) for i in range(2)]
    gate.may_go.set()
    for job in [*first, *together]:
        job.future.result(PATIENCE)
    assert ask(batcher, gate, "alone").future.result(PATIENCE) == ["<alone>"]


def test_a_batch_is_given_longest_first_and_its_results_find_their_units(make: Make) -> None:
    gate, done = Gate(open=True), list[BatchDone]()
    batcher = make(after=done.append)
    job = batcher.submit(Job("a", gate, ["s", "long", "mid"], [1, 9, 5], finish="|".join))
    assert job.future.result(PATIENCE) == "<s>|<long>|<mid>"
    assert gate.batches == [["long", "mid", "s"]]
    batcher.close(PATIENCE)
    assert (done[0].tokens, done[0].padding_saved, done[0].jobs) == (15, 12, 1)


def test_a_job_larger_than_a_batch_is_cut_and_put_together(make: Make) -> None:
    gate = Gate(open=True)
    batcher = make(threads=2, bounds=Bounds(batch_tokens=30, least_share=30))
    job = ask(batcher, gate, *map(str, range(10)))
    assert job.future.result(PATIENCE) == [f"<{i}>" for i in range(10)]
    assert all(len(batch) <= 3 for batch in gate.batches)


def test_a_cancelled_job_is_not_computed(make: Make) -> None:
    gate, batcher = Gate(), make()
    busy(batcher, gate)
    gone, stays = ask(batcher, gate, "gone"), ask(batcher, gate, "stays")
    assert batcher.cancel(gone) and not batcher.cancel(gone)
    gate.may_go.set()
    stays.future.result(PATIENCE)
    assert gone.future.cancelled()
    assert gate.batches == [["first"], ["stays"]]


def test_a_job_past_its_deadline_is_told_so_and_not_computed(make: Make) -> None:
    now = [0.0]
    gate, batcher = Gate(), make(clock=lambda: now[0])
    busy(batcher, gate)
    late, fine = ask(batcher, gate, "late", deadline=5.0), ask(batcher, gate, "fine", deadline=7.0)
    now[0] = 6.0
    gate.may_go.set()
    with pytest.raises(Late):
        late.future.result(PATIENCE)
    assert fine.future.result(PATIENCE) == ["<fine>"]
    assert gate.batches == [["first"], ["fine"]]


def test_a_full_queue_refuses_and_tells_when_it_will_have_room(make: Make) -> None:
    gate, batcher = Gate(), make(bounds=Bounds(batch_tokens=1, queue_tokens=100, wait=3.0))
    busy(batcher, gate)
    batcher.speed = 10.0
    ask(batcher, gate, "x", client="b", size=90)  # whatever its size, as nothing else waits
    with pytest.raises(Full) as told:
        ask(batcher, gate, "y", client="c", size=20)
    assert told.value.seconds == 9.0
    with pytest.raises(Full):  # it would have to wait for its client's other one
        ask(batcher, gate, "z", client="b", size=1)
    assert ask(batcher, gate, "small", client="c", size=10)  # a second of its turn, after one of what is computed
    gate.may_go.set()


def test_a_few_batches_may_wait_however_slow_a_model_is(make: Make) -> None:
    gate, batcher = Gate(), make(bounds=Bounds(batch_tokens=20, wait=0.1))
    busy(batcher, gate)
    batcher.speed = 10.0  # the two batches are four seconds
    for number in range(4):
        ask(batcher, gate, f"text {number}")  # the last one behind three of a second each, and the one that is computed
    with pytest.raises(Full):
        ask(batcher, gate, "one more")
    gate.may_go.set()


def test_a_bad_job_harms_no_other_in_its_batch(make: Make) -> None:
    gate, batcher = Gate(), make()
    busy(batcher, gate)
    good, bad, also = (ask(batcher, gate, name, client=name) for name in ("good", "bad", "also"))
    gate.may_go.set()
    assert good.future.result(PATIENCE) == ["<good>"] and also.future.result(PATIENCE) == ["<also>"]
    with pytest.raises(ValueError, match="bad"):
        bad.future.result(PATIENCE)


def test_a_thread_that_dies_is_replaced_and_its_jobs_get_an_error(make: Make) -> None:
    gate, batcher = Gate(open=True), make()
    deadly = ask(batcher, gate, "deadly")
    with pytest.raises(Crashed):
        deadly.future.result(PATIENCE)
    assert ask(batcher, gate, "next").future.result(PATIENCE) == ["<next>"]
    assert batcher.deaths == 1 and batcher.alive


def test_an_answer_that_cannot_be_made_is_an_error_of_its_request_alone(make: Make) -> None:
    gate, batcher = Gate(open=True), make()
    broken = ask(batcher, gate, "x", finish=lambda results: results[7])
    with pytest.raises(IndexError):
        broken.future.result(PATIENCE)
    assert ask(batcher, gate, "y").future.result(PATIENCE) == ["<y>"]


def test_closing_computes_what_waits_and_takes_nothing_new(make: Make) -> None:
    gate, batcher = Gate(), make()
    busy(batcher, gate)
    waiting = ask(batcher, gate, "waiting")
    assert not batcher.close(timeout=0.01)
    with pytest.raises(Closed):
        ask(batcher, gate, "new")
    gate.may_go.set()
    assert batcher.close(PATIENCE) and not batcher.alive
    assert waiting.future.result(0) == ["<waiting>"]


def test_the_speed_is_learnt_from_full_batches_most(make: Make) -> None:
    batcher = make(threads=2, bounds=Bounds(batch_tokens=100))
    batcher._learn(100, 1.0)
    assert batcher.speed == 200.0
    batcher._learn(1, 1.0)
    assert 199.0 < batcher.speed < 200.0
    batcher._learn(100, 0.5)
    assert 215.0 < batcher.speed < 225.0


class Pass(Gate):
    one_pass: ClassVar[bool] = True


def test_what_comes_alone_has_all_cores_and_the_others_wait_for_it(make: Make) -> None:
    gate, seen, now = Pass(), list[tuple[bool, bool]](), [0.0]

    def note(alone: bool) -> None:
        seen.append((alone, threading.current_thread() is batcher.lead))

    batcher = make(threads=2, before=note, clock=lambda: now[0])
    first = busy(batcher, gate)
    others = [ask(batcher, gate, f"{i}", client=f"{i}", size=100) for i in range(2)]
    assert not gate.arrived.acquire(timeout=0.05)  # the other thread leaves them alone
    gate.may_go.set()
    for job in [first, *others]:
        job.future.result(PATIENCE)
    assert seen[0] == (True, True) and [alone for alone, _ in seen[1:]] == [False] * (len(seen) - 1)
    for moment, alone in ((0.05, False), (0.5, True)):  # just after several have asked, and when all is calm again
        now[0] = moment
        ask(batcher, gate, "again").future.result(PATIENCE)
        assert seen[-1][0] == alone
    ask(batcher, Gate(open=True), "what takes long").future.result(PATIENCE)
    assert seen[-1] == (False, True)


def test_an_idle_thread_computes_beside_what_takes_long(make: Make) -> None:
    long, quick, batcher = Gate(), Pass(open=True), make(threads=2)
    job = busy(batcher, long)
    assert ask(batcher, quick, "x").future.result(PATIENCE) == ["<x>"]
    long.may_go.set()
    assert job.future.result(PATIENCE) == ["<first>"]
