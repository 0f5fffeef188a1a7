"""Building a corpus: files in, token shards out, in as many processes as one likes and as often as need be.

    corpus/
      manifest.json              written last: settings, counts, and size and checksum of every shard
      tokenizer/                 a copy of the tokenizer
      train-00000.safetensors …  held_out-00000.safetensors …

A shard hangs on its unit of text, the tokenizer and the settings, and says in its facts which these were. A build that
was killed is started again with the same command: shards that are whole and still the right ones are kept.

This process reads the text and cuts it into units, unless it could not feed all workers: then they read it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from heedful.addresses import Address, check_reach, place, send, working_copy
from heedful.atomic import atomic_file, make_folder
from heedful.data.corpus.corpus import (
    FORMAT,
    MANIFEST,
    TOKENIZER,
    Corpus,
    manifest_digest,
    read_manifest,
    vocabulary_digest,
)
from heedful.data.corpus.pieces import pieces_of
from heedful.data.corpus.reading import UNIT_BYTES, Cutter, Unit, documents_of
from heedful.data.corpus.staging import ONE_READER_FEEDS, StagedUnit, Staging
from heedful.data.corpus.tokens import TokenSettings, UnitTokeniser
from heedful.data.processes import Workers, mapped
from heedful.data.shards import Shard, file_digest, open_shard, write_shard
from heedful.data.text_files import FIELD
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer

_OURS = re.compile(r"(train|held_out)-\d{5,}\.safetensors|examples-.*|manifest\.json|tokenizer")
_STAGED = r"staged-(train|held_out)-\d{5,}\.txt"
_LEFT_OVER = re.compile(
    rf"\.((train|held_out)-\d{{5,}}\.safetensors|manifest\.json|{_STAGED})\.[0-9a-f]+\.tmp|{_STAGED}"
)
_COUNTS = ("documents", "sentences", "tokens", "unknown")
# What shards with words hold; another name for it makes a build of an earlier version be done again.
_WORDS = "words as written"


@dataclass(frozen=True)
class ReadingSettings:
    """Which documents are read, and which of them are held out."""

    field: str | None = None  # of JSON lines, or the column of a table; None for `text`, or by the header
    deduplicate: bool = False
    held_out_share: float = 0.01
    held_out_files: tuple[str, ...] = ()
    unit_bytes: int = UNIT_BYTES


@dataclass(frozen=True)
class BuildProgress:
    """How far a build is: what has been read, and the shards that are finished and how many of them were kept."""

    bytes: int
    documents: int
    shards: int
    kept: int


def build_corpus(
    files: Sequence[str],
    folder: str | Path,
    tokenizer: Tokenizer,
    settings: TokenSettings = TokenSettings(),  # noqa: B008
    reading: ReadingSettings = ReadingSettings(),  # noqa: B008
    workers: Workers = 1,
    on_progress: Callable[[BuildProgress], None] = lambda _: None,
    overwrite: bool = False,
) -> Corpus:
    """Build a corpus from text files into `folder`, or finish the build that was begun there.

    A finished corpus is replaced only with `overwrite`; of the same text and settings it stays as it is.
    """
    folder = place(folder)
    files, reading = _every_file(files), replace(reading, held_out_files=_every_file(reading.held_out_files))
    if workers != 1:
        check_reach(folder)
    tokenizer.require(("unk",), "a corpus")  # what a model needs beyond it, its pretraining asks for
    described = _described(settings, reading)
    finished = _prepare(folder, tokenizer, described, overwrite)
    cutter = Cutter(reading.held_out_share, reading.deduplicate, reading.unit_bytes)
    entries: dict[str, list[dict[str, Any]]] = {"train": [], "held_out": []}
    kept = 0
    staging = _staging(folder, files, settings, reading, workers)
    units = _units(cutter, files, settings, reading, staging)
    arguments = (folder.absolute(), settings, _fingerprint(tokenizer, settings), finished)
    # Those who stage text began last, and end first.
    with closing(mapped(ShardBuilder, arguments, units, workers)) as made, closing(units):
        for entry, is_kept in made:
            entries[entry["name"].split("-")[0]].append(entry)
            kept += is_kept
            if staging is not None:
                staging.drop_used()
            on_progress(BuildProgress(cutter.size, cutter.documents, sum(map(len, entries.values())), kept))
    _check_some(entries, files)
    if finished is not None and {entry["name"] for part in entries.values() for entry in part} != finished:
        raise _other_text(folder)
    _finish(folder, tokenizer, described, entries, cutter)
    return Corpus.open(folder)


class ShardBuilder:
    """Makes the shard of a unit, in whatever process, unless it is there already."""

    def __init__(
        self, folder: Path | Address, settings: TokenSettings, fingerprint: str, finished: frozenset[str] | None = None
    ) -> None:
        """`finished` are the shards of a corpus that is there and must not become that of another text."""
        self.folder, self.fingerprint, self.finished = folder, fingerprint, finished
        with working_copy(folder / TOKENIZER) as copy:
            self.tokenise = UnitTokeniser(Tokenizer.load(copy), settings)

    def __call__(self, unit: Unit | StagedUnit) -> tuple[dict[str, Any], bool]:
        """The manifest's entry for the shard, and whether it was there."""
        unit = unit if isinstance(unit, Unit) else unit.read(self.folder)
        where = self.folder / f"{unit.part}-{unit.number:05d}.safetensors"
        origin = {"input": unit.digest, "settings": self.fingerprint}
        with working_copy(where) as path:
            kept = _is_done(path, origin)
            if not kept and self.finished is not None and not _is_lost(path, origin, self.finished):
                raise _other_text(self.folder)
            if not kept:
                arrays, counts = self.tokenise(unit.text)
                write_shard(path, arrays, {**origin, **counts})
                send(path, where)
            return _entry(open_shard(path)), kept


