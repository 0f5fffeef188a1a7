"""Options made from a settings dataclass, and settings made from the options that were given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from heedful.cli.spelling import in_options, spelling
from heedful.errors import HeedfulError
from heedful.runs.settings import Told, settings_from, told_of

C = TypeVar("C", bound=Callable[..., Any])
S = TypeVar("S")
_PLACES: Mapping[str, Mapping[str, bool]] = {"file": {"dir_okay": False}, "folder": {"file_okay": False}, "any": {}}
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


class RunOption(click.Option):
    """An option that may have had another name in the last version."""

    def __init__(self, *names: Any, formerly: str | None = None, **rest: Any) -> None:
        super().__init__(*names, **rest)
        self.formerly = formerly and f"--{formerly.replace('_', '-')}"


class RunCommand(click.Command):
    """A command some of whose options may have had other names in the last version."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; one under its former name is taken, with a note."""
        former = {one.formerly: spelling(one) for one in self.params if isinstance(one, RunOption) and one.formerly}
        for i, (name, equals, value) in enumerate(arg.partition("=") for arg in args):
            if name in former:
                click.echo(f"note: {name} is now called {former[name]}", err=True)
                args[i] = f"{former[name]}{equals}{value}"
        return super().parse_args(ctx, args)


def run_options(kind: type[Any]) -> Callable[[C], C]:
    """Give a command an option, or an argument, for each field of a settings dataclass."""
    hints, fields = get_type_hints(kind), dataclasses.fields(kind)
    spelled = {field.name: _flags(field)[-1] for field in fields}

    def decorated(function: C) -> C:
        for field in reversed(fields):
            function = _parameter(field, hints[field.name], spelled)(function)
        return function

    return decorated


def given_settings(kind: type[S]) -> S:
    """The settings of the running command's options."""
    return settings_from(kind, given_options(kind))


def given_options(kind: type[Any]) -> dict[str, Any]:
    """The options of the running command that were given, by the fields they are made from."""
    ctx = click.get_current_context()
    names = {field.name for field in dataclasses.fields(kind)}
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {name: ctx.params[name] for name in names if sources.get(name) in _GIVEN}


def _flags(field: dataclasses.Field[Any]) -> tuple[str, ...]:
    known = told_of(field)
    return (field.name.upper(),) if known.argument else known.flags or (f"--{field.name.replace('_', '-')}",)


def _parameter(field: dataclasses.Field[Any], hint: Any, spelled: Mapping[str, str]) -> Callable[[C], C]:
    known, kind = told_of(field), _kind(hint)
    if known.argument:
        count = -1 if known.several else 1
        return click.argument(field.name, required=False, type=_type(kind, known), metavar=known.metavar, nargs=count)
    help = in_options(known.help, spelled) + (f"  [default: {in_options(known.unset, spelled)}]" if known.unset else "")
    options: dict[str, Any] = {"help": help.strip() or None, "metavar": known.metavar}
    if kind is bool:
        options["is_flag"] = True
    elif get_origin(kind) is Mapping:
        options |= {"multiple": True, "callback": _pairs}
    elif get_origin(kind) is tuple and not known.several:
        options["callback"] = _numbers
    else:
        options |= {"type": _type(kind, known), "multiple": known.several}
        shown = not known.unset and not known.several and field.default not in (None, dataclasses.MISSING, 0)
        options |= {"default": field.default, "show_default": True} if shown else {}
    return click.option(*_flags(field), field.name, cls=RunOption, formerly=known.formerly, **options)


def _kind(hint: Any) -> Any:
    """The type of a field without the None that it may be as well."""
    others = [one for one in get_args(hint) if one is not type(None)]
    return others[0] if len(others) == 1 and get_origin(hint) not in (tuple, Literal) else hint


def _type(kind: Any, known: Told) -> Any:
    if known.place is not None:
        return click.Path(**_PLACES[known.place])  # type: ignore[arg-type]
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    low = known.least if known.above is None else known.above
    high = known.most if known.below is None else known.below
    if kind in (int, float) and (low, high) != (None, None):
        range_of: Any = click.IntRange if kind is int else click.FloatRange
        return range_of(low, high, min_open=known.above is not None, max_open=known.below is not None)
    return kind if kind in (int, float) else str


def _pairs(ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for text, (_, equals, _) in zip(given, pairs, strict=True):
        if not equals:
            sweep = parameter.name == "sweep"
            remedy = "write FIELD=VALUES, as lr=1e-5,3e-5" if sweep else "write FIELD=VALUE, as hidden_size=192"
            raise HeedfulError(f"{parameter.opts[0]} {text} is not understood", remedy=remedy)
    return {name: value for name, _, value in pairs}


def _numbers(ctx: click.Context, parameter: click.Parameter, given: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in given.split(",")) if given else ()
    except ValueError:
        what, remedy = f"{parameter.opts[0]} {given} is not understood", "write layers as -1,-2,-3,-4"
        raise HeedfulError(what, remedy=remedy) from None
