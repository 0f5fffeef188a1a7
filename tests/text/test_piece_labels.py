"""Labels of pieces."""

from __future__ import annotations

import pytest

from heedful.text.piece_labels import BROKEN, piece_labels
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    """Byte-level: it knows a few words and 北京, and spells everything else byte by byte."""
    return train(["the cats sat", "the cat", "北京 北京 北京"] * 20, "bpe", 290, cased=True)


def test_word_pieces_read_as_they_are(tiny_tokenizer: Tokenizer) -> None:
    ids = tiny_tokenizer.encode("unaffordable 中国").ids
    assert piece_labels(tiny_tokenizer, ids) == ["[CLS]", "un", "##afford", "##able", "中", "国", "[SEP]"]


def test_byte_pieces_read_as_what_they_spell(bpe: Tokenizer) -> None:
    ids = bpe.encode("the cat 北京").ids
    labels = piece_labels(bpe, ids)
    assert labels[0] == "[CLS]" and labels[-1] == "[SEP]" and len(labels) == len(ids)
    assert "the" in labels and "cat" in labels and "北" in labels


@pytest.mark.parametrize("text", ["饕餮", "a🙂b", "Łódź", "\u3000", "x  y"])
def test_a_character_of_several_pieces_labels_each_of_them(bpe: Tokenizer, text: str) -> None:
    ids = bpe.encode(text).ids
    labels = piece_labels(bpe, ids)
    assert len(labels) == len(ids) and BROKEN not in "".join(labels)
    spelled = [label for i, label in enumerate(labels[1:-1], start=1) if label != labels[i - 1]]
    assert set("".join(spelled)) - {"␣"} == set(text) - {" ", "\u3000"}


def test_bytes_that_spell_nothing_do_not_spoil_the_rest(bpe: Tokenizer) -> None:
    lead = bpe.encode("饕").ids[1]
    labels = piece_labels(bpe, [lead, *bpe.encode("the cat").ids[1:-1], lead])
    assert labels == [BROKEN, "the", "cat", BROKEN]
