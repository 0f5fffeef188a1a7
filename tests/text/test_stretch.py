"""Stretches of a file: its documents, each once, wherever it is cut."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from pathlib import Path

import pytest

from heedful.text.documents import BYTE_ORDER_MARK, read_documents
from heedful.text.stretch import Stretch

PLAIN = "\n\ufeffone\n  \ntwo\r\nstill two\r\n\r\n\n\u3000\nthree\n \t \n\ufefffour\n\n狗\n没有\n"
TEXTS = ["a", "b\n\nc", "  ", "狗", "d"]
FILES = {
    "a.txt": PLAIN.encode(),
    "marked.txt": BYTE_ORDER_MARK + PLAIN.strip().encode(),
    "no-blank-lines.txt": b"one\ntwo\nthree\nfour",
    "a.jsonl": "\n".join(json.dumps({"text": text}, ensure_ascii=False) for text in TEXTS).encode() + b"\n\n",
}


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("name", FILES)
def test_every_document_is_in_one_stretch(tmp_path: Path, name: str, scheme: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    file, size = f"{scheme}{tmp_path / name}", len(FILES[name])
    expected = list(read_documents(file))
    for length in (*range(1, size), size) if not scheme else (3, 11):
        cuts = [*range(0, size, length), size]
        found = [read_documents(Stretch(file, *ends)) for ends in pairwise(cuts)]
        assert [document for some in found for document in some] == expected, length


def test_a_copy_of_a_stretch_is_the_same() -> None:
    stretch = copy.copy(Stretch("a.txt", 3, 9))  # by the way that pickles go
    assert (stretch, stretch.start, stretch.stop) == ("a.txt", 3, 9)
