"""Which parts of a model are rounded to int8: its large matrices; the pooler, heads and all else stay in float32."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.language_model import TiedLanguageModel
from heedful.models.transformer import Transformer
from heedful.nn.int8 import Int8Linear, rounded_weights
from heedful.nn.packed_linear import tied_linear

ENCODER = "encoder"
POOLER = "pooler"


@dataclass(frozen=True)
class Place:
    """Where a product of a model with one of its matrices stands, and what is there in float32."""

    owner: nn.Module
    name: str
    linear: nn.Linear | None  # None where the token matrix itself is the product

    def put(self, product: nn.Module | None) -> None:
        """Set what computes the product."""
        setattr(self.owner, self.name, product)

    def in_float32(self) -> nn.Linear:
        """The product as a layer."""
        return self.linear or tied_linear(_token_matrix(self.owner))


def places(model: nn.Module) -> dict[str, Place]:
    """The products with matrices that can be in int8, by name; a model without attention has none."""
    found = {
        path: Place(owner, name, child)
        for path, owner, name, child in _children(model)
        if isinstance(child, nn.Linear) and POOLER not in path.split(".")
    }
    if isinstance(model, TiedLanguageModel):
        found["tied_head"] = Place(model, "tied_head", None)
    if isinstance(model, Transformer):
        found["projection"] = Place(model, "projection", None)
    return found


def token_tables(model: nn.Module) -> dict[str, Tensor]:
    """The vectors of the vocabulary, (V, D) each, by the name of their parameter."""
    found = ((path, child) for path, _, name, child in _children(model) if name == "token")
    return {f"{path}.weight": child.weight for path, child in found if isinstance(child, nn.Embedding)}


def stored_in_int8(model: nn.Module, kept: Collection[str]) -> set[str]:
    """The parameters of a model that a folder holds in int8, if the products `kept` stay in float32."""
    matrices = {f"{name}.weight" for name, place in places(model).items() if place.linear and name not in kept}
    return matrices | set(token_tables(model))


@torch.no_grad()
def round_tables(model: nn.Module) -> None:
    """Round the vectors of the vocabulary in place, each by itself."""
    for table in token_tables(model).values():
        table.copy_(rounded_weights(table).restored())


def put_in_int8(model: nn.Module, kept: Collection[str], levels: int) -> None:
    """Round a model's matrices, but for the products `kept` in float32; then it is for inference only."""
    check_suited(model)
    round_tables(model)
    for name, place in places(model).items():
        if name not in kept:
            place.put(Int8Linear(place.in_float32(), levels))


def check_suited(model: nn.Module) -> None:
    """Refuse a model that is not made of matrices."""
    encoder = model.encoder if isinstance(model, TiedLanguageModel) else model
    if isinstance(encoder, Encoder) and not encoder.has_attention:
        what = f"a model of the type {encoder.config.model_type} is not computed in int8"
        raise HeedfulError(what, remedy="use float32; int8 is for Transformers")
    if not isinstance(encoder, Encoder | Transformer):
        raise HeedfulError("an RNN is not computed in int8", remedy="use float32; int8 is for Transformers")


def _children(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, nn.Module]]:
    """Every module inside a model: its path, its owner, its name there, and itself."""
    for path, owner in model.named_modules():
        for name, child in owner.named_children():
            yield f"{path}.{name}" if path else name, owner, name, child


def _token_matrix(model: nn.Module) -> Tensor:
    if isinstance(model, Transformer):
        return model.target.token.weight
    assert isinstance(model, TiedLanguageModel)
    return model.encoder.token_matrix
