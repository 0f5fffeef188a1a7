"""Settings out of files: those of the run that is gone on with, and those that somebody has written down.

What is given in the call or on the command line comes before a file, and a file before what the run was started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from heedful.config import read_toml_values, write_toml_values
from heedful.errors import HeedfulError
from heedful.runs.settings import Place, settings_from, storable, under_present_names
from heedful.text.rows import NAME
from heedful.training.run_folder import SETTINGS, RunFolder

S = TypeVar("S")
DATA = ("train", "dev", "labelled")


def settings_of(kind: type[S], given: Mapping[str, Any], resume: bool, file: Place | None = None) -> S:
    """The settings of what is given, of a file, and of the run in the folder if it is to be resumed."""
    written = {} if file is None else under_present_names(kind, read_settings(file))
    known = {**written, **under_present_names(kind, given)}
    stored = _stored(known) if resume else None
    values = {**under_present_names(kind, stored or {}), **known}
    for name in DATA:
        if str(values.get(name)).startswith(NAME) and isinstance(values[name], str):
            what = f"the run was started with {values[name]} as `{name}`, which only whoever has them can give again"
            raise HeedfulError(what, remedy=f"give `{name}` too")
    return settings_from(kind, values, file)


def _stored(known: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the run to go on with was told; who names nothing but its folder must have one there."""
    if "output" not in known:
        raise HeedfulError("`output` is missing", remedy="name the folder of the run to go on with")
    folder = RunFolder(known["output"])
    if not folder.config.exists() and not {"task", "model", "corpus", "train", "teacher"} & known.keys():
        remedy = "name the folder of a run; to start one, say what it is to train and on what"
        raise HeedfulError("there is no run here to go on with", where=folder.path, remedy=remedy)
    return folder.stored_settings()


def read_settings(file: Place) -> dict[str, Any]:
    """What a file says: that of a run has a table of settings, one that was written by hand need not."""
    values = read_toml_values(Path(file))
    if SETTINGS not in values and "training" in values:
        what = "this run is of a version that did not keep what it was told"
        raise HeedfulError(what, where=file, remedy="write its settings into a file of your own")
    found: dict[str, Any] = values.get(SETTINGS, values)
    return found


def write_settings(settings: Any, folder: Place) -> Path:
    """Write down what a run is to be told, in the folder where it will be; gives the file."""
    place = RunFolder(folder)
    place.check_resumable(False)
    place.path.mkdir(parents=True, exist_ok=True)
    write_toml_values({SETTINGS: storable(settings)}, place.config)
    return place.config
