"""AdamW in one pass over the parameters, with its state under names that a file can hold.

The mathematics is torch's own function, fused. Its optimiser class would do, but making one loads torch's compiler,
which takes two seconds and is not used here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from heedful.checkpoints.slices import own_rows
from heedful.training.schedule import rate_factor
from heedful.training.training_config import TrainingConfig

RateScale = Callable[[str], float]


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters, by name, that have decay and share of the learning rate in common."""

    weight_decay: float
    scale: float
    parameters: dict[str, nn.Parameter] = field(default_factory=dict)


class Optimiser:
    """AdamW over the trainable parameters of a model; `rate_scale` gives a parameter's share of the learning rate.

    The moments are made at once and not at the first step: if they do not fit into memory, it shows before training.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig, rate_scale: RateScale | None = None) -> None:
        self._config = config
        self.groups = _groups(model, config.weight_decay, rate_scale or (lambda name: 1.0))
        self.parameters = {name: p for group in self.groups for name, p in group.parameters.items()}
        self._steps = {name: torch.zeros((), device=p.device) for name, p in self.parameters.items()}
        self._means = {name: torch.zeros_like(p, requires_grad=False) for name, p in self.parameters.items()}
        self._squares = {name: torch.zeros_like(p, requires_grad=False) for name, p in self.parameters.items()}

    def step(self, rate: float) -> None:
        """Move every parameter that has a gradient."""
        with torch.no_grad():
            for group in self.groups:
                moved = {name: p for name, p in group.parameters.items() if p.grad is not None}
                adamw(
                    [own_rows(p) for p in moved.values()],
                    [own_rows(p.grad) for p in moved.values() if p.grad is not None],
                    [own_rows(self._means[name]) for name in moved],
                    [own_rows(self._squares[name]) for name in moved],
                    [],
                    [self._steps[name] for name in moved],
                    fused=True,
                    amsgrad=False,
                    beta1=self._config.beta1,
                    beta2=self._config.beta2,
                    lr=rate * group.scale,
                    weight_decay=group.weight_decay,
                    eps=self._config.eps,
                    maximize=False,
                )

    def forget_gradients(self) -> None:
        """Free the gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def rate(self, step: int) -> float:
        """The learning rate of step 1 … steps."""
        return self._config.learning_rate * rate_factor(step, self._config)

    def moments(self) -> dict[str, Tensor]:
        """All that the optimiser remembers, such as `mean.layers.0.up.weight`; the tensors are its own."""
        kinds = {"step": self._steps, "mean": self._means, "square": self._squares}
        return {f"{kind}.{name}": tensor for kind, tensors in kinds.items() for name, tensor in tensors.items()}


def layerwise(depth: Callable[[str], int], top: int, decay: float) -> RateScale:
    """Each layer below the `top` one learns `decay` times as fast as the one above; `depth` is a parameter's layer."""
    return lambda name: float(decay ** (top - depth(name)))


def _groups(model: nn.Module, weight_decay: float, rate_scale: RateScale) -> list[ParameterGroup]:
    """Matrices are decayed; biases and norms, which have one dimension, are not."""
    groups: dict[tuple[float, float], ParameterGroup] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            kind = (weight_decay if parameter.ndim >= 2 else 0.0, rate_scale(name))
            groups.setdefault(kind, ParameterGroup(*kind)).parameters[name] = parameter
    return list(groups.values())
