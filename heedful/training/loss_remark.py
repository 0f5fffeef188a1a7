"""Whether the training loss ever fell, by what the journal says of it."""

from __future__ import annotations

import json
from pathlib import Path


def loss_remark(metrics: Path) -> str | None:
    """A sentence for whoever trained a model whose loss was never below where it began; None for a short journal."""
    with metrics.open(encoding="utf-8") as file:
        told = [line["losses"] for line in map(json.loads, file) if line.get("losses")]
    sums = [sum(losses.values()) for losses in told if None not in losses.values()]
    if len(sums) < 2 or min(sums[1:]) < sums[0]:
        return None
    advice = "a lower learning rate may help"
    return f"the training loss never fell: {sums[0]:,.4g} at first, {sums[-1]:,.4g} at the end; {advice}"