def _staging(
    folder: Path | Address, files: Sequence[str], settings: TokenSettings, reading: ReadingSettings, workers: Workers
) -> Staging | None:
    """What lets the workers read the text, if they are many and there is more than one piece of it."""
    if isinstance(workers, int) and workers <= ONE_READER_FEEDS:
        return None
    pieces = pieces_of(files, reading.held_out_files, reading.held_out_share, settings.layout)
    if pieces is None or len(pieces) == 1:
        return None
    return Staging(folder.absolute(), pieces, reading.field, settings.layout, workers)


def _units(
    cutter: Cutter,
    files: Sequence[str],
    settings: TokenSettings,
    reading: ReadingSettings,
    staging: Staging | None,
) -> Generator[Unit | StagedUnit, None, None]:
    if staging is not None:
        yield from staging.units(cutter)
        return
    train = documents_of(files, reading.field, settings.layout)
    held_out = documents_of(reading.held_out_files, reading.field, settings.layout)
    yield from cutter.cut(train, held_out)


def _is_lost(path: Path, origin: dict[str, str], finished: frozenset[str]) -> bool:
    """Whether a shard of a finished corpus is missing or damaged, and not one of another text."""
    try:
        return path.name in finished and open_shard(path).facts.get("input") == origin["input"]
    except HeedfulError:
        return path.name in finished


def _other_text(folder: Path | Address) -> HeedfulError:
    what = "the folder holds a finished corpus of another text"
    return HeedfulError(what, where=folder, remedy="name a new folder, or replace it with `overwrite`")


def _is_done(path: Path, origin: dict[str, str]) -> bool:
    try:
        shard = open_shard(path)
    except HeedfulError:
        return False
    return origin.items() <= shard.facts.items() and shard.is_whole()


def _entry(shard: Shard) -> dict[str, Any]:
    return {
        "name": shard.path.name,
        "bytes": shard.path.stat().st_size,
        "checksum": file_digest(shard.path),
        "digest": shard.facts["digest"],
        **{name: shard.facts[name] for name in (*_COUNTS, "words") if name in shard.facts},
    }


