"""Entities in IOB tags, and their F1, by the rules of CoNLL's conlleval script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import HeedfulError
from heedful.tasks.label_metrics import LabelScores, require_pairs

Tags = Sequence[str]


class Entity(NamedTuple):
    """A run of words of a type, by the numbers of its first word and of the word after its last."""

    type: str
    first: int
    last_exclusive: int


@dataclass(frozen=True)
class Scores:
    """How well entities are found: of all types together (micro average), and of each type in alphabetical order."""

    precision: float
    recall: float
    f1: float
    per_type: tuple[LabelScores, ...]


def repair(tags: Tags) -> tuple[list[str], int]:
    """The tags in IOB2, and how many were changed: an I-X that follows neither B-X nor I-X becomes B-X."""
    repaired: list[str] = []
    changed, before = 0, ""
    for tag in tags:
        type_ = _type(tag)
        stray = tag.startswith("I-") and type_ != before
        repaired.append(f"B-{type_}" if stray else tag)
        changed += stray
        before = type_
    return repaired, changed


def entities(tags: Tags) -> list[Entity]:
    """The entities of a sentence, in order; a stray I-X starts one, as conlleval has it."""
    found: list[Entity] = []
    for place, tag in enumerate(repair(tags)[0]):
        if tag.startswith("B-"):
            found.append(Entity(_type(tag), place, place + 1))
        elif tag != "O":
            found[-1] = found[-1]._replace(last_exclusive=place + 1)
    return found


def entity_counts(truth: Sequence[Tags], guess: Sequence[Tags]) -> NDArray[np.int64]:
    """Counts (N, 3): the correct, guessed and true entities of each sentence.

    Their sums over any choice of sentences, such as a bootstrap's, are what `LabelScores.of` takes.
    """
    pairs = _entity_sets(truth, guess)
    return np.array([(len(true & guessed), len(guessed), len(true)) for true, guessed in pairs], dtype=np.int64)


def entity_scores(truth: Sequence[Tags], guess: Sequence[Tags]) -> Scores:
    """Precision, recall and F1 of entities over all sentences; correct is one of the same type and the same words."""
    correct: Counter[str] = Counter()
    guesses: Counter[str] = Counter()
    trues: Counter[str] = Counter()
    for true, guessed in _entity_sets(truth, guess):
        correct.update(entity.type for entity in true & guessed)
        guesses.update(entity.type for entity in guessed)
        trues.update(entity.type for entity in true)
    types = sorted(guesses.keys() | trues.keys())
    per_type = tuple(LabelScores.of(type_, correct[type_], guesses[type_], trues[type_]) for type_ in types)
    together = LabelScores.of("", correct.total(), guesses.total(), trues.total())
    return Scores(together.precision, together.recall, together.f1, per_type)


def _type(tag: str) -> str:
    """What stands behind B- or I-; nothing for O."""
    prefix, _, type_ = tag.partition("-")
    if tag == "O" or (prefix in ("B", "I") and type_):
        return type_
    raise HeedfulError(
        f"the tag {tag!r} is neither O nor B- or I- with a type", remedy="write the tags in IOB2, such as B-PER I-PER O"
    )


def _entity_sets(truth: Sequence[Tags], guess: Sequence[Tags]) -> Iterator[tuple[set[Entity], set[Entity]]]:
    """The true and the guessed entities of each sentence."""
    require_pairs(truth, guess)
    for true, guessed in zip(truth, guess, strict=True):
        if len(true) != len(guessed):
            raise HeedfulError(
                f"a sentence of {len(true)} words has {len(guessed)} guessed tags", remedy="give a tag for each word"
            )
        yield set(entities(true)), set(entities(guessed))
