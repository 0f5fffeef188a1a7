"""What a run is told: a frozen dataclass a kind of run, each field with a default, its meaning and its bounds.

The command line makes its options and their help from such a dataclass, Python its keywords, and a file its keys; so
a text that is written here names another field in backticks, and the command line puts its option there instead.
Nothing slow is imported, for `--help` reads this too.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from heedful.config import from_mapping
from heedful.errors import HeedfulError
from heedful.text.rows import Rows

S = TypeVar("S")
Precision = Literal["auto", "float32", "bfloat16"]
SHARD = "Under torchrun: a slice of the model in each process, not all of it (FSDP2)."
# Where something is; settings keep it as a text.
Place = str | Path
_TOLD = "told"


@dataclass(frozen=True)
class Told:
    """What is known of a field beside its type and default."""

    help: str = ""
    unset: str = ""  # what happens where nothing is said, if the default does not tell
    least: float | None = None
    above: float | None = None  # the values lie above it, as
    below: float | None = None
    most: float | None = None
    place: Literal["file", "folder", "any"] | None = None  # of what it is the path
    flags: tuple[str, ...] = ()  # the command line's names of it, if they are not the field's own
    metavar: str | None = None
    several: bool = False  # whether the command line takes it more than once
    argument: bool = False  # whether the command line takes it without a name
    formerly: str | None = None  # its name in the last version, which is still understood


def told(default: Any = MISSING, help: str = "", **facts: Any) -> Any:
    """A field of a settings dataclass; one without a default must be given."""
    metadata = {_TOLD: Told(help, **facts)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def told_of(field: dataclasses.Field[Any]) -> Told:
    """What is known of a field."""
    known: Told = field.metadata.get(_TOLD, Told())
    return known


def check_bounds(settings: Any) -> None:
    """Refuse numbers that make no sense; for the `__post_init__` of settings."""
    for field in dataclasses.fields(settings):
        value, known = getattr(settings, field.name), told_of(field)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        low = known.least is not None and not value >= known.least
        low = low or (known.above is not None and not value > known.above)
        high = known.below is not None and not value < known.below
        high = high or (known.most is not None and not value <= known.most)
        if low or high:
            what = f"`{field.name}` is {value}"
            raise HeedfulError(what, remedy=f"use a number {bounds(known)}")


def bounds(known: Told) -> str:
    """The bounds of a number in words."""
    parts = [
        *([f"of at least {known.least:g}"] if known.least is not None else []),
        *([f"above {known.above:g}"] if known.above is not None else []),
        *([f"below {known.below:g}"] if known.below is not None else []),
        *([f"of at most {known.most:g}"] if known.most is not None else []),
    ]
    return " and ".join(parts)


def settings_from(kind: type[S], values: Mapping[str, Any], where: object = None) -> S:
    """The settings that these values say; an unknown name is refused with the nearest one, a wrong type by its name."""
    values = under_present_names(kind, values)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise HeedfulError(f"`{field.name}` is missing", where=where, remedy="say what it is")
    _refuse_options(kind, values, where)
    return from_mapping(kind, {name: _plain(value) for name, value in values.items()}, where)


def names_by_option(fields: Iterable[dataclasses.Field[Any]]) -> dict[str, str]:
    """The names of fields by those of their options, as `lr` for `learning_rate`."""
    return {flag.lstrip("-").replace("-", "_"): field.name for field in fields for flag in told_of(field).flags}


def _refuse_options(kind: type[Any], values: Mapping[str, Any], where: object) -> None:
    fields = dataclasses.fields(kind)
    options = names_by_option(fields)
    for name in values.keys() - {field.name for field in fields}:
        if name in options:
            raise HeedfulError(f"unknown key {name!r}", where=where, remedy=f"did you mean {options[name]!r}?")


def under_present_names(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with those that were called otherwise in the last version under their names of today."""
    former = {told_of(field).formerly: field.name for field in dataclasses.fields(kind)}
    return {former.get(name, name): value for name, value in values.items()}


def named_arguments(kind: type[Any], positional: tuple[Any, ...], call: str) -> dict[str, Any]:
    """Arguments without a name under the names of the first fields."""
    names = [field.name for field in dataclasses.fields(kind) if not field.kw_only]
    if len(positional) > len(names):
        what = f"{call} takes {len(names)} arguments without a name ({', '.join(names)}), {len(positional)} were given"
        raise HeedfulError(what, remedy="name the others, as seed=1")
    return dict(zip(names, positional, strict=False))


def refuse_idle(settings: Any, names: tuple[str, ...], useless: Callable[[Any], bool] = bool) -> None:
    """Refuse fields that would have no effect because nothing is evaluated."""
    for name in names:
        if useless(getattr(settings, name)) and not settings.dev:
            raise HeedfulError(f"`{name}` has no effect without dev data", remedy="give `dev`, or leave it out")


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def data_of(given: Any) -> Any:
    """Data as it is kept in settings: the name of a file, or rows in memory."""
    if given is None or isinstance(given, Rows):
        return given
    return os.fspath(given) if isinstance(given, str | os.PathLike) else Rows(given)


def resolved(precision: Precision) -> Literal["float32", "bfloat16"]:
    """The precision of settings in which `auto` is answered; where nobody has asked the processor, float32."""
    return "float32" if precision == "auto" else precision


def one_or_two(given: Any) -> tuple[Any, ...]:
    """Data that may come as two files: a tuple of one or two names, or of rows in memory."""
    if isinstance(given, list | tuple) and all(isinstance(one, str | os.PathLike | Rows) for one in given):
        return tuple(map(data_of, given))
    return (data_of(given),)


def storable(settings: Any) -> dict[str, Any]:
    """Settings as a file can hold them: what was left to its default is left out, and rows are told by their digest."""
    given = {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(settings)
        if getattr(settings, field.name) not in (None, field.default, (), {})
    }
    return {name: _in_words(value) for name, value in given.items()}


def _in_words(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_in_words(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _in_words(one) for name, one in value.items()}
    return str(value) if isinstance(value, Rows | Path) else value
