"""The baselines must be able to win where words alone do tell, or losing would prove nothing."""

import random

import pytest

from heedful.toy.bag_of_words import accuracy, bag, choose, classify, correlation, pair_bag, regress, words

GOOD, BAD, FILLERS = ["fine", "good"], ["poor", "bad"], ["the", "soup", "was", "very", "hot"]


def review(rng: random.Random, label: int) -> str:
    return " ".join([*rng.sample(FILLERS, 3), rng.choice(GOOD if label else BAD)])


def test_classify_learns_what_words_tell() -> None:
    rng = random.Random(0)
    labels = [rng.randrange(2) for _ in range(400)]
    bags = [bag(review(rng, label)) for label in labels]
    assert accuracy(classify(bags[:300], labels[:300], bags[300:]), labels[300:]) == 1.0


def test_regress_learns_a_sum_of_counts() -> None:
    rng = random.Random(0)
    texts = [" ".join(rng.choices(FILLERS, k=8)) for _ in range(400)]
    targets = [float(2 * text.split().count("hot") - text.split().count("soup")) for text in texts]
    bags = [bag(text) for text in texts]
    assert correlation(regress(bags[:300], targets[:300], bags[300:]), targets[300:]) > 0.99


def test_choose_learns_to_take_the_candidate_that_shares_words_even_new_ones() -> None:
    rng = random.Random(0)

    def row(vocabulary: list[str]) -> tuple[list[str], int, str]:
        candidates = rng.sample(vocabulary, 3)
        right = rng.randrange(3)
        return candidates, right, f"{candidates[right]} said the crowd"

    seen = [row([f"a{i}" for i in range(30)]) for _ in range(200)]
    new = [row([f"b{i}" for i in range(30)]) for _ in range(100)]
    bags = [[[pair_bag(context, c) for c in candidates] for candidates, _, context in rows] for rows in (seen, new)]
    assert accuracy(choose(bags[0], [r for _, r, _ in seen], bags[1]), [r for _, r, _ in new]) == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna's 2 cats.", ["anna", "'", "s", "2", "cats", "."]),
        ("红山的ok，", ["红", "山", "的", "ok", "，"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_correlation_of_a_constant_is_zero() -> None:
    assert correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) == 0.0
