"""What waits to be computed: the units of jobs, dealt out to batches by turns, some tokens a client and turn.

Nothing here knows threads, clocks or models; `Batcher` puts those around it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Protocol

_numbers = count()
# The tokens of a turn: a short request is finished in one. Were it dealt out unit by unit, all that wait at the same
# time would be finished at the same time, and late.
TURN = 128


class Program(Protocol):
    """How units are computed; equal programs can be computed together, whoever asked."""

    one_pass: ClassVar[bool]  # soon over: a batch that is alone may have all cores, and others wait until it is done

    def __hash__(self) -> int: ...

    def compute(self, units: Sequence[Any]) -> Sequence[Any]:
        """The result of each unit; the longest comes first."""


def unchanged(results: list[Any]) -> list[Any]:
    """The results of the units as they are."""
    return results


@dataclass(eq=False)
class Job:
    """The units of one request, and what becomes of them."""

    client: str
    program: Program
    units: Sequence[Any]
    sizes: Sequence[int]  # the tokens of each unit
    deadline: float = math.inf
    finish: Callable[[list[Any]], Any] = unchanged  # makes an answer of the results of all units
    future: Future[Any] = field(default_factory=Future)
    taken: int = 0  # units that are no longer in the queue
    results: dict[int, Any] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_numbers))
    queued: float = 0.0
    started: float = 0.0
    computed: float = 0.0  # seconds of computing, of the batches it was part of

    @property
    def waiting(self) -> int:
        """The tokens that are still in the queue."""
        return sum(self.sizes[self.taken :])


@dataclass(frozen=True)
class Unit:
    """A unit of a job, by its number."""

    job: Job
    number: int

    @property
    def size(self) -> int:
        """Its tokens."""
        return self.job.sizes[self.number]

    @property
    def content(self) -> Any:
        """What the program computes."""
        return self.job.units[self.number]


class FairQueue:
    """Jobs by client, and the clients in the order of their turns."""

    def __init__(self, turn: int = TURN) -> None:
        self.turn = turn  # the tokens after which the next client has its turn
        self.clients: dict[str, deque[Job]] = {}  # in the order of their turns
        self.tokens: dict[str, int] = {}  # what waits, by client

    def __len__(self) -> int:
        return sum(map(len, self.clients.values()))

    @property
    def waiting(self) -> int:
        """The tokens of everybody."""
        return sum(self.tokens.values())

    def ahead_of(self, client: str, size: int) -> int:
        """The tokens that are computed before a new job of this size is finished, by turns."""
        own = self.tokens.get(client, 0)
        others = sum(min(waiting, own + size) for name, waiting in self.tokens.items() if name != client)
        return own + others

    def add(self, job: Job) -> None:
        """Put a job behind the others of its client; a new client has its turn last."""
        self.clients.setdefault(job.client, deque()).append(job)
        self.tokens[job.client] = self.tokens.get(job.client, 0) + job.waiting

    def remove(self, job: Job) -> bool:
        """Take what is left of a job out; whether something was."""
        jobs = self.clients.get(job.client, deque())
        if job not in jobs:
            return False
        jobs.remove(job)
        self.tokens[job.client] -= job.waiting
        self._forget(job.client)
        return True

    def overdue(self, now: float) -> list[Job]:
        """The jobs whose deadline is past."""
        return [job for jobs in self.clients.values() for job in jobs if job.deadline <= now]

    def take(self, budget: int) -> list[Unit]:
        """The units of the next batch: those of the next client's first job, and of all that go with them.

        At most `budget` tokens, or a single longer unit. Each client gives units for some tokens in its turn.
        """
        first = next(iter(self.clients), None)
        if first is None:
            return []
        program, taken = self.clients[first][0].program, list[Unit]()
        while True:
            before = len(taken)
            for client in list(self.clients):
                if self._full(client, program, taken, budget):
                    return taken
            if len(taken) == before:
                return taken

    def _full(self, client: str, program: Program, taken: list[Unit], budget: int) -> bool:
        """Take the units of a client's turn; whether the next would be too many, so that its turn is not over."""
        room, left = budget - sum(unit.size for unit in taken), self.turn
        while left > 0 and (unit := self._next(client, program)) is not None:
            if taken and unit.size > room:
                return True
            taken.append(unit)
            room, left = room - unit.size, left - unit.size
            self._give(unit)
        if left < self.turn and client in self.clients:
            self.clients[client] = self.clients.pop(client)  # it comes last now
        return False

    def _next(self, client: str, program: Program) -> Unit | None:
        for job in self.clients.get(client, ()):
            if job.program == program:
                return Unit(job, job.taken)
        return None

    def _give(self, unit: Unit) -> None:
        """Mark a unit as taken."""
        job, client = unit.job, unit.job.client
        job.taken += 1
        self.tokens[client] -= unit.size
        if job.taken == len(job.units):
            self.clients[client].remove(job)
        self._forget(client)

    def _forget(self, client: str) -> None:
        if not self.clients[client]:
            del self.clients[client], self.tokens[client]
