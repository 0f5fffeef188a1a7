"""One batcher for all requests: what arrives is merged by a budget of tokens and computed by a few threads.

A thread that is idle takes at once whatever comes, so that nothing is delayed while the machine has nothing to do.
One of them, the lead, is called before the others, and computes what comes alone on all cores.
While all of them compute, requests gather, and the next batch has its share of them; and a thread that has just
answered several clients waits a little for them to ask again, since a small batch costs more for each of its tokens.
Units are taken from the clients by turns. The batcher knows neither models nor HTTP.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.errors import HeedfulError
from heedful.serving.fair_queue import FairQueue, Job, Program, Unit

logger = logging.getLogger("heedful.serving")
# The share of the last batch in the running mean of the speed.
NEWEST = 0.1
# The share of its last batch's seconds that a thread waits at most for those whom it has answered to ask again.
GATHERING = 0.1
# The full batches of each thread that a request may have to wait for, however long they take; with fewer, none merge.
PATIENT_BATCHES = 2
# The seconds without two requests at a time after which one may have all cores.
CALM = 0.1
# How much nicer than the others a thread is that computes, as nice(1) counts; without it a refusal took 130 ms.
NICER = 5
_settling = threading.Lock()


class Full(Exception):
    """There is more waiting than can be computed in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the queue is full for {seconds:.1f} s")
        self.seconds = seconds


class Closed(Exception):
    """The batcher takes no more jobs."""


class Late(Exception):
    """The deadline of a job was past before it was computed."""


class Crashed(Exception):
    """The thread that computed a job came to an end."""


@dataclass(frozen=True)
class Bounds:
    """How much may be computed at once, and how much may wait."""

    batch_tokens: int = 1024
    queue_tokens: int = 1_000_000
    wait: float = math.inf  # seconds that a job may have to wait for others
    least_share: int = 128  # tokens below which a batch is not split between free threads


@dataclass(frozen=True)
class BatchDone:
    """What is told of a batch when it is done."""

    jobs: int
    sizes: Sequence[int]
    seconds: float

    @property
    def tokens(self) -> int:
        """How many were computed."""
        return sum(self.sizes)

    @property
    def padding_saved(self) -> int:
        """How many more a padded batch would have had."""
        return max(self.sizes) * len(self.sizes) - self.tokens


