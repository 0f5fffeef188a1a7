"""Words added to a vocabulary: whole afterwards, all else as before, here and in Hugging Face."""

from __future__ import annotations

import logging
import random
import string
from collections import Counter
from pathlib import Path

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from heedful.errors import HeedfulError
from heedful.text.domain_words import extends, sort_out, spellings, split_words, with_words
from heedful.text.tokenizer import Tokenizer

logging.getLogger("transformers").setLevel(logging.ERROR)

NEW = ("fibrosis", "loves", "unaffordable", "3d")
TEXTS = st.one_of(
    st.text("abdefilnorsuv3 .-'A中国é😀", max_size=30),
    st.lists(st.sampled_from([*NEW, "Fibroses", "lovesick", "LOVE", "3d's", "unafford", "the"]), max_size=6).map(
        " ".join
    ),
)


@pytest.fixture(scope="module")
def wider(tiny_tokenizer: Tokenizer) -> Tokenizer:
    return with_words(tiny_tokenizer, NEW)


def tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    found: list[str] = tokenizer.encode(text).tokens[1:-1]
    return found


def test_new_words_are_whole_and_follow_the_old_pieces(tiny_tokenizer: Tokenizer, wider: Tokenizer) -> None:
    assert wider.vocabulary == [*tiny_tokenizer.vocabulary, *NEW]
    assert tokens(tiny_tokenizer, "Unaffordable") == ["un", "##afford", "##able"]
    assert tokens(wider, "Unaffordable") == ["unaffordable"]
    assert tokens(wider, "FIBROSIS, fíbrosis!") == ["fibrosis", ",", "fibrosis", "!"]


def test_a_new_word_matches_at_the_start_of_a_word_only(wider: Tokenizer) -> None:
    assert tokens(wider, "lovesick") == ["loves", "##i", "##c", "##k"]
    assert tokens(wider, "xloves") == ["x", "##l", "##o", "##v", "##e", "##s"]


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_words_without_a_new_piece_are_read_as_before(tiny_tokenizer: Tokenizer, wider: Tokenizer, text: str) -> None:
    """Also the other way round: a new piece stands exactly where a word begins with it."""
    before, after = (tokenizer.encode(text, max_length=200) for tokenizer in (tiny_tokenizer, wider))
    words = {word for word in after.word_ids if word is not None}
    assert words == {word for word in before.word_ids if word is not None}
    for word in words:
        old, new = ([one.tokens[i] for i in range(*one.word_to_tokens(word))] for one in (before, after))
        if new[0] in NEW:
            assert "".join(old).replace("##", "") == "".join(new).replace("##", "")
        else:
            assert old == new


def test_hugging_face_gives_the_same_ids(wider: Tokenizer, tmp_path: Path) -> None:
    wider.save(tmp_path)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path)
    slow = BertTokenizerLegacy(str(tmp_path / "vocab.txt"))
    assert len(fast) == wider.vocab_size
    rng = random.Random(0)
    for _ in range(200):
        text = " ".join(
            rng.choices([*NEW, "Fibrosis", "UNAFFORDABLE", "lovesick", "中国", "dogs", "3d,", "[MASK]"], k=6)
        )
        ids = Tokenizer.load(tmp_path).encode(text).ids
        assert ids == wider.encode(text).ids == fast(text)["input_ids"] == slow(text)["input_ids"]


def test_words_are_sorted_out(tiny_tokenizer: Tokenizer) -> None:
    lines = [
        "Fibrosis",
        "fibrosis ",
        "",
        "the",
        "COVID-19",
        "two words",
        "北京",
        "京",
        "㐀",
        "x" * 101,
        "[MASK]",
        "\u200b",
    ]
    asked = sort_out(lines, tiny_tokenizer)
    assert asked.new == ("fibrosis", "㐀")
    assert asked.known == ("the", "京")
    assert [*asked.refused] == [5, 6, 7, 10, 11, 12] and asked.refused[5] == "COVID-19"
    assert tokens(with_words(tiny_tokenizer, asked.new), "㐀 Fibrosis") == ["㐀", "fibrosis"]


def test_known_and_repeated_words_are_added_once(tiny_tokenizer: Tokenizer) -> None:
    assert with_words(tiny_tokenizer, ["the", "zebra", "zebra"]).vocabulary == [*tiny_tokenizer.vocabulary, "zebra"]


