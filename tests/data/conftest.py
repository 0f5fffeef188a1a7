"""A made-up text, a tokenizer for it, and corpora built from both."""

import random

import pytest

from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.tokens import TokenSettings
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer
from heedful.text.tokenizer import Tokenizer

STEMS = [first + second for first in "bdfgklmnprst" for second in ("a", "e", "i", "o", "u", "ar", "en", "os")]
ENDINGS = ["", "ing", "ness", "able"]
CHINESE = ["中国", "美国", "苹果", "北京", "大学", "我们", "喜欢", "研究", "语言", "模型"]
PHRASES = ("bar den", "中国北京", "gos gosness gos")


def word(rng):
    if rng.random() < 0.2:
        return rng.choice(CHINESE)
    return rng.choice(STEMS) + rng.choice(ENDINGS)


def document(rng):
    sentences = []
    for _ in range(rng.randint(2, 14)):
        words = [word(rng) for _ in range(rng.randint(2, 16))]
        if rng.random() < 0.3:
            words.insert(rng.randrange(len(words)), rng.choice(PHRASES))
        sentences.append(" ".join(words).capitalize() + ".")
    paragraphs, start = [], 0
    while start < len(sentences):
        stop = start + rng.randint(1, 5)
        paragraphs.append(" ".join(sentences[start:stop]))
        start = stop
    return "\n".join(paragraphs)


@pytest.fixture(scope="session")
def tokenizer():
    letters = sorted({letter for piece in STEMS + ENDINGS for letter in piece})
    ideographs = sorted({letter for piece in CHINESE for letter in piece})
    pieces = [*SPECIAL_TOKENS.values(), ".", *letters, *STEMS, *ideographs]
    pieces += [f"##{letter}" for letter in letters] + [f"##{ending}" for ending in ENDINGS if ending]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return Tokenizer(wordpiece_tokenizer(vocabulary, lowercase=True))


@pytest.fixture(scope="session")
def text_file(tmp_path_factory):
    rng = random.Random(3)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(document(rng) for _ in range(600)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def corpus(text_file, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    settings = TokenSettings(words=True, lexicon=PHRASES)
    reading = ReadingSettings(held_out_share=0.1, unit_bytes=40_000)
    return build_corpus([str(text_file)], folder, tokenizer, settings, reading)
