"""Entities and their scores, against conlleval's published output and a definition that looks at every stretch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.tasks.entities import Entity, entities, entity_counts, entity_scores, repair
from heedful.tasks.label_metrics import LabelScores

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-X-Y"]
TAG_LISTS = st.lists(st.sampled_from(TAGS), max_size=12)
SENTENCES = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=8), min_size=1, max_size=6
)


def is_entity(tags: list[str], first: int, stop: int) -> bool:
    """Whether a stretch is an entity: it is begun, goes on with its type, and the word after does not go on with it."""
    kind = tags[first][2:]
    inside = f"I-{kind}"
    begun = tags[first].startswith("B-") or first == 0 or tags[first - 1][2:] != kind
    return (
        tags[first] != "O"
        and begun
        and all(tag == inside for tag in tags[first + 1 : stop])
        and (stop == len(tags) or tags[stop] != inside)
    )


def every_entity(tags: list[str]) -> list[Entity]:
    stretches = [(first, stop) for first in range(len(tags)) for stop in range(first + 1, len(tags) + 1)]
    return [Entity(tags[first][2:], first, stop) for first, stop in stretches if is_entity(tags, first, stop)]


@given(TAG_LISTS)
def test_entities_are_the_stretches_that_the_definition_allows(tags: list[str]) -> None:
    assert entities(tags) == every_entity(tags)


@given(TAG_LISTS)
def test_repaired_tags_are_iob2_and_mean_the_same(tags: list[str]) -> None:
    repaired, changed = repair(tags)
    assert entities(repaired) == entities(tags)
    assert repair(repaired) == (repaired, 0)
    assert changed == sum(old != new for old, new in zip(tags, repaired, strict=True))
    for before, tag in zip(["O", *repaired], repaired, strict=False):
        assert not tag.startswith("I-") or before in (tag, f"B-{tag[2:]}")


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("I-PER I-PER O", [("PER", 0, 2)]),  # a stray I- starts an entity
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),  # so does an I- of another type
        ("I-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
        ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("I-PER B-PER", [("PER", 0, 1), ("PER", 1, 2)]),  # IOB1's way to part neighbours
        ("B-PER O I-PER", [("PER", 0, 1), ("PER", 2, 3)]),
        ("B-GEO-POL I-GEO-POL", [("GEO-POL", 0, 2)]),
        ("O O", []),
        ("", []),
    ],
)
def test_conllevals_rules(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert entities(tags.split()) == expected


def test_stray_tags_are_counted() -> None:
    assert repair(["O", "I-PER", "I-PER", "I-LOC", "B-PER", "I-PER"]) == (
        ["O", "B-PER", "I-PER", "B-LOC", "B-PER", "I-PER"],
        2,
    )


# The table on CoNLL-2000's page about the output of conlleval: precision, recall and FB1 in per cent, phrases found.
PUBLISHED = {
    "ADJP": (0.00, 0.00, 0.00, 1),
    "ADVP": (45.45, 62.50, 52.63, 11),
    "NP": (64.98, 78.63, 71.16, 317),
    "PP": (83.18, 98.89, 90.36, 107),
    "SBAR": (66.67, 33.33, 44.44, 3),
    "VP": (69.00, 79.31, 73.80, 100),
}
# The same in counts: correct, found, in the corpus; together 371, 539 and 459 as on that page.
COUNTS = {
    "ADJP": (0, 1, 6),
    "ADVP": (5, 11, 8),
    "NP": (206, 317, 262),
    "PP": (89, 107, 90),
    "SBAR": (2, 3, 6),
    "VP": (69, 100, 87),
}


def test_the_published_output_of_conlleval() -> None:
    truth: list[list[str]] = []
    guess: list[list[str]] = []
    for kind, (correct, found, there) in COUNTS.items():
        short, long, nothing = [f"B-{kind}", "O"], [f"B-{kind}", f"I-{kind}"], ["O", "O"]
        truth += [long] * there + [nothing] * (found - correct)
        guess += [long] * correct + [nothing] * (there - correct) + [short] * (found - correct)
    scores = entity_scores(truth, guess)
    assert [round(100 * score, 2) for score in (scores.precision, scores.recall, scores.f1)] == [68.83, 80.83, 74.35]
    for kind, precision, recall, f1, support in scores.per_type:
        assert [round(100 * score, 2) for score in (precision, recall, f1)] == [*PUBLISHED[kind][:3]]
        assert support == COUNTS[kind][2]
    assert [one.label for one in scores.per_type] == sorted(PUBLISHED)
    assert entity_counts(truth, guess).sum(axis=0).tolist() == [371, 539, 459]


def test_an_entity_is_right_only_with_its_type_and_both_ends() -> None:
    truth = ["B-PER", "I-PER", "O", "B-LOC", "O"]
    assert entity_scores([truth], [truth]).f1 == 1.0
    assert entity_scores([truth], [["B-PER", "O", "O", "B-LOC", "O"]]).f1 == 0.5
    assert entity_scores([truth], [["B-LOC", "I-LOC", "O", "B-LOC", "O"]]).f1 == 0.5
    assert entity_scores([truth], [["B-PER", "I-PER", "I-PER", "B-LOC", "I-LOC"]]).f1 == 0.0
    assert entity_scores([truth], [["I-PER", "I-PER", "O", "I-LOC", "O"]]).f1 == 1.0  # IOB1 says the same


def test_no_entities_score_zero() -> None:
    nothing = entity_scores([["O"]], [["O"]])
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.per_type) == (0.0, 0.0, 0.0, ())
    assert entity_scores([["O"], ["B-A"]], [["B-A"], ["O"]]).per_type == (("A", 0.0, 0.0, 0.0, 1),)


@given(SENTENCES)
def test_scores_follow_from_all_pairs_of_entities(sentences: list[list[tuple[str, str]]]) -> None:
    truth, guess = ([[pair[side] for pair in sentence] for sentence in sentences] for side in (0, 1))
    true = [(number, entity) for number, tags in enumerate(truth) for entity in every_entity(tags)]
    guessed = [(number, entity) for number, tags in enumerate(guess) for entity in every_entity(tags)]
    correct = sum(one == other for one in true for other in guessed)
    scores = entity_scores(truth, guess)
    assert scores.precision == pytest.approx(correct / len(guessed) if guessed else 0.0)
    assert scores.recall == pytest.approx(correct / len(true) if true else 0.0)
    assert scores.f1 == pytest.approx(2 * correct / (len(true) + len(guessed)) if true or guessed else 0.0)
    assert sum(one.support for one in scores.per_type) == len(true)


@given(SENTENCES, st.integers(0, 100))
def test_counts_of_sentences_add_up_to_the_scores_of_a_resample(
    sentences: list[list[tuple[str, str]]], seed: int
) -> None:
    truth, guess = ([[pair[side] for pair in sentence] for sentence in sentences] for side in (0, 1))
    chosen = np.random.default_rng(seed).integers(len(truth), size=len(truth))
    resampled = entity_scores([truth[i] for i in chosen], [guess[i] for i in chosen])
    assert LabelScores.of("", *entity_counts(truth, guess)[chosen].sum(axis=0)).f1 == resampled.f1


@pytest.mark.parametrize("tag", ["PER", "S-PER", "B", "I-", "B_PER", "", "b-PER", "O-PER"])
def test_tags_that_are_not_iob_are_refused(tag: str) -> None:
    with pytest.raises(HeedfulError, match="neither O nor B- or I-"):
        entities(["O", tag])


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(HeedfulError, match="a sentence of 2 words has 1 guessed tags"):
        entity_scores([["O", "O"]], [["O"]])
    with pytest.raises(HeedfulError, match="nothing to score"):
        entity_scores([], [])
    with pytest.raises(HeedfulError, match="1 guesses cannot"):
        entity_counts([["O"], ["O"]], [["O"]])