class Batcher:
    """Threads that compute what waits in a queue."""

    def __init__(
        self,
        threads: int = 1,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.monotonic,
        before: Callable[[bool], None] = lambda alone: None,
        after: Callable[[BatchDone], None] = lambda done: None,
    ) -> None:
        """`before` is called ahead of each batch, told whether it may have all cores, and `after` when it is done."""
        self.bounds, self.clock, self.before, self.after = bounds or Bounds(), clock, before, after
        self.queue = FairQueue()
        lock = threading.RLock()
        self.changed, self.gathered = threading.Condition(lock), threading.Condition(lock)
        # Only the lead computes on all cores: OpenMP keeps helpers for each thread that ever did, and once these are
        # more than the cores, none of them waits awake for the next of a batch's hundred small products. While it
        # does, nobody else computes: a helper without a core would keep the others waiting at each of the products.
        self.lead: threading.Thread | None = None
        self.lead_called, self.lead_free, self.wide = threading.Condition(lock), False, False
        self.crowded = -math.inf  # when a request last came while another waited or was computed
        self.gathering: dict[threading.Thread, int] = {}  # the tokens that each waits for
        self.speed = 0.0  # tokens a second of all threads; 0 while nobody knows
        self.computing: dict[threading.Thread, int] = {}  # the tokens of each batch
        self.deaths = 0
        self.closed = False
        self.threads = threads
        self.running: set[threading.Thread] = set()
        for _ in range(threads):
            self._start()

    def submit(self, job: Job) -> Job:
        """Queue a job; its future has the answer later. `Full` if others would keep it waiting for too long."""
        size = sum(job.sizes)
        with self.changed:
            if self.closed:
                raise Closed
            if self.queue.waiting and self.queue.waiting + size > self.bounds.queue_tokens:
                raise Full(self._seconds(self.queue.waiting))
            if (wait := self._delay(self.queue.ahead_of(job.client, size))) > self._patience:
                raise Full(wait)
            job.queued = self.clock()
            if self.computing or self.queue.waiting:
                self.crowded = job.queued
            self.queue.add(job)
            if self.lead_free:
                self.lead_called.notify()
            elif not self.wide:
                self.changed.notify(len(job.units))
            if self.gathering and self.queue.waiting >= min(self.gathering.values()):
                self.gathered.notify_all()
        return job

    def cancel(self, job: Job) -> bool:
        """Forget a job that nobody waits for any more; whether some of it was still in the queue."""
        with self.changed:
            job.future.cancel()
            return self.queue.remove(job)

    def close(self, timeout: float | None = None) -> bool:
        """Take no more jobs and compute what waits; whether all threads ended in time."""
        with self.changed:
            self.closed = True
            for waiting in (self.changed, self.gathered, self.lead_called):
                waiting.notify_all()
        until = None if timeout is None else time.monotonic() + timeout
        for thread in list(self.running):
            thread.join(None if until is None else max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self.running)

    @property
    def alive(self) -> bool:
        """Whether there is a thread that computes."""
        return any(thread.is_alive() for thread in self.running)

    def _seconds(self, tokens: int) -> float:
        return tokens / self.speed if self.speed else 0.0

    def _delay(self, ahead: int) -> float:
        """The seconds until what is ahead is computed, after what all threads have in hand; 0 if nothing is ahead."""
        busy = sum(self.computing.values()) if len(self.computing) == self.threads else 0
        return self._seconds(ahead + busy) if ahead else 0.0

    @property
    def _patience(self) -> float:
        """How long a job may have to wait; where a model is slow, a few batches even if that is longer."""
        return max(self.bounds.wait, self._seconds(PATIENT_BATCHES * self.bounds.batch_tokens * self.threads))

    def _start(self) -> None:
        thread = threading.Thread(target=self._live, name=f"compute-{self.deaths}-{len(self.running)}", daemon=True)
        self.running.add(thread)
        self.lead = self.lead or thread
        thread.start()

    def _live(self) -> None:
        """Work until the end; a thread that ends otherwise is replaced, and its jobs are told."""
        _let_others_go_first()
        units: list[Unit] = []
        try:
            while units := self._take():
                self._gather(self._compute(units))
        except BaseException as error:  # even SystemExit in a thread must leave no request without an answer
            logger.critical("a compute thread has died", exc_info=error)
            with self.changed:
                self.deaths += 1
                self._stop_computing()
                self.running.discard(threading.current_thread())
                self.lead = None if self._leads() else self.lead
                self._start()
            for job in {unit.job for unit in units}:
                self._fail(job, Crashed())

    def _take(self) -> list[Unit]:
        """The units of the next batch, as soon as there are some; none at the end."""
        with self.changed:
            while True:
                for job in self.queue.overdue(self.clock()):
                    self.queue.remove(job)
                    _settle(job, error=Late())
                may_take = self._leads() or not (self.lead_free or self.wide) or self.closed
                units = self.queue.take(self._budget()) if may_take else []
                if units:
                    self.computing[threading.current_thread()] = sum(unit.size for unit in units)
                    self.wide = self.wide or (self._leads() and self._alone(units[0].job.program))
                    self._call_others()
                    return units
                if self.closed:
                    return []
                self._wait()

    def _alone(self, program: Program) -> bool:
        """Whether a batch may have all cores: nobody else asks, or has asked just now, and it is soon over."""
        calm = self.clock() - self.crowded > CALM
        return calm and len(self.computing) == 1 and not self.queue.waiting and program.one_pass

    def _call_others(self) -> None:
        """Let the others take what the lead has left."""
        if self.queue.waiting and not self.wide:
            self.changed.notify_all()

    def _leads(self) -> bool:
        return threading.current_thread() is self.lead

    def _wait(self) -> None:
        """Until there may be something to take."""
        if not self._leads():
            self.changed.wait()
            return
        self.lead_free = True
        self.lead_called.wait()
        self.lead_free = False

    def _budget(self) -> int:
        """The tokens of the next batch: a thread's share of all there is, so that no thread is left with a few."""
        share = math.ceil((self.queue.waiting + sum(self.computing.values())) / self.threads)
        return min(self.bounds.batch_tokens, max(share, self.bounds.least_share))

    def _gather(self, last: BatchDone) -> None:
        """Wait a little until those who were answered together have asked again; one alone is not waited for."""
        if last.jobs == 1:
            return
        with self.gathered:
            wanted = min(self.queue.waiting + last.tokens, self.bounds.batch_tokens)
            self.gathering[threading.current_thread()] = wanted
            self.gathered.wait_for(lambda: self.closed or self.queue.waiting >= wanted, GATHERING * last.seconds)
            del self.gathering[threading.current_thread()]

    def _compute(self, units: list[Unit]) -> BatchDone:
        start = self.clock()
        for unit in units:
            unit.job.started = unit.job.started or start
        self.before(self._leads() and self.wide)
        self._run(units)
        seconds = self.clock() - start
        done = BatchDone(len({unit.job for unit in units}), [unit.size for unit in units], seconds)
        with self.changed:
            self._stop_computing()
        self.after(done)
        for job in dict.fromkeys(unit.job for unit in units):
            job.computed += seconds
            if len(job.results) == len(job.units):
                self._finish(job)
        with self.changed:
            self._learn(done.tokens, self.clock() - start)
        return done

    def _stop_computing(self) -> None:
        self.computing.pop(threading.current_thread(), None)
        if self._leads():
            self.wide = False
            self._call_others()

    def _run(self, units: list[Unit]) -> None:
        """Compute units together; if that fails, job by job, so that a bad one harms no other."""
        ordered = sorted(units, key=lambda unit: -unit.size)
        try:
            results = list(units[0].job.program.compute([unit.content for unit in ordered]))
        except Exception as error:
            jobs = dict.fromkeys(unit.job for unit in units)
            if len(jobs) == 1:
                if not isinstance(error, HeedfulError):
                    logger.error("a batch could not be computed", exc_info=error)
                self._fail(units[0].job, error)
                return
            for job in jobs:
                self._run([unit for unit in units if unit.job is job])
            return
        for unit, result in zip(ordered, results, strict=True):
            unit.job.results[unit.number] = result

    def _finish(self, job: Job) -> None:
        try:
            answer = job.finish([job.results[number] for number in range(len(job.units))])
        except Exception as error:
            if not isinstance(error, HeedfulError):
                logger.error("an answer could not be made", exc_info=error)
            _settle(job, error=error)
        else:
            _settle(job, answer)

    def _fail(self, job: Job, error: Exception) -> None:
        with self.changed:
            self.queue.remove(job)
        _settle(job, error=error)

    def _learn(self, tokens: int, seconds: float) -> None:
        """The speed from a batch and the seconds until its thread was free again.

        A full batch tells it best; a single short text says little of what could be computed.
        """
        if seconds > 0:
            speed = self.threads * tokens / seconds
            share = NEWEST * min(1.0, tokens / self.bounds.batch_tokens)
            self.speed = speed if not self.speed else (1 - share) * self.speed + share * speed


def _let_others_go_first() -> None:
    """Who computes all the time gives way to the thread that reads, refuses and writes, and needs little."""
    if sys.platform == "linux":  # elsewhere this would be for all threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + NICER)


def _settle(job: Job, answer: Any = None, error: Exception | None = None) -> None:
    """Give a job its answer, unless it has one or nobody waits for it any more."""
    with _settling:
        if job.future.done() or job.future.running() or not job.future.set_running_or_notify_cancel():
            return
    if error is None:
        job.future.set_result(answer)
    else:
        job.future.set_exception(error)
