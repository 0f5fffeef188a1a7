"""The queue deals out units by turns, keeps programs apart, and knows what stands before a new job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from heedful.serving.fair_queue import FairQueue, Job, Unit


class Echo:
    """A program that gives back what it is given."""

    one_pass: ClassVar[bool] = True

    def compute(self, units: Sequence[Any]) -> Sequence[Any]:
        return units


ECHO, OTHER = Echo(), Echo()


def job(client: str, *sizes: int, program: Echo = ECHO) -> Job:
    return Job(client, program, [f"{client}{number}" for number in range(len(sizes))], sizes)


def contents(units: Sequence[Unit]) -> list[str]:
    return [unit.content for unit in units]


def filled(*jobs: Job) -> FairQueue:
    queue = FairQueue(turn=1)
    for one in jobs:
        queue.add(one)
    return queue


def test_each_client_gives_one_unit_in_its_turn() -> None:
    queue = filled(job("a", *[1] * 6), job("b", 1), job("c", 1, 1))
    assert contents(queue.take(4)) == ["a0", "b0", "c0", "a1"]
    assert contents(queue.take(3)) == ["c1", "a2", "a3"]  # a has had its turn, so c comes first
    assert contents(queue.take(9)) == ["a4", "a5"]
    assert queue.take(9) == [] and not queue.clients and not queue.tokens


def test_ten_thousand_texts_of_one_client_do_not_starve_another() -> None:
    queue = filled(job("bulk", *[10] * 10_000))
    queue.take(100)
    queue.add(job("small", 10))
    assert "small0" in contents(queue.take(100))


def test_the_budget_is_kept_but_for_a_single_longer_unit() -> None:
    queue = filled(job("a", 50, 5, 5))
    assert contents(queue.take(10)) == ["a0"]
    assert contents(queue.take(10)) == ["a1", "a2"]


def test_different_programs_are_never_in_one_batch() -> None:
    queue = filled(job("a", 1, 1), job("b", 1, program=OTHER), job("a", 1, program=OTHER))
    assert contents(queue.take(9)) == ["a0", "a1"]
    assert {unit.job.program for unit in queue.take(9)} == {OTHER}
    assert not queue.waiting


def test_a_removed_job_is_not_dealt_out() -> None:
    gone, stays = job("a", 3, 3), job("a", 4)
    queue = filled(gone, stays)
    assert contents(queue.take(3)) == ["a0"]
    assert queue.remove(gone) and not queue.remove(gone)
    assert queue.waiting == 4
    assert [unit.job for unit in queue.take(9)] == [stays]
    assert not queue.remove(stays)


def test_what_is_ahead_counts_others_up_to_ones_own_share() -> None:
    queue = filled(job("bulk", *[10] * 100), job("b", 5))
    assert queue.ahead_of("new", 10) == 15  # ten of the bulk's, five of b's
    assert queue.ahead_of("bulk", 10) == 1005
    assert queue.ahead_of("new", 10_000) == 1005


def test_overdue_jobs_are_found() -> None:
    late, early = job("a", 1), job("a", 1)
    late.deadline, early.deadline = 1.0, 2.0
    assert filled(late, early).overdue(1.5) == [late]