def test_the_most_frequent_split_words_as_counted_by_hand(tiny_tokenizer: Tokenizer) -> None:
    splits_numbers = with_words(tiny_tokenizer, ["##7", "##8", "##9"])
    assert len(tokens(splits_numbers, "1987")) == 4
    rng = random.Random(1)
    many = ["".join(rng.choices(string.ascii_lowercase[:6], k=rng.randint(1, 3))) for _ in range(3000)]
    lines = [" ".join(many[start : start + 7]) + " 1987 3.14 中国 🙂🙂 The cat" for start in range(0, 3000, 7)]
    counts = Counter(word for word in many if word not in tiny_tokenizer.vocabulary)
    expected = sorted((word for word in counts if counts[word] >= 4), key=lambda word: (-counts[word], word))
    assert len(expected) > 60
    found = split_words(lines, splits_numbers, count=60, min_count=4)
    assert [*found.items()] == [(word, counts[word]) for word in expected[:60]]
    assert [*split_words(lines, splits_numbers, count=10**6, min_count=4)] == expected
    assert not split_words([], splits_numbers, count=5, min_count=1)


def test_added_tokens_keep_their_ids(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny_tokenizer.save(tmp_path)
    marked = Tokenizer.load(tmp_path)
    marked.library.add_tokens(["[E1]", "[E2]"])
    wider = with_words(marked, ["fibrosis"])
    wider.save(tmp_path)
    size = tiny_tokenizer.vocab_size
    for one in (wider, Tokenizer.load(tmp_path)):
        assert one.encode("[E2] Fibrosis [E1]").ids[1:-1] == [size + 1, size + 2, size]
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)("[E2] Fibrosis [E1]")["input_ids"][1:-1] == [
        size + 1, size + 2, size,
    ]  # fmt: skip


def test_special_tokens_and_the_limit_are_kept(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    tiny_tokenizer.save(tmp_path)
    limited = Tokenizer.load(tmp_path)
    limited.model_max_length = 77
    wider = with_words(limited, NEW)
    assert wider.model_max_length == 77 and wider.special_tokens == limited.special_tokens
    assert wider.encode("fibrosis", "3d").tokens == ["[CLS]", "fibrosis", "[SEP]", "3d", "[SEP]"]


def test_what_extends_a_vocabulary(
    tiny_tokenizer: Tokenizer, wider: Tokenizer, wordpiece: Tokenizer, tmp_path: Path
) -> None:
    assert extends(wider, tiny_tokenizer) and extends(tiny_tokenizer, tiny_tokenizer)
    assert extends(with_words(wider, ["zebra"]), tiny_tokenizer)
    assert not extends(tiny_tokenizer, wider) and not extends(wordpiece, tiny_tokenizer)
    wider.save(tmp_path)
    assert extends(Tokenizer.load(tmp_path), tiny_tokenizer)
    assert not extends(Tokenizer.load(tmp_path, lowercase=False), tiny_tokenizer)
    assert extends(Tokenizer.load(tmp_path / "vocab.txt"), tiny_tokenizer)
    swapped = [*tiny_tokenizer.vocabulary, *NEW]
    swapped[-8], swapped[-6] = swapped[-6], swapped[-8]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in swapped), encoding="utf-8")
    assert not extends(Tokenizer.load(tmp_path / "vocab.txt"), tiny_tokenizer)


def test_spellings_are_the_old_ids(tiny_tokenizer: Tokenizer) -> None:
    wider = with_words(tiny_tokenizer, ["unaffordable", "㐀", "##ology"])
    pieces = tiny_tokenizer.vocabulary
    spelled = [[pieces[i] for i in ids] for ids in spellings(wider, tiny_tokenizer)]
    assert spelled == [["un", "##afford", "##able"], ["[UNK]"], ["o", "##l", "##o", "##g", "##y"]]
    assert spellings(tiny_tokenizer, tiny_tokenizer) == []


def test_byte_pairs_cannot_be_extended(bpe: Tokenizer) -> None:
    for refuse in (lambda: sort_out(["x"], bpe), lambda: split_words(["x"], bpe, 1, 1), lambda: with_words(bpe, ["x"])):
        with pytest.raises(HeedfulError, match="WordPiece"):
            refuse()
