"""Fields of a config that are set by name, as text or as what they are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from heedful.errors import HeedfulError
from heedful.runs.overrides import overridden


@dataclass(frozen=True)
class Shape:
    width: int = 1
    share: float = 0.5
    big: bool = False
    name: str = "a"


def test_values_have_the_types_of_their_fields() -> None:
    text = overridden(Shape(), {"width": "32", "share": "0.1", "big": "True", "name": "x=y"})
    assert (
        text
        == Shape(32, 0.1, True, "x=y")
        == overridden(Shape(), {"width": 32, "share": 0.1, "big": True, "name": "x=y"})
    )


def test_an_unknown_field_is_refused_with_the_nearest() -> None:
    with pytest.raises(HeedfulError, match="did you mean 'width'"):
        overridden(Shape(), {"widht": "3"})


@pytest.mark.parametrize("given", [{"width": "wide"}, {"share": ""}, {"big": "1"}])
def test_what_is_not_understood_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(HeedfulError, match="not understood"):
        overridden(Shape(), given)
