"""A built corpus: token shards under a checksummed manifest, opened as two runs of text, one held out.

corpus = Corpus.open("corpus")            # sizes are checked; verify=True reads and checks every byte
corpus.train.tokens, corpus.held_out.documents, corpus.tokenizer

Of a corpus at an address the manifest alone is read at first, and all of it when its text or tokenizer is asked for.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from heedful.addresses import Address, place
from heedful.data.corpus.fetched import fetched
from heedful.data.shards import Array, Shard, check_file, open_shard
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer

FORMAT = 1
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer"
_REMEDY = "build it again with `heedful corpus build`"


class TokenText:
    """The documents of several shards, numbered through: tokens, sentences and documents have one number each.

    The boundaries are read when they are first asked for, 8 bytes of memory for each sentence and document; the tokens
    stay on the disk.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self._first_tokens = _offsets(shards, "tokens")

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return self._first_tokens[-1]

    @property
    def sentences(self) -> int:
        """How many sentences there are."""
        return _offsets(self.shards, "sentences")[-1]

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return _offsets(self.shards, "documents")[-1]

    @cached_property
    def sentence_starts(self) -> Array:
        """Sentence i is tokens sentence_starts[i] … sentence_starts[i + 1]."""
        return self._joined("sentences", self._first_tokens)

    @cached_property
    def document_starts(self) -> Array:
        """Document d is tokens document_starts[d] … document_starts[d + 1]."""
        starts: Array = self.sentence_starts[self._joined("documents", _offsets(self.shards, "sentences"))]
        return starts

    def _joined(self, name: str, offsets: Sequence[int]) -> Array:
        arrays = [shard.arrays[name].astype(np.int64) for shard in self.shards]
        shifted = [array + first for array, first in zip(arrays, offsets[:-1], strict=True)]
        return np.concatenate([*shifted, np.array(offsets[-1:], np.int64)])

    def read(self, array: str, start: int, stop: int) -> Array:
        """The part start … stop of `tokens` or `bounds`; it must lie within one document."""
        number = bisect_right(self._first_tokens, start) - 1
        first = self._first_tokens[number]
        return self.shards[number].arrays[array][start - first : stop - first]


@dataclass(frozen=True)
class Corpus:
    """An opened corpus folder."""

    folder: Path | Address
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, folder: str | Path, verify: bool = False) -> Corpus:
        """Open a corpus; a missing, cut off or (with `verify`, which reads everything) altered shard is refused."""
        where = place(folder)
        corpus = cls(where, read_manifest(where))
        if isinstance(where, Path):
            for entry in (*corpus.manifest["shards"]["train"], *corpus.manifest["shards"]["held_out"]):
                check_file(where / entry["name"], entry["bytes"], entry["checksum"] if verify else None)
            _opened = corpus.train, corpus.held_out  # what is wrong with them is told now
        elif verify:
            fetched(where, corpus.manifest, TOKENIZER, verify)
        return corpus

    @cached_property
    def here(self) -> Path:
        """The folder, or a copy on this machine of one at an address."""
        return self.folder if isinstance(self.folder, Path) else fetched(self.folder, self.manifest, TOKENIZER)

    @cached_property
    def train(self) -> TokenText:
        """The text to train on."""
        return self._text("train")

    @cached_property
    def held_out(self) -> TokenText:
        """The text that is held out."""
        return self._text("held_out")

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the corpus was made with."""
        tokenizer = Tokenizer.load(self.here / TOKENIZER)
        self.check_vocabulary(tokenizer)
        return tokenizer

    @property
    def has_words(self) -> bool:
        """Whether word boundaries were stored."""
        return bool(self.manifest["settings"]["words"] or self.has_phrases)

    @property
    def has_phrases(self) -> bool:
        """Whether the phrases of a lexicon were marked."""
        return bool(self.manifest["settings"]["lexicon"])

    def check_vocabulary(self, tokenizer: Tokenizer) -> None:
        """Refuse a tokenizer whose ids mean something else than those of this corpus."""
        if vocabulary_digest(tokenizer) != self.manifest["vocabulary"]["digest"]:
            size = self.manifest["vocabulary"]["size"]
            raise HeedfulError(
                f"another vocabulary: the corpus was made with {size} pieces, the tokenizer has {tokenizer.vocab_size}"
                + (" others" if size == tokenizer.vocab_size else ""),
                where=self.folder,
                remedy="build the corpus with the tokenizer of the model, "
                "or one that `heedful tokenizer extend` made of it",
            )

    def _text(self, part: str) -> TokenText:
        shards = []
        for entry in self.manifest["shards"][part]:
            shards.append(open_shard(self.here / entry["name"]))
            if shards[-1].facts.get("digest") != entry["digest"]:
                raise HeedfulError("not the shard that the manifest names", where=shards[-1].path, remedy=_REMEDY)
        return TokenText(shards)


def _offsets(shards: Sequence[Shard], name: str) -> list[int]:
    """Where the array of each shard begins in that of all, and last where it ends."""
    return [0, *accumulate(len(shard.arrays[name]) for shard in shards)]


def read_manifest(folder: Path | Address) -> dict[str, Any]:
    """The manifest of a corpus folder, its own checksum checked."""
    path = folder / MANIFEST
    if not path.is_file():
        begun = folder.exists() and any(one.suffix == ".safetensors" for one in folder.iterdir())
        what = "the corpus is not finished" if begun else "no corpus here"
        raise HeedfulError(what, where=folder, remedy="run `heedful corpus build` (again: what is done is kept)")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        whole = manifest["checksum"] == manifest_digest(manifest)
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise HeedfulError("the manifest is damaged", where=path, remedy=_REMEDY)
    if manifest["format"] != FORMAT:
        what = f"a corpus of format {manifest['format']}, not {FORMAT}"
        raise HeedfulError(what, where=path, remedy=_REMEDY)
    return dict(manifest)


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """The checksum of a manifest, taken over all but the checksum itself."""
    plain = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16).hexdigest()


def vocabulary_digest(tokenizer: Tokenizer) -> str:
    """What tells this list of pieces from any other."""
    return hashlib.blake2b("\n".join(tokenizer.vocabulary).encode(), digest_size=16).hexdigest()
