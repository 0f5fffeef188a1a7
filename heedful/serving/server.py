"""A server from start to end: it listens at once, loads its models, answers, drains, and stops."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.heap import give_back_freed_memory
from heedful.inference.workers import MOST_WORKERS
from heedful.serving.app import App, as_json, build_app
from heedful.serving.batcher import Batcher, Bounds
from heedful.serving.catalogue import checked_names, read_catalogue
from heedful.serving.metrics import Metrics
from heedful.serving.page import page_routes
from heedful.serving.protocol import Deadlines, with_deadlines
from heedful.serving.refusals import Refusal
from heedful.serving.service import Service
from heedful.serving.settings import API_KEY_VARIABLE, ServeSettings, effective
from heedful.serving.speed import warm_up
from heedful.serving.wires.bert_service import BertService, ZmqFront
from heedful.serving.wires.routes import foreign_routes

# After SIGTERM connections stay open for so many seconds: a request that is on its way is told 503, and not cut off.
LINGER = 0.3
TIDYING = 10.0  # seconds between two times that freed memory is given back

Tell = Callable[[str], object]


class Door:
    """The application while its models are loaded, which answers 503, and from then on."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or tell it to come again."""
        if self.app is not None:
            await self.app(scope, receive, send)
            return
        healthy = scope.get("path") == "/health"
        refusal = Refusal(503, "starting", "the models are being loaded", retry_after=1)
        starting = as_json({"error": refusal.told}, refusal.status, refusal.headers)
        await (as_json({"status": "starting"}) if healthy else starting)(scope, receive, send)


class Server(uvicorn.Server):
    """uvicorn's server, which drains at the first signal and is gone at the second."""

    def __init__(self, config: uvicorn.Config, door: Door) -> None:
        super().__init__(config)
        self.door = door
        self.service: Service | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop taking requests at once; a second signal does not wait for the answers."""
        if self.should_exit:
            os._exit(128 + sig)
        if self.service is not None:
            self.service.draining = True
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        """Let those who have just asked read that it is over, then wait for what was accepted."""
        await asyncio.sleep(LINGER)
        await super().shutdown(sockets)

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def api_key(settings: ServeSettings) -> bytes | None:
    """The key that requests must carry: from a file or the environment, never from the command line."""
    if settings.api_key_file is None:
        key = os.environ.get(API_KEY_VARIABLE, "").strip()
        return key.encode() or None
    path = Path(settings.api_key_file)
    try:
        key = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HeedfulError("the key cannot be read", where=path, remedy="check `api_key_file`") from error
    if not key:
        raise HeedfulError("the file holds no key", where=path, remedy="write the key into its first line")
    return key.encode()


def own_batcher(settings: ServeSettings, metrics: Metrics) -> Batcher:
    """A batcher whose threads share torch's."""
    cores = torch.get_num_threads()
    threads = settings.threads or min(cores, MOST_WORKERS)
    bounds = Bounds(settings.batch_tokens, settings.max_queue, settings.max_wait)
    return Batcher(threads, bounds, before=_share(cores, threads), after=metrics.batch)


