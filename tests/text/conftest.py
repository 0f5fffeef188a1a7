"""A small bilingual corpus and the tokenizers trained on it."""

import pytest

from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train

CORPUS = [
    "She loved the garden, and he loves the sea; they are loving it.",
    "The weather is lovely today. The café was naïve, said Zoë.",
    "unaffordable affordable words, unworkable workable walks, walked walking",
    "我爱北京天安门。中国和美国都是国家，苹果是水果。",
    "他在 Google 工作了 3 年, 用 Python 写程序。",
] * 4


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    return list(CORPUS)


@pytest.fixture(scope="session")
def wordpiece(corpus: list[str]) -> Tokenizer:
    return train(corpus, "wordpiece", 150)


@pytest.fixture(scope="session")
def bpe(corpus: list[str]) -> Tokenizer:
    return train(corpus, "bpe", 330)
