"""Pairs as tokens: what is left out, that every character can be said, and the layout that models are trained on."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.data.bitext.pairs import ENCODED_AT_ONCE, EncodedPairs, Limits, TokenRows, bitext_of, encode_pairs, lay_out
from heedful.data.bitext.reading import SentencePair
from heedful.errors import HeedfulError
from heedful.text.sides import Sides, learn_sides

TEXTS = ["a dog runs", "two dogs run", "the dog", "dogs"]


@pytest.fixture(scope="module")
def sides() -> Sides:
    return learn_sides(TEXTS, ["ein Hund läuft", "zwei Hunde laufen"], 300)


def pair(source: str, target: str, line: int = 1) -> SentencePair:
    return SentencePair(source, target, f"p.tsv:{line}")


def test_pairs_keep_their_order_and_their_text(sides: Sides) -> None:
    pairs = [pair("a dog", "ein Hund"), pair("the dog runs", "Hunde"), pair("dogs", "zwei laufen")]
    encoded, remarks = encode_pairs(pairs, sides, Limits())
    assert not remarks
    assert len(encoded) == 3
    for number, one in enumerate(pairs):
        source, target = encoded.source[number], encoded.target[number]
        assert source == sides.source.encode(one.source).ids
        assert [target[0], target[-1]] == [sides.target.cls_id, sides.target.sep_id]
        assert sides.target.decode(target) == one.target
    assert encoded.tokens.tolist() == [len(encoded.source[i]) + len(encoded.target[i]) - 1 for i in range(3)]


@pytest.mark.parametrize("text", ["狗跑。", "Łódź 😀", "\u0a95\u200d‽"])
def test_a_character_never_seen_is_spelled_and_comes_back(sides: Sides, text: str) -> None:
    encoded, remarks = encode_pairs([pair(text, text)], sides, Limits())
    assert not remarks
    assert sides.target.unk_id not in encoded.target[0]
    assert sides.target.decode(encoded.target[0]) == text


def test_hopeless_pairs_are_left_out_and_counted(sides: Sides) -> None:
    long = "xy" * 40  # never merged
    pairs = [
        pair("the dog", "Hund", 2),
        pair(long, long, 3),
        pair("dogs", long[:30], 4),
        pair("dogs [SEP] run", "Hunde", 5),
        pair("dogs", long, 6),
    ]
    encoded, remarks = encode_pairs(pairs, sides, Limits(max_length=60, max_ratio=3))
    assert len(encoded) == 1
    assert {remark.what.partition(",")[0]: (remark.count, remark.places) for remark in remarks} == {
        "pairs with a side of more than 60 tokens": (2, ("p.tsv:3", "p.tsv:6")),
        "pairs with one side more than 3 times as long as the other": (1, ("p.tsv:4",)),
        "pairs with a special token such as [SEP] in their text": (1, ("p.tsv:5",)),
    }


def test_nothing_left_is_an_error(sides: Sides) -> None:
    with pytest.raises(HeedfulError, match="no pair is left: 1 pairs with a side of more than 3 tokens"):
        encode_pairs([pair("a dog runs", "Hund")], sides, Limits(max_length=3))


def test_more_pairs_than_are_encoded_at_once(sides: Sides) -> None:
    many = [pair(TEXTS[n % 4], TEXTS[n % 3], n) for n in range(ENCODED_AT_ONCE + 7)]
    encoded, _ = encode_pairs(many, sides, Limits())
    assert len(encoded) == len(many)
    last = many[-1]
    assert (encoded.source[len(many) - 1], encoded.target[len(many) - 1]) == tuple(
        sides.source.encode(text).ids for text in (last.source, last.target)
    )


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_length": 2}, "max_length 2"),
        ({"max_ratio": 0.5}, "ratio of 0.5"),
        ({"max_ratio": float("nan")}, "of nan"),
    ],
)
def test_limits_that_leave_nothing_are_refused(limits: dict[str, float], said: str) -> None:
    with pytest.raises(HeedfulError, match=said):
        Limits(**limits)  # type: ignore[arg-type]


def test_the_decoder_is_given_all_but_the_last_and_is_to_say_all_but_the_first() -> None:
    bitext = lay_out([[2, 10, 11, 3], [2, 12, 3]], [[2, 20, 3], [2, 21, 22, 3]])
    assert bitext.source.ids.tolist() == [2, 10, 11, 3, 2, 12, 3]
    assert bitext.source.positions.tolist() == [0, 1, 2, 3, 0, 1, 2]
    assert bitext.target.ids.tolist() == [2, 20, 2, 21, 22]
    assert bitext.target.lengths == (2, 3)
    assert bitext.labels.tolist() == [20, 3, 21, 22, 3]


def test_the_longest_come_first_by_source_and_then_by_target() -> None:
    source = TokenRows.of([[2, 3], [2, 5, 6, 3], [2, 7, 3], [2, 8, 3]])
    target = TokenRows.of([[2, 9, 9, 9, 3], [2, 3], [2, 3], [2, 9, 3]])
    bitext = bitext_of(EncodedPairs(source, target), [0, 1, 2, 3])
    assert bitext.source.lengths == (4, 3, 3, 2)
    assert bitext.target.lengths == (1, 2, 1, 4)
    assert bitext.source.ids.tolist() == [2, 5, 6, 3, 2, 8, 3, 2, 7, 3, 2, 3]


def test_rows_come_back_as_they_were() -> None:
    rows = [[1, 2, 3], [], [70_000]]
    stored = TokenRows.of(rows)
    assert [stored[i] for i in range(len(stored))] == rows
    assert np.array_equal(stored.lengths, [3, 0, 1])
