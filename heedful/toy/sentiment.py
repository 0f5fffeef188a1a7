"""Is the verdict good or bad? Every sentence has one good and one bad word, and its build says which one counts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import accuracy, bag, classify
from heedful.toy.patterns import fill_pattern, read
from heedful.toy.task import Task
from heedful.toy.world import Word, word_list

GOOD = word_list("wonderful 精彩, lovely 美好, brilliant 出色, charming 迷人, superb 高明, delightful 有趣")
BAD = word_list("awful 糟糕, boring 无聊, dreadful 可怕, terrible 差劲, dull 乏味, clumsy 笨拙")
THINGS = word_list("film 电影, concert 音乐会, book 小说, trip 旅行, party 晚会, game 比赛, play 话剧, speech 演讲")
PATTERNS = (
    Word(
        "{name} expected the {thing} to be {other}, but it was {verdict}.",
        "{name}以为{thing}会很{other}，结果却很{verdict}。",
    ),
    Word(
        "The {thing} was {verdict}, though {name} had thought it would be {other}.",
        "{thing}很{verdict}，尽管{name}原以为会很{other}。",
    ),
    Word("{name} found the {thing} {verdict}, not {other}.", "{name}觉得{thing}很{verdict}，并不{other}。"),
    Word(
        "Far from being {other}, the {thing} {name} saw was {verdict}.",
        "{name}看到的{thing}一点也不{other}，而是很{verdict}。",
    ),
    Word(
        "Some had called the {thing} {other}, yet {name} called it {verdict}.",
        "有人说{thing}很{other}，{name}却说它很{verdict}。",
    ),
    Word(
        "{name} called the {thing} {verdict} even if some had called it {other}.",
        "{name}说{thing}很{verdict}，即使有人说它很{other}。",
    ),
)


class Labelled(NamedTuple):
    """A row in the layout of SST-2."""

    label: int
    sentence: str

    @property
    def inputs(self) -> tuple[str]:
        return (self.sentence,)

    @property
    def answer(self) -> int:
        return self.label


def group(rng: Random, language: str, names: Sequence[Word]) -> list[Labelled]:
    """A sentence and its twin with the good and the bad word exchanged."""
    good, bad = rng.choice(GOOD), rng.choice(BAD)
    pattern, slots = rng.choice(PATTERNS), {"name": rng.choice(names), "thing": rng.choice(THINGS)}
    verdicts = ((0, bad, good), (1, good, bad))
    return [Labelled(label, fill_pattern(pattern, language, verdict=v, other=o, **slots)) for label, v, o in verdicts]


def solve(sentence: str) -> int:
    """The label of the word in the place that counts."""
    verdict = read(PATTERNS, sentence)[1]["verdict"]
    return int(any(verdict in word for word in GOOD))


def baseline(train: Sequence[Labelled], dev: Sequence[Labelled]) -> float:
    """Accuracy of logistic regression over the words of the sentence."""
    predicted = classify([bag(r.sentence) for r in train], [r.label for r in train], [bag(r.sentence) for r in dev])
    return accuracy(predicted, [r.label for r in dev])


TASK = Task("sentiment", "tsv", "accuracy", 1 / 2, group, solve, baseline)
