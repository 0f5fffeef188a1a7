"""How the examples of a pretraining objective are made: what all recipes have, and which kind a stored one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from heedful.errors import HeedfulError

R = TypeVar("R", bound="ExampleRecipe")
# Written before there was another kind, such a recipe does not say which it is.
FIRST_KIND = "mlm"
SHORTEST = 8
_kinds: dict[str, type[ExampleRecipe]] = {}


@dataclass(frozen=True)
class ExampleRecipe:
    """What every objective is told of its examples; a kind of its own adds what it has to choose.

    A new kind has a field `objective: str = "its name"`, which is stored with the others.
    """

    max_length: int = 128  # tokens of an example
    seed: int = 0

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        _kinds[vars(cls)["objective"]] = cls

    def __post_init__(self) -> None:
        if self.max_length < SHORTEST:
            what = f"a length of {self.max_length} tokens is too short"
            raise HeedfulError(what, remedy=f"use at least {SHORTEST}")

    def without_pairs(self: R) -> R:
        """The same for words alone, where an objective is also about pairs of texts."""
        return self

    @classmethod
    def kind_of(cls: type[R], values: Mapping[str, Any], where: object) -> type[R]:
        """The class of which a mapping holds the fields: this one, or for `ExampleRecipe` that of its objective."""
        if cls is not ExampleRecipe:
            return cls
        name = str(values.get("objective", FIRST_KIND))
        if name not in _kinds:
            known = ", ".join(_kinds)
            raise HeedfulError(f"there is no objective {name!r}", where=where, remedy=f"the objectives are {known}")
        return _kinds[name]  # type: ignore[return-value]
