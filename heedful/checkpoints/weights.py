"""Fill a model from tensors on disk, and take it apart again, by a table of names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heedful.checkpoints.names import NameTable, renamed
from heedful.checkpoints.tensorflow_folder import config_name
from heedful.checkpoints.tensors import FLOATS, Tensors
from heedful.errors import HeedfulError

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class WeightSource:
    """The tensors of a folder under the names that a table gives them."""

    tensors: Tensors
    table: NameTable
    spelled: Mapping[str, str]  # the table's name -> the name on disk
    left_over: tuple[str, ...] = ()  # names on disk that mean nothing here, all outside of the encoder

    def holds(self, part: str) -> bool:
        """Whether the folder has any tensor of a part of the model, such as `mlm` or `encoder.pooler`."""
        return any(self.table.tells(name, part) for name in self.spelled)

    def absent(self) -> list[str]:
        """The optional parts of which the folder has nothing."""
        return [part for part in self.table.optional if not self.holds(part)]

    def notes(self) -> list[str]:
        """What was left aside when the folder was opened."""
        named, others = self.left_over[:5], self.left_over[5:]  # a note is one line
        ignored = f"not of the encoder, ignored: {', '.join(named)}" + (f" and {len(others)} more" if others else "")
        return [*self.tensors.notes, *([ignored] if named else [])]


def source(tensors: Tensors, table: NameTable) -> WeightSource:
    """Give each tensor its name in the table; two for one name are refused, and unknown ones inside the encoder."""
    spelled: dict[str, str] = {}
    left_over: list[str] = []
    in_class = table.class_spelling([table.respell(on_disk) for on_disk in tensors])
    plain = {theirs: name for name, theirs in in_class.items()}
    for on_disk in tensors:
        if table.is_constant(table.respell(on_disk)):
            continue
        name = renamed(table.respell(on_disk), plain)
        if name == table.respell(on_disk) and renamed(name, in_class) != name:
            left_over.append(on_disk)  # what this class calls otherwise: it does not look at this one
            continue
        if not table.knows(name):
            if not table.inside_encoder(name):
                left_over.append(on_disk)
                continue
            raise HeedfulError(
                f"unknown tensor {on_disk} inside the encoder, which would compute something else with it",
                where=tensors.where(on_disk),
                remedy="the model is not of the kind its config.json says, or was changed; use an unchanged one",
            )
        if name in spelled:
            what = f"{on_disk} and {spelled[name]} are two tensors for one place"
            raise HeedfulError(what, where=tensors.where(on_disk), remedy="save the model again, with one of the two")
        spelled[name] = on_disk
    # Of two that are always equal some programs keep only the second.
    stand_ins = {original: spelled[copy] for copy, original in table.copies.items() if copy in spelled}
    return WeightSource(tensors, table, {**stand_ins, **spelled}, tuple(left_over))


def fill_parameters(model: nn.Module, found: WeightSource, prefix: str = "", fresh: Collection[str] = ()) -> None:
    """Copy the weights on disk into `model`; only parts that the folder lacks, and the `fresh` ones, stay as they are.

    `prefix` is what our names in the table have in front of the model's own.
    """
    _check_repetitions(found)
    absent = tuple(f"{part}." for part in (*found.absent(), *fresh))
    targets = {name: target for name, target in model.state_dict().items() if not f"{prefix}{name}".startswith(absent)}
    places = {name: found.table.on_disk(prefix + name) for name in targets}
    _check_complete(found, [part for parts in places.values() for part in parts])
    # As they lie on disk; what is written there is written into the parameters.
    targets = {name: x.T if found.table.is_transposed(prefix + name) else x for name, x in targets.items()}
    for name, target in targets.items():
        _check_shapes(found, places[name], target)
    for name, target in targets.items():
        for rows, part in zip(_cut(target, len(places[name])), places[name], strict=True):
            rows.copy_(found.tensors.read(found.spelled[part]))


def fits(model: nn.Module, found: WeightSource, part: str) -> bool:
    """Whether a part of the model has the shapes of the folder's and takes all of it; our own, the same tensors too."""
    own = {name: target for name, target in model.state_dict().items() if name.startswith(f"{part}.")}
    wanted = {found.table.on_disk(name)[0]: tuple(target.shape) for name, target in own.items()}
    held = [name for name in found.spelled if found.table.belongs(name, part)]
    there = {name: found.tensors.shape(found.spelled[name]) for name in held}
    strict = part in found.table.branches
    if (strict and wanted.keys() != there.keys()) or not there.keys() <= wanted.keys():
        return False
    return all(wanted[name] == there[name] for name in wanted.keys() & there.keys())


