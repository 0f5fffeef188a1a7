"""The client whose methods are awaited, over httpx2."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from heedful.client.verbs import KEPT, Reply, Verbs


class AsyncClient(Verbs):
    """A model of a server, with the methods of a loaded one to be awaited; many tasks may use it at once."""

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _open(self) -> None:
        import httpx2

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT)
        # Reading the certificates of all authorities takes longer than most answers, and http has no use for them.
        checked = not self.url.startswith("http://")
        self._http = httpx2.AsyncClient(headers=self.headers, limits=limits, verify=checked)

    def _answer(self, answer: Coroutine[Any, Any, Any]) -> Awaitable[Any]:
        return answer

    async def _exchange(self, method: str, path: str, body: bytes, seconds: float) -> Reply:
        import httpx2

        sent = self._http.request(method, f"{self.url}{path}", content=body, timeout=seconds)
        try:
            response = await asyncio.wait_for(sent, seconds)
        except (httpx2.TimeoutException, asyncio.TimeoutError) as error:
            raise TimeoutError from error
        except httpx2.TransportError as error:
            raise ConnectionError(str(error)) from error
        return Reply(response.status_code, response.headers.get("retry-after"), response.content)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
