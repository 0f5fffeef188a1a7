"""`heedful` with some parts of the informed start only: what is each of them worth?

    python benchmarks/partial_start.py bias,vectors pretrain CORPUS -o RUN …

The parts are bias, vectors and neighbours, as docs/informed-start.md calls them.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

import heedful.runs.pretraining.run as pretraining
from heedful.cli.main import main
from heedful.models.informed_start import InformedStart, inform

PARTS = ("bias", "vectors", "neighbours")


def inform_partly(parts: Collection[str]) -> None:
    """From now on, let models start with these parts alone."""

    def partly(model: nn.Module, where: InformedStart, counts: Tensor, vectors: Tensor | None) -> None:
        left_out: dict[str, Any] = {part: None for part in PARTS if part not in parts and part != "vectors"}
        inform(model, replace(where, **left_out), counts, vectors if "vectors" in parts else None)

    pretraining.inform = partly  # type: ignore[attr-defined]


if __name__ == "__main__":
    wanted = sys.argv.pop(1).split(",")
    if set(wanted) - set(PARTS):
        sys.exit(f"the parts are {', '.join(PARTS)}")
    inform_partly(wanted)
    main()
