"""What a server is told: flags, `HEEDFUL_SERVE_…` variables and their help all come from this dataclass."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from heedful.errors import HeedfulError
from heedful.runs.settings import check_bounds, told

ENVIRONMENT = "HEEDFUL_SERVE"
API_KEY_VARIABLE = f"{ENVIRONMENT}_API_KEY"


@dataclass(frozen=True)
class ServeSettings:
    """Where to listen, how to compute, and what is too much."""

    name: tuple[str, ...] = told((), "A model under a name of its own.", several=True, metavar="NAME=FOLDER")
    search: tuple[str, ...] = told(
        (),
        "What a model searches: lines, or an index of heedful search.",
        several=True,
        metavar="NAME=FILE",
    )
    host: str = told("127.0.0.1", "The address to listen on; 0.0.0.0 for all.")
    port: int = told(8000, "The port; 0 for any that is free.", least=0, below=65536)
    api_key_file: str | None = told(
        None, f"A file whose first line is the key that requests must carry; or set {API_KEY_VARIABLE}.", place="file"
    )
    device: str | None = told(None, "cpu, cuda, cuda:1 …", unset="a GPU if there is one")
    precision: Literal["auto", "float32", "int8"] = told("auto", "As each folder is stored, or one for all.")
    engine: Literal["auto", "heedful", "onnxruntime"] = told(
        "auto", "Our own, and ONNX Runtime for a folder with nothing but model.onnx; or one for all."
    )
    force: bool = told(False, "Take a tokenizer with far too few pieces; compute in int8 where it hardly pays.")
    threads: int | None = told(None, "Threads that compute, each on a core.", unset="one a core, at most 8", least=1)
    batch_tokens: int = told(512, "Tokens that are computed together.", least=1)
    max_wait: float = told(0.2, "Seconds that others may keep a request waiting; beyond, it is refused.", above=0)
    max_queue: int = told(1_000_000, "Tokens that may wait.", least=1)
    timeout: float = told(60.0, "Seconds within which every request is answered.", above=0)
    max_body: int = told(8 * 2**20, "Bytes of a request's body.", least=1)
    max_inputs: int = told(10_000, "Inputs of a request.", least=1)
    max_characters: int = told(200_000, "Characters of a text.", least=1)
    max_tokens: int = told(500_000, "Tokens of a request, each as often as it is computed.", least=1)
    max_connections: int = told(4096, "Connections at a time.", least=1)
    header_timeout: float = told(5.0, "Seconds for the whole head of a request.", above=0)
    body_timeout: float = told(9.0, "Seconds for the whole body of a request.", above=0)
    send_timeout: float = told(9.0, "Seconds for a client to read its answer.", above=0)
    idle_timeout: float = told(75.0, "Seconds that a connection may be idle between requests.", above=0)
    drain: float = told(30.0, "Seconds after SIGTERM for what was accepted to be answered.", above=0)
    bert_as_service: str | None = told(
        None, "Two ports for clients of bert-as-service, which get vectors of the first model.", metavar="PORT:PORT"
    )

    def __post_init__(self) -> None:
        check_bounds(self)
        self.bert_ports()
        self.named_models()
        self.named_lines()

    def bert_ports(self) -> tuple[int, int] | None:
        """The two ports of bert-as-service, if they are asked for."""
        if self.bert_as_service is None:
            return None
        first, _, second = self.bert_as_service.partition(":")
        if not (first.isdecimal() and second.isdecimal() and max(int(first), int(second)) < 65536):
            what = f"`bert_as_service` {self.bert_as_service} is not understood"
            raise HeedfulError(what, remedy="write two ports, as 5555:5556")
        return int(first), int(second)

    def named_models(self) -> dict[str, str]:
        """The folders that have a name of their own."""
        return _pairs("name", self.name, "tiny=runs/tiny")

    def named_lines(self) -> dict[str, str]:
        """The files of lines to search, by model."""
        return _pairs("search", self.search, "tiny=lines.txt")


def effective(settings: ServeSettings, threads: int) -> str:
    """All that is in force, by the names of the options; where to listen, the models and the key are told elsewhere."""
    elsewhere = {"name", "search", "host", "port", "api_key_file", "bert_as_service"}
    known = {**asdict(settings), "threads": threads}
    told = {name: value for name, value in known.items() if name not in elsewhere and value not in (None, False)}
    return ", ".join(f"{name} {_plain(value)}" for name, value in told.items())


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def _pairs(field: str, given: tuple[str, ...], example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise HeedfulError(f"`{field}` {text} is not understood", remedy=f"write {field.upper()}=… as {example}")
        if name in found:
            raise HeedfulError(f"`{field}` {name} is given twice", remedy="give each a name of its own")
        found[name] = value
    return found
