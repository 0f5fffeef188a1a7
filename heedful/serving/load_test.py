"""Load on a server: closed loop or open loop, percentiles, errors by kind, and every answer compared."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heedful.client import AsyncClient, ServerError
from heedful.errors import HeedfulError

WORDS = (
    *("river", "bank", "money", "weather", "sunny", "stadium", "dog", "park"),
    *("train", "late", "music", "loud", "soup", "cold", "miller", "road"),
)
TEXTS = 64  # different ones
# Batches of other company change the last digits of a vector, and another text changes the first.
SAME = 1e-3


@dataclass(frozen=True)
class Load:
    """How to load a server."""

    url: str
    model: str | None = None
    clients: int = 16
    rate: float | None = None
    seconds: float = 10.0
    inputs: int = 1
    seed: int = 0
    api_key: str | None = None


@dataclass
class Tally:
    """What has happened."""

    seconds: list[float] = field(default_factory=list)  # of each answer
    refusals: list[float] = field(default_factory=list)  # of each refusal
    errors: Counter[str] = field(default_factory=Counter)
    wrong: int = 0


async def run_load(load: Load) -> dict[str, Any]:
    """Load the server for so many seconds, and what came of it."""
    rng, tally = random.Random(load.seed), Tally()
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(4, 10))) + f" {number}" for number in range(TEXTS)]
    async with AsyncClient(load.url, load.model, load.api_key, timeout=60.0) as first:
        expected = np.concatenate([await first.embed([text]) for text in texts])
        model = first.model
    async with AsyncClient(load.url, model, load.api_key, timeout=60.0, retry=False) as client:
        start = time.monotonic()

        async def ask() -> None:
            chosen = [rng.randrange(TEXTS) for _ in range(load.inputs)]
            await _ask(client, [texts[i] for i in chosen], expected[chosen], tally)

        await (_open(load, rng, ask) if load.rate else _closed(load, ask))
        return _told(load, tally, time.monotonic() - start)


async def _closed(load: Load, ask: Any) -> None:
    until = time.monotonic() + load.seconds

    async def client() -> None:
        while time.monotonic() < until:
            await ask()

    await asyncio.gather(*(client() for _ in range(load.clients)))


async def _open(load: Load, rng: random.Random, ask: Any) -> None:
    """Arrivals at random times, a Poisson process."""
    assert load.rate is not None
    until, running, due = time.monotonic() + load.seconds, set[asyncio.Task[None]](), time.monotonic()
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        task = asyncio.ensure_future(ask())
        running.add(task)
        task.add_done_callback(running.discard)
        due += rng.expovariate(load.rate)
    await asyncio.gather(*running)


async def _ask(client: AsyncClient, texts: list[str], expected: Any, tally: Tally) -> None:
    start = time.monotonic()
    try:
        vectors = await client.embed(texts)
    except ServerError as error:
        tally.errors[str(error.status)] += 1
        tally.refusals.append(time.monotonic() - start)
        if error.status == 429:
            await asyncio.sleep(0.01)  # a client that is refused does not ask again at once
    except HeedfulError as error:
        tally.errors[error.what.partition(":")[0]] += 1
    else:
        tally.seconds.append(time.monotonic() - start)
        tally.wrong += vectors.shape != expected.shape or not np.allclose(vectors, expected, atol=SAME, rtol=SAME)


def _told(load: Load, tally: Tally, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {"answered": len(tally.seconds), "requests_a_second": len(tally.seconds) / seconds}
    for name, times in (("", tally.seconds), ("refused_", tally.refusals)):
        if times:
            shares = np.percentile(np.array(times) * 1000, [50, 90, 99])
            found |= {f"{name}p{p}_ms": float(value) for p, value in zip((50, 90, 99), shares, strict=True)}
    return {**found, "errors": dict(tally.errors), "wrong_answers": int(tally.wrong)}
