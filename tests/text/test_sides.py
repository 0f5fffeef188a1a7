"""The tokenizers of the two sides, joint or separate, and the symbols of a decoder."""

from __future__ import annotations

from heedful.text.sides import Symbols, learn_sides

ENGLISH, GERMAN = ["The dog barks.", "The dogs bark."] * 3, ["Der Hund bellt.", "Die Hunde bellen."] * 3


def test_one_vocabulary_for_both_sides() -> None:
    sides = learn_sides(ENGLISH, GERMAN, 280)
    assert sides.joint
    assert sides.source.vocab_size == 280
    assert sides.source.decode(sides.source.encode("The Hund").ids) == "The Hund"


def test_a_vocabulary_for_each_side() -> None:
    sides = learn_sides(ENGLISH, GERMAN, 275, separate=True)
    assert not sides.joint
    assert sides.source.vocabulary != sides.target.vocabulary
    lengths = [len(side.encode(" barks").ids) for side in sides]
    assert lengths[0] < lengths[1]


def test_texts_come_back_as_they_were_with_case_and_accents() -> None:
    sides = learn_sides(ENGLISH, GERMAN, 270)
    for text in ("ÄÖÜ äöü ß É", "两只狗", "  two  spaces", "a\u0301"):
        assert sides.target.decode(sides.target.encode(text).ids) == text


def test_a_decoder_starts_ends_and_never_says() -> None:
    tokenizer = learn_sides(ENGLISH, GERMAN, 270).target
    symbols = Symbols.of(tokenizer)
    assert tokenizer.encode("").ids == [symbols.start, symbols.end]
    assert set(symbols.banned) == {tokenizer.pad_id, tokenizer.cls_id, tokenizer.mask_id}
    assert symbols.end not in symbols.banned
