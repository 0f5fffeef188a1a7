"""Scores of sentence vectors against scipy, torch and counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch

from heedful.tasks.similarity_scores import Scored, rescorer


def unit(rng: np.random.Generator, count: int) -> np.ndarray:
    vectors = rng.normal(size=(count, 5)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_scored_pairs() -> None:
    rng = np.random.default_rng(0)
    rows = [Scored((f"a{n}", f"b{n}"), float(rng.integers(0, 6)), unit(rng, 2)) for n in range(40)]
    found = rescorer(rows)(np.arange(40))
    cosines, scores = [float(row.vectors[0] @ row.vectors[1]) for row in rows], [row.score for row in rows]
    assert found["spearman"] == pytest.approx(scipy.stats.spearmanr(cosines, scores).statistic)
    assert found["pearson"] == pytest.approx(scipy.stats.pearsonr(cosines, scores).statistic)
    near = [((row.vectors[0] - row.vectors[1]) ** 2).sum() for row in rows if row.score and row.score >= 4]
    assert found["alignment"] == pytest.approx(np.mean(near), rel=1e-5)
    first = torch.tensor(np.stack([row.vectors[0] for row in rows]))
    assert found["uniformity"] == pytest.approx(torch.pdist(first).square().mul(-2).exp().mean().log().item(), rel=1e-5)
    assert "mrr" not in found


def test_retrieval_among_all_second_texts() -> None:
    a, b, c = np.eye(3, dtype=np.float32)
    rows = [
        Scored(("one", "first"), None, np.stack([a, a])),  # found at once
        Scored(("two", "second"), None, np.stack([a, b])),  # behind first, before third
        Scored(("three", "third", "wrong"), None, np.stack([(a + b) / math.sqrt(2), c, (a + b) / math.sqrt(2)])),
    ]
    found = rescorer(rows)(np.arange(3))
    # Of "two", "second" has the cosine 0 as "third" has: the wrong one comes first. "wrong" lies nearer than it too.
    assert found["mrr"] == pytest.approx((1 + 1 / 4 + 1 / 4) / 3)
    assert (found["recall@1"], found["recall@5"]) == (pytest.approx(1 / 3), 1.0)
    again = rescorer(rows)(np.array([0, 0, 1]))
    assert again["recall@1"] == pytest.approx(2 / 3) and again["mrr"] == pytest.approx((1 + 1 + 1 / 4) / 3)


def test_a_text_with_several_right_answers_is_found_by_the_best() -> None:
    rng = np.random.default_rng(1)
    anchor, near, far = unit(rng, 3)
    near = (anchor + 0.1 * near) / np.linalg.norm(anchor + 0.1 * near)
    rows = [Scored(("q", "x"), None, np.stack([anchor, near])), Scored(("q", "y"), None, np.stack([anchor, far]))]
    assert rescorer(rows)(np.arange(2))["mrr"] == 1.0


def test_vectors_that_are_all_alike_find_nothing() -> None:
    one = np.ones((2, 4), dtype=np.float32) / 2
    found = rescorer([Scored((f"a{n}", f"b{n}"), None, one) for n in range(20)])(np.arange(20))
    assert found["mrr"] == pytest.approx(1 / 20) and found["alignment"] == 0 and found["uniformity"] == 0


def test_lines_alone_have_only_their_spread() -> None:
    rows = [Scored((text,), None, unit(np.random.default_rng(ord(text)), 1)) for text in "abab"]
    found = rescorer(rows)(np.arange(4))
    assert set(found) == {"uniformity"}
    distance = ((rows[0].vectors[0] - rows[1].vectors[0]) ** 2).sum()
    assert found["uniformity"] == pytest.approx(-2 * distance, rel=1e-5)  # the same text is not compared with itself
    assert math.isnan(rescorer(rows)(np.array([0, 2]))["uniformity"])