class Unfilled(TorchFunctionMode):
    """A `with` block in which modules get memory but no starting values, which take time only to be overwritten."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", None) == "torch.nn.init":
            return None
        return function(*args, **(kwargs or {}))


def unfilled(build: Callable[[], M], config: object) -> M:
    """What `build` makes, with nothing in its parameters yet; `config` is the file that says how large it is."""
    try:
        with Unfilled():
            return build()
    except (RuntimeError, OverflowError, TypeError) as error:
        what = f"no model of the size config.json asks for can be built: {error}"
        raise HeedfulError(what, where=config, remedy="fix the numbers in config.json") from error


def take_apart(model: nn.Module, table: NameTable, prefix: str = "", of_class: str | None = None) -> dict[str, Tensor]:
    """The parameters of a model in fp32 under their names on disk, which may be those `of_class`."""
    tensors: dict[str, Tensor] = {}
    in_class = table.in_classes.get(of_class or "", {})
    for name, parameter in model.state_dict().items():
        parts = table.on_disk(prefix + name)
        laid = parameter.detach().T if table.is_transposed(prefix + name) else parameter.detach()
        whole = laid.to("cpu", torch.float32).contiguous()
        named = [renamed(part, in_class) for part in parts]
        tensors.update(zip(named, _cut(whole, len(named)), strict=True))
    return tensors


def _cut(tensor: Tensor, parts: int) -> tuple[Tensor, ...]:
    """So many equal runs of rows; what has no rows, being a single number, is one part."""
    return tensor.chunk(parts) if parts > 1 else (tensor,)


def _check_complete(found: WeightSource, names: list[str]) -> None:
    missing = [name for name in names if name not in found.spelled]
    if missing:
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise HeedfulError(
            f"the weights lack {missing[0]}{others}",
            where=found.tensors.folder,
            remedy="fetch all files of the model again, or save it again with all of its encoder",
        )


def _check_shapes(found: WeightSource, parts: tuple[str, ...], target: Tensor) -> None:
    expected = tuple(_cut(target, len(parts))[0].shape)
    for name in (found.spelled[part] for part in parts):
        where, shape, dtype = found.tensors.where(name), found.tensors.shape(name), found.tensors.dtype(name)
        if shape != expected:
            config = config_name(found.tensors.folder)
            what = f"{name} has the shape {list(shape)}, but {config} asks for {list(expected)}"
            raise HeedfulError(what, where=where, remedy=f"use the {config} that belongs to these weights")
        if dtype not in FLOATS:
            what = f"{name} is stored as {dtype}, which is not one of {', '.join(FLOATS)}"
            raise HeedfulError(what, where=where, remedy="use the weights from before they were quantised")


def _check_repetitions(found: WeightSource) -> None:
    """What only repeats something must really do so: a copy its original, a counter 0, 1, 2, …"""
    for name, original in found.table.copies.items():
        if name in found.spelled and not _equal(found, name, original):
            raise HeedfulError(
                f"{name} differs from {original}, to which it is tied",
                where=found.tensors.where(found.spelled[name]),
                remedy="untied models are not supported; leave the tensor out to use the tied one",
            )
    for name in found.table.counters:
        if name in found.spelled:
            numbers = found.tensors.read(found.spelled[name]).flatten()
            if not torch.equal(numbers, torch.arange(len(numbers), dtype=numbers.dtype)):
                what = f"{name} does not count 0, 1, 2, …, so positions mean something else in this model"
                raise HeedfulError(what, where=found.tensors.where(found.spelled[name]), remedy="use an unchanged one")


def _equal(found: WeightSource, name: str, original: str) -> bool:
    first, second = (found.tensors.read(found.spelled[n]) for n in (name, original))
    return first.shape == second.shape and torch.equal(first.float(), second.float())
