"""Texts in, a file of vectors out: streamed, and continued where an earlier attempt was interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.addresses import Address, check_reach, place
from heedful.data.processes import Engine
from heedful.errors import HeedfulError
from heedful.inference.embed_tasks import WrittenChunk, chunks_by, written_by
from heedful.inference.embedder import Chunk, Embedder
from heedful.inference.feature_lines import extract_features_lines
from heedful.inference.features import Features
from heedful.inference.heap import give_back_freed_memory
from heedful.inference.onnx_engine import OnnxEncoder
from heedful.inference.vector_file import VectorFile
from heedful.inference.vector_layout import FORMATS, VectorLayout
from heedful.inference.vector_parts import VectorParts

TRUNCATE = ("warn", "error")


@dataclass(frozen=True)
class EmbedProgress:
    """How far an output has come."""

    resumed: int  # texts that an earlier attempt had done
    texts: int
    truncated: int
    blank: int = 0  # texts without a character to read
    there: bool = False  # whether all of it was there already
    tokens: int = 0  # computed by this attempt
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter, repr=False)

    def after(self, chunk: Chunk | WrittenChunk) -> EmbedProgress:
        """The progress once `chunk` is done too."""
        return replace(
            self,
            texts=self.texts + len(chunk.texts),
            truncated=self.truncated + chunk.truncated,
            blank=self.blank + sum(not text.strip() for text in chunk.texts),
            tokens=self.tokens + chunk.tokens,
            seconds=time.perf_counter() - self.started,
        )


def embed_file(
    model: Embedder,
    texts: Iterable[str],
    path: str | Path,
    wanted: Features,
    *,
    kind: str = "npy",
    max_length: int | None = None,
    truncate: str = "warn",
    restart: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[EmbedProgress], None] = lambda progress: None,
    engine: Engine | None = None,
) -> EmbedProgress:
    """Write the vectors of `texts` to `path` as npy, safetensors or jsonl; `truncate="error"` refuses long texts.

    An `engine` has workers that compute the vectors, the same ones as without it. They also write them where they can:
    at an address, and on a path, which they must share, if each text has one vector.
    A finished file of the same texts and settings stays as it is; any other is refused unless `overwrite` is given.
    """
    _check(kind, wanted, truncate)
    width = wanted.width(model.encoder.config)
    request = _request(model, wanted, kind, model.limit(max_length))
    if engine is not None:
        check_reach(place(path))
    target = _target(place(path), VectorLayout(kind, width, wanted.unit != "sentence"), request, restart)
    digest = blake2b()
    source = iter(texts)
    if target.path.exists() and not overwrite:
        return _there_already(source, target)
    if truncate == "error" and target.done.get("truncated"):
        raise HeedfulError(
            f"{target.done['truncated']} texts of the unfinished output were too long and were cut",
            where=target.partial,
            remedy="go on with warn for `truncate`, or start over with `restart`",
        )
    done, blank = _skip_done(source, target, digest)
    progress = EmbedProgress(resumed=done, texts=done, truncated=target.done.get("truncated", 0), blank=blank)
    with target as file:
        committed = time.monotonic()
        # A resumed output is the same to the last bit, so its last few texts go the way they would have gone.
        for chunk in _chunks(model, source, wanted, max_length, engine, file, done):
            if truncate == "error":
                _refuse_truncation(chunk, progress.texts, model.limit(max_length))
            if isinstance(chunk, WrittenChunk):
                file.add_written(chunk.lengths, chunk.part)
            else:
                lines = extract_features_lines(chunk, progress.texts, model, wanted) if kind == "jsonl" else None
                file.append(chunk, lines)
            _feed(digest, chunk.texts)
            progress = progress.after(chunk)
            on_progress(progress)
            if file.is_due(time.monotonic() - committed):
                file.commit(progress.texts, digest.hexdigest(), progress.truncated)
                give_back_freed_memory()
                committed = time.monotonic()
        if not progress.texts:
            file.forget()
            raise HeedfulError("there are no texts in the input", remedy="give at least one line")
        file.finish(progress.texts, digest.hexdigest(), progress.truncated)
    return progress


def _target(
    where: Path | Address, layout: VectorLayout, request: dict[str, Any], restart: bool
) -> VectorFile | VectorParts:
    if isinstance(where, Address):
        return VectorParts(where, layout, request, restart)
    return VectorFile(where, layout, request, restart)


def _chunks(
    model: Embedder,
    source: Iterator[str],
    wanted: Features,
    max_length: int | None,
    engine: Engine | None,
    file: VectorFile | VectorParts,
    first: int,
) -> Iterator[Chunk] | Iterator[WrittenChunk]:
    if engine is None:
        return model.chunks(source, wanted, max_length, shortcut=False)
    writer = file.writer()
    if writer is None:
        return chunks_by(engine, model, source, wanted, max_length)
    return written_by(engine, model, source, wanted, max_length, file.layout, writer, first)


def _check(kind: str, wanted: Features, truncate: str) -> None:
    if kind not in FORMATS:
        raise HeedfulError(f"no format is called {kind!r}", remedy=f"choose one of {', '.join(FORMATS)}")
    if truncate not in TRUNCATE:
        raise HeedfulError(f"truncate is {truncate!r}", remedy=f"choose one of {', '.join(TRUNCATE)}")
    if kind == "jsonl" and (wanted.unit != "token" or wanted.combine != "concat" or wanted.normalize):
        raise HeedfulError(
            "jsonl holds every token and every layer by itself",
            remedy="use it with unit token, without combining or normalizing, or choose npy or safetensors",
        )


def _request(model: Embedder, wanted: Features, kind: str, limit: int) -> dict[str, Any]:
    """What makes an output the same one: settings and model."""
    return {
        "features": {**asdict(wanted), "layers": list(wanted.layers)},
        "format": kind,
        "max_length": limit,
        "model": [
            [str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns]
            for file in _weights(model.folder.weights)
        ],
        **({} if model.int8 is None else {"int8_without": list(model.int8.float32)}),
        **({"engine": "onnxruntime"} if isinstance(model.encoder, OnnxEncoder) else {}),
        **({} if model.exported is None else {"exported": model.exported.precision}),
    }


def _weights(folder: Path) -> list[Path]:
    """The files that a model is read from, whatever format they are in."""
    for pattern in ("*.safetensors", "*.bin", "*.ckpt*", "*.hdf5", "*.onnx"):
        if found := sorted(folder.glob(pattern)):
            return found
    return []


def _there_already(source: Iterator[str], target: VectorFile | VectorParts) -> EmbedProgress:
    """The progress of a finished output of the same texts and settings; one of others is not to be replaced."""
    made = target.origin
    if made is None:
        raise _in_the_way("a file", target)
    if made["request"] != target.request:
        raise _in_the_way("a file of other settings or another model", target)
    digest, count = blake2b(), 0
    for text in source:
        _feed(digest, [text])
        count += 1
    if (count, digest.hexdigest()) != (made["texts"], made["digest"]):
        raise _in_the_way(f"a file of another input ({made['texts']:,} texts)", target)
    return EmbedProgress(resumed=count, texts=count, truncated=made["truncated"], there=True)


def _in_the_way(what: str, target: VectorFile | VectorParts) -> HeedfulError:
    remedy = "name another file, or replace it with `overwrite`"
    return HeedfulError(f"{what} is there already", where=target.path, remedy=remedy)


def _skip_done(source: Iterator[str], target: VectorFile | VectorParts, digest: blake2b) -> tuple[int, int]:
    """Pass over the texts that are done, after making sure that they are the same; how many, and how many are blank."""
    done: int = target.done.get("texts", 0)
    blank = 0
    for text in islice(source, done):
        _feed(digest, [text])
        blank += not text.strip()
    if done and digest.hexdigest() != target.done["digest"]:
        raise HeedfulError(
            "the input is not the one of the unfinished output",
            where=target.partial,
            remedy="give the same input, or start over with `restart`",
        )
    return done, blank


def _feed(digest: blake2b, texts: Iterable[str]) -> None:
    digest.update("".join(f"{text}\n" for text in texts).encode())


def _refuse_truncation(chunk: Chunk | WrittenChunk, first: int, limit: int) -> None:
    for number, cut in enumerate(chunk.cut, start=first + 1):
        if cut:
            raise HeedfulError(
                f"text {number} is longer than {limit} tokens",
                where=f"text {number}: {chunk.texts[number - first - 1][:60]!r} …",
                remedy="shorten it, raise `max_length`, or allow cutting with warn for `truncate`",
            )
