"""The activations that config files name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from heedful.errors import HeedfulError

# By Hugging Face's names; GELU in its erf form and in its approximation by tanh.
ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_new": lambda: nn.GELU(approximate="tanh"),
    "gelu_pytorch_tanh": lambda: nn.GELU(approximate="tanh"),
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}


def activation(name: str) -> nn.Module:
    """The activation of this name."""
    return ACTIVATIONS[name]()


def check_activation(field: str, name: str) -> None:
    """Refuse a name that is not known; `field` is what the config calls it."""
    if name not in ACTIVATIONS:
        raise HeedfulError(f"{field} {name!r} is not supported", remedy=f"the activations are {', '.join(ACTIVATIONS)}")
