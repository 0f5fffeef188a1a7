"""FIELD=VALUE options: any field of a model's config, by its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_type_hints

from heedful.errors import HeedfulError

_SWITCH = {"true": True, "false": False}


def parse_settings(settings: Sequence[str], config: type[Any], example: str) -> dict[str, Any]:
    """The values of `FIELD=VALUE`s; whether there are such fields and values is for the config to say."""
    kinds = get_type_hints(config)
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        try:
            values[name] = _value(text, kinds.get(name, str))
        except (ValueError, KeyError):
            equals = ""
        if not equals:
            raise HeedfulError(f"--set {setting} is not understood", remedy=f"write FIELD=VALUE, as {example}")
    return values


def _value(text: str, kind: Any) -> Any:
    if kind is bool:
        return _SWITCH[text.lower()]
    return kind(text) if kind in (int, float) else text
