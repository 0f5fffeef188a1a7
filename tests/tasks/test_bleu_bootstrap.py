"""BLEU of some sentences is sacreBLEU's of the corpus that they make."""

from __future__ import annotations

import pytest
from sacrebleu.metrics.bleu import BLEU

from heedful.tasks.bleu_bootstrap import Bleu

SAID = ["a small dog runs over the grass .", "two men stand near a red car", "the girl reads", "a man"]
RIGHT = ["a small dog runs on the grass .", "two men are standing near a red car", "the girl is reading", "one man"]


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [0, 0, 2], [1, 3]])
def test_the_score_of_chosen_sentences_is_that_of_their_corpus(chosen: list[int]) -> None:
    said, right = ([texts[i] for i in chosen] for texts in (SAID, RIGHT))
    score, low, high = Bleu(SAID, RIGHT, "13a").of(chosen, rounds=200)
    assert score == pytest.approx(BLEU(force=True).corpus_score(said, [right]).score)
    assert low <= score <= high
