"""Frozen dataclasses to and from plain mappings and TOML, strictly: an unknown key or a wrong type is an error."""

from __future__ import annotations

import dataclasses
import difflib
import reprlib
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

C = TypeVar("C")
_SHORT = reprlib.Repr()  # a value from a file may be of any depth and length
_SHORT.maxstring = _SHORT.maxother = 200


def from_mapping(cls: type[C], values: Mapping[str, Any], where: object) -> C:
    """Build the config `cls` from `values`; an unknown key is refused with the nearest field's name.

    A class that stands for several kinds has a `kind_of`, which tells from the values which one it is. One whose fields
    were once called otherwise has `FORMER_NAMES`, so that files of earlier versions can be read.
    """
    kind_of = getattr(cls, "kind_of", None)
    cls = kind_of(values, where) if kind_of else cls
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = get_type_hints(cls)
    former: Mapping[str, str] = getattr(cls, "FORMER_NAMES", {})
    values = {former.get(key, key): value for key, value in values.items()}
    for key in values:
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the fields are {', '.join(sorted(fields))}"
            raise HeedfulError(f"unknown key {key!r}", where=where, remedy=hint)
    missing = [name for name, field in fields.items() if name not in values and _required(field)]
    if missing:
        raise HeedfulError(f"missing {', '.join(missing)}", where=where, remedy="add the missing keys")
    return cls(**{key: _field(key, value, hints[key], where) for key, value in values.items()})


def to_mapping(config: Any) -> dict[str, Any]:
    """The config as a plain dict, in the order of its fields."""
    return dataclasses.asdict(config)


def read_toml(cls: type[C], path: str | Path) -> C:
    """The config `cls` that a TOML file holds; a nested dataclass is a table."""
    return from_mapping(cls, read_toml_values(path), path)


def read_toml_values(path: str | Path) -> dict[str, Any]:
    """What a TOML file says."""
    path = Path(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise HeedfulError(f"not TOML: {error}", where=path, remedy="fix the file at that place") from error
    except UnicodeDecodeError as error:
        raise HeedfulError(f"not UTF-8 at byte {error.start}", where=path, remedy="save the file as UTF-8") from error
    except OSError as error:
        raise HeedfulError(f"cannot read {path.name}: {error.strerror}", where=path, remedy="check the path") from error


def write_toml(config: Any, path: str | Path) -> None:
    """Write a config where `read_toml` will find it, whole or not at all; what is None is left out."""
    write_toml_values(toml_values(config), path)


def write_toml_values(values: Mapping[str, Any], path: str | Path) -> None:
    """Write a TOML file, whole or not at all."""
    import tomli_w

    with atomic_file(path) as file:
        file.write(tomli_w.dumps(values))


def toml_values(config: Any) -> dict[str, Any]:
    """A config as TOML can say it: a field that is None is left out, which reads back only if that is its default."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value is None and field.default is not None:
            raise ValueError(f"{field.name} is None, which TOML cannot say, and its default is another")
        if value is not None:
            values[field.name] = toml_values(value) if dataclasses.is_dataclass(value) else value
    return values


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _field(key: str, value: Any, wanted: Any, where: object) -> Any:
    try:
        return _converted(value, wanted, f"{where}: [{key}]")
    except TypeError:
        kind = _in_words(wanted)
        what = f"{key} is {_SHORT.repr(value)}, which is not {kind}"
        raise HeedfulError(what, where=where, remedy=f"give {key} a value that is {kind}") from None


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _in_words(wanted: Any) -> str:
    """A type, for people: `int | None` is a whole number."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is Literal:
        return f"one of {', '.join(map(repr, arguments))}"
    if origin in (Union, types.UnionType):
        return " or ".join(_in_words(kind) for kind in arguments if kind is not types.NoneType)
    return _WORDS.get(wanted) or f"of type {wanted.__name__ if isinstance(wanted, type) and not arguments else wanted}"


def _converted(value: Any, wanted: Any, where: object) -> Any:
    """`value` as the type `wanted` has it (tables become dataclasses, arrays tuples), or TypeError."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if wanted is Any:
        return value
    if origin in (Union, types.UnionType):
        return _first_that_fits(value, arguments, where)
    if origin is Literal and value in arguments:
        return value
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return from_mapping(wanted, value, where) if isinstance(value, Mapping) else _checked(value, wanted)
    if origin is tuple and isinstance(value, (list, tuple)):
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(kinds) == len(value):
            return tuple(_converted(v, kind, where) for v, kind in zip(value, kinds, strict=True))
    if origin is list and isinstance(value, list):
        return [_converted(v, arguments[0], where) for v in value]
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {k: _converted(v, arguments[1], where) for k, v in value.items()}
    return _checked(value, wanted)


def _first_that_fits(value: Any, kinds: tuple[Any, ...], where: object) -> Any:
    for kind in kinds:
        try:
            return _converted(value, kind, where)
        except TypeError:
            continue
    raise TypeError


def _checked(value: Any, wanted: Any) -> Any:
    # bool is an int to Python, but "true layers" is a mistake; an int where a float is wanted is none.
    kinds = (int, float) if wanted is float else wanted
    if not isinstance(wanted, type) or not isinstance(value, kinds) or (isinstance(value, bool) and wanted is not bool):
        raise TypeError
    return value
