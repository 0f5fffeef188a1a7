"""A server with tiny random models of every kind, listening on a free port of this machine."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import httpx2
import pytest
import torch

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.config import to_mapping
from heedful.serving.server import Running
from heedful.serving.settings import ServeSettings
from heedful.tasks.answer import Answer
from heedful.tasks.choose import Choose
from heedful.tasks.classify import Classify
from heedful.tasks.multilabel import MultiLabel
from heedful.tasks.regress import Regress
from heedful.tasks.tag import Tag
from heedful.tasks.task import Task
from tests.gpt_folder import byte_level_tokenizer, random_gpt

PATIENCE = 60.0
LINES = ["the cat sees the dog", "我爱北京", "love", "", "unaffordable"]
TASKS: list[Task[Any]] = [
    Classify(labels=("bad", "good")),
    Regress(),
    Tag(labels=("O", "B-X", "I-X")),
    Answer(max_length=24, stride=8),
    Choose(),
    MultiLabel(labels=("bad", "good", "long")),
]


class Live(NamedTuple):
    """A running server and a client of it."""

    url: str
    http: httpx2.Client
    running: Running

    def ask(self, model: str, verb: str, **body: Any) -> Any:
        """What a verb answers; anything but an answer is a failure."""
        answer = self.http.post(f"/v1/models/{model}/{verb}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, path: str, **request: Any) -> dict[str, Any]:
        """The error that a request gets."""
        answer = self.http.post(path, **request)
        assert 400 <= answer.status_code < 500, answer.text
        error: dict[str, Any] = answer.json()["error"]
        assert error["status"] == answer.status_code and error["message"]
        return error


Start = Callable[..., Any]


@contextmanager
def live_server(folders: tuple[str, ...], **settings: Any) -> Iterator[Live]:
    running = Running(folders, ServeSettings(**{"port": 0, "threads": 2, **settings}), tell=lambda line: None)
    running.server.config.load()
    thread = threading.Thread(target=lambda: asyncio.run(running.run()), daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE
    while running.door.app is None and running.error is None and time.monotonic() < until:
        time.sleep(0.01)
    assert running.error is None, running.error
    with httpx2.Client(base_url=running.server.address, timeout=PATIENCE) as http:
        yield Live(running.server.address, http, running)
    running.server.should_exit = True
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def task_folders(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of random models for every task."""
    folders, folder = tmp_path_factory.mktemp("tasks"), read_folder(tiny_folder)
    for task in TASKS:
        model, rng = load_for_task(folder, task.model, seed=0), torch.Generator().manual_seed(1)
        for name, parameter in model.named_parameters():
            if not name.startswith("encoder."):
                torch.nn.init.normal_(parameter, generator=rng)
        settings = {"task": task.name, **to_mapping(task)}
        labels = getattr(task, "labels", ())
        path = folders / task.name
        save_for_task(model, path, folder.tokenizer, task=settings, architecture=task.architecture, labels=labels)
    return {task.name: folders / task.name for task in TASKS}


@pytest.fixture(scope="session")
def gpt_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GPT."""
    path, tokenizer = tmp_path_factory.mktemp("served") / "gpt", byte_level_tokenizer()
    end = tokenizer.id_of("<|endoftext|>")
    gpt = random_gpt(tokenizer.vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    save_model(gpt, path, tokenizer, foreign={"bos_token_id": end, "eos_token_id": end})
    return path


@pytest.fixture(scope="session")
def lines_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines to search."""
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def live(
    tiny_folder: Path, task_folders: dict[str, Path], tiny_translators: dict[str, Path], lines_file: Path
) -> Iterator[Live]:
    """A server with all of them."""
    folders = (str(tiny_folder), *map(str, task_folders.values()))
    names = (f"en-zh={tiny_translators['transformer']}",)
    with live_server(folders, name=names, search=(f"tiny={lines_file}",)) as live:
        yield live


@pytest.fixture(scope="session")
def start() -> Start:
    """Start another server, with settings of its own, for the time of a `with` block."""
    return live_server


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a script of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    return importlib.import_module
