"""How processes find each other when some of them have been restarted.

torchrun keeps one store of addresses over a restart, so that a new process may read where an old one used to listen
and knock at a closed door. Here the processes that are there now agree on a name that no earlier rendezvous had, and
everything they write afterwards stands under it:

    rank r > 0   here/r = its token          waits for meet/r = "its token, the name"     ack/r = the name
    rank 0       the name is its own token;  answers whatever token is at here/r until ack/r is the name
"""

from __future__ import annotations

import secrets
import time
from datetime import timedelta

from torch._C._distributed_c10d import Store

_PAUSE = 0.02


def rendezvous(store: Store, rank: int, size: int, timeout: timedelta) -> str:
    """The name of this rendezvous, the same on all `size` processes that are present."""
    token = secrets.token_hex(8)
    until = time.monotonic() + timeout.total_seconds()
    if rank > 0:
        return _ask(store, rank, token, until)
    waited_for = set(range(1, size))
    while waited_for:
        for other in list(waited_for):
            if _answered(store, other, token):
                waited_for.remove(other)
        _pause(until)
    return token


def _ask(store: Store, rank: int, token: str, until: float) -> str:
    store.set(f"here/{rank}", token)
    while True:
        asked, _, name = _read(store, f"meet/{rank}").partition(" ")
        if asked == token:
            store.set(f"ack/{rank}", name)
            return name
        _pause(until)


def _answered(store: Store, rank: int, name: str) -> bool:
    token = _read(store, f"here/{rank}")
    if token:
        store.set(f"meet/{rank}", f"{token} {name}")
    return _read(store, f"ack/{rank}") == name


def _read(store: Store, key: str) -> str:
    return bytes(store.get(key)).decode() if store.check([key]) else ""


def _pause(until: float) -> None:
    if time.monotonic() > until:
        raise RuntimeError("not all processes came in time")
    time.sleep(_PAUSE)