def _fingerprint(tokenizer: Tokenizer, settings: TokenSettings) -> str:
    everything = [FORMAT, tokenizer.library.to_str(), tokenizer.special_tokens, asdict(settings)]
    everything += [_WORDS] if settings.words else []
    return hashlib.blake2b(json.dumps(everything, sort_keys=True).encode(), digest_size=16).hexdigest()


def _described(settings: TokenSettings, reading: ReadingSettings) -> dict[str, Any]:
    """The settings as the manifest shows them: no names of files, and of a lexicon only what tells it from others."""
    phrases = "\n".join(settings.lexicon).encode()
    lexicon = {"phrases": len(settings.lexicon), "digest": hashlib.blake2b(phrases, digest_size=16).hexdigest()}
    held_out = {"held_out_files": len(reading.held_out_files), "field": reading.field or FIELD}
    return {**asdict(settings), "lexicon": lexicon if settings.lexicon else None, **asdict(reading), **held_out}


def _prepare(
    folder: Path | Address, tokenizer: Tokenizer, described: dict[str, Any], overwrite: bool
) -> frozenset[str] | None:
    """Make the folder ready; gives the shards of a finished corpus in it that is not to be replaced."""
    if isinstance(folder, Path):
        make_folder(folder)
    strange = [
        path.name for path in folder.iterdir() if not (_OURS.fullmatch(path.name) or _LEFT_OVER.fullmatch(path.name))
    ]
    if strange:
        what = f"the folder holds other things, {sorted(strange)[0]} for one"
        raise HeedfulError(what, where=folder, remedy="name a new folder")
    finished = None
    if (folder / MANIFEST).exists() and not overwrite:
        before = read_manifest(folder)
        if (before["settings"], before["vocabulary"]) != (described, _vocabulary(tokenizer)):
            what = "the folder holds a corpus that was built with other settings or another vocabulary"
            raise HeedfulError(what, where=folder, remedy="name a new folder, or replace it with `overwrite`")
        finished = frozenset(entry["name"] for part in before["shards"].values() for entry in part)
    elif overwrite:
        (folder / MANIFEST).unlink(missing_ok=True)  # until the new one is whole there is none
    with working_copy(folder / TOKENIZER, fetch=False) as copy:
        tokenizer.save(copy)
        send(copy, folder / TOKENIZER)
    return finished


def _finish(
    folder: Path | Address,
    tokenizer: Tokenizer,
    described: dict[str, Any],
    entries: dict[str, list[dict[str, Any]]],
    cutter: Cutter,
) -> None:
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "settings": described,
        "vocabulary": _vocabulary(tokenizer),
        "input": {"documents": cutter.documents, "duplicates": cutter.duplicates, "bytes": cutter.size},
        "shards": entries,
    }
    manifest["checksum"] = manifest_digest(manifest)
    with working_copy(folder / MANIFEST, fetch=False) as copy:
        with atomic_file(copy) as file:
            json.dump(manifest, file, indent=1, sort_keys=True)
        send(copy, folder / MANIFEST)
    current = {entry["name"] for part in entries.values() for entry in part}
    for path in folder.iterdir():
        # Shards of an earlier, longer input, and what a killed build was writing.
        if _LEFT_OVER.fullmatch(path.name) or (path.suffix == ".safetensors" and path.name not in current):
            path.unlink()


def _vocabulary(tokenizer: Tokenizer) -> dict[str, Any]:
    return {"size": tokenizer.vocab_size, "digest": vocabulary_digest(tokenizer)}


def _every_file(files: Sequence[str]) -> tuple[str, ...]:
    """The files that were named, each of which is there, and those that an address with * stands for."""
    found: list[str] = []
    for file in files:
        where = place(file)
        several = where.matching() if isinstance(where, Address) else [file]
        if file != "-" and not (several and place(several[0]).is_file()):
            raise HeedfulError("no such file", where=file, remedy="check the name")
        found += several
    return tuple(found)


def _check_some(entries: dict[str, list[dict[str, Any]]], files: Sequence[str]) -> None:
    if not sum(entry["tokens"] for entry in entries["train"]):
        raise HeedfulError(
            "no text is left to train on", where=", ".join(files), remedy="give more documents, or hold out fewer"
        )
