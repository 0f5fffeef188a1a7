"""Evaluation while a run goes on: what is said of a model each time, and of the weights that the run ends with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import nn


class Judgement(Protocol):
    """What came out of one evaluation."""

    @property
    def scores(self) -> Mapping[str, float]:
        """The numbers, by name."""


J = TypeVar("J", bound=Judgement)


class Judge(ABC, Generic[J]):
    """Judges a model each time it is asked; `kept` is what it said of the weights that the run ends with."""

    def __init__(self) -> None:
        self.last: J | None = None
        self.kept: J | None = None

    @abstractmethod
    def judge(self, model: nn.Module) -> J:
        """Look at a model, which is in eval mode."""

    def examples(self, model: nn.Module) -> Sequence[Mapping[str, Any]]:
        """What the model makes of a few inputs, for a reader."""
        return ()

    def remark(self, decides: str | None) -> str | None:
        """What whoever trained the model should know about the scores of the weights that are kept."""
        return None

    def evaluate(self, model: nn.Module) -> Mapping[str, float]:
        """The scores of a model."""
        self.last = self.judge(model)
        return self.last.scores

    def judged(self, model: nn.Module) -> J:
        """The judgement of the weights that are kept; they are asked again only if a resumed run has not heard it."""
        if self.kept is None:
            with torch.no_grad():
                self.evaluate(model.eval())
            self.kept = self.last
        assert self.kept is not None
        return self.kept
