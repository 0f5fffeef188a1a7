"""The client whose methods give the answer back, over blocking connections of its own."""

from __future__ import annotations

import time
import weakref
from collections.abc import Coroutine
from typing import Any

from heedful.client.connections import Connections
from heedful.client.verbs import KEPT, Reply, Verbs


class Client(Verbs):
    """A model of a server, with the methods of a loaded one; many threads may use it at once."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self._connections.close()

    def _open(self) -> None:
        self._connections = Connections(self.url, self.headers, KEPT)
        weakref.finalize(self, self._connections.close)  # of a client that nobody has closed

    def _answer(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """Run it to its end at once: whatever it awaits is done when it comes back, and no loop is needed."""
        try:
            answer.send(None)
        except StopIteration as over:
            return over.value
        raise AssertionError("a blocking client has awaited something")

    async def _exchange(self, method: str, path: str, body: bytes, seconds: float) -> Reply:
        return self._connections.exchange(method, path, body, time.monotonic() + seconds)

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)
