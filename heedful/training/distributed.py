"""Several processes, on one machine or many, training one model: sums over all of them, and rank 0's word for all.

Gradients are added up here and not by DistributedDataParallel: a loss is a sum with a denominator of the whole step,
so that the gradients' plain sum is exact; and an objective may call any method of the model, not `forward` alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous as torch_rendezvous

from heedful.errors import HeedfulError
from heedful.training.rendezvous import rendezvous

BUCKET_BYTES = 32 << 20


@dataclass(frozen=True)
class World:
    """All processes of a run and this one's place among them; a run of one process is a world of size 1."""

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Each number added up over all processes."""
        if self.size == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        with _lost_rank():
            dist.all_reduce(total)
        return total.tolist()

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Each tensor added up over all processes, in place."""
        if self.size == 1:
            return
        with _lost_rank(), torch.no_grad():
            for tensor in tensors:
                dist.all_reduce(tensor)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Each gradient added up over all processes; one that no process has stays None, as in a run of one."""
        if self.size == 1:
            return
        present = self.sum([float(p.grad is not None) for p in parameters])
        used = [p for p, count in zip(parameters, present, strict=True) if count]
        for p in used:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        with _lost_rank():
            started = [_start_sum(bucket) for bucket in _buckets([p.grad for p in used if p.grad is not None])]
            for bucket, flat, work in started:
                work.wait()
                for gradient, part in zip(bucket, torch.split(flat, [g.numel() for g in bucket]), strict=True):
                    gradient.copy_(part.view_as(gradient))

    def share(self, value: Any) -> Any:
        """Rank 0's `value`, which is JSON, on every rank."""
        if self.size == 1:
            return value
        message = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8, device=self.device)
        length = torch.tensor([len(message)], device=self.device)
        with _lost_rank():
            dist.broadcast(length, src=0)
            message = message if self.rank == 0 else torch.empty(int(length), dtype=torch.uint8, device=self.device)
            dist.broadcast(message, src=0)
        return json.loads(bytes(message.tolist()))

    def share_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Fill the tensors of every rank with rank 0's numbers."""
        if self.size == 1:
            return
        with _lost_rank(), torch.no_grad():
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def gather(self, value: Any) -> list[Any]:
        """The `value` of every rank, which is JSON, in their order, on every rank."""
        if self.size == 1:
            return [value]
        own = json.dumps(value).encode()
        longest = int(max(self.sum([float(len(own) * (rank == self.rank)) for rank in range(self.size)])))
        padded = torch.tensor(list(own.ljust(longest)), dtype=torch.uint8, device=self.device)
        found = [torch.empty_like(padded) for _ in range(self.size)]
        with _lost_rank():
            dist.all_gather(found, padded)
        return [json.loads(bytes(one.tolist())) for one in found]

    def each(self, call: Callable[[], Any]) -> list[Any]:
        """Let every rank do something; each gets what came out of all of them (JSON), or the error of one."""
        if self.size == 1:
            return [call()]
        answers = self.gather(_answer(call))
        for rank, answer in enumerate(answers):
            if "error" in answer:
                what, where, remedy = answer["error"]
                raise HeedfulError(f"rank {rank}: {what}", where=where, remedy=remedy)
        return [answer["value"] for answer in answers]

    def agree(self, facts: Mapping[str, str]) -> None:
        """Refuse to go on unless every rank says the same of everything that must be the same."""
        first, *others = self.gather(dict(facts))
        for rank, theirs in enumerate(others, start=1):
            for name in (name for name in first if theirs.get(name) != first[name]):
                raise HeedfulError(
                    f"rank {rank} has another {name} than rank 0: {theirs.get(name)}, not {first[name]}",
                    remedy="give all processes the same data, settings and versions",
                )

    def first(self, call: Callable[[], Any]) -> Any:
        """Let rank 0 do something; every rank gets what came out of it (JSON), or its error."""
        if self.size == 1:
            return call()
        answer = self.share(_answer(call) if self.rank == 0 else {})
        if "error" in answer:
            what, where, remedy = answer["error"]
            raise HeedfulError(what, where=where, remedy=remedy)
        return answer["value"]


def _answer(call: Callable[[], Any]) -> dict[str, Any]:
    """What a call gives or its error, as JSON."""
    try:
        return {"value": call()}
    except HeedfulError as error:
        return {"error": [error.what, None if error.where is None else str(error.where), error.remedy]}


@contextmanager
def joined(timeout_minutes: float = 30.0, device: str | None = None) -> Iterator[World]:
    """Join the processes that torchrun started, if it did; within another `joined` block, its world.

    `device` is where this process computes, without it `own_device`.
    """
    device = device or own_device()
    if dist.is_initialized():
        yield World(dist.get_rank(), dist.get_world_size(), device)
    elif int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield World(device=device)
    else:
        with _lost_rank():
            _join(timedelta(minutes=timeout_minutes), torch.device(device))
        try:
            yield World(dist.get_rank(), dist.get_world_size(), device)
        finally:
            dist.destroy_process_group()


def own_device() -> str:
    """The device this process computes on: its own CUDA device where there are any, else the CPU."""
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"


def restarted() -> bool:
    """Whether torchrun has started this process anew after one was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _join(timeout: timedelta, device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.set_device(device)  # nccl takes the current one
    store, rank, size = next(torch_rendezvous("env://", timeout=timeout))
    named = PrefixStore(rendezvous(store, rank, size, timeout), store)
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=named, rank=rank, world_size=size, timeout=timeout)


def _start_sum(bucket: list[Tensor]) -> tuple[list[Tensor], Tensor, Any]:
    flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
    return bucket, flat, dist.all_reduce(flat, async_op=True)


def _buckets(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Neighbours of one type together, up to a size that is worth sending."""
    buckets: list[list[Tensor]] = []
    size = 0
    for tensor in tensors:
        if not buckets or size + tensor.nbytes > BUCKET_BYTES or buckets[-1][0].dtype != tensor.dtype:
            buckets.append([])
            size = 0
        buckets[-1].append(tensor)
        size += tensor.nbytes
    return buckets


@contextmanager
def _lost_rank() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise lost_rank(error) from error


def lost_rank(error: RuntimeError) -> HeedfulError:
    """What to tell of an error that the other processes cannot be reached."""
    return HeedfulError(
        f"the other processes cannot be reached: {str(error).splitlines()[0]}",
        remedy="start again with `resume`; torchrun does so by itself if it is allowed restarts",
    )
