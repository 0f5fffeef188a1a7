"""What must be the same in all processes of a run: one with other data or settings would spoil the model unseen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from heedful.checkpoints.own_weights import weights_digest
from heedful.config import to_mapping
from heedful.training.contract import Source
from heedful.training.distributed import World


def check_agreement(world: World, record: Any, source: Source, model: nn.Module | None = None) -> None:
    """Refuse ranks that differ, by their number; `model` is compared too where nobody will send its weights round."""
    if world.size == 1:
        return
    versions = f"heedful {version('heedful')}, torch {torch.__version__}"
    # Other data often means other steps too: what the difference comes from is told, and not what follows from it.
    facts = {"version": versions, "data": getattr(source, "fingerprint", ""), **dict(_flat(to_mapping(record)))}
    world.agree({**facts, **({} if model is None else {"model": weights_digest(model)})})


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)
