"""Training: the same bytes each time, sensible alphabets, both kinds."""

import hashlib
import os
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.text.tokenizer_training import alphabet_of, count_words, train


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_separate_processes_write_the_same_bytes(kind, corpus, tmp_path):
    (tmp_path / "corpus.txt").write_text("\n".join(corpus), encoding="utf-8")
    digests = set()
    for seed in ("0", "1", "2"):
        folder = tmp_path / seed
        arguments = ["tokenizer", "train", str(tmp_path / "corpus.txt"), "-o", str(folder), "--kind", kind]
        command = [sys.executable, "-m", "heedful", *arguments, "--vocab-size", "300"]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
        digests.add(hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.iterdir()))).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_the_order_of_the_lines_does_not_matter(kind, corpus):
    assert train(corpus, kind, 300).vocabulary == train(corpus[::-1], kind, 300).vocabulary


@pytest.mark.parametrize(("kind", "stem"), [("wordpiece", "lov"), ("bpe", "Ġlov")])
def test_forms_of_a_word_share_pieces(kind, stem):
    lines = ["we loved we loves we loving we walked we walks we walking we jumped we jumps we jumping"]
    tokenizer = train(lines, kind, 400)
    loved, loving, loves = (tokenizer.encode(f"we {form}").tokens for form in ("loved", "loving", "loves"))
    assert stem in loved and stem in loving and stem in loves
    assert loved != loving != loves


def test_pieces_of_wordpiece_come_from_the_corpus(wordpiece, corpus):
    text = unicodedata.normalize("NFD", "\n".join(corpus).lower()).replace("\u0301", "").replace("\u0308", "")
    assert all(piece.removeprefix("##") in text for piece in wordpiece.vocabulary[5:] if piece.isascii())
    assert "loved" in wordpiece.vocabulary or "lov" in wordpiece.vocabulary
    assert len(set(wordpiece.vocabulary)) == wordpiece.vocab_size == 150


def test_every_ideograph_is_its_own_piece(wordpiece):
    assert wordpiece.encode("北京ab天").tokens[1:3] == ["北", "京"]
    assert not any(len(piece) > 1 and "京" in piece for piece in wordpiece.vocabulary)


def test_case_and_accents(corpus):
    assert "[UNK]" not in train(corpus, "wordpiece", 260).encode("CAFÉ zoe").tokens
    cased = train(corpus, "wordpiece", 260, cased=True)
    assert cased.encode("She").ids != cased.encode("she").ids
    assert "é" in "".join(cased.vocabulary)


def test_rare_characters_give_way(corpus):
    rare = "".join(chr(0x4E00 + i) for i in range(500))
    tokenizer = train([*corpus, rare], "wordpiece", 400, alphabet_size=40)
    assert sum(len(piece) == 1 for piece in tokenizer.vocabulary) == 40
    assert tokenizer.encode(rare[3]).tokens[1] == "[UNK]"
    assert "[UNK]" not in tokenizer.encode("she loved").tokens


def test_the_alphabet_leaves_room_for_words():
    words = {chr(0x4E00 + i): 1000 - i for i in range(1000)}
    assert len(alphabet_of(words, 300)) == 200  # two thirds
    assert len(alphabet_of(words, 8000)) == 1000
    skewed = {"a": 10**7, **{chr(0x4E00 + i): 1 for i in range(500)}}
    assert len(alphabet_of(skewed, 400)) == 100  # one character is 99.99 % of the text: a quarter is kept
    assert alphabet_of({"ba": 1, "c": 1}, 100, limit=2) == {"a", "b"}


def test_bpe_spells_everything_and_gives_it_back(corpus):
    tokenizer = train(corpus, "bpe", 300, cased=True)
    for text in ("Zoë loves 中国 😀👨‍👩‍👧!", "  two  spaces\tand tab\n", "한국어 Ελλάδα", "\x00\x07", "未见过的字"):
        encoding = tokenizer.encode(text)
        assert tokenizer.unk_id not in encoding.ids
        assert tokenizer.decode(encoding.ids) == text


# Without brackets, and so without special tokens, which are not given back.
@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="[")))
def test_bpe_round_trip_of_any_text(bpe_cased, text):
    assert bpe_cased.decode(bpe_cased.encode(text).ids) == text


@pytest.fixture(scope="module")
def bpe_cased(corpus):
    return train(corpus, "bpe", 300, cased=True)


def test_uncased_bpe_folds_case_and_keeps_hangul_together(bpe):
    assert bpe.decode(bpe.encode("CAFÉ 한국어").ids) == "cafe 한국어"


def test_places_of_bpe_pieces_leave_out_the_space(bpe):
    text = "she walked, they  walk"
    encoding = bpe.encode(text)
    assert "".join(text[start:end] for start, end in encoding.offsets) == "shewalked,theywalk"


def test_counted_words_are_those_the_tokenizer_sees(corpus, wordpiece, bpe):
    for tokenizer in (wordpiece, bpe):
        assert count_words(corpus, tokenizer.library) == words_of_whole_lines(corpus, tokenizer.library)


# White space of all kinds, controls that only Python takes for it, ideographs (one of those the library does not set
# apart among them), and letters of several classes.
TRICKY = "ab'!1é  \t\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\x00\x07\ufffd中国\uf900𠀀\U0002b830\u3042한"


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "bpe_cased"])
@settings(max_examples=300)
@given(lines=st.lists(st.text(st.sampled_from(TRICKY), max_size=12), max_size=3))
def test_chunks_are_cut_only_where_the_library_cuts(request, kind, lines):
    library = request.getfixturevalue(kind).library
    assert count_words(lines, library) == words_of_whole_lines(lines, library)


def words_of_whole_lines(lines, library):
    expected = Counter()
    for line in lines:
        normal = library.normalizer.normalize_str(line) if library.normalizer else line
        expected.update(word for word, _ in library.pre_tokenizer.pre_tokenize_str(normal))
    return expected


def test_a_vocabulary_without_room_is_refused(corpus):
    with pytest.raises(HeedfulError, match="no room"):
        train(corpus, "bpe", 100)
    with pytest.raises(HeedfulError, match="no words"):
        train(["  "], "wordpiece", 100)
