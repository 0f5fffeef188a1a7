"""BLEU with the interval that a bootstrap over sentences gives it, quickly: counts are made once for each sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heedful.tasks.bootstrap import interval

ORDERS = 4  # 1-grams to 4-grams


class Bleu:
    """The BLEU of translations, of all or of some of them, as sacreBLEU computes it for a corpus."""

    def __init__(self, translations: Sequence[str], references: Sequence[str], tokenizer: str) -> None:
        from sacrebleu.metrics.bleu import BLEU

        self._metric = BLEU(tokenize=tokenizer, force=True, effective_order=True)  # the order is of scores not used
        found = [
            self._metric.sentence_score(said, [right]) for said, right in zip(translations, references, strict=True)
        ]
        self._rows = np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found], dtype=np.int64)

    def score(self, chosen: NDArray[np.int64]) -> float:
        """Of the sentences with these numbers, as often as they are named."""
        *grams, said, right = (int(value) for value in self._rows[chosen].sum(0))
        correct, total = grams[:ORDERS], grams[ORDERS:]
        return float(self._metric.compute_bleu(correct, total, said, right, smooth_method="exp").score)

    def of(self, chosen: Sequence[int], rounds: int = 1000) -> tuple[float, float, float]:
        """The score of some sentences, and its 95 % interval."""
        numbers = np.array(chosen)
        low, high = interval(lambda places: self.score(numbers[places]), len(numbers), rounds)
        return self.score(numbers), low, high
