"""How the names of our parameters and the names on disk belong together, for any model.

A table lists modules: ours on the left, theirs on the right; `{i}` stands for a number, the same numbers in the same
order on both sides. The last word of a name (`weight` or `bias`) is the same too. Where several modules of theirs make
one of ours, their rows lie one below the other. Of parts that only we have it lists the beginnings alone, and all that
follows is the same on both sides. One table serves both ways: it names the tensors to join when a parameter is read,
and those to cut it into when it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from heedful.errors import HeedfulError

LEAVES = ("weight", "bias")
# The parts that a task puts on an encoder; another task may need them in another shape.
TASK_HEADS = ("classifier", "span", "lstm", "crf", "head")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class NameTable:
    """The names of one model family."""

    modules: Mapping[str, tuple[str, ...]]  # ours -> theirs
    branches: Mapping[str, str]  # parts that only we have: ours -> on disk
    optional: tuple[str, ...]  # our modules that a folder may lack, each as a whole
    copies: Mapping[str, str] = field(default_factory=dict)  # a tensor on disk -> the one it repeats
    counters: tuple[str, ...] = ()  # tensors on disk that only hold 0, 1, 2, …
    respell: Callable[[str], str] = str  # an older or shorter spelling on disk -> the one used in this table
    transposed: frozenset[str] = frozenset()  # our modules whose weight lies on disk with inputs and outputs exchanged
    constants: re.Pattern[str] | None = None  # tensors on disk that hold nothing learned, such as a causal mask
    layers: re.Pattern[str] | None = None  # what a tensor of a layer begins with, the layer's number in a group
    left_out: str = ""  # what names on disk lose where there is nothing beside the encoder
    leaves: tuple[str, ...] = LEAVES  # what the last word of a name may be
    # What some classes of Hugging Face call modules otherwise than this table: kind of class -> the table's -> theirs.
    in_classes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def with_modules(self, modules: Mapping[str, tuple[str, ...]]) -> NameTable:
        """This table with more modules."""
        return replace(self, modules={**self.modules, **modules})

    def on_disk(self, parameter: str) -> tuple[str, ...]:
        """The tensors on disk that make up a parameter of ours."""
        for ours, theirs in self.branches.items():
            if parameter.startswith(f"{ours}."):
                return (theirs + parameter.removeprefix(ours),)
        module, _, leaf = parameter.rpartition(".")
        pattern = _NUMBER.sub("{i}", module + ".")[:-1]
        if pattern not in self.modules:
            raise HeedfulError(
                f"a model folder has no place for {parameter}",
                remedy="in a model of your own, call the encoder `encoder` and all that is your own `head`",
            )
        numbers = _NUMBER.findall(module + ".")
        return tuple(f"{name.replace('{i}', '{}').format(*numbers)}.{leaf}" for name in self.modules[pattern])

    def class_spelling(self, names: Collection[str]) -> Mapping[str, str]:
        """How the class that has written these names calls modules otherwise than this table: the table's -> theirs."""
        for spelling in self.in_classes.values():
            if all(f"{theirs}.weight" in names for theirs in spelling.values()):
                return spelling
        return {}

    def is_transposed(self, parameter: str) -> bool:
        """Whether a parameter of ours lies on disk transposed."""
        module, _, leaf = parameter.rpartition(".")
        return leaf == "weight" and _NUMBER.sub("{i}", module + ".")[:-1] in self.transposed

    def is_constant(self, name: str) -> bool:
        """Whether a tensor on disk holds nothing that was learned."""
        return self.constants is not None and self.constants.fullmatch(name) is not None

    def knows(self, name: str) -> bool:
        """Whether a tensor on disk belongs to this family, be it of a part that is not wanted now."""
        module, _, leaf = _NUMBER.sub("{i}", name).rpartition(".")
        listed = leaf in self.leaves and any(module in theirs for theirs in self.modules.values())
        ours = any(name.startswith(f"{branch}.") for branch in self.branches.values())
        return listed or ours or name in self.copies or name in self.counters

    def inside_encoder(self, name: str) -> bool:
        """Whether a tensor on disk stands where the encoder's do, so that an unknown one changes what it computes."""
        theirs = [their for ours, names in self.modules.items() if ours.startswith("encoder.") for their in names]
        return name.partition(".")[0] in {their.partition(".")[0] for their in theirs}

    def belongs(self, name: str, part: str) -> bool:
        """Whether a tensor on disk is of a part of the model, such as `mlm` or `encoder.pooler`."""
        if part in self.branches:
            return name.startswith(f"{self.branches[part]}.")
        return name.rpartition(".")[0] in self._theirs(part)[0]

    def tells(self, name: str, part: str) -> bool:
        """Whether a tensor on disk says that a part is there.

        What two parts share, as ModernBERT's heads do, may be there for the other's sake: it says so only of a part
        that has nothing else.
        """
        inside, outside = self._theirs(part)
        shared = name.rpartition(".")[0] in outside and bool(inside - outside)
        return self.belongs(name, part) and not shared

    def _theirs(self, part: str) -> tuple[set[str], set[str]]:
        """The modules on disk inside of a part, and those of all others."""
        inside, outside = set[str](), set[str]()
        for ours, theirs in self.modules.items():
            (inside if f"{ours}.".startswith(f"{part}.") else outside).update(theirs)
        return inside, outside


def renamed(name: str, modules: Mapping[str, str]) -> str:
    """A tensor's name after its module was renamed, if it is among `modules`."""
    module, _, leaf = name.rpartition(".")
    return f"{modules[module]}.{leaf}" if module in modules else name


def own_names(*parts: str) -> NameTable:
    """The table of a model that only we have, where names on disk are ours; `parts` are those of its pretraining."""
    optional = (*parts, *TASK_HEADS)
    return NameTable(modules={}, branches={part: part for part in ("encoder", *optional)}, optional=optional)
