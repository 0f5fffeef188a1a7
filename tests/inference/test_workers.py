"""The worker pool shares out torch's threads and gives them back."""

from __future__ import annotations

import pytest
import torch

from heedful.inference.workers import MOST_WORKERS, worker_pool


@pytest.mark.parametrize(("threads", "share"), [(1, 1), (3, 1), (2 * MOST_WORKERS + 1, 2)])
def test_each_worker_has_its_share_and_the_caller_gets_all_back(threads: int, share: int) -> None:
    torch.set_num_threads(threads)
    with worker_pool() as pool:
        inside = pool.submit(torch.get_num_threads).result()
    assert inside == share
    assert torch.get_num_threads() == threads


def test_pools_may_overlap() -> None:
    torch.set_num_threads(4)
    with worker_pool() as one, worker_pool() as other:
        one.submit(int).result()
        inside = other.submit(torch.get_num_threads).result()
    assert inside == 1
    assert torch.get_num_threads() == 4


def test_work_that_nobody_waits_for_is_dropped() -> None:
    with worker_pool() as pool:
        futures = [pool.submit(torch.zeros, 1) for _ in range(1000)]
    assert all(future.done() for future in futures)
