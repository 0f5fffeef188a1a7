"""Fine-tuning as the settings say: one run, several seeds, or a sweep over values."""

from __future__ import annotations

from heedful.runs.finetuning.run import finetune
from heedful.runs.finetuning.seeds import run_seeds
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.sweep import run_sweep
from heedful.runs.run import Run, Stage
from heedful.runs.sharding import check_sharding


def finetune_all(settings: FinetuningSettings, stage: Stage) -> Run:
    """Carry out all runs that were asked for; of several, the best one's model and scores are those of the whole."""
    check_sharding(settings, stage.resume)
    if settings.sweep:
        return run_sweep(settings, stage)
    if settings.seeds > 1:
        return run_seeds(settings, stage).as_run
    return finetune(settings, stage)
