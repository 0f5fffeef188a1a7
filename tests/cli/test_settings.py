"""FIELD=VALUE options by the types of a config's fields."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from heedful.cli.settings import parse_settings
from heedful.errors import HeedfulError


@dataclass
class Shape:
    width: int = 1
    share: float = 0.5
    big: bool = False
    name: str = "a"


def test_values_have_the_types_of_their_fields() -> None:
    found = parse_settings(["width=32", "share=0.1", "big=True", "name=x=y"], Shape, "width=8")
    assert found == {"width": 32, "share": 0.1, "big": True, "name": "x=y"}


def test_an_unknown_field_is_for_the_config_to_refuse() -> None:
    assert parse_settings(["widht=3"], Shape, "width=8") == {"widht": "3"}


@pytest.mark.parametrize("setting", ["width", "width=wide", "share=", "big=1"])
def test_what_is_not_understood_is_refused(setting: str) -> None:
    with pytest.raises(HeedfulError, match="not understood") as error:
        parse_settings([setting], Shape, "width=8")
    assert "width=8" in str(error.value)
