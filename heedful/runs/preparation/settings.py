"""What `heedful tokenizer train` and `heedful corpus build` are told."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from heedful.addresses import Address, place
from heedful.errors import HeedfulError
from heedful.runs.settings import Place, check_bounds, told

_TEXT = "The column of a table, or the field of JSON lines."
_ENCODING = "Of the files that are read: gb18030, utf-16, cp1252 …"


@dataclass(frozen=True)
class TokenizerSettings:
    """A vocabulary of one's own."""

    files: Any = told(argument=True, several=True, metavar="FILES…")
    output: Place = told(help="Folder for the tokenizer's files.", flags=("-o", "--output"), metavar="DIR")
    _: KW_ONLY
    kind: Literal["wordpiece", "bpe"] = told("wordpiece", "BERT's ## pieces, or pairs of bytes.")
    vocab_size: int = told(30522, "Pieces at most.", least=1)
    cased: bool = told(False, "Keep capitals and accents.")
    text: str | None = told(None, _TEXT, unset="found by the header; text", flags=("--text", "--field"), metavar="NAME")
    encoding: str | None = told(None, _ENCODING, unset="utf-8")
    alphabet: int | None = told(None, "Single characters at most; rarer ones become [UNK].", least=1)
    max_length: int = told(512, "Longest input, noted in the files.", least=1)
    overwrite: bool = told(False, "Replace the folder if it holds something.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", files_of(self.files))
        check_bounds(self)


@dataclass(frozen=True)
class CorpusSettings:
    """Token shards to pretrain on."""

    files: Any = told(argument=True, several=True, metavar="FILES…")
    output: Place = told(help="Folder of the corpus.", flags=("-o", "--output"), metavar="DIR")
    _: KW_ONLY
    tokenizer: Place = told(help="Folder, tokenizer.json or vocab.txt.", metavar="DIR")
    workers: int = told(1, "Processes.", least=1)
    ray: str | None = told(
        None,
        "Work on the machines of this Ray cluster, HOST:PORT; all find the files by the same paths.",
        metavar="ADDRESS",
    )
    text: str | None = told(None, _TEXT, unset="found by the header; text", flags=("--text", "--field"), metavar="NAME")
    encoding: str | None = told(None, _ENCODING, unset="utf-8")
    lines: Literal["paragraphs", "sentences", "running"] = told(
        "paragraphs", "What a line is; running: wrapped anywhere, a file is one document."
    )
    drop_headings: bool = told(False, "Leave out lines that look like bare headings.")
    deduplicate: bool = told(False, "Leave out repeated documents; needs about 80 bytes a document.")
    words: bool = told(False, "Keep words, for word masking, word2vec, ELMo (zh: jieba).")
    lexicon: Place | None = told(None, "Phrases and names, one a line, to be masked whole.", metavar="FILE")
    held_out: float = told(0.01, "Share held out.", least=0, most=0.5)
    held_out_file: Any = told((), "Hold these documents out instead of a share.", several=True, metavar="FILE")
    static: bool = told(False, "Also write training examples ahead.")
    duplicates: int = told(10, "Static: times masked.", least=1)
    length: int = told(128, "Static: tokens at most.", least=8)
    pairs: Literal["nsp", "sop", "none"] = told("nsp", "Static: what B is to A.")
    masking: Literal["token", "word", "phrase"] = told("token", "Static: what is masked whole.")
    seed: int = told(0, "Static: of the examples.", least=0)
    overwrite: bool = told(False, "Replace a finished corpus of other text or settings.")

    def __post_init__(self) -> None:
        for name in ("files", "held_out_file"):
            object.__setattr__(self, name, files_of(getattr(self, name)))
        check_bounds(self)
        if self.ray and self.workers > 1:
            raise HeedfulError("`workers` has no effect with `ray`", remedy="leave it out: each core is one")
        if self.static and isinstance(place(self.output), Address):
            what = "`static` examples are written beside a corpus on a path, not at an address"
            raise HeedfulError(what, where=self.output, remedy="leave it out, or build the corpus on a path")


def files_of(given: Any) -> tuple[str, ...]:
    """The names of one file or of several."""
    alone = isinstance(given, str | os.PathLike)
    return tuple(os.fspath(one) for one in ([given] if alone else given))
