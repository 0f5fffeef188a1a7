"""Examples written ahead ("static masking"): the first so many rounds of an `ExampleMaker`, in shards.

A round goes once through the text. With ten duplicates every passage is hidden in ten ways, and then they repeat.
A shard holds `ids`, `masked` and `labels` of its examples one after the other, and for each of them where its ids and
its masked places end (`ends`, `masked_ends`), where its second side begins (`second`) and, if it has two, its `nsp`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import ExampleMaker, Examples, Recipe, join_examples, split_examples
from heedful.data.processes import Workers, mapped
from heedful.data.shards import Array, Shard, open_shard, write_shard
from heedful.errors import HeedfulError

EXAMPLES_IN_SHARD = 8192
_AT_ONCE = 256
_REMEDY = "build the corpus with `static` and the same settings (again)"


class ExampleWriter:
    """Writes the shards of a corpus's training examples, in any order and by any process."""

    def __init__(self, folder: Path, recipe: Recipe, duplicates: int) -> None:
        corpus = Corpus.open(folder)
        self.maker = ExampleMaker(corpus, recipe)
        self.folder = examples_folder(folder, recipe, duplicates)
        self.total = len(self.maker) * duplicates
        self.facts = {**_origin(corpus, recipe, duplicates), "total": self.total}

    @property
    def shards(self) -> int:
        """How many shards there are to write."""
        return -(-self.total // EXAMPLES_IN_SHARD)

    def __call__(self, shard: int) -> int:
        """Write a shard unless it is there and whole; gives the number of its examples."""
        path = self.folder / f"{shard:05d}.safetensors"
        numbers = np.arange(shard * EXAMPLES_IN_SHARD, min((shard + 1) * EXAMPLES_IN_SHARD, self.total))
        facts = {**self.facts, "first": int(numbers[0]), "examples": len(numbers)}
        if not _is_done(path, facts):
            parts = range(0, len(numbers), _AT_ONCE)
            rows = [
                row for start in parts for row in split_examples(self.maker.take(numbers[start : start + _AT_ONCE]))
            ]
            write_shard(path, self._packed(rows), facts)
        return len(numbers)

    def _packed(self, rows: list[Examples]) -> dict[str, Array]:
        narrow = np.uint16 if len(self.maker.rules.hideable) <= 1 << 16 else np.uint32
        joined = join_examples(rows)
        return {
            "ids": joined.ids.astype(narrow),
            "labels": joined.labels.astype(narrow),
            "masked": np.concatenate([row.masked for row in rows]).astype(np.uint16),
            "ends": np.cumsum(joined.lengths).astype(np.uint32),
            "masked_ends": np.cumsum([len(row.masked) for row in rows]).astype(np.uint32),
            "second": np.array([np.count_nonzero(row.segments == 0) for row in rows], np.uint16),
            "nsp": np.empty(0, np.uint8) if joined.nsp is None else joined.nsp.astype(np.uint8),
        }


class WrittenExamples:
    """Reads examples that were written ahead; takes the place of an `ExampleMaker`."""

    def __init__(self, corpus: Corpus, recipe: Recipe, duplicates: int, verify: bool = False) -> None:
        folder = examples_folder(corpus.here, recipe, duplicates)
        self.shards = [open_shard(path) for path in sorted(folder.glob("*.safetensors"))]
        for number, shard in enumerate(self.shards):
            _check(shard, _origin(corpus, recipe, duplicates), number, verify)
        self.total: int = sum(shard.facts["examples"] for shard in self.shards)
        if not self.shards or self.total != self.shards[0].facts["total"]:
            raise HeedfulError("these examples were not (all) written ahead", where=folder, remedy=_REMEDY)

    def __len__(self) -> int:
        """How many examples were written."""
        return self.total

    def take(self, numbers: Array) -> Examples:
        """The examples of these numbers, the longest first; past the end they repeat."""
        rows = [self._row(number) for number in (numbers % self.total).tolist()]
        lengths = np.array([len(row.ids) for row in rows])
        return join_examples([rows[i] for i in np.argsort(-lengths, kind="stable").tolist()])

    def _row(self, number: int) -> Examples:
        shard, row = self.shards[number // EXAMPLES_IN_SHARD].arrays, number % EXAMPLES_IN_SHARD
        ids = _part(shard, "ids", "ends", row)
        return Examples(
            numbers=np.array([number]),
            lengths=np.array([len(ids)]),
            ids=ids,
            segments=(np.arange(len(ids)) >= int(shard["second"][row])).astype(np.int64),
            masked=_part(shard, "masked", "masked_ends", row),
            labels=_part(shard, "labels", "masked_ends", row),
            nsp=shard["nsp"][row : row + 1].astype(np.int64) if len(shard["nsp"]) else None,
        )


def write_examples(corpus: Path, recipe: Recipe, duplicates: int, workers: Workers = 1) -> Iterator[int]:
    """Write all examples, or those that are missing; gives the number of examples in each shard as it is done."""
    shards = ExampleWriter(corpus, recipe, duplicates).shards
    return mapped(ExampleWriter, (corpus.absolute(), recipe, duplicates), range(shards), workers)


def examples_folder(corpus: Path, recipe: Recipe, duplicates: int) -> Path:
    """Where the examples of a recipe are kept, inside the folder of their corpus."""
    return corpus / f"examples-{recipe.max_length}-{_digest(recipe, duplicates)[:12]}"


def _part(shard: Any, array: str, ends: str, row: int) -> Array:
    start = int(shard[ends][row - 1]) if row else 0
    part: Array = shard[array][start : int(shard[ends][row])].astype(np.int64)
    return part


def _origin(corpus: Corpus, recipe: Recipe, duplicates: int) -> dict[str, Any]:
    return {"corpus": corpus.manifest["checksum"], "recipe": _digest(recipe, duplicates)}


def _digest(recipe: Recipe, duplicates: int) -> str:
    plain = json.dumps({**dataclasses.asdict(recipe), "duplicates": duplicates}, sort_keys=True)
    return hashlib.blake2b(plain.encode(), digest_size=16).hexdigest()


def _is_done(path: Path, facts: dict[str, Any]) -> bool:
    try:
        shard = open_shard(path)
    except HeedfulError:
        return False
    return facts.items() <= shard.facts.items() and shard.is_whole()


def _check(shard: Shard, origin: dict[str, Any], number: int, verify: bool) -> None:
    if not origin.items() <= shard.facts.items() or shard.facts["first"] != number * EXAMPLES_IN_SHARD:
        raise HeedfulError("these examples are of another corpus or recipe", where=shard.path, remedy=_REMEDY)
    if verify and not shard.is_whole():
        raise HeedfulError("the shard is damaged: its checksum is wrong", where=shard.path, remedy=_REMEDY)