def _share(cores: int, threads: int) -> Callable[[bool], None]:
    """Before a batch: a thread that is alone computes on all cores, others on their share."""
    local = threading.local()

    def before(alone: bool) -> None:
        wanted = cores if alone else max(1, cores // threads)
        if getattr(local, "cores", None) != wanted:
            torch.set_num_threads(wanted)
            torch.set_flush_denormal(True)  # vanishing weights are slow on some processors
            local.cores = wanted

    return before


class Running:
    """A server with all its parts, from settings."""

    def __init__(
        self,
        folders: tuple[str, ...],
        settings: ServeSettings,
        tell: Tell,
        loaded: Callable[[], object] = lambda: None,
    ) -> None:
        """`tell` is given lines for a reader; `loaded` is called once all models are there."""
        self.loaded = loaded
        self.names = checked_names(folders, settings)  # what is wrong with them is told before anything is opened
        self.settings, self.tell = settings, tell
        self.key = api_key(settings)
        self.metrics = Metrics()
        self.door = Door()
        self.server = Server(_config(self.door, settings), self.door)
        self.error: BaseException | None = None
        self.zmq: ZmqFront | None = None
        self.front: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Listen, load, answer until a signal comes, drain."""
        loading, tidying = asyncio.ensure_future(self._load()), asyncio.ensure_future(_give_back_now_and_then())
        await self.server.serve()
        tidying.cancel()
        await loading
        if self.front is not None:
            self.front.cancel()
            await asyncio.wait([self.front])
        if self.server.service is not None:
            await asyncio.to_thread(self.server.service.batcher.close, self.settings.drain)

    async def _load(self) -> None:
        try:
            while not self.server.started:
                if self.server.should_exit:
                    return
                await asyncio.sleep(0.01)
            count = len(self.names)
            self.tell(f"listening on {self.server.address}, loading {count} model{'s' if count > 1 else ''}")
            with ThreadPoolExecutor(1) as loader:  # it ends, and OpenMP's helpers that it has had end with it
                await asyncio.get_running_loop().run_in_executor(loader, self._open)
            self.loaded()
            self._open_bert_service()
            self.tell(f"ready on {self.server.address}")
        except BaseException as error:
            self.error = error
            self.server.should_exit = True

    def _open(self) -> None:
        """Load the models, warm them up, and let requests in."""
        batcher = own_batcher(self.settings, self.metrics)
        catalogue = read_catalogue(self.names, self.settings, self.tell)
        speeds = warm_up(catalogue, batcher)
        self.metrics.watch(batcher)
        service = Service(catalogue, batcher, self.settings, self.metrics)
        service.draining = self.server.should_exit
        self.server.service = service
        app = App(service, self.key)
        self.door.app = build_app(app, [*page_routes(app), *foreign_routes(app)])
        self._banner(service, speeds)

    def _open_bert_service(self) -> None:
        """Listen for clients of bert-as-service too, if that is asked for."""
        ports = self.settings.bert_ports()
        if ports is None:
            return
        if self.key is not None:
            what = "clients of bert-as-service cannot send a key"
            raise HeedfulError(what, remedy="leave out the key, or `bert_as_service`")
        assert self.server.service is not None
        self.zmq = ZmqFront(BertService(self.server.service), self.settings.host, ports)
        self.front = asyncio.ensure_future(self.zmq.run())
        self.tell(f"  bert-as-service on ports {self.zmq.ports[0]} and {self.zmq.ports[1]}")

    def _banner(self, service: Service, speeds: dict[str, str]) -> None:
        settings = self.settings
        for one in service.catalogue.models.values():
            self.tell(f"  {one.name}: {', '.join(one.verbs)}")
            self.tell(f"    {speeds[one.name]}")
            for note in one.model.folder.notes if isinstance(one.model, Embedder) else ():
                self.tell(f"    {note}")
            if (int8 := getattr(one.model, "int8", None)) is not None:
                self.tell(f"    {int8}")
        self.tell(f"  {effective(settings, service.batcher.threads)}")
        self.tell(f"  key {'required' if self.key else 'none'}; {_memory():,.0f} MiB of memory")
        if self.key is None and settings.host not in ("127.0.0.1", "::1", "localhost"):
            self.tell("  warning: anybody who can reach this address can use it; set a key")


def serve(folders: tuple[str, ...], settings: ServeSettings, tell: Tell) -> None:
    """Run a server until it is told to stop; models that cannot be loaded are the caller's error."""
    running = Running(folders, settings, tell, loaded=_keep_what_is_there)
    try:
        running.server.config.load()
        logging.getLogger("uvicorn.error").addFilter(_not_what_is_told_anyway)
        _run(running.run())
    except SystemExit:
        where = f"{settings.host}:{settings.port}"
        raise HeedfulError("cannot listen there", where=where, remedy="choose another `port` or `host`") from None
    if running.error is not None:
        raise running.error
    tell("stopped")


async def _give_back_now_and_then() -> None:
    """Batches of all sizes leave holes in each thread's heap, which would seem to grow for hours."""
    while True:
        await asyncio.sleep(TIDYING)
        await asyncio.to_thread(give_back_freed_memory)


def _not_what_is_told_anyway(record: logging.LogRecord) -> bool:
    """Whether uvicorn's line is wanted; that an address is in use, which it logs bare, is told in our words."""
    return not isinstance(record.msg, OSError)


def _keep_what_is_there() -> None:
    """Models stay until the end: the garbage collector need not look through them again and again."""
    gc.collect()
    gc.freeze()


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on the faster loop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def _config(door: Door, settings: ServeSettings) -> uvicorn.Config:
    deadlines = Deadlines(settings.header_timeout, settings.body_timeout, settings.send_timeout)
    return uvicorn.Config(
        door,
        host=settings.host,
        port=settings.port,
        http=with_deadlines(deadlines),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=settings.idle_timeout,  # type: ignore[arg-type]
        timeout_graceful_shutdown=settings.drain,  # type: ignore[arg-type]
    )


def _memory() -> float:
    """The memory of this process in MiB."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
