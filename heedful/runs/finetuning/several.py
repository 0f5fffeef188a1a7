"""A folder of several runs: what they were told together, and the model of the best of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from heedful.atomic import atomic_folder
from heedful.config import write_toml_values
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.run import first_process
from heedful.runs.settings import storable
from heedful.training.run_folder import SETTINGS, RunFolder


def keep_settings(settings: FinetuningSettings, output: Path) -> None:
    """Write down what all of the runs are told, so that they can be gone on with."""
    if first_process():
        folder = RunFolder(output)
        folder.make()
        write_toml_values({SETTINGS: storable(settings)}, folder.config)


def keep_model(best: Path, output: Path) -> None:
    """Make the model of the best run that of the whole."""
    with atomic_folder(output / "model", overwrite=True) as folder:
        shutil.copytree(best / "model", folder, dirs_exist_ok=True)
