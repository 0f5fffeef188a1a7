"""Work shared out to the machines of a Ray cluster, as `processes.py` shares it out to processes of this one.

Ray runs a task again when the process or the machine that had it is lost, as long as one worker is left; a task writes
whole files of bytes that hang on nothing but the task, so that one done twice leaves what one done once leaves. Between
the machines tasks and results travel as Ray's own pickles.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from heedful.data.processes import In, Out, one_thread_each
from heedful.errors import HeedfulError

# How often a task may lose its machine before it is suspected to be the reason.
RETRIES = 5
# Seconds that a cluster may take to answer.
PATIENCE = 5.0
# The beginning of HTTP/2: its preface, and a frame of settings that are all left as they are (RFC 9113, 3.4 and 6.5).
_SETTINGS = 4
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])
_AUTO = "auto"
# As many calls of `mapped` go on at a time: the tasks of one may be made from the results of another.
_TOOLS_KEPT = 2
_tools: dict[str, Any] = {}


class RayEngine:
    """Workers on all machines of a cluster, one a core; they find files under the same paths as this machine does."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def mapped(
        self, make_tool: Callable[..., Callable[[In], Out]], arguments: tuple[Any, ...], tasks: Iterable[In]
    ) -> Iterator[Out]:
        """The results of `make_tool(*arguments)` on every task, in order; each worker makes its own tool once."""
        ray, running = self._ray, deque[Any]()
        how = ray.put((uuid.uuid4().hex, version("heedful"), make_tool, arguments))
        work = ray.remote(num_cpus=1, max_retries=RETRIES)(_work)
        try:
            for task in tasks:
                running.append(work.remote(how, task))
                if len(running) > 3 * self._cores():
                    yield self._result(running.popleft())
            while running:
                yield self._result(running.popleft())
        finally:
            for left in running:
                ray.cancel(left, force=True)

    def _cores(self) -> int:
        """How many tasks run at once just now: machines come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _result(self, reference: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, HeedfulError):
                raise error.cause from None
            raise
        except errors.RayError as error:
            raise HeedfulError(
                f"a task was lost {RETRIES + 1} times with its worker: {str(error).splitlines()[0]}",
                remedy="see that the machines have enough memory, and start again: what is done is kept",
            ) from error


@contextmanager
def ray_engine(address: str) -> Iterator[RayEngine]:
    """The workers of the cluster at `address`, HOST:PORT of its head, or `auto` on one of its machines."""
    if find_spec("ray") is None:
        raise HeedfulError("the package ray is not installed", remedy="pip install 'heedful[ray]'")
    _knock(address)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # read when ray is imported: nothing is reported to anybody
    import ray

    if ray.is_initialized():  # by whoever calls this from Python; it stays theirs
        yield RayEngine(ray)
        return
    try:
        _connect(ray, address)
        yield RayEngine(ray)
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        what = f"the Ray cluster cannot be joined: {str(error).strip().splitlines()[0]}"
        remedy = "start heedful on a machine of the cluster (`ray start`), with its versions of Python and Ray"
        raise HeedfulError(what, where=address, remedy=remedy) from error


def _knock(address: str) -> None:
    """Tell within seconds that nobody is there; Ray itself would wait for minutes."""
    if address == _AUTO:
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        what = "not the address of a Ray cluster"
        raise HeedfulError(what, where=address, remedy="give HOST:PORT as `ray start` told them, or auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as connection:
            _greet(connection)
    except (OSError, OverflowError) as error:
        what = f"no Ray cluster answers ({getattr(error, 'strerror', None) or error})"
        raise HeedfulError(what, where=address, remedy="see that its head runs, and check host and port") from error


def _greet(connection: socket.socket) -> None:
    """See that HTTP/2 is spoken, as the head of a cluster does: its first frame is one of settings."""
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    connection.settimeout(PATIENCE)
    connection.sendall(_HELLO)
    answer = connection.recv(9)
    if len(answer) < 4 or answer[3] != _SETTINGS:
        raise ConnectionError("what listens there is something else")


def _work(how: tuple[str, str, Callable[..., Any], tuple[Any, ...]], task: Any) -> Any:
    """On a machine of the cluster: one task, by a tool that is made once for each call of `mapped`."""
    name, wanted, make_tool, arguments = how
    try:
        with one_thread_each():
            if name not in _tools:
                _check_version(wanted)
                while len(_tools) >= _TOOLS_KEPT:
                    del _tools[next(iter(_tools))]
                _tools[name] = make_tool(*arguments)
            return _tools[name](task)
    except HeedfulError as error:
        where = f"{error.where or 'a task'}, on {socket.gethostname()}"
        raise HeedfulError(error.what, where=where, remedy=error.remedy) from error


def _check_version(wanted: str) -> None:
    if version("heedful") != wanted:
        what = f"this machine has heedful {version('heedful')}, and the one that asks {wanted}"
        raise HeedfulError(what, where=sys.prefix, remedy="install the same version on all machines")
