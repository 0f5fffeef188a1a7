"""Ids, offsets and files against Hugging Face: the pure-Python BERT tokenizer, the fast one, and AutoTokenizer."""

import logging
import unicodedata

import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train

logging.getLogger("transformers").setLevel(logging.ERROR)

LINES = [
    "",
    " \t\n ",
    "Hello, World! It's 3.14 o'clock -- \"really\"?",
    "Café naïve Zoë Ångström ﬁancé İstanbul Straße Ωμέγα",
    "我爱北京天安门。The 中文 and English混合 text，标点！",
    "日本語テキスト 한국어 텍스트 русский текст ไทย हिन्दी العربية עברית",
    "😀👨‍👩‍👧🏽🇨🇳 emoji❤️ #hashtag @user http://a.b/c?d=e&f=g",
    "control\x00\x01\x7f\x85\u200b\u200e\ufeff\xad characters\ufffd here",
    "spaces\u00a0\u2003\u3000\u2028\u2029\x0b\x0c\r\neverywhere",
    "e\u0301 a\u0308\u0304 combining, \u0301 alone; 2\u0332 under",
    "[CLS] the [MASK] and [SEP] [PAD] [UNK] [mask] [ MASK ] x[MASK]y",
    "a" * 100 + " " + "b" * 101 + " " + "é" * 100,
    "$100 + 50% = ^_^ ~tilde~ `tick` |pipe| <tag> \\slash\\",
    "𠀀𠀁 rare ideographs 㐀 豈 ㍿ ① Ⅷ ½ ﷺ",
    "ＦＵＬＬ　ｗｉｄｔｈ１２３，。！",
]

# The library's tables are of an older Unicode than Python's, and it keeps unassigned code points where the pure-Python
# tokenizer drops them. Characters that have not changed since Unicode 3.2 are the same to both, but for the capital
# sigma, which only Python writes in another way at the end of a word.
SETTLED = st.characters(exclude_categories=["Cs", "Cn", "Co"], exclude_characters="Σ").filter(
    lambda character: unicodedata.ucd_3_2_0.category(character) == unicodedata.category(character)
)
TEXTS = st.one_of(
    st.text(SETTLED, max_size=40),
    st.text("aAéÉß .,'-[]中国。\u0301\u200d😀\x00\t\u3000", max_size=40),
    st.lists(st.sampled_from(["the", "[MASK]", "Loved", "北京", "naïve", "##s", "3.14", "\u00a0"]), max_size=8).map(
        " ".join
    ),
)


@pytest.fixture(scope="module", params=["uncased", "cased"])
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    tokenizer = train(LINES * 2, "wordpiece", 400, cased=request.param == "cased")
    tokenizer.model_max_length = 77
    tokenizer.save(path)
    return path


@pytest.fixture(scope="module")
def ours(folder):
    return Tokenizer.load(folder)


@pytest.fixture(scope="module")
def legacy(folder):
    return BertTokenizerLegacy(str(folder / "vocab.txt"), do_lower_case="uncased" in folder.name)


@pytest.fixture(scope="module")
def fast(folder):
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def comparable(folder):
    return composed if folder.name.startswith("cased") else str


def composed(text):
    # The pure-Python tokenizer drops control characters and composes accents before it splits, the library only drops;
    # it matters to a cased vocabulary alone, for the other one loses its accents.
    shown = "".join(c for c in text if c.isspace() or not unicodedata.category(c).startswith("C"))
    return unicodedata.normalize("NFC", shown)


@pytest.mark.parametrize("line", LINES)
def test_hand_made_lines_as_in_pure_python(line, ours, legacy, comparable):
    line = comparable(line)
    assert ours.encode(line).ids == legacy.encode(line)
    assert ours.encode(line, "and B").ids == legacy.encode(line, "and B")


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_any_text_as_in_pure_python(ours, legacy, comparable, text):
    text = comparable(text)
    assert ours.encode(text).ids == legacy.encode(text)


@settings(max_examples=200, deadline=None)
@given(st.one_of(TEXTS, st.text()))
def test_any_text_as_in_the_fast_one(ours, fast, text):
    theirs = fast(text, return_offsets_mapping=True)
    encoding = ours.encode(text)
    assert (encoding.ids, encoding.offsets) == (theirs["input_ids"], [tuple(o) for o in theirs["offset_mapping"]])


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS.filter(bool), st.integers(4, 12))  # an empty second text is none to them
def test_truncated_pairs_as_in_the_fast_one(ours, fast, first, second, max_length):
    theirs = fast(first, second, truncation=True, max_length=max_length)
    encoding = ours.encode(first, second, max_length)
    assert (encoding.ids, encoding.type_ids) == (theirs["input_ids"], theirs["token_type_ids"])


def test_saved_files_keep_their_meaning_there(ours, fast, folder):
    assert type(fast).__name__.startswith("BertTokenizer")
    assert fast.model_max_length == ours.model_max_length == 77
    assert (fast.pad_token_id, fast.mask_token_id, len(fast)) == (ours.pad_id, ours.mask_id, ours.vocab_size)


@pytest.mark.parametrize("cased", [False, True])
def test_saved_bpe_loads_there(tmp_path, cased):
    ours = train(LINES * 2, "bpe", 400, cased=cased)
    ours.save(tmp_path)
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for line in LINES:
        assert fast(line, "and B")["input_ids"] == ours.encode(line, "and B").ids
    assert (fast.pad_token_id, fast.mask_token_id) == (0, 4)


def test_files_saved_there_load_here(fast, ours, tmp_path):
    fast.save_pretrained(tmp_path)
    again = Tokenizer.load(tmp_path)
    for line in LINES:
        assert again.encode(line).ids == ours.encode(line).ids
    assert again.model_max_length == 77
