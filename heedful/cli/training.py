"""How a command trains: in a process that does nothing else, shown on the terminal, and stopped by signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from heedful.cli.run_options import given_options
from heedful.cli.training_display import TrainingDisplay
from heedful.runs.run import Stage
from heedful.runs.settings import Place
from heedful.runs.settings_file import settings_of, write_settings
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.signals import StopSignals

R = TypeVar("R")
S = TypeVar("S")


def told_settings(kind: type[S]) -> S:
    """What the running command is told: by its options, by --config and, with --resume, by the run in the folder."""
    options = click.get_current_context().params
    return settings_of(kind, given_options(kind), options["resume"], options["config"])


def trained(run: Callable[[Stage], R], settings: object, output: Place) -> R:
    """Carry out a run in a folder; a dry run only writes down what it would be told."""
    context = click.get_current_context()
    if context.params["dry_run"]:
        click.echo(write_settings(settings, output))
        context.exit()
    prepare_process()
    with TrainingDisplay() as display:
        resume, tensorboard = context.params["resume"], context.params["tensorboard"]
        return run(Stage(RunFolder(output), resume, display.show, tensorboard, StopSignals()))
