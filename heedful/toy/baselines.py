"""What each toy task gives away to a bag of words, and that rules solve it: one table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from heedful.toy.bag_of_words import accuracy, classify, pair_bag, words
from heedful.toy.documents import Document
from heedful.toy.tasks import TASKS, rows, stories
from heedful.toy.world import LANGUAGES
from heedful.toy.writer import Size


class Baseline(NamedTuple):
    """One line of the table; the documents have no solver."""

    task: str
    language: str
    metric: str
    chance: float
    baseline: float
    solver: float | None


def task_baseline(task: str, language: str, size: Size, seed: int = 0) -> Baseline:
    """Train the bag-of-words baseline of a task and score it and the solver on people it has not seen."""
    train, dev = (rows(task, language, split, n, seed) for split, n in (("train", size.train), ("dev", size.dev)))
    of = TASKS[task]
    return Baseline(task, language, of.metric, of.chance, of.baseline(train, dev), of.solved(dev))


def document_baselines(size: Size, seed: int = 0) -> Iterator[Baseline]:
    """For the documents, which are no task: guessing a word from the one before, and the next sentence from a bag."""
    train, dev = stories("train", size.documents, seed), stories("heldout", size.heldout, seed)
    for language in LANGUAGES:
        common = most_common_word(train[language], dev[language])
        score = bigram_accuracy(train[language], dev[language])
        yield Baseline("a word of a document", language, "accuracy of a bigram model", common, score, None)
    for language in LANGUAGES:
        score = next_sentence_accuracy(train[language], dev[language], Random(seed))
        yield Baseline("the next sentence", language, "accuracy of a bag of words", 1 / 2, score, None)


def all_baselines(size: Size, seed: int = 0) -> Iterator[Baseline]:
    """The whole table, line by line."""
    for name, task in TASKS.items():
        for language in task.languages:
            yield task_baseline(name, language, size, seed)
    yield from document_baselines(size, seed)


def _running(documents: Sequence[Document]) -> list[list[str]]:
    return [[word for sentence in document for word in ["", *words(sentence)]] for document in documents]


def most_common_word(train: Sequence[Document], dev: Sequence[Document]) -> float:
    """How often the commonest word of `train` is right in `dev`."""
    common = Counter(word for text in _running(train) for word in text if word).most_common(1)[0][0]
    right = [word for text in _running(dev) for word in text if word]
    return accuracy([common] * len(right), right)


def bigram_accuracy(train: Sequence[Document], dev: Sequence[Document]) -> float:
    """How often the word that most often followed the word before in `train` is right in `dev`."""
    after: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in _running(train):
        for before, word in pairwise(text):
            after[before][word] += 1
    best = {before: counts.most_common(1)[0][0] for before, counts in after.items()}
    pairs = [pair for text in _running(dev) for pair in pairwise(text) if pair[1]]
    return accuracy([best.get(before) for before, _ in pairs], [word for _, word in pairs])


def next_sentence_accuracy(train: Sequence[Document], dev: Sequence[Document], rng: Random) -> float:
    """Logistic regression over both sentences and their shared words: is the second the next one, or from elsewhere?"""
    seen, new = _neighbours(train, rng), _neighbours(dev, rng)
    predicted = classify([b for b, _ in seen], [label for _, label in seen], [b for b, _ in new])
    return accuracy(predicted, [label for _, label in new])


def _neighbours(documents: Sequence[Document], rng: Random) -> list[tuple[Counter[str], int]]:
    """Two pairs a document: a true next sentence (label 1) and one of another document (label 0)."""
    found = []
    for i, document in enumerate(documents):
        place = rng.randrange(len(document) - 1)
        other = documents[(i + rng.randrange(1, len(documents))) % len(documents)]
        found.append((pair_bag(document[place], document[place + 1]), 1))
        found.append((pair_bag(document[place], rng.choice(other)), 0))
    return found
