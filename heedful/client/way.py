"""The way to a server: straight, or by the proxy that the environment names (HTTP_PROXY, HTTPS_PROXY, NO_PROXY)."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Way:
    """Where to connect, and what has to be said there before and in the head of each request."""

    host: str
    port: int
    name: str  # the server's own, which its certificate has to have
    secure: ssl.SSLContext | None = None
    tunnel: bytes = b""  # asks a proxy for a way through to the server
    before_path: str = ""  # a proxy that is no tunnel is told the whole address
    head: str = ""


def way_to(server: SplitResult) -> Way:
    """The way to the server of an address."""
    name, port = server.hostname or "", server.port or PORTS[server.scheme]
    secure = ssl.create_default_context() if server.scheme == "https" else None
    proxies = getproxies()
    address = proxies.get(server.scheme) or proxies.get("all")
    if not address or proxy_bypass(f"{name}:{port}"):
        return Way(name, port, name, secure)
    proxy = urlsplit(address if "//" in address else f"http://{address}")
    where = (proxy.hostname or "", proxy.port or PORTS["http"], name, secure)
    known = f"proxy-authorization: Basic {_credentials(proxy)}\r\n" if proxy.username else ""
    if secure is None:
        return Way(*where, before_path=f"http://{name}:{port}", head=known)
    return Way(*where, tunnel=f"CONNECT {name}:{port} HTTP/1.1\r\nhost: {name}:{port}\r\n{known}\r\n".encode())


def _credentials(proxy: SplitResult) -> str:
    both = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
    return base64.b64encode(both.encode()).decode()
