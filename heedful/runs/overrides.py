"""Fields of a model's config that a user sets by name: FIELD=VALUE on the command line, a mapping in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError

C = TypeVar("C")
_SWITCH = {"true": True, "false": False}


def overridden(config: C, values: Mapping[str, Any]) -> C:
    """The config with other values in the fields named; text becomes what the field holds."""
    kinds = get_type_hints(type(config))
    fitting = {name: typed(name, value, kinds.get(name, str), "`set`") for name, value in values.items()}
    return from_mapping(type(config), {**to_mapping(config), **fitting}, "`set`")


def typed(name: str, value: Any, kind: Any, where: str) -> Any:
    """A text as the type that a field has, which may allow None as well; what is no text stays as it is."""
    others = [one for one in get_args(kind) if one is not type(None)]
    kind = others[0] if len(others) == 1 else kind
    if not isinstance(value, str):
        return value
    try:
        if kind is bool:
            return _SWITCH[value.lower()]
        if get_origin(kind) is tuple and get_args(kind)[0] in (int, float):
            return tuple(get_args(kind)[0](part) for part in value.split(","))
        return kind(value) if kind in (int, float) else value
    except (ValueError, KeyError):
        remedy = f"give {name} a value of type {kind.__name__}"
        raise HeedfulError(f"{where} {name}={value} is not understood", remedy=remedy) from None
