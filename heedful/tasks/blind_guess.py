"""Scores that need no reading: those of always giving one answer, whatever the text. A model should beat them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.tasks.task import Task


def blind_guess_remark(task: Task[Any], examples: Sequence[Any], scores: Mapping[str, float], name: str) -> str | None:
    """A sentence for whoever trained a model whose score is no better than that of one answer for all examples."""
    blind = task.blind_guess(examples)
    if blind is None or name not in scores:
        return None
    always, predictions = blind
    reached, guessed = scores[name], task.score(examples, predictions)[name]
    guessed = 0.0 if math.isnan(guessed) else guessed  # a correlation with what never changes
    better = reached < guessed if name in task.errors else reached > guessed
    if better:
        return None
    return f"dev {name} {reached:.4g} is no better than always answering {always} ({guessed:.4g}): nothing was learned"
