"""A client of `heedful serve` with the methods of a loaded model; importing it loads neither torch nor the server.

    from heedful.client import Client
    with Client("http://127.0.0.1:8000") as model:        # Client(url, model="mini", api_key="…")
        vectors = model.embed(["one text", "another"])

Many inputs are sent in several requests and come back in order. Connections are kept. A server that is busy or not
ready yet is asked again when it says so, until the total deadline is over. `AsyncClient` has the same methods to be
awaited.
"""

from heedful.client.asynchronous import AsyncClient
from heedful.client.blocking import Client
from heedful.client.verbs import ServerError

__all__ = ["AsyncClient", "Client", "ServerError"]
