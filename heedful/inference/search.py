"""Search: the lines whose vectors are nearest to that of a query, kept in a folder to which lines can be added.

    index = Index.create("index", heedful.load("model"))          # later: Index.open("index")
    index.add(["a line", "another"])
    index.search(["a query"], top=5)[0][0].text

A folder holds `index.json` and, for each part, its vectors (`00001.npy`, of length 1) and its lines (`00001.jsonl`). A
part counts once index.json names it, so that whatever happens while lines are added, what was there stays whole. The
vectors of two probes tell whether a model is the one that the index was made with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.atomic import atomic_file, atomic_path, plain_write_errors
from heedful.config import from_mapping
from heedful.errors import HeedfulError
from heedful.file_lock import try_lock
from heedful.inference.embedder import Embedder
from heedful.inference.features import Features, Vectors
from heedful.inference.load import load_embedder
from heedful.inference.search_graph import nearest_by_graph
from heedful.json_files import read_json, write_json

RECORD, LOCK = "index.json", "index.lock"
PART = 50_000  # so many lines at most are lost when adding is interrupted
PROBES = ("A small dog sleeps in the warm sun.", "今天天气很好，我们去公园走走。")
# The same model may differ so much, on another processor or in another precision, of what lies between the two probes.
LEEWAY = 0.2


@dataclass(frozen=True)
class Part:
    """Lines that were added together."""

    name: str
    lines: int


# The cosine of a line, its part, and its place there.
Found = tuple[float, Part, int]


@dataclass(frozen=True)
class IndexRecord:
    """What index.json says: the model, how its vectors are made, and the parts."""

    model: str
    pooling: str
    max_length: int
    width: int
    probes: tuple[tuple[float, ...], ...]
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Hit:
    """A line that was found: how near it is, and where it came from."""

    cosine: float
    text: str
    source: str  # the file, if it is known
    line: int  # its number there, from 1 on


@dataclass(frozen=True)
class Added:
    """What became of lines that were to be added."""

    new: int = 0
    known: int = 0  # were there already
    blank: int = 0
    cut: int = 0  # of the new ones, longer than the model reads


class Index:
    """The lines and vectors of a folder, with the model that made them."""

    def __init__(self, folder: str | Path, record: IndexRecord, embedder: Embedder) -> None:
        self.folder, self.record, self.embedder = Path(folder), record, embedder
        self._remembered: dict[Part, list[dict[str, Any]]] = {}

    @classmethod
    def create(cls, folder: str | Path, embedder: Embedder, pooling: str | None = None) -> Index:
        """A new index without lines; `pooling` None is the model's own."""
        path = Path(folder)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise HeedfulError("this is there already, and no index", where=path, remedy="name a new folder")
        wanted = embedder.features((-1,), "concat", pooling, "sentence", True)
        probes = tuple(tuple(map(float, vector)) for vector in _vectors(embedder, PROBES, wanted, embedder.limit(None)))
        model = str(embedder.folder.weights.resolve())
        index = cls(path, IndexRecord(model, wanted.pooling, embedder.limit(None), len(probes[0]), probes), embedder)
        index._write()
        return index

    @classmethod
    def open(cls, folder: str | Path, embedder: Embedder | None = None) -> Index:
        """An index that is there; without an embedder the model is loaded from where it was."""
        path = Path(folder)
        if not (path / RECORD).is_file():
            remedy = "make one: give `model`, and lines with `add`"
            raise HeedfulError("there is no index", where=path, remedy=remedy)
        record = from_mapping(IndexRecord, read_json(path / RECORD), path / RECORD)
        if embedder is None and not Path(record.model).is_dir():
            what, remedy = f"its model is no longer at {record.model}", "say where it is with `model`"
            raise HeedfulError(what, where=path, remedy=remedy)
        index = cls(path, record, embedder or load_embedder(record.model))
        index._check_model()
        return index

    def __len__(self) -> int:
        return sum(part.lines for part in self.record.parts)

    def add(
        self, texts: Iterable[str], source: str = "", on_progress: Callable[[int], object] = lambda seen: None
    ) -> Added:
        """Add the lines that are not there yet; blank ones are passed over. A part is kept as soon as it is whole."""
        if isinstance(texts, str):
            raise HeedfulError("a single line", remedy="give a list of lines, such as [line]")
        added = Added()
        with self._locked():
            known = {_digest(line["text"]) for part in self.record.parts for line in self._lines(part)}
            numbered = enumerate(texts, start=1)
            while chunk := list(islice(numbered, PART)):
                new: dict[bytes, tuple[int, str]] = {}
                for number, text in chunk:
                    if text.strip() and _digest(text) not in known:
                        new.setdefault(_digest(text), (number, text))
                blank = sum(not text.strip() for _, text in chunk)
                cut = self._append(source, list(new.values()), on_progress) if new else 0
                known |= new.keys()
                found = (len(new), len(chunk) - len(new) - blank, blank, cut)
                added = Added(*(a + b for a, b in zip(asdict(added).values(), found, strict=True)))
                on_progress(chunk[-1][0])
        return added

    def search(self, queries: Sequence[str], top: int = 5, approximate: bool = False) -> list[list[Hit]]:
        """The nearest lines of each query, nearest first: by comparing it with every one, or by faiss's graph."""
        if isinstance(queries, str):
            raise HeedfulError("a single query", remedy="give a list of queries, such as [query]")
        if top < 1:
            raise HeedfulError(f"the {top} nearest lines", remedy="ask for at least one")
        for query in queries:
            check_query(query)
        if not len(self):
            remedy = "add some with `add`"
            raise HeedfulError("the index has no lines yet", where=self.folder, remedy=remedy)
        if not queries:
            return []
        asked = np.stack(_vectors(self.embedder, queries, self.wanted, self.record.max_length))
        return self.nearest(asked, top, approximate)

    def nearest(self, asked: NDArray[np.float32], top: int, approximate: bool = False) -> list[list[Hit]]:
        """The nearest lines of each vector, which is made as `wanted` says."""
        nearest = self._by_graph(asked, top) if approximate else [self._exactly(query, top) for query in asked]
        lines = self._texts({(part, place) for hits in nearest for _, part, place in hits})
        return [[Hit(cosine, **lines[part, place]) for cosine, part, place in hits] for hits in nearest]

    def remember(self) -> None:
        """Keep all lines in memory, for many queries."""
        self._remembered = {part: list(self._lines(part)) for part in self.record.parts}

    @property
    def wanted(self) -> Features:
        """How the vectors of lines and queries are made."""
        return self.embedder.features((-1,), "concat", self.record.pooling, "sentence", True)

    def _check_model(self) -> None:
        found = np.stack(_vectors(self.embedder, PROBES, self.wanted, self.record.max_length))
        before = np.asarray(self.record.probes, dtype=np.float32)
        leeway = LEEWAY * float(np.linalg.norm(before[0] - before[1]))
        if found.shape != before.shape or float(np.linalg.norm(found - before, axis=-1).max()) > leeway:
            raise HeedfulError(
                f"{self.embedder.folder.weights} is not the model that this index was made with",
                where=self.folder,
                remedy="give the same model, or make a new index with this one",
            )

    def _append(self, source: str, lines: Sequence[tuple[int, str]], on_progress: Callable[[int], object]) -> int:
        """Write a part and name it in index.json; gives how many of its texts were cut."""
        name, vectors, cut = f"{len(self.record.parts) + 1:05d}", list[Vectors](), 0
        for chunk in self.embedder.chunks((text for _, text in lines), self.wanted, self.record.max_length):
            vectors += chunk.vectors
            cut += chunk.truncated
            on_progress(lines[len(vectors) - 1][0])
        with atomic_file(self.folder / f"{name}.npy", "wb") as file:
            np.save(file, np.stack(vectors).astype(np.float32))
        with atomic_file(self.folder / f"{name}.jsonl") as file:
            for number, text in lines:
                line = {"text": text, "source": source, "line": number}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.record = replace(self.record, parts=(*self.record.parts, Part(name, len(lines))))
        self._write()
        return cut

    def _write(self) -> None:
        with atomic_path(self.folder / RECORD) as temporary:
            write_json(temporary, asdict(self.record))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else adds lines meanwhile; what others added since the index was opened is taken notice of."""
        with plain_write_errors(self.folder / LOCK), (self.folder / LOCK).open("a", encoding="utf-8") as file:
            if not try_lock(file):
                remedy = "wait until it is done"
                raise HeedfulError("another process is adding lines to this index", where=self.folder, remedy=remedy)
            self.record = from_mapping(IndexRecord, read_json(self.folder / RECORD), self.folder / RECORD)
            yield

    def _exactly(self, query: Vectors, top: int) -> list[Found]:
        """The nearest lines of all parts; of equally near ones the one that was added first."""
        found: list[Found] = []
        for part in self.record.parts:
            cosines = self._part_vectors(part) @ query
            places = np.argsort(-cosines, kind="stable")[:top]
            found += [(float(cosines[place]), part, int(place)) for place in places]
        return sorted(found, key=lambda hit: -hit[0])[:top]

    def _by_graph(self, queries: NDArray[np.float32], top: int) -> list[list[Found]]:
        parts = self.record.parts
        starts = np.cumsum([0, *(part.lines for part in parts)])
        cosines, numbers = nearest_by_graph(self.folder, [self._part_vectors(part) for part in parts], queries, top)
        owners = np.searchsorted(starts, numbers, side="right") - 1
        return [
            [
                (float(cosine), parts[owner], int(number - starts[owner]))
                for cosine, owner, number in zip(*row, strict=True)
            ]
            for row in zip(cosines, owners, numbers, strict=True)
        ]

    def _part_vectors(self, part: Part) -> NDArray[np.float32]:
        path = self.folder / f"{part.name}.npy"
        try:
            vectors: NDArray[np.float32] = np.load(path, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(path, f"cannot read the vectors: {error}") from error
        if vectors.shape != (part.lines, self.record.width) or vectors.dtype != np.float32:
            raise _damaged(path, f"the vectors are {vectors.shape}, not {(part.lines, self.record.width)}")
        return vectors

    def _lines(self, part: Part) -> Iterator[dict[str, Any]]:
        if part in self._remembered:
            yield from self._remembered[part]
            return
        path = self.folder / f"{part.name}.jsonl"
        try:
            with path.open(encoding="utf-8") as file:
                for line in file:
                    found = json.loads(line)
                    yield {"text": str(found["text"]), "source": str(found["source"]), "line": int(found["line"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(path, f"cannot read the lines: {error}") from error

    def _texts(self, wanted: set[tuple[Part, int]]) -> Mapping[tuple[Part, int], dict[str, Any]]:
        found: dict[tuple[Part, int], dict[str, Any]] = {}
        for part in {part for part, _ in wanted}:
            places = {place for other, place in wanted if other == part}
            found |= {(part, place): line for place, line in enumerate(self._lines(part)) if place in places}
        if len(found) < len(wanted):
            raise _damaged(self.folder, "lines are missing")
        return found


def check_query(query: str) -> None:
    """Refuse a query without words: what is nearest to nothing says nothing."""
    if not query.strip():
        raise HeedfulError("the query is blank", remedy="give a few words")


def _vectors(embedder: Embedder, texts: Sequence[str], wanted: Features, limit: int) -> list[Vectors]:
    return [vector for chunk in embedder.chunks(texts, wanted, limit) for vector in chunk.vectors]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _damaged(path: Path, what: str) -> HeedfulError:
    return HeedfulError(f"the index is damaged: {what}", where=path, remedy="make it anew from its lines")
