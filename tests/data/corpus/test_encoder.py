"""The fast encoder gives what the `tokenizers` library gives."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import normalizers

from heedful.data.corpus.encoder import SET_APART, SentenceEncoder
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train

PIECES = [*SPECIAL_TOKENS.values(), *"abeé.,!-[]中国", "##a", "##b", "##e", "##é", "ab", "##ab"]
ODD = "abé Á.,![]-_中国é\u0301\u200d\x00\x1c\u3000\t\U0002b900"
TEXTS = st.lists(
    st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])))
    | st.text("ab e.中")
    | st.sampled_from(["a[MASK]b", "[CLS] [SEP]", "[mask]", "x [UNK]. [PAD]]", "[[MASK]]"]),
    max_size=5,
)


def tokenizer(**options):
    return Tokenizer(wordpiece_tokenizer({piece: i for i, piece in enumerate(PIECES)}, **options))


ENCODERS = [
    SentenceEncoder(tokenizer(lowercase=True), words=True),
    SentenceEncoder(tokenizer(lowercase=False), words=True),
    SentenceEncoder(tokenizer(lowercase=True, split_chinese=False), words=True),
    SentenceEncoder(train(["ab é 中国 a.b"], "bpe", 270), words=True),
]


@pytest.mark.parametrize("encoder", ENCODERS)
@settings(deadline=None, max_examples=150)
@given(texts=TEXTS)
def test_same_as_library(encoder, texts):
    expected = encoder.library.encode_batch(texts, add_special_tokens=False)
    ids, starts, lengths = encoder.encode(texts)
    assert lengths.tolist() == [len(one) for one in expected]
    assert ids.tolist() == [number for one in expected for number in one.ids]
    for one, flags in zip(expected, np.split(starts, np.cumsum(lengths)[:-1]) if texts else [], strict=True):
        words = one.word_ids
        new = [i == 0 or words[i] is None or words[i] != words[i - 1] for i in range(len(words))]
        assert flags.astype(bool).tolist() == new


def test_ids_are_the_same_without_words():
    texts = ["ab ba, bab", "", "aabb 中a"]
    plain = SentenceEncoder(tokenizer(lowercase=True))
    assert plain.encode(texts)[0].tolist() == ENCODERS[0].encode(texts)[0].tolist()


def test_memory_for_known_words_is_bounded(monkeypatch):
    monkeypatch.setattr("heedful.data.corpus.encoder.MOST_CHUNKS", 3)
    encoder = SentenceEncoder(tokenizer(lowercase=True))
    first = encoder.encode(["a b ab ba aab"])[0].tolist()
    assert not encoder._ids
    assert encoder.encode(["a b ab ba aab"])[0].tolist() == first


def test_the_ideographs_are_those_the_library_sets_apart():
    normalizer = normalizers.BertNormalizer(handle_chinese_chars=True, strip_accents=False, lowercase=False)
    apart = re.compile(f"[{SET_APART}]")
    for code in range(0x2E80, min(0x30000, sys.maxunicode)):
        if not 0xD800 <= code < 0xE000:
            character = chr(code)
            assert bool(apart.match(character)) == (normalizer.normalize_str(f"a{character}b") == f"a {character} b")


def test_wide_ids_for_large_vocabularies():
    vocabulary = {piece: i for i, piece in enumerate([*SPECIAL_TOKENS.values(), *(f"w{i}" for i in range(70_000))])}
    encoder = SentenceEncoder(Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=True)))
    ids, _, _ = encoder.encode(["w69999 w1"])
    assert ids.dtype == np.uint32 and ids.tolist() == [70_004, 6]
